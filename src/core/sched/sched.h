/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: a pure function of a view and a time. It decides which pending jobs start now and where, why the others
 * wait, and when they are expected to start. It changes nothing: its plan is proposed to the log like anyone else's
 * command, and apply refuses a start that no longer fits.
 *
 * Rules. An array that waits is one job until it starts: a pass starts as many of its tasks as fit and may run. A job with
 * --prefer is tried with those features in place of its own first, in all its partitions of a tier, then with its own; nothing is promised to it by
 * what it prefers. Licences
 * that a job waits for are kept from those behind it. Jobs are taken in the order of partition tier, then priority, then id. The first job of a partition's queue
 * that can't start now gets a promise: the earliest moment and the nodes at which it can. Later jobs may start now only
 * where that delays no promise (EASY backfill; `promises` jobs get one, 1 is EASY, more is conservative). Memory and
 * CPUs are what nodes have; a job without --mem takes no memory unless def_mem_per_cpu_mb says otherwise.
 *
 * A struct sched keeps timelines between passes and belongs to one thread at a time; the plan is in the arena given.
 */
#ifndef SPUR_CORE_SCHED_H
#define SPUR_CORE_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "core/model/view.h"
#include "core/model/why.h"

struct sched;

struct sched_start {
    uint32_t job_id;
    const char *partition;
    const struct job_node *nodes; /* node_id, name, cpus, mem_mb, n_tasks; the first one runs the script */
    uint32_t n_nodes;
    uint32_t time_limit_min; /* in force: asked, else the partition's default, else its maximum */
    uint32_t array_task;     /* + 1: which task of the array that job_id stands for; 0: job_id is the job */
    const struct license_ask *licenses; /* what it takes, where the job left the choice (`|`) */
    uint32_t n_licenses;
    bool preferred; /* on nodes of --prefer */
};

struct sched_note { /* of a job that stays; flat, to be copied as it is */
    uint32_t job_id;
    uint32_t reason;             /* enum job_reason */
    int64_t expected_start_unix; /* 0: not known */
    uint64_t priority;
};

struct sched_detail { /* what more there is to say of a few of them */
    uint32_t job_id;
    uint32_t n_nodes;
    const struct job_node *nodes; /* where it is promised to start at expected_start_unix; NULL: it has no promise */
    const char *text; /* what squeue shows instead of the reason's word, e.g.
                       * "ReqNodeNotAvail, UnavailableNodes:n[2,5]"; NULL: the word */
};

struct sched_plan {
    struct sched_start *starts;
    uint32_t n_starts;
    struct sched_note *notes; /* every pending job that is not started, ascending by id */
    uint32_t n_notes;
    struct sched_detail *details; /* ascending by id */
    uint32_t n_details;
    uint32_t n_considered; /* looked at; a job that asks the same as one that didn't fit is not: it costs nothing */
    uint32_t n_backfilled;
    bool is_cut; /* max_jobs_per_cycle (of those looked at) or max_starts was reached */
    uint64_t index; /* the view's */
    int64_t next_unix; /* until then a pass over the same view starts nothing more; 0: for ever */
};

struct sched_params {
    uint32_t promises; /* default 1 */
    uint32_t max_starts; /* default 10,000 */
};

struct sched *sched_new(const struct sched_params *params); /* NULL: defaults */
void sched_free(struct sched *s);
void sched_plan(struct sched *s, const struct view *v, int64_t now_unix, struct arena *a, struct sched_plan *out);

/* What a pending job waits for, in facts, from a pass of its own: for a worker. E_JOB_ID: it doesn't wait. In the arena. */
int sched_explain(const struct view *v, uint32_t job_id, int64_t now_unix, struct arena *a, struct why *out, struct err *e);

/* When a job, as if it was submitted now, would start beside what runs (sbatch --test-only): `start_unix` now or later.
 * E_NODES_UNAVAIL and the like: never, as nodes are. In the arena. The job's id and priority don't matter. */
struct sched_would {
    int64_t start_unix;
    uint32_t n_cpus;
    const char *partition;
    const struct job_node *nodes;
    uint32_t n_nodes;
};
int sched_would_start(const struct view *v, const struct job *j, int64_t now_unix, struct arena *a, struct sched_would *out,
                      struct err *e);

/* Multifactor priority as Slurm's, of a pending job: age, size, partition, nice; never below 1, 0 when held. */
uint64_t sched_priority(const struct view *v, const struct job *j, int64_t now_unix);

/* The time limit that a job would start with where it is tried first; 0: there is no such partition. */
uint32_t sched_time_limit(const struct view *v, const struct job *j);

/* The last second at which a job with a deadline can start in any of its partitions and end before it. */
int64_t sched_last_start(const struct view *v, const struct job *j);

/* Could this job ever run if all its partition's nodes were up and empty? 0, or the code and sentence that Slurm gives
 * at submit (E_NODES_UNAVAIL …) for admit: where the text differs from err_sentence(code), sbatch prints the text on a
 * line of its own first, e.g. for --mem=999G "Memory specification can not be satisfied". A held job has only its names
 * checked. */
int sched_possible(const struct view *v, const struct job *j, struct err *e);
/* The tasks a job puts on each of its nodes: block distribution, as SLURM_TASKS_PER_NODE shows. */
void sched_spread_tasks(uint32_t n_tasks, uint32_t cpus_per_task, struct job_node *nodes, uint32_t n_nodes);

#endif
