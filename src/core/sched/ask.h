/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job asks of one partition: tasks, CPUs, memory, nodes, time. Jobs that ask the same share one struct ask, so
 * that what a pass found out about it ("doesn't fit now") is found out once, however many such jobs wait.
 */
#ifndef SPUR_CORE_SCHED_ASK_H
#define SPUR_CORE_SCHED_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/model/view.h"
#include "core/sched/grid.h"

struct ask_size { /* compared as bytes: no padding, all fields set */
    uint64_t mem_mb;      /* of each node; 0: not asked */
    uint64_t task_mem_mb; /* of each task, where mem_mb is not asked; 0: none */
    uint32_t n_tasks;
    uint32_t cpus_per_task;
    uint32_t min_nodes;
    uint32_t max_nodes;  /* never more than tasks */
    uint32_t want_nodes; /* as many of these as are free; 0: as few as do */
    uint32_t limit_min;  /* in force; TIME_LIMIT_NONE */
    uint32_t part;       /* index in the grid */
    uint32_t mem_all;    /* 0 or 1: all memory of each node */
};

struct ask {
    struct ask_size size;
    const char *const *req, *const *exc; /* names, borrowed from a job */
    uint32_t n_req, n_exc;
    int64_t secs; /* limit in seconds */
    uint64_t *may;   /* nodes of the partition that are not excluded (nor outside of a list that is only a choice) */
    uint32_t *must;  /* ranks it has to have */
    uint32_t n_must;
    bool lacks;      /* a node it has to have is not in the partition, or not here yet */
    uint32_t gate;   /* enum job_reason: why the partition doesn't take it; REASON_NONE */

    /* found out in this pass */
    bool is_judged;   /* `never` is known */
    uint32_t never;   /* enum job_reason: why it can't start even when all is idle */
    uint32_t blocked; /* the epoch in which it didn't fit */
    struct ask *twin; /* another with the same hash */
};

struct asks {
    struct map64 by_hash;
    struct arena *scratch;
    const struct grid *grid;
    const struct rconf *conf; /* may be NULL */
};
void asks_init(struct asks *s, const struct grid *g, const struct rconf *conf, struct arena *scratch);
void asks_fini(struct asks *s);
struct ask *ask_of(struct asks *s, const struct job *j, uint32_t part);

/* The parts of it, for those who have no grid. */
struct ask_size ask_size_of(const struct job *j, const struct part *p, const struct rconf *conf);
/* How many tasks fit into this much of a node of that size. Here because it is what a pass does most. */
static inline uint32_t ask_tasks_in(const struct ask_size *a, int64_t cpus, int64_t mem_mb, uint64_t node_mem_mb) {
    if (cpus < a->cpus_per_task)
        return 0;
    uint64_t node_wants = a->mem_all ? node_mem_mb : a->mem_mb;
    if (node_wants && mem_mb < (int64_t)node_wants)
        return 0;
    uint64_t tasks = a->cpus_per_task == 1 ? (uint64_t)cpus : (uint64_t)cpus / a->cpus_per_task;
    if (a->task_mem_mb)
        tasks = mem_mb > 0 ? MIN(tasks, (uint64_t)mem_mb / a->task_mem_mb) : 0;
    return (uint32_t)tasks;
}
/* Memory that n tasks take on a node; 0: not counted. */
uint64_t ask_mem(const struct ask_size *a, uint32_t n_tasks, uint64_t node_mem_mb);

#endif
