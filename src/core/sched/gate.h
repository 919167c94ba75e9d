/* SPDX-License-Identifier: Apache-2.0
 *
 * Gates: what keeps a job from being looked at, whatever is free. Each returns an enum job_reason, REASON_NONE when
 * it lets the job pass.
 */
#ifndef SPUR_CORE_SCHED_GATE_H
#define SPUR_CORE_SCHED_GATE_H

#include "core/sched/ask.h"

/* Former run, hold, dependencies, begin time, wait after a failed launch. `out_when`: when a gate of time opens, else
 * 0. */
uint32_t gate_job(const struct job *j, int64_t now, int64_t *out_when);
/* State and limits of a partition; of the ask alone, since jobs share asks. */
uint32_t gate_partition(const struct grid_part *p, const struct ask_size *size);
/* Who may use it: groups, accounts, root alone. */
uint32_t gate_access(const struct part *p, const struct job *j);
/* Minutes: asked, else the default of the job's first partition (where it is tried first: the highest tier, and there the one
 * named first), as recorded, else the cluster's, else that partition's maximum; such a one is cut to the maximum of `p`. */
uint32_t gate_time_limit(const struct job *j, const struct part *p, const struct part *first, const struct rconf *conf);
/* The last second at which it may start, with the least limit that it takes, to end before its deadline; INT64_MAX: it
 * has none. */
int64_t gate_last_start(const struct job *j, uint32_t limit_min);

bool gate_needs_singleton(const struct job *j, int64_t now); /* let through by gate_job, still to be judged by these */
/* Jobs of one user with one name: a singleton waits for the others that run, and for those that wait and came first. */
struct singletons;
struct singletons *singletons_new(const struct view *v); /* linear in the jobs */
void singletons_free(struct singletons *s);
bool singletons_may_start(const struct singletons *s, const struct job *j);
void singletons_started(struct singletons *s, const struct job *j);

#endif
