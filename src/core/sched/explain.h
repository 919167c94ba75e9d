/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a job waits, in Slurm's words.
 */
#ifndef SPUR_CORE_SCHED_EXPLAIN_H
#define SPUR_CORE_SCHED_EXPLAIN_H

#include "core/sched/ask.h"
#include "core/sched/select.h"

/* Why it couldn't start even if nothing ran: nodes too few, too small, down or drained. REASON_NONE: it could. */
uint32_t explain_never(struct select *s, const struct ask *a);

/* Slurm's longer words for REASON_NODES_UNAVAIL, in the arena; NULL for others. */
const char *explain_text(const struct grid *g, const struct ask *a, uint32_t reason, struct arena *out);

/* Which of two reasons of a job in several partitions is the one to tell: the larger number. */
uint32_t explain_weight(uint32_t reason);

#endif
