/* SPDX-License-Identifier: Apache-2.0
 *
 * Priorities with the cluster's size looked up once a pass.
 */
#ifndef SPUR_CORE_SCHED_PRIORITY_H
#define SPUR_CORE_SCHED_PRIORITY_H

#include "core/model/view.h"

struct priority_scale {
    const struct rconf *conf; /* NULL: every weight is 0 */
    uint64_t n_nodes, n_cpus;
    uint32_t max_factor;
};

static inline uint32_t priority_factor(const struct part *p) {
    return p->priority_job_factor ? p->priority_job_factor : p->priority_tier;
}
/* What a priority is made of: each part is its weight times its fraction, rounded by itself; the sum is of the parts as they
 * are, and cut. */
struct priority_points {
    uint64_t age, size, partition;
    int64_t nice;
    bool is_set; /* by an administrator: the parts don't count */
};
void priority_scale_of(const struct view *v, struct priority_scale *out); /* looks at every node */
/* sched_priority, for many jobs of one view. */
uint64_t priority_in(const struct priority_scale *s, const struct view *v, const struct job *j, int64_t now_unix);
/* `factor`: of one partition. Returns the sum; 0: held. */
uint64_t priority_points_of(const struct priority_scale *s, const struct job *j, uint32_t factor, int64_t now,
                            struct priority_points *out);
/* `factor`: the highest of the job's partitions. */
uint64_t priority_of(const struct priority_scale *s, const struct job *j, uint32_t factor, int64_t now);

#endif
