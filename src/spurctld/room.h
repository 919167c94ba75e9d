/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rooms of the controller share. A room sees the world only through `host`, the state only through `state`
 * (reading it; commands go through host->propose), and other rooms only through their headers.
 *
 * Everything here is on the state loop's thread.
 */
#ifndef SPUR_SPURCTLD_ROOM_H
#define SPUR_SPURCTLD_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host.h"
#include "core/model/config.h"
#include "core/state/state.h"
#include "io/cred/cred.h"
#include "spurctld/tally.h"

/* Who asks, and how sure we are. */
struct who {
    uint32_t uid, gid;
    char user[64], group[64];
    bool is_proven; /* by the kernel or a valid token */
    bool is_admin;  /* root or one of [auth] admins, and proven (or believed, where authentication is off) */
};

struct room {
    struct host *host;
    struct state *state;
    const struct conf *conf; /* this member's file: local part, and the replicated part that it offers */
    uint32_t member_id;
    bool is_leader;          /* and ready: the state is current, keys and configuration are there. See room_lead */
    struct cred_key launch_key; /* of the cluster; valid while is_leader */
    struct secret jwt, jwt_old; /* keys of tokens: the one in use, the one of before. Empty: none */

    struct admit *admit;
    struct lead *lead;
    struct plan *plan;
    struct react *react;
    struct acct *acct;
    struct query *query;
    struct catchup *catchup; /* NULL: not there (tests of rooms) */
    struct members *member; /* NULL: one controller, alone (tests of rooms) */
    struct tally tally;
    int64_t complained_ms; /* host's clock; 0: never */
};

/* Encodes and proposes. `token` NULL: not a client's. */
void room_propose(struct room *r, enum command c, const void *record, uint32_t uid, const uint8_t *token,
                  host_proposed_fn fn, void *arg);
/* For proposals whose outcome shows itself in the events. */
void room_propose_quietly(struct room *r, enum command c, const void *record);
/* The same with room_propose: a host_proposed_fn whose argument is the command's number, as a pointer. */
void room_ignore(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n);

/* All rooms: from here to room_follow this member serves writes and makes things happen. */
void room_lead(struct room *r);
void room_follow(struct room *r); /* takes one that does not lead */
/* What an entry has changed, to all who act on it. */
void room_tell(struct room *r, uint64_t index, const struct applied *what);

/* --signal, to what runs of a job: the clock says when, react how. */
void room_warn_job(struct room *r, const struct job *j);

/* An error that an operator should see, from a place that may meet it thousands of times a second: one line in ten
 * seconds is logged. */
void room_complain(struct room *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline int64_t room_now_unix(const struct room *r) {
    return r->host->unix_ms(r->host->impl) / 1000;
}
/* The replicated configuration in force; never NULL (a zeroed one before the first). Valid until the next apply. */
const struct rconf *room_rconf(const struct room *r);

#endif
