/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/ask.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/sched/gate.h"
#include "core/sched/match.h"
#include "core/sched/timeline.h"

_Static_assert(sizeof(struct ask_size) == 48, "padding would be compared");

void asks_init(struct asks *s, const struct grid *g, const struct rconf *conf, struct arena *scratch) {
    *s = (struct asks){.grid = g, .conf = conf, .scratch = scratch};
}

void asks_fini(struct asks *s) {
    map64_fini(&s->by_hash);
}

static void set_memory(struct ask_size *a, const struct job_spec *s, const struct rconf *conf) {
    a->mem_all = s->mem_all;
    if (s->mem_all)
        return;
    a->mem_mb = MIN(s->mem_node_mb, GRID_MEM_MAX);
    if (!a->mem_mb && conf)
        a->task_mem_mb = MIN((uint64_t)conf->def_mem_per_cpu_mb * a->cpus_per_task, GRID_MEM_MAX);
}

/* A partition's least and largest node counts narrow the job's own; more nodes than tasks is never given. A range
 * without -n takes all that is free up to its end, as Slurm does. */
static void set_nodes(struct ask_size *a, const struct job_spec *s, const struct part *p) {
    a->min_nodes = MAX(MAX(s->min_nodes, p->min_nodes), 1);
    a->max_nodes = s->max_nodes ? s->max_nodes : UINT32_MAX;
    if (p->max_nodes)
        a->max_nodes = MIN(a->max_nodes, p->max_nodes);
    if (!s->n_tasks_given && s->max_nodes > s->min_nodes && s->n_tasks <= a->min_nodes)
        a->want_nodes = a->max_nodes;
    else
        a->max_nodes = MIN(a->max_nodes, a->n_tasks);
}

struct ask_size ask_size_of(const struct job *j, const struct part *p, const struct rconf *conf) {
    const struct job_spec *s = j->spec;
    struct ask_size a = {0};
    a.n_tasks = MAX(s->n_tasks, 1);
    a.cpus_per_task = MAX(s->cpus_per_task, 1);
    a.limit_min = gate_time_limit(j, p, conf);
    set_memory(&a, s, conf);
    set_nodes(&a, s, p);
    return a;
}

uint64_t ask_mem(const struct ask_size *a, uint32_t n_tasks, uint64_t node_mem_mb) {
    if (a->mem_all)
        return node_mem_mb;
    return a->mem_mb ? a->mem_mb : a->task_mem_mb * n_tasks;
}

static uint64_t hash_names(uint64_t h, const char *const *name, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        h = hash_u64(h ^ hash_fixed(name[i], strlen(name[i])));
    return hash_u64(h ^ n);
}

static bool same_names(const char *const *a, uint32_t n_a, const char *const *b, uint32_t n_b) {
    if (n_a != n_b)
        return false;
    if (a == b)
        return true;
    for (uint32_t i = 0; i < n_a; i++) {
        if (strcmp(a[i], b[i]) != 0)
            return false;
    }
    return true;
}

static bool same(const struct ask *a, const struct ask_size *size, const struct job_spec *s) {
    return memcmp(&a->size, size, sizeof(*size)) == 0 && same_names(a->req, a->n_req, s->req_nodes, s->n_req_nodes) &&
           same_names(a->exc, a->n_exc, s->exc_nodes, s->n_exc_nodes);
}

static struct ask *ask_new(struct asks *s, const struct job *j, const struct ask_size *size) {
    struct ask *a = arena_calloc(s->scratch, 1, sizeof(*a));
    a->size = *size;
    a->req = j->spec->req_nodes, a->n_req = j->spec->n_req_nodes;
    a->exc = j->spec->exc_nodes, a->n_exc = j->spec->n_exc_nodes;
    a->secs = size->limit_min == TIME_LIMIT_NONE ? UNLIMITED_SECS : (int64_t)size->limit_min * 60;
    match_nodes(s->grid, a, s->scratch);
    a->gate = gate_partition(&s->grid->part[size->part], size);
    return a;
}

struct ask *ask_of(struct asks *s, const struct job *j, uint32_t part) {
    struct ask_size size = ask_size_of(j, s->grid->part[part].rec, s->conf);
    size.part = part;
    uint64_t h = hash_fixed(&size, sizeof(size));
    h = hash_names(h, j->spec->req_nodes, j->spec->n_req_nodes);
    h = hash_names(h, j->spec->exc_nodes, j->spec->n_exc_nodes);
    struct ask *first = map64_get(&s->by_hash, h), *a = first;
    while (a && !same(a, &size, j->spec))
        a = a->twin;
    if (a)
        return a;
    a = ask_new(s, j, &size);
    a->twin = first;
    map64_put(&s->by_hash, h, a);
    return a;
}
