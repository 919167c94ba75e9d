/* SPDX-License-Identifier: Apache-2.0
 *
 * One request on its way through the api: for the files of this folder.
 */
#ifndef SPUR_SPURCTLD_API_REQUEST_H
#define SPUR_SPURCTLD_API_REQUEST_H

#include "base/log.h"
#include "spurctld/api/api.h"

enum rpc_role { ROLE_ANY, ROLE_USER, ROLE_ADMIN, ROLE_NODE, ROLE_MEMBER };
enum rpc_leader { RULE_LEADER, RULE_CURRENT, RULE_SHOWN, RULE_LOCAL };
enum rpc_class { CLASS_AGENT, CLASS_WRITE, CLASS_READ };

struct request;
struct rpc_row {
    enum wire_method method;
    enum rpc_role role;
    enum rpc_leader leader;
    enum rpc_class class;
    void (*handler)(struct request *rq);
};

struct forward;

/* Where a request is that can't be answered here and now (forward.c). */
struct way {
    struct request *next, *prev; /* of those that wait for a leader */
    struct forward *out;         /* it was handed to the leader; NULL: not now */
    bool waits;
    int64_t until_ms; /* loop's clock: so long it waits; 0: it has not waited yet */
};

struct request {
    struct api *api;
    struct room *room;
    struct rpc_call *call;
    const struct rpc_row *row;
    struct who who;
    struct arena arena;
    const void *message; /* the request record */
    const void *raw;     /* its bytes; in `held`, or in the arena */
    size_t n_raw;
    void *held;
    const char *proof; /* an agent's signature; in the call's metadata, or in the arena */
    int64_t begun_us;
    struct log_about about; /* its id: what is logged for its sake says so */
    bool is_known;       /* who asks is found out, or none of our business */
    bool counts_user;    /* was counted against its user's bound */
    bool is_forwarded;   /* came from another member, which will answer its client */
    bool ran;            /* its handler had it */
    uint32_t waits_for; /* the job that an answer may wait for; 0: none */
    struct way way;
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
/* Finds out who asks, whether they may, and routes. */
void api_identify(struct request *rq);
/* Decodes where that wasn't done, and calls the handler. */
void api_run(struct request *rq);
/* The same of an agent's, whose proof is checked first. */
void api_run_for_node(struct request *rq);
const struct rpc_row *api_row(const char *path); /* NULL: none */
/* One that another member handed on: as if it had come here. `who` is known, or the agent's proof is there. */
void api_enter_forwarded(struct request *rq);

/* ---- forward.c: here, to the leader, or later ---- */

struct forwards;
struct forwards *forwards_new(struct loop *l, struct room *r);
void forwards_free(struct forwards *f);
/* All that wait are refused, and those that come from now on. What is with the leader may still be answered. */
void forwards_stop(struct forwards *f);
void forwards_set_serving(struct forwards *f, bool serving);
/* Who leads may have changed. */
void forwards_look(struct forwards *f);
struct forwards *api_forwards(struct api *a);
/* Who asks is known, and may. Runs it, hands it on, or keeps it until it can be. */
void forward_route(struct request *rq);
/* Its handler was told that we lead no more. True: it is on its way once more. */
bool forward_again(struct request *rq, int code);

/* ---- identity.c ---- */

struct identity;
struct identity *identity_new(struct room *r);
void identity_free(struct identity *id);
/* Finds out who asks; may need a look-up that blocks. `done` once, perhaps at once: 0, or E_NO_PROOF, E_BAD_PROOF, E_DENIED. */
void identity_of(struct identity *id, const struct rpc_call *call, bool is_write,
                 void (*done)(void *arg, int code, const struct err *why, const struct who *who), void *arg);
/* The signature of an agent over this body; the key is that of the node's record, or `key` at registration. */
int identity_check_node(struct identity *id, const char *proof, const char *path, const char *name, const uint8_t *key,
                        const void *body, size_t n, struct err *e);

#endif
