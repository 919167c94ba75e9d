/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/fit.h"

#include <string.h>

#include "base/mem.h"

/* Jobs that are there at one moment, summed up for an ask. */
struct crowd {
    const struct board *board;
    const struct ask *ask;
    uint32_t rank;
    struct fit fit;
};

static bool may_share(const struct ask *a, const struct claim *c) {
    uint32_t mine = a->size.share, theirs = c->share;
    if (mine == SHARE_NONE || theirs == SHARE_NONE)
        return false;
    if ((mine == SHARE_OVER) != (theirs == SHARE_OVER))
        return false;
    if (mine == SHARE_USER || theirs == SHARE_USER)
        return a->size.uid == c->uid + 1;
    return true;
}

static void see(void *arg, const struct claim *c) {
    struct crowd *w = arg;
    struct fit *f = &w->fit;
    bool is_beside = w->ask->size.share == SHARE_OVER && c->share == SHARE_OVER && c->part != w->ask->size.part;
    if (!is_beside)
        f->cpus -= c->cpus;
    f->mem_mb -= c->mem_mb;
    f->is_barred |= !may_share(w->ask, c);
    if (c->part == w->ask->size.part)
        f->part_cpus += c->cpus;
    for (uint32_t i = 0; c->gres && i < w->board->grid->node[w->rank].n_slots; i++)
        f->gres[i] -= (int64_t)c->gres[i];
}

void fit_look_empty(const struct grid *g, uint32_t rank, struct fit *out) {
    const struct grid_node *n = &g->node[rank];
    out->cpus = n->cpus;
    out->mem_mb = (int64_t)n->mem_mb;
    out->part_cpus = 0;
    out->is_barred = false;
    for (uint32_t i = 0; i < n->n_slots; i++)
        out->gres[i] = (int64_t)n->slot[i].count;
}

static void look_at(struct crowd *w, int64_t x) {
    fit_look_empty(w->board->grid, w->rank, &w->fit);
    if (w->ask->size.share == SHARE_OVER)
        w->fit.cpus *= w->board->grid->part[w->ask->size.part].rec->over_count;
    board_see(w->board, w->rank, x, see, w);
}

static void narrow(struct fit *f, const struct fit *by, uint32_t n_slots) {
    f->cpus = MIN(f->cpus, by->cpus);
    f->mem_mb = MIN(f->mem_mb, by->mem_mb);
    f->part_cpus = MAX(f->part_cpus, by->part_cpus);
    f->is_barred |= by->is_barred;
    for (uint32_t i = 0; i < n_slots; i++)
        f->gres[i] = MIN(f->gres[i], by->gres[i]);
}

/* Between two beginnings of promises room only grows. */
void fit_look(const struct board *b, const struct ask *a, uint32_t rank, int64_t from, int64_t to, struct fit *out) {
    struct crowd w = {.board = b, .ask = a, .rank = rank};
    const struct block *cursor = NULL;
    int64_t x;
    look_at(&w, from);
    *out = w.fit;
    while (!out->is_barred && board_next_begin(b, rank, from, to, &cursor, &x)) {
        look_at(&w, x);
        narrow(out, &w.fit, b->grid->node[rank].n_slots);
    }
}

/* CPUs that it may have there. */
static int64_t cpus_left(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f) {
    uint32_t most = g->part[a->size.part].rec->max_cpus_per_node;
    int64_t cpus = a->size.share == SHARE_OVER ? MIN(f->cpus, (int64_t)g->node[rank].cpus) : f->cpus;
    return most ? MIN(cpus, (int64_t)most - f->part_cpus) : cpus;
}

/* CPUs that go with one that a job uses. */
static uint32_t threads_of(const struct grid_node *n, const struct ask *a) {
    return a->size.one_thread ? MAX(n->threads, 1u) : 1;
}

/* Memory for one CPU, where it is asked for so. */
static uint64_t cpu_mem(const struct ask *a) {
    return a->size.task_mem_mb / a->size.cpus_per_task;
}

uint32_t ask_tasks_by_shape(const struct ask_size *a, uint32_t tasks, uint32_t sockets, uint32_t cores) {
    if (a->tasks_per_core)
        tasks = (uint32_t)MIN(tasks, (uint64_t)sockets * cores * a->tasks_per_core);
    if (a->tasks_per_socket)
        tasks = (uint32_t)MIN(tasks, (uint64_t)sockets * a->tasks_per_socket);
    return tasks;
}

uint64_t fit_free(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f, uint32_t want) {
    const struct grid_node *n = &g->node[rank];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n->n_slots; i++) {
        if (a->want_of[n->slot[i].kind] == want + 1 && f->gres[i] > 0)
            sum += (uint64_t)f->gres[i];
    }
    return sum;
}

static bool is_gpu(const struct ask_want *w) {
    return str_eq(w->name, "gpu");
}

/* GPUs asked for in all bring their CPUs and memory with them. */
uint64_t fit_spare(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f, uint32_t want) {
    uint64_t n = a->want[want].job ? fit_free(g, a, rank, f, want) : 0;
    if (n && a->size.gpu_cpus && is_gpu(&a->want[want]))
        n = MIN(n, (uint64_t)MAX(cpus_left(g, a, rank, f), 0) / a->size.gpu_cpus);
    if (n && a->size.gpu_cpus && is_gpu(&a->want[want]) && cpu_mem(a))
        n = MIN(n, (uint64_t)MAX(f->mem_mb, 0) / (cpu_mem(a) * a->size.gpu_cpus));
    if (n && a->size.gpu_mem_mb && is_gpu(&a->want[want]))
        n = MIN(n, (uint64_t)MAX(f->mem_mb, 0) / a->size.gpu_mem_mb);
    return n;
}

static uint32_t by_gres(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f, uint32_t tasks) {
    for (uint32_t i = 0; i < a->n_wants && tasks; i++) {
        const struct ask_want *w = &a->want[i];
        uint64_t have = fit_free(g, a, rank, f, i);
        if (have < w->node || !have)
            return 0;
        if (w->task)
            tasks = (uint32_t)MIN(tasks, have / w->task);
    }
    return tasks;
}

uint32_t fit_tasks(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f) {
    const struct grid_node *n = &g->node[rank];
    int64_t cpus = cpus_left(g, a, rank, f);
    uint32_t most = g->part[a->size.part].rec->max_cpus_per_node;
    if (f->is_barred || cpus < (int64_t)a->size.node_cpus || (a->size.node_cpus && f->mem_mb < (int64_t)(cpu_mem(a) * a->size.node_cpus)))
        return 0;
    if (a->size.share == SHARE_NONE) { /* all of them; memory for all of them */
        uint64_t all = cpu_mem(a) * n->cpus;
        if ((most && most < n->cpus) || (int64_t)all > f->mem_mb)
            return 0;
    }
    uint32_t threads = threads_of(n, a);
    uint32_t tasks = ask_tasks_in(&a->size, cpus / threads, f->mem_mb, n->mem_mb);
    if (threads > 1 && a->size.task_mem_mb && f->mem_mb > 0)
        tasks = (uint32_t)MIN(tasks, (uint64_t)f->mem_mb / (a->size.task_mem_mb * threads));
    tasks = ask_tasks_by_shape(&a->size, tasks, n->sockets, n->cores);
    tasks = a->n_wants ? by_gres(g, a, rank, f, tasks) : tasks;
    if (a->tasks_of)
        return tasks >= a->tasks_of[rank] ? a->tasks_of[rank] : 0;
    return tasks;
}

/* From the first slots that have it. */
static void take(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f, uint32_t want, uint64_t count,
                 uint64_t *gres) {
    const struct grid_node *n = &g->node[rank];
    for (uint32_t i = 0; i < n->n_slots && count; i++) {
        if (a->want_of[n->slot[i].kind] != want + 1 || f->gres[i] <= 0)
            continue;
        uint64_t some = MIN(count, (uint64_t)f->gres[i]);
        gres[i] = n->slot[i].no_consume ? 0 : some;
        count -= some;
    }
}

struct claim fit_claim(const struct grid *g, const struct ask *a, uint32_t rank, uint32_t n_tasks, const uint64_t *given,
                       const struct fit *f, struct arena *scratch) {
    const struct grid_node *n = &g->node[rank];
    struct claim c = {.cpus = (int64_t)n_tasks * a->size.cpus_per_task, .mem_mb = (int64_t)ask_mem(&a->size, n_tasks, n->mem_mb),
                      .part = a->size.part, .uid = a->size.uid ? a->size.uid - 1 : 0, .share = a->size.share};
    bool all = a->size.share == SHARE_NONE;
    int64_t used = c.cpus;
    c.cpus = MAX(c.cpus * threads_of(n, a), (int64_t)a->size.node_cpus);
    for (uint32_t i = 0; given && i < a->n_wants; i++) {
        if (!is_gpu(&a->want[i]))
            continue;
        c.cpus = MAX(c.cpus, (int64_t)(given[i] * a->size.gpu_cpus));
        if (a->size.gpu_mem_mb)
            c.mem_mb = (int64_t)(given[i] * a->size.gpu_mem_mb);
    }
    if (c.cpus > used && !a->size.mem_all && !a->size.mem_mb && !a->size.gpu_mem_mb)
        c.mem_mb = MAX(c.mem_mb, (int64_t)cpu_mem(a) * c.cpus);
    if (all) {
        c.cpus = n->cpus;
        if (!a->size.mem_all && !a->size.mem_mb && !a->size.gpu_mem_mb)
            c.mem_mb = (int64_t)(cpu_mem(a) * n->cpus);
    }
    if (!n->n_slots || (!a->n_wants && !all))
        return c;
    c.gres = arena_calloc(scratch, n->n_slots, sizeof(*c.gres));
    for (uint32_t i = 0; i < a->n_wants; i++) {
        const struct ask_want *w = &a->want[i];
        take(g, a, rank, f, i, w->job ? given[i] : MAX(w->node, w->task * n_tasks), c.gres);
    }
    for (uint32_t i = 0; i < n->n_slots && all; i++) {
        if (!n->slot[i].no_consume && !n->slot[i].is_explicit)
            c.gres[i] = n->slot[i].count;
    }
    return c;
}
