/* SPDX-License-Identifier: Apache-2.0
 *
 * The replicated state machine: committed commands in, new state and events out. The only writer of jobs, nodes,
 * partitions and the configuration in force.
 *
 * Deterministic: the same entries give the same state, answers and digest on every machine, in every build, time zone and
 * configuration. Belongs to one thread; views of it may be read on others (base/cow.h).
 */
#ifndef SPUR_CORE_STATE_H
#define SPUR_CORE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "core/model/view.h"
#include "core/state/command.h"

struct state;

/* What happened, for those who act on it (react, acct). In the order in which it happened. */
enum event_kind {
    EV_JOB_PENDING = 1, /* new, or back: the planner has something to look at */
    EV_JOB_STARTED,     /* has nodes, is configuring: launch it */
    EV_JOB_RUNNING,     /* confirmed */
    EV_JOB_ENDING,      /* end what runs of it on nodes that are not done */
    EV_JOB_OVER,        /* final; nothing of it runs */
    EV_JOB_CHANGED,     /* held, released, dependency resolved */
    EV_JOB_PURGED,
    EV_NODE_CHANGED,    /* joined, came back, down, got free resources */
    EV_CONFIG_CHANGED,
    EV_STEP_STARTED,
    EV_STEP_ENDING,  /* end its tasks; not said when the whole job is to end: EV_JOB_ENDING says it */
    EV_STEP_OVER,    /* final; nothing of it runs */
    EV_JOB_SUSPENDED, /* stop what runs of it */
    EV_JOB_RESUMED,   /* and let it go on */
    EV_JOB_REQUEUED,  /* a run is over whose job is to be queued again; EV_JOB_PENDING follows */
    EV_STEP_CHANGED,  /* it has another time limit */
};
struct event {
    enum event_kind kind;
    uint32_t job_id, start_no, node_id;
    uint32_t step_id; /* of the EV_STEP_ ones */
};

/* The outcome of one apply; give the same struct to every call, finish it once. */
struct applied {
    int code; /* 0, or why the command changed nothing; the same on every member */
    struct err why;
    struct buf answer; /* struct answer, encoded */
    VEC(struct event) events;
    VEC(void *) lives; /* struct job, packed: one for each EV_JOB_REQUEUED, in order; as history has it */
};
void applied_fini(struct applied *r);

struct state *state_new(void);
void state_free(struct state *s); /* takes NULL. Views that are out stay good: the last of them takes the rest along */

/* Applies one committed entry. 0, or E_VERSION / E_CORRUPT when this program can't read it: then nothing was changed and
 * the member must stop (it would differ from the others). A command that is refused is no error here: see r->code. */
int state_apply(struct state *s, uint64_t index, const void *entry, size_t n, struct applied *r, struct err *e);

uint64_t state_index(const struct state *s); /* of the last entry applied */
uint64_t state_digest(const struct state *s);

void state_view(struct state *s, struct view *out); /* pins; end it with state_view_end on this thread */
void state_view_end(struct view *v);
void state_peek(const struct state *s, struct view *out); /* no pin: good until the next apply, on this thread only */

/* By name, without a scan; good until the next apply. NULL: none. */
const struct node *state_find_node(const struct state *s, const char *name);

/* The answer that a client's command got whose repeat this would be (struct answer, encoded; good until the next apply);
 * empty where it was too long to be kept. False: it is no repeat. */
bool state_answered(const struct state *s, const uint8_t token[COMMAND_TOKEN_SIZE], uint32_t uid, const void **out,
                    size_t *out_n);

struct state_stats {
    size_t jobs, nodes, tokens, bytes, waiting; /* bytes: held by records; waiting: kept for views only */
    size_t pending, running, over;
    size_t steps;
};
struct state_stats state_stats(const struct state *s);
void state_set_checking(struct state *s, bool on); /* run all invariants after each apply; slow */
int state_check(const struct state *s, struct err *e); /* 0 or the first broken invariant */

/* ---- snapshots: docs/format/snapshot.md ---- */

#define STATE_SNAPSHOT_VERSION 1u

/* Writes the view in chunks of about 64 KiB: called until it returns 0; < 0 is what `write` returned. Reads the view only, so
 * it may run on a worker thread. The same view gives the same bytes everywhere. */
typedef int (*state_write_fn)(void *arg, const void *p, size_t n, struct err *e);
int state_snapshot_write(const struct view *v, state_write_fn write, void *arg, struct err *e);

/* Into an empty state. Feed all of the file; E_CORRUPT or E_VERSION with what is wrong. */
int state_restore(struct state *s, const void *p, size_t n, struct err *e);

#endif
