/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/ask.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/constraint.h"
#include "core/sched/gate.h"
#include "core/sched/match.h"
#include "core/sched/timeline.h"

_Static_assert(sizeof(struct ask_size) == 120 && ASK_SIZE_PLAIN == 64, "padding would be compared");

void asks_init(struct asks *s, const struct grid *g, const struct rconf *conf, int64_t now, struct arena *scratch) {
    *s = (struct asks){.grid = g, .conf = conf, .scratch = scratch, .now = now};
}

void asks_fini(struct asks *s) {
    map64_fini(&s->by_hash);
    maps_fini(&s->features);
}

/* What it asks for of GPUs, summed up over their types. */
struct gpus {
    uint64_t node, task, job;
};

static struct gpus gpus_of(const struct job_more *m) {
    struct gpus r = {0};
    for (uint32_t i = 0; i < m->n_gres; i++) {
        const struct gres_ask *g = &m->gres[i];
        uint64_t *at = g->per == GRES_PER_TASK ? &r.task : g->per == GRES_PER_JOB ? &r.job : &r.node;
        *at += str_eq(g->name, "gpu") ? MIN(g->count, GRID_CPUS_MAX) : 0;
    }
    return r;
}

static uint32_t times(uint64_t a, uint64_t b) {
    return (uint32_t)MIN(a * b, GRID_CPUS_MAX + 1);
}

/* CPUs and memory that go with GPUs: those of a task are a task's, those of a node a node's; of those in all it is
 * known only where they are chosen. */
static void set_by_gpus(struct ask_size *a, const struct job_spec *s) {
    const struct job_seldom *d = job_spec_seldom(s);
    struct gpus g = gpus_of(job_spec_more(s));
    uint64_t mem = MIN(d->mem_gpu_mb, GRID_MEM_MAX / GRID_CPUS_MAX);
    a->node_cpus = d->min_cpus;
    if (g.task) {
        a->cpus_per_task = d->cpus_per_gpu ? times(g.task, d->cpus_per_gpu) : a->cpus_per_task;
        a->task_mem_mb = mem ? mem * g.task : a->task_mem_mb;
    } else if (g.node) {
        a->node_cpus = MAX(a->node_cpus, times(g.node, d->cpus_per_gpu));
        a->mem_mb = mem ? mem * g.node : a->mem_mb;
    } else if (g.job) {
        a->gpu_cpus = d->cpus_per_gpu;
        a->gpu_mem_mb = mem;
    }
    if (mem && (g.task || g.node || g.job))
        a->task_mem_mb = g.task ? a->task_mem_mb : 0;
}

static void set_seldom(struct ask_size *a, const struct job_spec *s) {
    const struct job_seldom *d = job_spec_seldom(s);
    a->is_seldom = 1;
    set_by_gpus(a, s);
    a->tmp_mb = d->tmp_mb;
    a->sockets = d->sockets, a->cores = d->cores, a->threads = d->threads;
    a->is_spread = d->spread;
    a->one_thread = d->one_thread;
    a->tasks_per_core = d->tasks_per_core, a->tasks_per_socket = d->tasks_per_socket;
    if (d->use_min_nodes)
        a->want_nodes = 0;
    else if (d->spread)
        a->want_nodes = a->max_nodes;
}

bool ask_fits_shape(const struct ask_size *a, uint64_t tmp_disk_mb, uint32_t sockets, uint32_t cores, uint32_t threads) {
    return tmp_disk_mb >= a->tmp_mb && sockets >= a->sockets && cores >= a->cores && threads >= a->threads;
}

static void set_memory(struct ask_size *a, const struct job_spec *s, const struct rconf *conf) {
    a->mem_all = s->mem_all;
    if (s->mem_all)
        return;
    a->mem_mb = MIN(s->mem_node_mb, GRID_MEM_MAX);
    uint64_t each = s->more ? MIN(s->more->mem_cpu_mb, GRID_MEM_MAX) : 0;
    if (!each && !a->mem_mb && conf)
        each = conf->def_mem_per_cpu_mb;
    if (each)
        a->task_mem_mb = each > GRID_MEM_MAX / a->cpus_per_task ? GRID_MEM_MAX : each * a->cpus_per_task;
}

/* A partition's least and largest node counts narrow the job's own; more nodes than tasks is never given. A range
 * without -n takes all that is free up to its end, as Slurm does. */
static void set_nodes(struct ask_size *a, const struct job_spec *s, const struct part *p) {
    a->min_nodes = MAX(MAX(s->min_nodes, p->min_nodes), 1);
    a->max_nodes = s->max_nodes ? s->max_nodes : UINT32_MAX;
    if (p->max_nodes)
        a->max_nodes = MIN(a->max_nodes, p->max_nodes);
    bool is_open = s->more && s->more->n_gres && !s->n_tasks_given && !s->max_nodes && s->n_tasks <= a->min_nodes && gpus_of(s->more).job;
    if (!s->n_tasks_given && s->max_nodes > s->min_nodes && s->n_tasks <= a->min_nodes)
        a->want_nodes = a->max_nodes;
    else if (!is_open) /* GPUs in all take as many nodes as have them, each with a task */
        a->max_nodes = MIN(a->max_nodes, a->n_tasks);
}

struct ask_size ask_size_of(const struct job *j, const struct part *p, const struct part *first, const struct rconf *conf) {
    const struct job_spec *s = j->spec;
    struct ask_size a = {0};
    a.n_tasks = job_spec_more(s)->overcommit ? MIN(MAX(s->min_nodes, 1), MAX(s->n_tasks, 1)) : MAX(s->n_tasks, 1);
    a.cpus_per_task = MAX(s->cpus_per_task, 1);
    a.limit_min = gate_time_limit(j, p, first, conf);
    set_memory(&a, s, conf);
    set_nodes(&a, s, p);
    const struct job_more *m = job_spec_more(s);
    a.tasks_per_node = m->overcommit ? 0 : m->tasks_per_node; /* of n_tasks, that is: they are not laid out here */
    a.time_min = m->time_min_min < a.limit_min ? m->time_min_min : 0;
    a.share = sharing_of_nodes(part_sharing(p, m));
    a.is_contiguous = m->contiguous;
    if (m->seldom)
        set_seldom(&a, s);
    if (m->n_task_nodes && !m->overcommit)
        a.is_seldom = a.is_dealt = 1;
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

static bool same_gres(const struct ask *a, const struct job_more *m) {
    if (!m)
        return !a->n_gres;
    if (a->n_gres != m->n_gres)
        return false;
    for (uint32_t i = 0; i < a->n_gres; i++) {
        const struct gres_ask *x = &a->gres[i], *y = &m->gres[i];
        if (x->count != y->count || x->per != y->per || !str_eq(x->name, y->name) || !str_eq(x->type, y->type))
            return false;
    }
    return true;
}

static bool same_size(const struct ask_size *a, const struct ask_size *b) {
    return memcmp(a, b, ASK_SIZE_PLAIN) == 0 &&
           (!a->is_seldom || memcmp(&a->gpu_mem_mb, &b->gpu_mem_mb, sizeof(*a) - ASK_SIZE_PLAIN) == 0);
}

static bool same(const struct ask *a, const struct ask_size *size, const struct job_spec *s, const char *features) {
    return same_size(a->asked ? a->asked : &a->size, size) && str_eq(a->features, features) && same_names(a->req, a->n_req, s->req_nodes, s->n_req_nodes) &&
           same_names(a->exc, a->n_exc, s->exc_nodes, s->n_exc_nodes) && same_gres(a, s->more) &&
           (!size->is_dealt || same_names(a->task_nodes, a->n_task_nodes, s->more->task_nodes, s->more->n_task_nodes));
}

uint32_t ask_wants(const struct gres_ask *g, uint32_t n, struct ask_want *out) {
    uint32_t n_wants = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t count = MIN(g[i].count, GRID_MEM_MAX);
        uint32_t k = 0;
        while (k < n_wants && !(str_eq(out[k].name, g[i].name) && str_eq(out[k].type, g[i].type)))
            k++;
        if (!count || k == ASK_WANTS_MAX)
            continue;
        if (k == n_wants)
            out[n_wants++] = (struct ask_want){.name = g[i].name, .type = g[i].type};
        uint64_t *at = g[i].per == GRES_PER_TASK ? &out[k].task : g[i].per == GRES_PER_JOB ? &out[k].job : &out[k].node;
        *at += count;
    }
    for (uint32_t k = 0; k < n_wants; k++) {
        if (out[k].task)
            out[k].job = 0; /* the tasks' sum is the job's */
    }
    return n_wants;
}

/* So many of each node and so many in all: that makes a number of nodes. */
static void nodes_by_gres(struct ask_size *z, const struct ask_want *w) {
    if (!w->job || !w->node)
        return;
    uint32_t n = (uint32_t)MIN((w->job + w->node - 1) / w->node, UINT32_MAX);
    z->min_nodes = MAX(z->min_nodes, n);
    z->max_nodes = MIN(z->max_nodes, n);
}

static void set_gres(struct asks *s, struct ask *a, const struct job_more *m) {
    const struct grid *g = s->grid;
    struct ask_want want[ASK_WANTS_MAX];
    a->gres = m->gres, a->n_gres = m->n_gres;
    a->n_wants = ask_wants(m->gres, m->n_gres, want);
    if (!a->n_wants)
        return;
    a->want = arena_memdup(s->scratch, want, a->n_wants * sizeof(*want));
    a->want_of = arena_calloc(s->scratch, g->n_kinds + 1, 1);
    for (uint32_t i = 0; i < a->n_wants; i++) {
        struct ask_want *w = &a->want[i];
        nodes_by_gres(&a->size, w);
        if (w->node)
            w->job = 0;
        a->n_totals += w->job != 0;
        for (uint32_t k = 0; k < g->n_kinds; k++) {
            if (!a->want_of[k] && str_eq(g->kind[k].name, w->name) && (!w->type || str_eq(g->kind[k].type, w->type)))
                a->want_of[k] = (uint8_t)(i + 1);
        }
    }
}

struct ask ask_shorter(const struct ask *a, uint32_t limit_min) {
    struct ask b = *a;
    b.size.limit_min = limit_min;
    b.secs = (int64_t)limit_min * 60;
    return b;
}

static uint64_t *bits_of(struct asks *s, const struct feature_expr *x) {
    const struct grid *g = s->grid;
    uint64_t *bits = arena_calloc(s->scratch, g->n_words + 1, sizeof(*bits));
    for (uint32_t r = 0; r < g->n_nodes; r++) {
        if (features_match(x, g->node[r].features, g->node[r].n_features))
            bits_set(bits, r);
    }
    return bits;
}

/* A text that can't be read, which admit refuses, is one that no node has. */
static const struct ask_features *features_of(struct asks *s, const char *text) {
    struct ask_features *f = maps_get(&s->features, text);
    struct features want;
    if (f)
        return f;
    f = arena_calloc(s->scratch, 1, sizeof(*f));
    if (features_parse(text, s->scratch, &want, NULL)) {
        f->all = arena_calloc(s->scratch, s->grid->n_words + 1, sizeof(*f->all));
    } else {
        f->all = bits_of(s, &want.all);
        f->n_alts = want.n_alts, f->n_groups = want.n_groups;
        f->alt = arena_calloc(s->scratch, want.n_alts + 1, sizeof(*f->alt));
        f->group = arena_calloc(s->scratch, want.n_groups + 1, sizeof(*f->group));
        f->count = arena_calloc(s->scratch, want.n_groups + 1, sizeof(*f->count));
        for (uint32_t i = 0; i < f->n_alts; i++)
            f->alt[i] = bits_of(s, &want.alt[i]);
        for (uint32_t i = 0; i < f->n_groups; i++) {
            f->group[i] = bits_of(s, &want.group[i].expr);
            f->count[i] = want.group[i].count;
        }
    }
    maps_put(&s->features, text, f);
    return f;
}

/* A job that has fewer nodes than its groups ask for gets as many as they do. */
static void nodes_by_groups(struct ask *a) {
    uint64_t n = 0;
    for (uint32_t i = 0; a->has && i < a->has->n_groups; i++)
        n += a->has->count[i];
    a->size.min_nodes = MAX(a->size.min_nodes, (uint32_t)MIN(n, UINT32_MAX));
    if (!a->size.is_bounded)
        a->size.max_nodes = MAX(a->size.max_nodes, (uint32_t)MIN(n, UINT32_MAX));
}

static void set_dealt(const struct grid *g, struct ask *a, const struct job_more *m, struct arena *scratch) {
    a->task_nodes = m->task_nodes, a->n_task_nodes = m->n_task_nodes;
    a->tasks_of = arena_calloc(scratch, g->n_nodes + 1, sizeof(*a->tasks_of));
    for (uint32_t i = 0; i < m->n_task_nodes; i++) {
        uint32_t r = grid_rank_by_name(g, m->task_nodes[i]);
        if (r != GRID_NONE)
            a->tasks_of[r]++;
    }
}

static struct ask *ask_new(struct asks *s, const struct job *j, const struct ask_size *size, const char *features) {
    struct ask *a = arena_calloc(s->scratch, 1, sizeof(*a));
    const struct job_more *m = job_spec_more(j->spec);
    const struct part *p = s->grid->part[size->part].rec;
    a->size = *size;
    a->req = j->spec->req_nodes, a->n_req = j->spec->n_req_nodes;
    a->exc = j->spec->exc_nodes, a->n_exc = j->spec->n_exc_nodes;
    a->secs = size->limit_min == TIME_LIMIT_NONE ? UNLIMITED_SECS : (int64_t)size->limit_min * 60;
    a->features = features;
    a->has = features && *features ? features_of(s, features) : NULL;
    set_gres(s, a, m);
    nodes_by_groups(a);
    a->is_special = a->n_wants || size->share != SHARE_CORES || p->max_cpus_per_node ||
                    size->node_cpus || size->one_thread || size->tasks_per_core || size->tasks_per_socket || size->is_dealt;
    if (size->is_dealt)
        set_dealt(s->grid, a, m, s->scratch);
    a->is_picky = a->size.is_contiguous || a->n_totals || (a->has && (a->has->n_alts || a->has->n_groups));
    if (!same_size(&a->size, size))
        a->asked = arena_memdup(s->scratch, size, sizeof(*size));
    match_nodes(s->grid, a, s->scratch);
    a->gate = gate_partition(&s->grid->part[size->part], &a->size);
    return a;
}

/* A limit that may be shorter ends before the deadline. */
static void meet_deadline(const struct asks *s, const struct job *j, struct ask_size *size) {
    int64_t deadline = job_spec_more(j->spec)->deadline_unix;
    if (!deadline || !size->time_min || deadline <= s->now)
        return;
    int64_t minutes = (deadline - s->now) / 60;
    if (minutes < size->limit_min)
        size->limit_min = (uint32_t)MAX(minutes, (int64_t)size->time_min);
}

static struct ask *find(struct asks *s, const struct job *j, uint32_t part, uint32_t first, const char *features) {
    struct ask_size size = ask_size_of(j, s->grid->part[part].rec, s->grid->part[first].rec, s->conf);
    const struct job_more *m = j->spec->more;
    size.part = part;
    size.is_bounded = features && j->spec->max_nodes;
    if (s->mind_users || size.share == SHARE_USER)
        size.uid = j->spec->uid + 1;
    if (m)
        meet_deadline(s, j, &size);
    uint64_t h = hash_fixed(&size, size.is_seldom ? sizeof(size) : ASK_SIZE_PLAIN);
    h = hash_names(h, j->spec->req_nodes, j->spec->n_req_nodes);
    h = hash_names(h, j->spec->exc_nodes, j->spec->n_exc_nodes);
    if (size.is_dealt)
        h = hash_names(h, m->task_nodes, m->n_task_nodes);
    if (features)
        h = hash_u64(h ^ hash_fixed(features, strlen(features)));
    for (uint32_t i = 0; m && i < m->n_gres; i++)
        h = hash_u64(h ^ m->gres[i].count ^ (uint64_t)m->gres[i].per << 60);
    struct ask *known = map64_get(&s->by_hash, h), *a = known;
    while (a && !same(a, &size, j->spec, features))
        a = a->twin;
    if (a)
        return a;
    a = ask_new(s, j, &size, features);
    a->twin = known;
    map64_put(&s->by_hash, h, a);
    return a;
}

struct ask *ask_of(struct asks *s, const struct job *j, uint32_t part, uint32_t first) {
    return find(s, j, part, first, job_spec_more(j->spec)->features);
}

struct ask *ask_preferred(struct asks *s, const struct job *j, uint32_t part, uint32_t first) {
    const char *prefer = job_spec_more(j->spec)->prefer;
    return prefer ? find(s, j, part, first, prefer) : NULL;
}
