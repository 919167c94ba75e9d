/* SPDX-License-Identifier: Apache-2.0
 *
 * A little cluster for tests of the planner: tables of records as core/state keeps them, changed directly, and the few
 * moves that the state machine would make (a start, an end). Shared by unit tests, property tests and the benchmark.
 */
#ifndef SPUR_TESTS_MAKE_VIEW_H
#define SPUR_TESTS_MAKE_VIEW_H

#include "core/model/view.h"
#include "core/sched/sched.h"

struct world {
    struct cow_epochs *epochs;
    struct cow_table jobs, nodes, parts, tokens;
    struct cluster cluster;
    struct rconf conf;
    uint32_t next_job, next_node, next_part;
    uint64_t index;
};

void world_init(struct world *w);
void world_fini(struct world *w);
struct view world_view(struct world *w);

void world_put_node(struct world *w, const struct node *n);
void world_put_job(struct world *w, const struct job *j);
uint32_t world_node(struct world *w, const char *name, uint32_t cpus, uint64_t mem_mb); /* up; returns the id */
uint32_t world_part(struct world *w, struct part p);                                   /* id is given */
/* A pending job, ids in order; spec.partition NULL is "debug", n_tasks and nodes get what admit gives. */
uint32_t world_submit(struct world *w, struct job_spec spec, int64_t now);
void world_start(struct world *w, const struct sched_start *st, int64_t now);
void world_end(struct world *w, uint32_t job_id); /* over, nodes free */
void world_completing(struct world *w, uint32_t job_id);

/* NULL: not started, no note, nothing more to say */
const struct sched_start *start_in(const struct sched_plan *p, uint32_t job_id);
const struct sched_note *note_in(const struct sched_plan *p, uint32_t job_id);
const struct sched_detail *detail_in(const struct sched_plan *p, uint32_t job_id);

#endif
