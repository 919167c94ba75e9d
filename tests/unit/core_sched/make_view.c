/* SPDX-License-Identifier: Apache-2.0 */
#include "make_view.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void world_init(struct world *w) {
    *w = (struct world){.next_job = 1, .next_node = 1, .next_part = 1};
    w->epochs = cow_epochs_new();
    cow_init(&w->jobs, w->epochs);
    cow_init(&w->nodes, w->epochs);
    cow_init(&w->parts, w->epochs);
    cow_init(&w->tokens, w->epochs);
    w->cluster.conf = &w->conf;
}

void world_fini(struct world *w) {
    cow_fini(&w->jobs);
    cow_fini(&w->nodes);
    cow_fini(&w->parts);
    cow_fini(&w->tokens);
    cow_epochs_free(w->epochs);
}

struct view world_view(struct world *w) {
    return (struct view){.index = ++w->index,
                         .jobs = w->jobs.root,
                         .nodes = w->nodes.root,
                         .parts = w->parts.root,
                         .tokens = w->tokens.root,
                         .cluster = &w->cluster};
}

void world_put_node(struct world *w, const struct node *n) {
    cow_put(&w->nodes, n->id, rec_pack(node_rec(), n));
}

void world_put_job(struct world *w, const struct job *j) {
    cow_put(&w->jobs, j->id, rec_pack(job_rec(), j));
}

uint32_t world_node(struct world *w, const char *name, uint32_t cpus, uint64_t mem_mb) {
    struct node n = {.id = w->next_node++, .name = name, .cpus = cpus, .mem_mb = mem_mb, .weight = 1, .base = NODE_UP};
    world_put_node(w, &n);
    return n.id;
}

uint32_t world_part(struct world *w, struct part p) {
    p.id = w->next_part++;
    cow_put(&w->parts, p.id, rec_pack(part_rec(), &p));
    return p.id;
}

static bool fill_array(const struct job_spec *spec, uint32_t id, struct job_array *out) {
    const struct job_more *m = job_spec_more(spec);
    *out = (struct job_array){.job_id = id, .pending = m->array_ranges, .n_pending = m->n_array_ranges,
                              .max_running = m->array_max_running};
    out->n = array_count(m->array_ranges, m->n_array_ranges);
    return m->n_array_ranges != 0;
}

uint32_t world_submit(struct world *w, struct job_spec spec, int64_t now) {
    if (!spec.partition)
        spec.partition = "debug";
    if (!spec.min_nodes)
        spec.min_nodes = 1;
    if (!spec.n_tasks)
        spec.n_tasks = spec.min_nodes;
    if (!spec.cpus_per_task)
        spec.cpus_per_task = 1;
    struct job j = {.id = w->next_job++, .spec = &spec, .state = JOB_PENDING, .submit_ms = now * 1000,
                    .eligible_unix = now, .nice = spec.nice, .deps = spec.deps, .n_deps = spec.n_deps};
    j.hold = spec.hold ? HOLD_USER : HOLD_NONE;
    struct job_array array;
    if (fill_array(&spec, j.id, &array))
        j.array = &array;
    world_put_job(w, &j);
    return j.id;
}

static void change_nodes(struct world *w, const struct job *j, int by) {
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        const struct node *old = cow_get(w->nodes.root, j->nodes[i].node_id);
        if (!old || j->nodes[i].is_done)
            continue;
        struct node n = *old;
        n.alloc_cpus += by > 0 ? j->nodes[i].cpus : -j->nodes[i].cpus;
        n.alloc_mem_mb += by > 0 ? j->nodes[i].mem_mb : -j->nodes[i].mem_mb;
        n.n_jobs += by > 0 ? 1u : -1u;
        world_put_node(w, &n);
    }
}

/* The task becomes a job of its own, unless it is the last that waits. */
static void put_task(struct world *w, struct job *j, uint32_t task) {
    struct job_array array;
    auto_arena a = {0};
    struct array_range one = {task, task};
    struct job head = *(const struct job *)cow_get(w->jobs.root, j->id);
    struct job_array rest = *head.array;
    rest.pending = array_without(&a, head.array->pending, head.array->n_pending, &one, 1, &rest.n_pending);
    array = (struct job_array){.job_id = head.array->job_id, .task = task + 1};
    if (!rest.n_pending)
        array = rest, array.task = task + 1;
    j->array = &array;
    if (!rest.n_pending) {
        world_put_job(w, j);
        return;
    }
    head.array = &rest;
    struct job *packed = rec_pack(job_rec(), &head); /* the old record, which j borrows from, goes with the put */
    uint32_t id = head.id;
    j->id = w->next_job++;
    world_put_job(w, j);
    cow_put(&w->jobs, id, packed);
}

void world_start(struct world *w, const struct sched_start *st, int64_t now) {
    struct job j = *(const struct job *)cow_get(w->jobs.root, st->job_id);
    j.state = JOB_RUNNING;
    j.start_no++;
    j.partition = st->partition;
    j.nodes = st->nodes;
    j.n_nodes = st->n_nodes;
    j.time_limit_min = st->time_limit_min;
    j.start_ms = now * 1000;
    struct job_rare rare = *job_rare_of(&j);
    if (st->n_licenses) {
        rare.licenses = st->licenses;
        rare.n_licenses = st->n_licenses;
        j.rare = &rare;
    }
    change_nodes(w, &j, 1);
    if (st->array_task)
        put_task(w, &j, st->array_task - 1);
    else
        world_put_job(w, &j);
}

void world_end(struct world *w, uint32_t job_id) {
    struct job j = *(const struct job *)cow_get(w->jobs.root, job_id);
    change_nodes(w, &j, -1);
    j.state = JOB_COMPLETED;
    j.completing = false;
    world_put_job(w, &j);
}

void world_completing(struct world *w, uint32_t job_id) {
    struct job j = *(const struct job *)cow_get(w->jobs.root, job_id);
    j.state = JOB_COMPLETED;
    j.completing = true;
    world_put_job(w, &j);
}

const struct sched_start *start_in(const struct sched_plan *p, uint32_t job_id) {
    for (uint32_t i = 0; i < p->n_starts; i++) {
        if (p->starts[i].job_id == job_id)
            return &p->starts[i];
    }
    return NULL;
}

const struct sched_note *note_in(const struct sched_plan *p, uint32_t job_id) {
    for (uint32_t i = 0; i < p->n_notes; i++) {
        if (p->notes[i].job_id == job_id)
            return &p->notes[i];
    }
    return NULL;
}

const struct sched_detail *detail_in(const struct sched_plan *p, uint32_t job_id) {
    for (uint32_t i = 0; i < p->n_details; i++) {
        if (p->details[i].job_id == job_id)
            return &p->details[i];
    }
    return NULL;
}
