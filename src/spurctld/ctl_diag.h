/* SPDX-License-Identifier: Apache-2.0
 *
 * The counters of sdiag that have Slurm's names, in the group "Slurm": the names are those of sdiag --json, nested ones
 * with a dot. Counts of requests by kind ("rpc NAME") and by user ("user UID") are there too.
 */
#ifndef SPUR_SPURCTLD_CTL_DIAG_H
#define SPUR_SPURCTLD_CTL_DIAG_H

#include "base/vec.h"
#include "spurctld/ctl_inside.h"

typedef VEC(struct counter) counters_list;

void ctl_diag_add(counters_list *l, const char *group, const char *name, uint64_t value, const char *unit);
void ctl_diag_slurm(struct ctl *c, counters_list *l, struct arena *a);

#endif
