/* SPDX-License-Identifier: Apache-2.0
 *
 * The real runs of this node: directories and step daemons.
 */
#ifndef SPUR_SPURD_LOCAL_H
#define SPUR_SPURD_LOCAL_H

#include "spurd/launch/plan.h"
#include "spurd/steps/steps.h"

struct clock;
struct loop;
struct pool;
struct steps_local;

struct steps_local_conf {
    const char *state_dir;     /* absolute; all borrowed for the life of the thing */
    const char *cgroup_prefix; /* tells this agent's runs from those of others on the machine */
    const struct clock *clock; /* what step daemons say of time is told in its terms */
    struct launch_facts facts; /* what is the same for all runs */
};

int steps_local_new(struct loop *l, struct pool *p, const struct steps_local_conf *conf,
                    const struct steps_events *events, struct steps_local **out, struct err *e);
struct steps *steps_local_steps(struct steps_local *s);
/* Nothing is told any more, and whoever blocks in a pool returns soon. Runs are left alone. */
void steps_local_stop(struct steps_local *s);
void steps_local_free(struct steps_local *s); /* the pool is gone */

#endif
