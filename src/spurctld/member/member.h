/* SPDX-License-Identifier: Apache-2.0
 *
 * Who the controllers are, which of them leads, and the one question of a read.
 *
 * member_read is Raft's ReadIndex: exact, and without a clock. The leader notes its commit index, then asks the others
 * whether its term is still theirs (Member.Confirm). Where a majority says so, nobody else had been elected when it asked,
 * so nothing can have been committed that it doesn't know of. At most one such round is in flight; all who ask meanwhile
 * share the next one. A follower asks the leader (Member.ReadIndex), then waits until it has applied that far.
 *
 * Everything here is on the state loop's thread; the world is struct host, the log is struct member_log.
 */
#ifndef SPUR_SPURCTLD_MEMBER_H
#define SPUR_SPURCTLD_MEMBER_H

#include "spurctld/room.h"
#include "wire/messages.h"

#define MEMBERS_MAX 9
#define MEMBER_WAIT_MS 5000 /* what a read, or a forwarded request, waits for a leader that is not ready or doesn't answer */
#define MEMBER_LOST_MS 1000 /* several elections: who knows of no leader for so long won't know one soon, but another member may */

typedef void (*member_fn)(void *arg, int code, const struct err *why);

/* The journal, as this room sees it. All on the room's loop, but term and commit_index are exact at the instant. */
struct member_log {
    void *impl;
    uint64_t (*term)(void *impl);
    uint64_t (*commit_index)(void *impl);
    uint32_t time_scale; /* milliseconds of the host's timers in one of the network's (test clock); 0: 1 */
    /* One change; `done` once, later. E_NOT_LEADER where this member doesn't lead. Also CONTROLLER_PROMOTE. */
    void (*change)(void *impl, enum controller_verb verb, uint32_t id, const char *address, member_fn done, void *arg);
    void (*removed)(void *impl); /* the leader says that this one is no member any more. May be NULL */
};

#define CONTROLLER_PROMOTE ((enum controller_verb)100) /* a spare becomes a voter; this room's own wish */

enum member_role { MEMBER_UNKNOWN, MEMBER_FOLLOWER, MEMBER_LEADER, MEMBER_SPARE };

struct member_info {
    uint32_t id;
    char address[256]; /* host:port of the port among members */
    enum member_role role;
    bool is_self, is_voter;
    uint64_t index;   /* that it was heard to have applied */
    uint64_t term;    /* heard with it */
    int64_t heard_ms; /* host's clock; 0: never */
    char version[32]; /* of its program; "": not heard yet */
};

/* What the journal says of itself, whenever it changes. */
struct member_status {
    bool is_leader; /* and all before its term is applied: reads may be answered */
    uint64_t term;
    uint32_t leader_id; /* 0: none known */
    size_t n;
    struct member_info members[MEMBERS_MAX]; /* id, address, is_voter */
};

struct members;
struct members *member_new(struct room *r);
/* Reads that wait are answered with E_STOPPING. */
void member_free(struct members *m);
/* NULL: it is gone, or not there yet; member_read then waits for one. */
void member_set_log(struct members *m, const struct member_log *log);
void member_on_status(struct members *m, const struct member_status *s);
/* All up to index (of any kind of entry) is applied here. */
void member_on_reached(struct members *m, uint64_t index);

uint32_t member_leader(const struct room *r);   /* 0: none known. Itself only once it may answer reads */
uint64_t member_term(const struct room *r);
uint64_t member_reached(const struct room *r);  /* the index up to which all is applied here */
bool member_is_alone(const struct room *r);     /* one member: nobody to ask */
size_t member_list(const struct room *r, struct member_info out[MEMBERS_MAX]);
/* One of several that has known of no leader for MEMBER_LOST_MS. What it holds, and is asked meanwhile, is refused with
 * E_NOT_LEADER, so that who asks goes to another one: this one may be cut off from the others, but not from its clients. */
bool member_is_lost(const struct room *r);

/* fn with 0 once this member's applied state holds all that was committed, anywhere, when this was called; perhaps
 * before it returns. Else E_NOT_LEADER with a sentence, after MEMBER_WAIT_MS at most, or once this member is lost. */
void member_read(struct room *r, member_fn fn, void *arg);
/* member_read goes on without that wait: fn gets the index. Only a leader has one to give. */
typedef void (*member_index_fn)(void *arg, int code, const struct err *why, uint64_t index, uint64_t term);
void member_read_index(struct room *r, member_index_fn fn, void *arg);

/* At most one member at a time makes a snapshot. fn once, perhaps before this returns: 0, the turn is this member's until
 * member_turn_end; E_BUSY: another one has it, or asks at this moment; ask again after a while that differs by member.
 * Members that don't answer are not waited for. */
void member_turn_ask(struct room *r, member_fn fn, void *arg);
void member_turn_take(struct room *r); /* without asking: what begins now can't wait */
void member_turn_end(struct room *r);

/* Handlers' sides of service Member. */
void member_confirm(struct room *r, uint32_t from, const struct confirm_request *req, struct confirm_reply *out);
void member_join(struct room *r, uint32_t from, const char *address, member_fn fn, void *arg);
/* spur controller add|remove|transfer. On the leader. */
void member_change(struct room *r, const struct controller_change *what, member_fn fn, void *arg);

#endif
