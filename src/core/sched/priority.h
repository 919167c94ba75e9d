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
/* `factor`: the highest of the job's partitions. */
uint64_t priority_of(const struct priority_scale *s, const struct job *j, uint32_t factor, int64_t now);

#endif
