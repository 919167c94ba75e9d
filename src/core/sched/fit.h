/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of a job fits on a node, where more than free CPUs and memory decides: generic resources, whom a node may be
 * shared with, a partition's bound on CPUs. Who has whom beside it:
 *
 *     SHARE_CORES   any job that takes CPUs of its own
 *     SHARE_USER    those of the same user
 *     SHARE_NONE    nobody: it has all CPUs, and all generic resources
 *     SHARE_OVER    only its like: those of a partition may together have so many times the node's CPUs as it says, whatever
 *                   those of others have (as recorded); memory once
 *
 * A plain job on a node that has no special ones never comes here.
 */
#ifndef SPUR_CORE_SCHED_FIT_H
#define SPUR_CORE_SCHED_FIT_H

#include "core/sched/ask.h"
#include "core/sched/timeline.h"

/* What is left of a node, for one ask, all through a window. */
struct fit {
    int64_t cpus, mem_mb;
    int64_t gres[GRID_SLOTS_MAX]; /* by slot */
    int64_t part_cpus;            /* that jobs of its partition have there */
    bool is_barred;               /* somebody is there who isn't to be shared with */
};

/* From `from` until before `to`. */
void fit_look(const struct board *b, const struct ask *a, uint32_t rank, int64_t from, int64_t to, struct fit *out);
void fit_look_empty(const struct grid *g, uint32_t rank, struct fit *out);
/* Tasks that find room in it. */
uint32_t fit_tasks(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f);
/* How many of what the i-th want asks for are free. */
uint64_t fit_free(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f, uint32_t want);
/* How many of what the i-th want asks for in all the node could give. */
uint64_t fit_spare(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f, uint32_t want);
/* What n tasks take. `given`: by want, of those asked for in all; NULL: none is. `f`: where generic resources come from;
 * NULL where none are asked for. */
struct claim fit_claim(const struct grid *g, const struct ask *a, uint32_t rank, uint32_t n_tasks, const uint64_t *given,
                       const struct fit *f, struct arena *scratch);

#endif
