/* SPDX-License-Identifier: Apache-2.0
 *
 * A slow and obviously right judge of plans for small clusters: second by second, set of nodes by set of nodes. It
 * shares no code with the planner but the model's questions to nodes and partitions.
 */
#ifndef SPUR_TESTS_REFERENCE_H
#define SPUR_TESTS_REFERENCE_H

#include <stdbool.h>

#include "base/str.h"
#include "core/model/view.h"
#include "core/sched/sched.h"

#define REF_NODES 6        /* at most */
#define REF_HORIZON 4096   /* seconds after now in which everything has to happen */

/* Goes through a plan in the order of the queue. False, with the first thing that is wrong with it in `why`. Times
 * further away than the horizon are not judged. */
bool reference_check(const struct view *v, int64_t now, uint32_t promises, const struct sched_plan *p, struct str *why);

#endif
