/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a step's tasks go: a pure function of a view. Apply says the last word on it.
 */
#ifndef SPUR_SPURCTLD_ADMIT_LAYOUT_H
#define SPUR_SPURCTLD_ADMIT_LAYOUT_H

#include "base/arena.h"
#include "base/err.h"
#include "core/model/view.h"

/* The nodes of the step in the order of the job's, with their tasks, CPUs, memory and generic resources; in the arena.
 * E_STEP_BUSY: it fits the job, but not beside the steps that run. E_STEP_TOO_BIG, E_NODES_UNAVAIL, E_GRES: never. */
int step_layout(const struct view *v, const struct job *j, const struct step_spec *s, struct arena *a,
                const struct step_node **out, uint32_t *out_n, struct err *e);

#endif
