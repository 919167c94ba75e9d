/* SPDX-License-Identifier: Apache-2.0
 *
 * sacct's filters by what a job had or asked for: sizes, limits, groups, reasons, features.
 */
#ifndef SPUR_SPUR_SACCT_MORE_H
#define SPUR_SPUR_SACCT_MORE_H

#include "spur/cli.h"
#include "spur/job_facts.h"

struct sacct_more {
    const char *cpus, *nodes, *limit_min, *limit_max, *groups, *reasons, *features; /* as given; NULL: any */
    uint32_t cpus_at[2], nodes_at[2], limit_at[2]; /* from … to; limits in minutes */
    const char *const *group, *const *reason, *const *feature;
    uint32_t n_group, n_reason, n_feature;
};

/* false: said what is wrong. */
bool sacct_more_read(struct cli *c, struct sacct_more *m);
bool sacct_more_wants(const struct sacct_more *m, const struct job_info *ji);

#endif
