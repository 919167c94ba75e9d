/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the planner: a pinned view goes to a worker, its plan comes back and is proposed in bounded batches. What the
 * plan says of jobs that stay (why, since when, expected when) is kept for those who ask; it is not state.
 *
 * A pass begins as soon as something happened that could let a job start, at most one at a time, with a rest of three
 * times the last pass's length (2 ms at least) behind it; and every interval_secs, unless nothing has changed and no time
 * has come that the last plan named. A start that apply refuses is planned anew, after a pause that doubles.
 */
#ifndef SPUR_SPURCTLD_PLAN_H
#define SPUR_SPURCTLD_PLAN_H

#include "core/sched/sched.h"
#include "spurctld/room.h"

struct plan *plan_new(struct room *r);
void plan_free(struct plan *p); /* no pass may be out: stop the worker first */
void plan_begin(struct plan *p);
void plan_end(struct plan *p);
void plan_on_event(struct plan *p, const struct event *ev);

struct plan_stats {
    uint64_t passes, skipped, last_us, max_us, total_us; /* skipped: nothing had changed */
    uint64_t started, refused, backfilled;
    uint64_t considered, pending; /* of all passes together */
    int64_t last_unix;            /* 0: none yet */
    uint32_t last_considered, last_pending;
    bool running;
};
struct plan_stats plan_stats(const struct plan *p);
void plan_stats_reset(struct plan *p);

/* What the newest pass says of the jobs that it left; NULL: there was none. Taken and dropped on the loop's thread, as the
 * state's views are; between the two it never changes and may be read on any thread. Drop takes NULL. */
struct plan_notes;
struct plan_notes *plan_notes_take(struct plan *p);
void plan_notes_drop(struct plan_notes *n);
const struct sched_note *plan_note(const struct plan_notes *n, uint32_t job_id); /* NULL: none; `n` may be NULL */
/* Whether a job that waits is promised this node. */
bool plan_is_promised(const struct plan_notes *n, uint32_t node_id);
/* What more there is to say of it: where it is promised to start, why in so many words; or NULL. */
const struct sched_detail *plan_detail(const struct plan_notes *n, uint32_t job_id);

#endif
