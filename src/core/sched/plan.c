/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass: from a view to a plan.
 *
 *     sync grid and timelines ─► collect jobs that wait, gate them ─► sort ─► each in turn: start, or promise, or
 *     neither, with a reason ─► notes
 *
 * A job that names several partitions stands in the queue once for each tier among them; within a tier it tries them
 * in the order named. It has at most one promise, in the partition that is earliest.
 *
 * In a pass room only shrinks: so what didn't fit won't fit later in the pass, and a job that asks the same as one that
 * didn't fit costs nothing. (Only a promise that is withdrawn makes room: then a new epoch begins.)
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/sched/backfill.h"
#include "core/sched/explain.h"
#include "core/sched/gate.h"
#include "core/sched/priority.h"
#include "core/sched/sched.h"

struct sched {
    struct sched_params params;
    struct grid grid;
    struct timeline timeline;
    struct arena scratch;
};

struct waiting { /* a pending job */
    const struct job *job;
    uint64_t priority;
    int64_t expected;
    uint32_t reason;
    const struct ask *told; /* whose reason it is; NULL: its own */
    bool is_started;
    bool is_single; /* its singleton dependency is still to be judged */
    const struct ask *promised; /* NULL: it has no promise */
    struct seat *seat;          /* of the promise */
    uint32_t n_seats;
};

struct entry { /* a job in the queue of a tier */
    struct waiting *w;
    struct ask **ask;
    uint32_t n_asks;
    uint32_t tier;
};

struct part_names { /* "a,b", looked up */
    uint32_t *part;
    uint32_t n;
};

struct queue_state { /* of one partition */
    uint32_t n_promises;
    bool is_blocked; /* a job of it had to wait */
};

struct pass {
    struct sched *s;
    const struct view *v;
    int64_t now;
    struct arena *out, *scratch;
    struct board board;
    struct select select;
    struct asks asks;
    struct priority_scale scale;
    struct maps names; /* struct part_names by text */
    struct singletons *singletons;
    struct queue_state *queue; /* by partition */
    struct waiting *waiting;
    uint32_t n_waiting;
    struct entry *entry;
    uint32_t n_entries;
    uint32_t epoch;
    struct sched_plan *plan;
    size_t starts_cap;
};

struct sched *sched_new(const struct sched_params *params) {
    struct sched *s = xnew(struct sched);
    if (params)
        s->params = *params;
    if (!s->params.promises)
        s->params.promises = 1;
    if (!s->params.max_starts)
        s->params.max_starts = 10000;
    return s;
}

void sched_free(struct sched *s) {
    if (!s)
        return;
    grid_fini(&s->grid);
    timeline_fini(&s->timeline);
    arena_fini(&s->scratch);
    free(s);
}

/* ---- bringing up to date ---- */

static void check_timeline(const struct sched *s, const struct view *v) {
#ifndef NDEBUG
    struct timeline fresh = {0};
    timeline_reset(&fresh, s->grid.n_nodes);
    timeline_sync(&fresh, &s->grid, v);
    must(timeline_same(&s->timeline, &fresh));
    timeline_fini(&fresh);
#endif
}

static void bring_up(struct sched *s, const struct view *v) {
    if (grid_sync(&s->grid, v))
        timeline_reset(&s->timeline, s->grid.n_nodes);
    timeline_sync(&s->timeline, &s->grid, v);
    check_timeline(s, v);
}

/* ---- collecting ---- */

static const struct part_names *look_up(struct pass *p, const char *text) {
    struct part_names *names = maps_get(&p->names, text);
    if (names)
        return names;
    const struct grid *g = &p->s->grid;
    names = arena_calloc(p->scratch, 1, sizeof(*names));
    names->part = arena_alloc(p->scratch, (g->n_parts + 1) * sizeof(*names->part));
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ",");
        uint32_t i = grid_find_part(g, at, n), k = 0;
        while (k < names->n && names->part[k] != i)
            k++;
        if (i != GRID_NONE && k == names->n)
            names->part[names->n++] = i;
        at += n + (at[n] == ',');
    }
    for (uint32_t i = 0; !*text && i < g->n_parts; i++) {
        if (g->part[i].rec->is_default && !names->n)
            names->part[names->n++] = i;
    }
    maps_put(&p->names, text, names);
    return names;
}

static uint32_t top_tier(const struct grid *g, const struct part_names *names) {
    uint32_t tier = 0;
    for (uint32_t i = 0; i < names->n; i++)
        tier = MAX(tier, g->part[names->part[i]].rec->priority_tier);
    return tier;
}

static void add_entries(struct pass *p, struct waiting *w, struct ask **ask, uint32_t n) {
    const struct grid *g = &p->s->grid;
    while (n) {
        uint32_t tier = g->part[ask[0]->size.part].rec->priority_tier, left = 0;
        struct entry e = {w, arena_alloc(p->scratch, n * sizeof(*e.ask)), 0, tier};
        for (uint32_t i = 0; i < n; i++) {
            if (g->part[ask[i]->size.part].rec->priority_tier == tier)
                e.ask[e.n_asks++] = ask[i];
            else
                ask[left++] = ask[i];
        }
        p->entry[p->n_entries++] = e;
        n = left;
    }
}

/* A job that passed its own gates, before the gates of its partitions. */
static void enqueue(struct pass *p, struct waiting *w, const struct part_names *names) {
    struct ask **ask = arena_alloc(p->scratch, (names->n + 1) * sizeof(*ask));
    uint32_t n = 0;
    w->reason = names->n ? REASON_NONE : REASON_PARTITION_GONE;
    for (uint32_t i = 0; i < names->n; i++) {
        struct ask *a = ask_of(&p->asks, w->job, names->part[i]);
        if (!a->gate)
            ask[n++] = a;
        else if (!w->reason)
            w->reason = a->gate;
    }
    if (!n)
        return;
    w->reason = REASON_NONE;
    w->is_single = gate_needs_singleton(w->job);
    if (w->is_single && !p->singletons)
        p->singletons = singletons_new(p->v);
    add_entries(p, w, ask, n);
}

static void collect(struct pass *p) {
    size_t most = cow_count(p->v->jobs), parts = MAX(p->s->grid.n_parts, 1);
    p->waiting = arena_alloc(p->scratch, (most + 1) * sizeof(*p->waiting));
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(p->v, &k)); k++) {
        if (j->state == JOB_PENDING && j->spec)
            p->waiting[p->n_waiting++] = (struct waiting){.job = j};
    }
    p->entry = arena_alloc(p->scratch, (p->n_waiting * parts + 1) * sizeof(*p->entry));
    for (uint32_t i = 0; i < p->n_waiting; i++) {
        struct waiting *w = &p->waiting[i];
        const struct part_names *names = look_up(p, w->job->spec->partition ? w->job->spec->partition : "");
        w->priority = priority_of(&p->scale, w->job, top_tier(&p->s->grid, names), p->now);
        w->reason = gate_job(w->job, p->now, &w->expected);
        if (!w->reason)
            enqueue(p, w, names);
    }
}

/* A total order: no two entries have the same tier and job. */
static int by_turn(const void *pa, const void *pb) {
    const struct entry *a = pa, *b = pb;
    if (a->tier != b->tier)
        return a->tier > b->tier ? -1 : 1;
    if (a->w->priority != b->w->priority)
        return a->w->priority > b->w->priority ? -1 : 1;
    return a->w->job->id < b->w->job->id ? -1 : a->w->job->id > b->w->job->id;
}

/* ---- the turns ---- */

/* Seats as the state machine takes them. */
static struct job_node *write_nodes(struct pass *p, const struct ask *a, const struct seat *seat, uint32_t n_seats) {
    struct job_node *nodes = arena_calloc(p->out, n_seats, sizeof(*nodes));
    for (uint32_t i = 0; i < n_seats; i++) {
        const struct grid_node *n = &p->s->grid.node[seat[i].rank];
        nodes[i] = (struct job_node){.node_id = n->id,
                                     .name = arena_strdup(p->out, n->name),
                                     .cpus = seat[i].tasks * a->size.cpus_per_task,
                                     .mem_mb = ask_mem(&a->size, seat[i].tasks, n->mem_mb),
                                     .n_tasks = seat[i].tasks};
    }
    return nodes;
}

static void write_start(struct pass *p, const struct waiting *w, const struct ask *a) {
    p->plan->starts[p->plan->n_starts++] =
        (struct sched_start){.job_id = w->job->id,
                             .partition = arena_strdup(p->out, p->s->grid.part[a->size.part].rec->name),
                             .nodes = write_nodes(p, a, p->select.pick, p->select.n_pick),
                             .n_nodes = p->select.n_pick,
                             .time_limit_min = a->size.limit_min};
}

static void start(struct pass *p, struct waiting *w, const struct ask *a) {
    backfill_start(&p->board, &p->select, a);
    write_start(p, w, a);
    w->is_started = true;
    p->plan->n_backfilled += p->queue[a->size.part].is_blocked;
    if (p->singletons)
        singletons_started(p->singletons, w->job);
}

static bool try_now(struct pass *p, struct entry *e) {
    for (uint32_t i = 0; i < e->n_asks; i++) {
        struct ask *a = e->ask[i];
        if (a->blocked == p->epoch)
            continue;
        if (backfill_now(&p->board, &p->select, a)) {
            start(p, e->w, a);
            return true;
        }
        a->blocked = p->epoch;
    }
    return false;
}

/* It has a promise in a partition of a higher tier. That must not be in its own way, and goes when it starts here. */
static bool try_instead(struct pass *p, struct entry *e) {
    struct waiting *w = e->w;
    for (uint32_t i = 0; i < w->n_seats; i++)
        board_withdraw(&p->board, w->seat[i].rank, w->job->id);
    p->epoch++;
    if (try_now(p, e))
        return true;
    p->select.n_pick = w->n_seats;
    memcpy(p->select.pick, w->seat, w->n_seats * sizeof(*w->seat));
    backfill_promise(&p->board, &p->select, w->promised, w->job->id, w->expected);
    return false;
}

static uint32_t never(struct pass *p, struct ask *a) {
    if (!a->is_judged) {
        a->never = explain_never(&p->select, a);
        a->is_judged = true;
    }
    return a->never;
}

static void set_reason(struct waiting *w, const struct ask *a, uint32_t reason) {
    if (explain_weight(reason) <= explain_weight(w->reason))
        return;
    w->reason = reason;
    w->told = a;
}

/* The earliest of the partitions that still give promises; ties go to the one named first. */
static void promise(struct pass *p, const struct entry *e) {
    struct waiting *w = e->w;
    const struct ask *best = NULL;
    int64_t when = 0;
    for (uint32_t i = 0; i < e->n_asks; i++) {
        struct ask *a = e->ask[i];
        if (never(p, a) || p->queue[a->size.part].n_promises >= p->s->params.promises)
            continue;
        int64_t t = backfill_earliest(&p->board, &p->select, a, p->scratch);
        if (t && (!best || t < when))
            best = a, when = t;
    }
    if (!best)
        return;
    if (e->n_asks > 1)
        backfill_earliest(&p->board, &p->select, best, p->scratch); /* its pick again */
    backfill_promise(&p->board, &p->select, best, w->job->id, when);
    w->promised = best;
    w->n_seats = p->select.n_pick;
    w->seat = arena_memdup(p->scratch, p->select.pick, w->n_seats * sizeof(*w->seat));
    w->expected = when;
    p->queue[best->size.part].n_promises++;
}

static void keep_waiting(struct pass *p, struct entry *e) {
    for (uint32_t i = 0; i < e->n_asks; i++) {
        uint32_t reason = never(p, e->ask[i]);
        if (!reason)
            reason = p->queue[e->ask[i]->size.part].is_blocked ? REASON_PRIORITY : REASON_RESOURCES;
        set_reason(e->w, e->ask[i], reason);
    }
    if (!e->w->promised)
        promise(p, e);
    for (uint32_t i = 0; i < e->n_asks; i++)
        p->queue[e->ask[i]->size.part].is_blocked |= !e->ask[i]->never;
}

static bool is_answered(const struct pass *p, const struct entry *e) {
    for (uint32_t i = 0; i < e->n_asks; i++) {
        if (e->ask[i]->blocked != p->epoch)
            return false;
    }
    return true;
}

/* A job whose answer is known from one that asked the same costs nothing and doesn't count as looked at. */
static void take_turn(struct pass *p, struct entry *e) {
    p->plan->n_considered += !is_answered(p, e);
    if (e->w->is_single && !singletons_may_start(p->singletons, e->w->job)) {
        set_reason(e->w, NULL, REASON_DEPENDENCY);
        return;
    }
    if (!(e->w->promised ? try_instead(p, e) : try_now(p, e)))
        keep_waiting(p, e);
}

static void take_turns(struct pass *p) {
    const struct rconf *conf = p->v->cluster->conf;
    uint32_t most = conf && conf->max_jobs_per_cycle ? conf->max_jobs_per_cycle : UINT32_MAX;
    for (uint32_t i = 0; i < p->n_entries; i++) {
        struct entry *e = &p->entry[i];
        if (e->w->is_started)
            continue;
        if (p->plan->n_considered >= most || p->plan->n_starts >= p->s->params.max_starts) {
            p->plan->is_cut = true;
            set_reason(e->w, NULL, REASON_PRIORITY);
            continue;
        }
        take_turn(p, e);
    }
}

static void write_detail(struct pass *p, const struct waiting *w) {
    struct sched_detail d = {.job_id = w->job->id};
    if (w->told)
        d.text = explain_text(&p->s->grid, w->told, w->reason, p->out);
    if (w->promised) {
        d.nodes = write_nodes(p, w->promised, w->seat, w->n_seats);
        d.n_nodes = w->n_seats;
    }
    p->plan->details[p->plan->n_details++] = d;
}

static bool has_detail(const struct waiting *w) {
    return w->promised || (w->told && w->reason == REASON_NODES_UNAVAIL);
}

static void write_notes(struct pass *p) {
    struct sched_plan *plan = p->plan;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_waiting; i++)
        n += has_detail(&p->waiting[i]);
    plan->notes = arena_alloc(p->out, (p->n_waiting + 1) * sizeof(*plan->notes));
    plan->details = arena_alloc(p->out, (n + 1) * sizeof(*plan->details));
    for (uint32_t i = 0; i < p->n_waiting; i++) {
        const struct waiting *w = &p->waiting[i];
        if (w->is_started)
            continue;
        plan->notes[plan->n_notes++] = (struct sched_note){w->job->id, w->reason, w->expected, w->priority};
        if (has_detail(w))
            write_detail(p, w);
    }
}

void sched_plan(struct sched *s, const struct view *v, int64_t now_unix, struct arena *a, struct sched_plan *out) {
    bring_up(s, v);
    arena_reset(&s->scratch);
    *out = (struct sched_plan){.index = v->index};
    struct pass p = {.s = s, .v = v, .now = now_unix, .out = a, .scratch = &s->scratch, .plan = out, .epoch = 1};
    p.scale = (struct priority_scale){v->cluster->conf, s->grid.n_nodes, s->grid.n_cpus, s->grid.max_tier};
    p.queue = arena_calloc(p.scratch, s->grid.n_parts + 1, sizeof(*p.queue));
    board_init(&p.board, &s->grid, &s->timeline, now_unix, p.scratch);
    select_init(&p.select, &s->grid, p.scratch);
    asks_init(&p.asks, &s->grid, v->cluster->conf, p.scratch);
    collect(&p);
    qsort(p.entry, p.n_entries, sizeof(*p.entry), by_turn);
    out->starts = arena_alloc(a, (MIN(p.n_waiting, s->params.max_starts) + 1) * sizeof(*out->starts));
    take_turns(&p);
    write_notes(&p);
    asks_fini(&p.asks);
    maps_fini(&p.names);
    singletons_free(p.singletons);
}
