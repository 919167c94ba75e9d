/* SPDX-License-Identifier: Apache-2.0
 *
 * A slow judge of plans over rich_world.h: it goes through the queue turn by turn, with a plain list of who holds what from
 * when to when, and tries every set of nodes. It shares nothing with the planner but the model and the priority.
 *
 * It says whether the plan starts who may start, in the order of turns, on nodes that are free for all of its time;
 * promises the earliest moment there is; and gives the right reason to everybody who stays. Which nodes a plan chooses among
 * those that do is the planner's own affair, and taken from the plan.
 */
#ifndef SPUR_TESTS_JUDGE_H
#define SPUR_TESTS_JUDGE_H

#include "rich_world.h"

/* False: *why says what is wrong. *seen: jobs that were judged to the end, for who counts what a test has covered. */
bool judge_plan(const struct view *v, int64_t now, uint32_t promises, const struct sched_plan *p, struct str *why,
                uint32_t *seen);

#endif
