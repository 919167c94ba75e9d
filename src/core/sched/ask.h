/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job asks of one partition: tasks, CPUs, memory, nodes, time. Jobs that ask the same share one struct ask, so
 * that what a pass found out about it ("doesn't fit now") is found out once, however many such jobs wait.
 */
#ifndef SPUR_CORE_SCHED_ASK_H
#define SPUR_CORE_SCHED_ASK_H

#include <stdbool.h>
#include <stddef.h>
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
    uint8_t mem_all;     /* 0 or 1: all memory of each node */
    uint8_t is_seldom;   /* 0 or 1: some of what stands below gpu_mem_mb is set */
    uint8_t is_bounded;  /* 0 or 1: what features ask for doesn't raise max_nodes */
    uint8_t is_contiguous; /* 0 or 1: neighbours in the order of names */
    uint32_t tasks_per_node; /* at most; 0: no bound */
    uint32_t share;      /* enum job_share */
    uint32_t uid;        /* + 1, where that matters: see asks_mind_users; else 0 */
    uint32_t time_min;   /* minutes; it may be started with a limit between this and limit_min; 0: not */
    uint64_t gpu_mem_mb; /* for each GPU that it has of a node, where GPUs are asked for in all; 0: none */
    uint64_t tmp_mb;     /* a node has to have: of disk, and its shape at least */
    uint32_t node_cpus;  /* at least, of each node; 0: as its tasks need */
    uint32_t gpu_cpus;   /* as gpu_mem_mb */
    uint32_t sockets, cores, threads; /* of a node, a socket, a core */
    uint32_t is_spread;  /* 0 or 1: on as many nodes as may be */
    uint32_t one_thread; /* 0 or 1: of each core; cores are taken whole */
    uint32_t tasks_per_core, tasks_per_socket; /* at most; 0: no bound */
    uint32_t is_dealt;   /* 0 or 1: it is said which node has how many tasks (ask.tasks_of) */
};
/* What most jobs have no more than: compared and hashed for each job of a pass. */
#define ASK_SIZE_PLAIN offsetof(struct ask_size, gpu_mem_mb)

/* What it asks for of one kind of generic resource: together, if it says more than one of them. */
struct ask_want {
    const char *name, *type; /* type NULL: any */
    uint64_t node, task, job; /* of each node, for each task, in all; 0: not asked */
};
#define ASK_WANTS_MAX 16u

/* Features, by rank; one for all jobs that say the same. */
struct ask_features {
    uint64_t *all;                   /* nodes that have what each node must have */
    uint64_t **alt, **group;
    uint32_t *count;                 /* of the groups */
    uint32_t n_alts, n_groups;
};

struct ask {
    struct ask_size size;  /* in force */
    const struct ask_size *asked; /* where resources have changed the numbers of nodes: as asked, which is compared */
    const char *const *req, *const *exc; /* names, borrowed from a job */
    uint32_t n_req, n_exc;
    const char *const *task_nodes; /* with is_dealt: of each task, borrowed */
    uint32_t n_task_nodes;
    uint32_t *tasks_of;          /* with is_dealt: by rank */
    const char *features;        /* text, borrowed; NULL: none */
    const struct gres_ask *gres; /* borrowed */
    uint32_t n_gres;
    const struct ask_features *has; /* NULL: no features asked for */
    struct ask_want *want;
    uint32_t n_wants, n_totals; /* n_totals: those with `job` */
    uint8_t *want_of; /* by kind: index of the want + 1; 0: none */
    bool is_picky;    /* more than room decides which nodes go together: see select.h */
    bool is_special;  /* more than CPUs and memory decide on a node: see fit.h */
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
    struct maps features; /* struct ask_features by text */
    struct arena *scratch;
    const struct grid *grid;
    const struct rconf *conf; /* may be NULL */
    int64_t now;
    bool mind_users; /* some node is, or may be, one user's alone: asks of different users differ */
};
void asks_init(struct asks *s, const struct grid *g, const struct rconf *conf, int64_t now, struct arena *scratch);
void asks_fini(struct asks *s);
/* `first`: of its partitions, for the time limit: see gate.h. */
struct ask *ask_of(struct asks *s, const struct job *j, uint32_t part, uint32_t first);
/* By what it prefers, in place of what it asks for; NULL: it prefers nothing. */
struct ask *ask_preferred(struct asks *s, const struct job *j, uint32_t part, uint32_t first);

/* The parts of it, for those who have no grid. */
struct ask_size ask_size_of(const struct job *j, const struct part *p, const struct part *first, const struct rconf *conf);
/* What is asked for of generic resources, one for each kind, in `out` of ASK_WANTS_MAX. */
uint32_t ask_wants(const struct gres_ask *g, uint32_t n, struct ask_want *out);
/* A copy of it with a shorter limit. */
struct ask ask_shorter(const struct ask *a, uint32_t limit_min);
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
    return a->tasks_per_node ? MIN((uint32_t)tasks, a->tasks_per_node) : (uint32_t)tasks;
}
/* Memory that n tasks take on a node; 0: not counted. */
uint64_t ask_mem(const struct ask_size *a, uint32_t n_tasks, uint64_t node_mem_mb);
/* Of so many tasks those that may be on a node of so many sockets and cores of each. */
uint32_t ask_tasks_by_shape(const struct ask_size *a, uint32_t tasks, uint32_t sockets, uint32_t cores);
/* Whether a node that is so has what each must have. */
bool ask_fits_shape(const struct ask_size *a, uint64_t tmp_disk_mb, uint32_t sockets, uint32_t cores, uint32_t threads);
static inline bool ask_minds_shape(const struct ask_size *a) {
    return a->tmp_mb || a->sockets || a->cores || a->threads;
}

#endif
