/* SPDX-License-Identifier: Apache-2.0
 *
 * One event loop, for one thread (libuv underneath).
 *
 * It measures its own gaps: the time between two moments at which it could have taken a new event. Unless a function
 * says otherwise it may be called on the loop's thread only.
 */
#ifndef SPUR_IO_LOOP_H
#define SPUR_IO_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct uv_loop_s;
struct loop;

struct loop *loop_new(const char *name); /* name: borrowed, for logs and statistics. Ignores SIGPIPE for the process. */
/* The loop is stopped. Handles that were not closed are closed here; functions that were posted and did not run are
 * dropped, as are timers. */
void loop_free(struct loop *l);
struct uv_loop_s *loop_uv(struct loop *l);
int64_t loop_now_ms(struct loop *l); /* monotonic, read fresh */

void loop_run(struct loop *l);  /* until loop_stop; at once when that was called before */
void loop_stop(struct loop *l); /* any thread; ends after the turn that sees it */
/* For clients: runs until done(arg), which is asked once a turn. false: time ran out, or loop_stop was called. Neither
 * this nor loop_run may be called from a function that the loop calls. */
bool loop_run_until(struct loop *l, bool (*done)(void *arg), void *arg, uint64_t timeout_ms);

/* Any thread: runs fn(arg) on the loop's thread, in the order of the calls. Never fails, never blocks. */
void loop_post(struct loop *l, void (*fn)(void *arg), void *arg);

/* Calls n->fn(n) on the loop's thread once, before the loop waits for events or returns: for what is gathered during a
 * turn and done together, such as writing. The node is the caller's (an all-zero one with `fn` set) and free again when
 * fn is called; queueing a queued one does nothing. One that is queued by a late function runs in the same turn. */
struct loop_late {
    void (*fn)(struct loop_late *n);
    struct loop_late *next, *prev; /* the loop's; NULL while not queued */
};
void loop_late(struct loop *l, struct loop_late *n);
void loop_late_cancel(struct loop_late *n);

/* A number that differs in different turns. */
uint64_t loop_turn(const struct loop *l);

/* One buffer for the whole loop: for what is read or gathered and dealt with before the function of the loop that asked
 * for it returns. Whoever takes it overwrites what the last one left. */
struct buf *loop_scratch(struct loop *l);

/* One-shot timer. Dead once fn is called or loop_timer_stop returns. */
struct loop_timer;
struct loop_timer *loop_timer_start(struct loop *l, uint64_t delay_ms, void (*fn)(void *arg), void *arg);
void loop_timer_stop(struct loop_timer *t); /* takes NULL */

/* fn(arg, signo) on the loop's thread. A second registration of the same signal takes the place of the first. */
void loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg);

/* A pool of threads of its own for what blocks. `work` on a worker, then `done` on the loop's thread. Jobs of one pool
 * with one thread run in order. The pool must outlive what was put into it; pool_free waits for all `work` to end, and
 * then every `done` is posted (it runs if its loop still does). `done` may be NULL. Workers take no signals. */
struct pool;
struct pool *pool_new(const char *name, unsigned n_threads);
void pool_free(struct pool *p);
/* Any thread. */
void pool_run(struct pool *p, struct loop *back_to, void (*work)(void *arg), void (*done)(void *arg), void *arg);
size_t pool_waiting(struct pool *p); /* any thread */

struct loop_stats {
    uint64_t turns;      /* since the loop was made */
    uint64_t gap_max_us; /* longest since the last reset */
    uint64_t gap_p99_us; /* over the last 4,096 turns since the last reset */
    uint64_t posted_max; /* longest queue of posted functions since the last reset */
};
struct loop_stats loop_stats(struct loop *l); /* any thread */
void loop_stats_reset(struct loop *l);

#endif
