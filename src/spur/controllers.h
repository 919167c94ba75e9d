/* SPDX-License-Identifier: Apache-2.0
 *
 * What the controllers say of themselves, and of each other: for `spur controller` and `scontrol ping`.
 */
#ifndef SPUR_SPUR_CONTROLLERS_H
#define SPUR_SPUR_CONTROLLERS_H

#include "spur/cli.h"

#define CONTROLLERS_MAX 16
#define CONTROLLER_PING_MS 1500 /* what one controller may take: one that stands still is DOWN after that */

struct controller_seen {
    uint32_t id;         /* 0: it has not said */
    const char *address; /* host:port among controllers; where nobody answers, the address that was asked */
    const char *host;
    const char *role; /* leader, follower, candidate, starting, spare; "": not known */
    const char *version;
    uint64_t term, index; /* where it does not answer: as others last heard */
    uint64_t latency_us;
    bool is_up, was_asked; /* asked: it answered this command itself */
};

struct controllers_seen {
    struct controller_seen at[CONTROLLERS_MAX]; /* by id */
    size_t n;
    bool is_answered;     /* at least one answered */
    uint32_t leader_id;   /* 0: none is known */
    const char *cluster;  /* its name; "": nobody answered */
    const char *hostname; /* of the machine of the one that answered first */
    struct err why;       /* where nobody answers */
};

/* Asks each that the command knows of, in turn; the rest is told by those. All of it is in the command's arena. 0, or an
 * error of the list of controllers itself. */
int controllers_see(struct cli *c, struct controllers_seen *out, struct err *e);

#endif
