/* SPDX-License-Identifier: Apache-2.0
 *
 * One walk over the jobs: those that hold nodes count for licences and for their arrays, those that wait are collected,
 * gated, and put into the queues of their partitions' tiers.
 */
#include <string.h>

#include "base/mem.h"
#include "core/sched/pass.h"

void pass_part_names(const struct grid *g, const char *text, struct arena *a, struct part_names *out) {
    *out = (struct part_names){.part = arena_alloc(a, (g->n_parts + 1) * sizeof(*out->part))};
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ",");
        uint32_t i = grid_find_part(g, at, n), k = 0;
        while (k < out->n && out->part[k] != i)
            k++;
        if (i != GRID_NONE && k == out->n)
            out->part[out->n++] = i;
        at += n + (at[n] == ',');
    }
    for (uint32_t i = 0; !*text && i < g->n_parts; i++) {
        if (g->part[i].rec->is_default && !out->n)
            out->part[out->n++] = i;
    }
    for (uint32_t i = 0; i < out->n; i++) {
        if (!i || g->part[out->part[i]].rec->priority_tier > g->part[out->first].rec->priority_tier)
            out->first = out->part[i];
    }
}

static const struct part_names *look_up(struct pass *p, const char *text) {
    struct part_names *names = maps_get(&p->names, text);
    if (names)
        return names;
    names = arena_alloc(p->scratch, sizeof(*names));
    pass_part_names(&p->s->grid, text, p->scratch, names);
    maps_put(&p->names, text, names);
    return names;
}

static uint32_t top_factor(const struct grid *g, const struct part_names *names) {
    uint32_t factor = 0;
    for (uint32_t i = 0; i < names->n; i++)
        factor = MAX(factor, priority_factor(g->part[names->part[i]].rec));
    return factor;
}

static uint32_t gate_of(const struct pass *p, const struct job *j, const struct ask *a, uint32_t first) {
    const struct grid_part *parts = p->s->grid.part;
    uint32_t reason = gate_access(p->s->grid.part[a->size.part].rec, j);
    if (!reason)
        reason = a->gate;
    if (!reason && j->spec->more && gate_last_start(j, gate_time_limit(j, parts[a->size.part].rec, parts[first].rec, p->asks.conf)) < p->now)
        reason = REASON_DEADLINE;
    return reason;
}

/* What it prefers, in the partitions of an entry. */
static void prefer(struct pass *p, struct entry *e, uint32_t first) {
    const struct job *j = e->w->job;
    if (!job_spec_more(j->spec)->prefer)
        return;
    e->preferred = arena_alloc(p->scratch, e->n_asks * sizeof(*e->preferred));
    for (uint32_t i = 0; i < e->n_asks; i++) {
        struct ask *a = ask_preferred(&p->asks, j, e->ask[i]->size.part, first);
        if (!gate_of(p, j, a, first))
            e->preferred[e->n_preferred++] = a;
    }
}

static void add_entries(struct pass *p, struct waiting *w, struct ask **ask, uint32_t n, uint32_t first) {
    const struct grid *g = &p->s->grid;
    while (n) {
        uint32_t tier = g->part[ask[0]->size.part].rec->priority_tier, left = 0;
        struct entry e = {.w = w, .ask = arena_alloc(p->scratch, n * sizeof(*e.ask)), .tier = tier};
        for (uint32_t i = 0; i < n; i++) {
            if (g->part[ask[i]->size.part].rec->priority_tier == tier)
                e.ask[e.n_asks++] = ask[i];
            else
                ask[left++] = ask[i];
        }
        prefer(p, &e, first);
        p->entry[p->n_entries++] = e;
        n = left;
    }
}

/* ---- jobs that wait ---- */

/* A job that passed its own gates, before the gates of its partitions. */
static void enqueue(struct pass *p, struct waiting *w, const struct part_names *names) {
    struct ask **ask = arena_alloc(p->scratch, (names->n + 1) * sizeof(*ask));
    uint32_t n = 0;
    w->reason = names->n ? REASON_NONE : REASON_PARTITION_GONE;
    for (uint32_t i = 0; i < names->n; i++) {
        struct ask *a = ask_of(&p->asks, w->job, names->part[i], names->first);
        uint32_t reason = gate_of(p, w->job, a, names->first);
        if (!reason)
            ask[n++] = a;
        else if (!w->reason)
            w->reason = reason;
    }
    if (!n)
        return;
    w->reason = REASON_NONE;
    w->is_single = gate_needs_singleton(w->job, p->now);
    if (w->is_single && !p->singletons)
        p->singletons = singletons_new(p->v);
    add_entries(p, w, ask, n, names->first);
}

static struct array_use *use_of(struct pass *p, uint32_t array_id) {
    struct array_use *u = map64_get(&p->arrays, array_id);
    if (u)
        return u;
    u = arena_calloc(p->scratch, 1, sizeof(*u));
    const struct job *head = view_job(p->v, array_id);
    u->max_running = head && head->array ? head->array->max_running : 0;
    map64_put(&p->arrays, array_id, u);
    return u;
}

static void add_waiting(struct pass *p, const struct job *j) {
    struct waiting w = {.job = j};
    if (j->array) {
        w.use = use_of(p, j->array->job_id);
        w.is_array = j->array->task == 0;
        if (w.is_array && j->array->n_pending)
            w.task = j->array->pending[0].first;
        if (w.is_array && !j->array->n_pending)
            return; /* all its tasks are jobs of their own */
    }
    p->asks.mind_users |= j->spec->more && j->spec->more->exclusive == EXCLUSIVE_USER;
    p->waiting[p->n_waiting++] = w;
}

static void count_running(struct pass *p, const struct job *j) {
    if (j->array)
        use_of(p, j->array->job_id)->n_running++;
    if (j->spec->more && j->spec->more->n_licenses)
        licenses_hold(&p->licenses, j);
    p->asks.mind_users |= j->n_nodes && j->nodes[0].share == SHARE_USER;
}

static void walk(struct pass *p) {
    const struct job *j;
    for (uint32_t i = 0; i < p->s->grid.n_parts; i++)
        p->asks.mind_users |= p->s->grid.part[i].rec->exclusive_user;
    for (uint64_t k = 0; (j = view_next_job(p->v, &k)); k++) {
        if (!j->spec)
            continue;
        if (job_holds_nodes(j))
            count_running(p, j);
        if (j->state == JOB_PENDING)
            add_waiting(p, j);
    }
}

static void due_at(struct pass *p, int64_t when) {
    if (!p->plan->next_unix || when < p->plan->next_unix)
        p->plan->next_unix = when;
}

void pass_collect(struct pass *p) {
    size_t most = cow_count(p->v->jobs), parts = MAX(p->s->grid.n_parts, 1);
    p->waiting = arena_alloc(p->scratch, (most + 1) * sizeof(*p->waiting));
    walk(p);
    p->entry = arena_alloc(p->scratch, (p->n_waiting * parts + 1) * sizeof(*p->entry));
    for (uint32_t i = 0; i < p->n_waiting; i++) {
        struct waiting *w = &p->waiting[i];
        const struct part_names *names = look_up(p, w->job->spec->partition ? w->job->spec->partition : "");
        w->priority = priority_of(&p->scale, w->job, top_factor(&p->s->grid, names), p->now);
        w->reason = gate_job(w->job, p->now, &w->expected);
        if (w->expected)
            due_at(p, w->expected);
        if (!w->reason)
            enqueue(p, w, names);
    }
}
