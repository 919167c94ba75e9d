/* SPDX-License-Identifier: Apache-2.0
 *
 * Of each node of a partition: what keeps it from taking part in a job now. Nodes of which the same is to be said share a
 * row.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/sched/explain.h"
#include "core/sched/fit.h"
#include "core/sched/why.h"

#define ROWS_MAX 100u

struct saying { /* of one node */
    const char *kind;
    struct str text;
    int64_t until;
    VEC(uint32_t) jobs;
};

static void say(struct saying *s, const char *kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(struct saying *s, const char *kind, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    s->kind = kind;
    str_vaddf(&s->text, fmt, ap);
    va_end(ap);
}

/* ---- nodes that take no work ---- */

static void say_ill(const struct node *n, struct saying *s) {
    if (n->base != NODE_UP) {
        say(s, "down", "down: %s", n->down_reason ? n->down_reason : "not known why");
        return;
    }
    if (n->not_responding) {
        say(s, "down", "its agent doesn't answer");
        return;
    }
    for (uint32_t i = 0; i < n->n_drains; i++) {
        const struct drain *d = &n->drains[i];
        say(s, "drained", "%s%s (by %s)", i ? ", " : "drained: ", d->text && *d->text ? d->text : "no cause given",
            d->user && *d->user ? d->user : d->owner);
        s->until = MAX(s->until, d->until_unix);
    }
}

/* ---- nodes that can never do ---- */

static bool is_named(const char *const *names, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(names[i], name))
            return true;
    }
    return false;
}

static uint64_t gres_least(const struct ask_want *w) {
    return MAX(MAX(w->node, w->task), 1u);
}

static void print_want(const struct ask_want *w, struct str *out) {
    str_addf(out, w->type ? "%s:%s" : "%s", w->name, w->type);
}

static bool say_gres(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f, const struct fit *empty,
                     const char *kind, struct saying *s) {
    for (uint32_t i = 0; i < a->n_wants; i++) {
        uint64_t have = fit_free(g, a, rank, f, i), least = gres_least(&a->want[i]);
        auto_str name = {0};
        if (have >= least)
            continue;
        print_want(&a->want[i], &name);
        if (f == empty)
            say(s, kind, "it has %llu %s, and %llu are needed", (unsigned long long)have, str_text(&name), (unsigned long long)least);
        else
            say(s, kind, "%llu of its %llu %s are free, and %llu are needed", (unsigned long long)have,
                (unsigned long long)fit_free(g, a, rank, empty, i), str_text(&name), (unsigned long long)least);
        return true;
    }
    return false;
}

static int64_t cpus_least(const struct grid_node *n, const struct ask *a) {
    return a->size.share == SHARE_NONE ? (int64_t)n->cpus : (int64_t)MAX(a->size.cpus_per_task, a->size.node_cpus);
}

static void say_unfit(const struct grid *g, const struct ask *a, uint32_t rank, const struct fit *f, struct saying *s) {
    const struct grid_node *n = &g->node[rank];
    uint32_t most = g->part[a->size.part].rec->max_cpus_per_node;
    uint64_t mem = ask_mem(&a->size, 1, n->mem_mb);
    if (say_gres(g, a, rank, f, f, "unfit", s))
        return;
    if (n->cpus < a->size.node_cpus)
        say(s, "unfit", "it has %u CPUs, and %u of each node are needed", n->cpus, a->size.node_cpus);
    else if (n->cpus < a->size.cpus_per_task)
        say(s, "unfit", "it has %u CPUs, and a task needs %u", n->cpus, a->size.cpus_per_task);
    else if (most && (int64_t)most < cpus_least(n, a))
        say(s, "unfit", "its partition may have %u CPUs of a node (max_cpus_per_node), and it needs %lld", most,
            (long long)cpus_least(n, a));
    else
        say(s, "unfit", "it has %llu MB of memory, and %llu are needed", (unsigned long long)n->mem_mb, (unsigned long long)mem);
}

/* Names it as one that the job doesn't take; false: it would. */
static bool say_left_out(const struct grid *g, const struct ask *a, uint32_t rank, struct saying *s) {
    const struct grid_node *n = &g->node[rank];
    bool has = !a->has || bits_has(a->has->all, rank);
    for (uint32_t i = 0; a->has && i < a->has->n_alts && has; i++) {
        if (bits_has(a->has->alt[i], rank))
            break;
        has = i + 1 < a->has->n_alts;
    }
    if (is_named(a->exc, a->n_exc, n->name))
        say(s, "left out", "--exclude names it");
    else if (!has)
        say(s, "unfit", "it doesn't have the features %s", a->features);
    else if (n->tmp_disk_mb < a->size.tmp_mb)
        say(s, "unfit", "it has %llu MB of temporary disk, and %llu are needed", (unsigned long long)n->tmp_disk_mb,
            (unsigned long long)a->size.tmp_mb);
    else if (!ask_fits_shape(&a->size, n->tmp_disk_mb, n->sockets, n->cores, n->threads))
        say(s, "unfit", "it has %u sockets of %u cores of %u threads", n->sockets, n->cores, n->threads);
    else if (!bits_has(a->may, rank))
        say(s, "left out", "--nodelist doesn't name it");
    return s->kind != NULL;
}

/* ---- nodes that are busy ---- */

static void name_jobs(struct pass *p, uint32_t rank, struct saying *s) {
    const struct lane *l = &p->s->timeline.lane[rank];
    for (size_t i = 0; i < l->share.n; i++)
        vec_push(&s->jobs, l->share.p[i].job_id);
}

/* When it could take a task, of those moments at which something ends there. */
static int64_t free_from(struct pass *p, const struct ask *a, uint32_t rank) {
    const struct lane *l = &p->s->timeline.lane[rank];
    struct fit f;
    for (size_t i = 0; i < l->share.n; i++) {
        int64_t t = MAX(l->share.p[i].end_unix, p->now + 1);
        fit_look(&p->board, a, rank, t, t + a->secs, &f);
        if (fit_tasks(&p->s->grid, a, rank, &f))
            return t;
    }
    return 0;
}

static void say_busy(struct pass *p, const struct ask *a, uint32_t rank, const struct fit *f, const struct fit *empty, struct saying *s) {
    const struct grid *g = &p->s->grid;
    const struct grid_node *n = &g->node[rank];
    uint32_t most = g->part[a->size.part].rec->max_cpus_per_node;
    uint64_t mem = ask_mem(&a->size, 1, n->mem_mb);
    int64_t least = cpus_least(n, a);
    if (f->is_barred && a->size.share == SHARE_NONE)
        say(s, "busy", "jobs are there, and it wants the node for itself");
    else if (f->is_barred)
        say(s, "busy", "who is there doesn't share the node with it");
    else if (!say_gres(g, a, rank, f, empty, "busy", s)) {
        if (f->cpus < least)
            say(s, "busy", "%lld of its %u CPUs are free, and %lld are needed", (long long)MAX(f->cpus, (int64_t)0), n->cpus,
                (long long)least);
        else if (most && (int64_t)most - f->part_cpus < least)
            say(s, "busy", "jobs of its partition have %lld CPUs there, of %u that they may have (max_cpus_per_node)",
                (long long)f->part_cpus, most);
        else
            say(s, "busy", "%lld of its %llu MB are free, and %llu are needed", (long long)MAX(f->mem_mb, (int64_t)0),
                (unsigned long long)n->mem_mb, (unsigned long long)mem);
    }
    s->until = free_from(p, a, rank);
    name_jobs(p, rank, s);
}

/* There is room, and it is promised to somebody. */
static void say_kept(struct pass *p, const struct ask *a, uint32_t rank, struct saying *s) {
    const struct block *cursor = NULL;
    int64_t from = 0;
    if (!board_next_begin(&p->board, rank, p->now, p->now + a->secs, &cursor, &from))
        return;
    say(s, "kept", "it is promised to job %u", board_promised_to(cursor));
    s->until = from;
    vec_push(&s->jobs, board_promised_to(cursor));
}

/* What is to be said of a node; returns how many tasks it could take now. */
static uint32_t look_at(struct pass *p, struct ask *a, uint32_t rank, struct saying *s) {
    const struct grid *g = &p->s->grid;
    struct fit empty, now, all;
    if (!g->node[rank].takes_work) {
        say_ill(view_node(p->v, g->node[rank].id), s);
        return 0;
    }
    if (say_left_out(g, a, rank, s))
        return 0;
    fit_look_empty(g, rank, &empty);
    if (!fit_tasks(g, a, rank, &empty)) {
        say_unfit(g, a, rank, &empty, s);
        return 0;
    }
    fit_look(&p->board, a, rank, p->now, p->now + 1, &now);
    if (!fit_tasks(g, a, rank, &now)) {
        say_busy(p, a, rank, &now, &empty, s);
        return 0;
    }
    fit_look(&p->board, a, rank, p->now, p->now + a->secs, &all);
    uint32_t tasks = fit_tasks(g, a, rank, &all);
    if (tasks)
        say(s, "free", "it has room now for %u of its tasks", MIN(tasks, a->size.n_tasks));
    else
        say_kept(p, a, rank, s);
    return tasks;
}

/* ---- rows ---- */

static bool same_row(const struct why_node *r, const char *partition, const struct saying *s) {
    return str_eq(r->partition, partition) && r->kind == s->kind && str_eq(r->text, str_text(&s->text)) && r->until_unix == s->until &&
           r->n_jobs == s->jobs.n && (!s->jobs.n || memcmp(r->jobs, s->jobs.p, s->jobs.n * sizeof(*s->jobs.p)) == 0);
}

/* Lists of names are grown by doubling: at powers of two. */
static void add_name(struct arena *a, struct why_node *r, const char *name) {
    const char **names = (const char **)(uintptr_t)r->names;
    if ((r->n_names & (r->n_names - 1)) == 0) {
        names = arena_alloc(a, MAX(r->n_names * 2, 1u) * sizeof(*names));
        if (r->n_names)
            memcpy(names, r->names, r->n_names * sizeof(*names));
    }
    names[r->n_names++] = arena_strdup(a, name);
    r->names = names;
}

static void put_row(struct why_look *l, const char *partition, const char *name, const struct saying *s) {
    for (size_t i = 0; i < l->rows.n; i++) {
        if (same_row(&l->rows.p[i], partition, s)) {
            add_name(l->arena, &l->rows.p[i], name);
            return;
        }
    }
    if (l->rows.n == ROWS_MAX) {
        l->n_rows_more++;
        return;
    }
    struct why_node r = {.partition = arena_strdup(l->arena, partition), .kind = s->kind, .until_unix = s->until,
                         .text = arena_strdup(l->arena, str_text(&s->text))};
    r.jobs = arena_memdup(l->arena, s->jobs.p, s->jobs.n * sizeof(*s->jobs.p));
    r.n_jobs = (uint32_t)s->jobs.n;
    add_name(l->arena, &r, name);
    vec_push(&l->rows, r);
}

static void say_sum(struct pass *p, struct ask *a, uint32_t n_free, uint64_t n_tasks, uint32_t never) {
    const char *name = p->s->grid.part[a->size.part].rec->name;
    if (never == REASON_NODES_UNAVAIL)
        why_add(p->look, "nodes", "partition %s: what is up would not hold it even if it were idle; it needs nodes that are down, drained or not there",
                name);
    else if (never)
        why_add(p->look, "nodes", "partition %s: no set of its nodes could hold it, even if all were idle", name);
    else if (n_free && a->n_must)
        why_add(p->look, "nodes", "partition %s: it needs all nodes that --nodelist names", name);
    else if (!n_free)
        why_add(p->look, "nodes", "partition %s: none of its nodes has room for a task now; it needs %u nodes and %u tasks", name,
                a->size.min_nodes, a->size.n_tasks);
    else
        why_add(p->look, "nodes", "partition %s: %u of its nodes have room for %llu tasks now; it needs %u nodes and %u tasks", name,
                n_free, (unsigned long long)n_tasks, a->size.min_nodes, a->size.n_tasks);
    for (uint32_t i = 0; a->lacks && i < a->n_req; i++) {
        uint32_t r = grid_rank_by_name(&p->s->grid, a->req[i]);
        if (r == GRID_NONE || !bits_has(p->s->grid.part[a->size.part].bits, r))
            why_add(p->look, "nodes", "node %s, which --nodelist names, is not %s", a->req[i],
                    r == GRID_NONE ? "there" : "in its partition");
    }
}

void why_nodes(struct pass *p, const struct waiting *w, struct ask *a) {
    const struct grid *g = &p->s->grid;
    const struct grid_part *gp = &g->part[a->size.part];
    uint32_t n_free = 0;
    uint64_t n_tasks = 0;
    for (size_t r = bits_next(gp->bits, g->n_nodes, 0); r < g->n_nodes; r = bits_next(gp->bits, g->n_nodes, r + 1)) {
        struct saying s = {0};
        uint32_t tasks = look_at(p, a, (uint32_t)r, &s);
        n_free += tasks > 0;
        n_tasks += tasks;
        if (s.kind)
            put_row(p->look, gp->rec->name, g->node[r].name, &s);
        str_fini(&s.text);
        vec_fini(&s.jobs);
    }
    say_sum(p, a, n_free, n_tasks, explain_never(&p->select, a));
}
