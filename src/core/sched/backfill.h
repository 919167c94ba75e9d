/* SPDX-License-Identifier: Apache-2.0
 *
 * Where and when a job can start, given what runs, what this pass has started, and what it has promised. The rules are
 * in backfill.c.
 */
#ifndef SPUR_CORE_SCHED_BACKFILL_H
#define SPUR_CORE_SCHED_BACKFILL_H

#include "core/sched/ask.h"
#include "core/sched/select.h"
#include "core/sched/timeline.h"

/* Nodes on which it can start now and run to its limit without delaying a promise: in s->pick, what it takes of them in
 * s->claim. False: none. */
bool backfill_now(const struct board *b, struct select *s, const struct ask *a);
/* The same with the longest limit, between its time_min and its own, that it can have; minutes, or 0: none. */
uint32_t backfill_shortened(const struct board *b, struct select *s, const struct ask *a);
/* The earliest moment after now at which it can, and the nodes in s->pick. 0: never while nodes stay as they are. */
int64_t backfill_earliest(const struct board *b, struct select *s, const struct ask *a, struct arena *scratch);

/* Puts what s->pick and s->claim say on the board. */
void backfill_start(struct board *b, const struct select *s, const struct ask *a);
void backfill_promise(struct board *b, const struct select *s, const struct ask *a, uint32_t job_id, int64_t from);

#endif
