/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes of its partition may serve a job at all, by name.
 */
#ifndef SPUR_CORE_SCHED_MATCH_H
#define SPUR_CORE_SCHED_MATCH_H

#include "core/sched/ask.h"

/* Fills in may, must and lacks. */
void match_nodes(const struct grid *g, struct ask *a, struct arena *scratch);

#endif
