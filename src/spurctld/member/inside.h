/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder share.
 */
#ifndef SPUR_SPURCTLD_MEMBER_INSIDE_H
#define SPUR_SPURCTLD_MEMBER_INSIDE_H

#include "base/mem.h"
#include "base/vec.h"
#include "spurctld/member/member.h"
#include "wire/methods.h"

#define CONFIRM_MS 300u /* of a round; a follower that stands still is not waited for longer */
#define ASK_MS 1000u
#define AGAIN_MS 20u /* between two rounds that came to nothing */
#define BEAT_MS 500u /* how often each asks each what it has */
#define HEARD_MS 3000
#define REMOVED_TIMES 3 /* beats in which others must have said that one is no member: a change may be half way */

struct waiter {
    struct waiter *next, *prev;
    struct members *m;
    struct waiters *in;
    struct host_timer *limit;
    uint64_t index, term; /* once known */
    member_fn fn;         /* of a read */
    member_index_fn index_fn;
    void *arg;
    bool has_index;
};
struct waiters {
    struct waiter *first, *last;
};

/* One question to the others, or to the leader. Lives until the last reply is there. */
struct round {
    struct members *m; /* NULL: nobody waits for it any more */
    unsigned refs, yes, need, open;
    uint32_t asked; /* the leader; 0: all, by us who lead */
    uint64_t term, index;
};

struct members {
    struct room *room;
    const struct member_log *log;
    struct member_log log_copy;
    struct member_status st;
    uint64_t reached;
    struct waiters queued, flying, applying;
    struct round *round;
    struct host_timer *again, *limit, *beat, *losing;
    bool is_changing, is_closing, is_lost;
    bool says_removed, says_member; /* what others said of us since the last beat */
    enum { TURN_NONE, TURN_ASKS, TURN_HAS } turn;
    struct turn_ask *turn_ask; /* while it asks */
    unsigned removed_said;
};

/* read.c */
void read_look(struct members *m); /* something changed: begin a round, answer who can be answered */
void read_end_all(struct members *m, int code);

/* change.c */
void change_beat(struct members *m); /* on the leader: spares that are there become voters */

/* turn.c */
void turn_end_all(struct members *m);

struct member_info *member_find(struct members *m, uint32_t id);
void member_heard(struct members *m, uint32_t id, const struct confirm_reply *r);
struct host_timer *member_timer(struct members *m, uint64_t ms, void (*fn)(void *arg), void *arg);
void member_timer_stop(struct members *m, struct host_timer **t);
/* Sends a record of the method; the reply is fn's to decode. */
void member_call(struct members *m, uint32_t id, enum wire_method method, const void *record, uint64_t timeout_ms,
                 host_reply_fn fn, void *arg);

#endif
