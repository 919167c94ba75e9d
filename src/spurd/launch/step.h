/* SPDX-License-Identifier: Apache-2.0
 *
 * From a step's ticket (the controller's word) and what its client wants executed to what the step daemon is told: pure.
 */
#ifndef SPUR_SPURD_LAUNCH_STEP_H
#define SPUR_SPURD_LAUNCH_STEP_H

#include "spurd/launch/plan.h"
#include "wire/stream.h"

/* As launch_plan. facts.cgroup is the job's. */
int launch_step_plan(const struct step_ticket *k, const struct stream_launch *l, const struct launch_facts *f,
                     struct arena *a, struct step_plan *out, struct err *e);

#endif
