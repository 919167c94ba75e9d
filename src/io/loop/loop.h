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

#include "base/err.h"

struct uv_loop_s;
struct loop;

struct loop *loop_new(const char *name); /* name: borrowed, for logs and statistics. Ignores SIGPIPE for the process. */
void loop_free(struct loop *l);          /* stopped; handles that were not closed are closed here */
struct uv_loop_s *loop_uv(struct loop *l);
int64_t loop_now_ms(struct loop *l); /* monotonic, read fresh */

void loop_run(struct loop *l);  /* until loop_stop */
void loop_stop(struct loop *l); /* any thread */
bool loop_run_until(struct loop *l, bool (*done)(void *arg), void *arg, uint64_t timeout_ms); /* for clients; false: time ran out */

/* Any thread: runs fn(arg) on the loop's thread, in the order of the calls. Never fails, never blocks. */
void loop_post(struct loop *l, void (*fn)(void *arg), void *arg);

/* One-shot timer. Dead once fn is called or loop_timer_stop returns. */
struct loop_timer;
struct loop_timer *loop_timer_start(struct loop *l, uint64_t delay_ms, void (*fn)(void *arg), void *arg);
void loop_timer_stop(struct loop_timer *t); /* takes NULL */

/* fn(signo) on the loop's thread. */
void loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg);

/* A pool of threads of its own for what blocks. `work` on a worker, then `done` on the loop's thread. Jobs of one pool
 * with one thread run in order. The pool must outlive what was put into it; pool_free waits for it. */
struct pool;
struct pool *pool_new(const char *name, unsigned n_threads);
void pool_free(struct pool *p);
void pool_run(struct pool *p, struct loop *back_to, void (*work)(void *arg), void (*done)(void *arg), void *arg);
size_t pool_waiting(struct pool *p); /* any thread */

struct loop_stats {
    uint64_t turns;
    uint64_t gap_max_us;       /* longest since the last reset */
    uint64_t gap_p99_us;       /* over the last 4,096 turns that did something */
    uint64_t posted_max;       /* longest queue of posted functions */
};
struct loop_stats loop_stats(struct loop *l); /* any thread */
void loop_stats_reset(struct loop *l);

#endif
