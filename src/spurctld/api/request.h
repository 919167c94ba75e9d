/* SPDX-License-Identifier: Apache-2.0
 *
 * One request on its way through the api: for the files of this folder.
 */
#ifndef SPUR_SPURCTLD_API_REQUEST_H
#define SPUR_SPURCTLD_API_REQUEST_H

#include "base/log.h"
#include "spurctld/api/api.h"

enum rpc_role { ROLE_ANY, ROLE_USER, ROLE_ADMIN, ROLE_NODE };
enum rpc_leader { RULE_LEADER, RULE_CURRENT, RULE_LOCAL };
enum rpc_class { CLASS_AGENT, CLASS_WRITE, CLASS_READ };

struct request;
struct rpc_row {
    enum wire_method method;
    enum rpc_role role;
    enum rpc_leader leader;
    enum rpc_class class;
    void (*handler)(struct request *rq);
};

struct request {
    struct api *api;
    struct room *room;
    struct rpc_call *call;
    const struct rpc_row *row;
    struct who who;
    struct arena arena;
    const void *message; /* the request record */
    void *raw;           /* its bytes, while who asks is being found out */
    size_t n_raw;
    int64_t begun_us;
    struct log_about about; /* its id: what is logged for its sake says so */
    bool counts_user; /* was counted against its user's bound */
    uint32_t waits_for; /* the job that an answer may wait for; 0: none */
};

/* The end of a request, exactly once. */
void api_reply(struct request *rq, const void *record);
void api_reply_bytes(struct request *rq, const void *p, size_t n);
void api_fail(struct request *rq, int code, const struct err *why);
/* The same, as the rooms' callbacks: admit_fn and query_fn, with the request as `arg`. */
void api_on_record(void *arg, int code, const struct err *why, const void *reply);
void api_on_bytes(void *arg, int code, const struct err *why, const void *reply, size_t n);

#define RPC(service, name, role, leader, class, handler) void handler(struct request *rq);
#include "spurctld/api/rpc.def"
#undef RPC

const struct api_ctl *api_ctl_of(const struct api *a);

/* ---- identity.c ---- */

struct identity;
struct identity *identity_new(struct room *r);
void identity_free(struct identity *id);
/* Finds out who asks; may need a look-up that blocks. `done` once, perhaps at once: 0, or E_NO_PROOF, E_BAD_PROOF, E_DENIED. */
void identity_of(struct identity *id, const struct rpc_call *call, bool is_write,
                 void (*done)(void *arg, int code, const struct err *why, const struct who *who), void *arg);
/* The signature of an agent over this body; the key is that of the node's record, or `key` at registration. */
int identity_check_node(struct identity *id, const struct rpc_call *call, const char *path, const char *name,
                        const uint8_t *key, const void *body, size_t n, struct err *e);

#endif
