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
#include "core/sched/explain.h"
#include "core/sched/pass.h"
#include "core/sched/why.h"

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

static void start(struct pass *p, struct waiting *w, const struct ask *a, const struct license_take *lic, bool preferred) {
    backfill_start(&p->board, &p->select, a);
    pass_write_start(p, w, a, lic);
    p->plan->starts[p->plan->n_starts - 1].preferred = preferred;
    licenses_take(&p->licenses, lic);
    if (w->use)
        w->use->n_running++;
    p->plan->n_backfilled += p->queue[a->size.part].is_blocked;
    if (p->singletons)
        singletons_started(p->singletons, w->job);
}

/* With its own limit, else with a shorter one where it lets us choose. */
static bool try_ask(struct pass *p, struct waiting *w, struct ask *a, const struct license_take *lic, bool preferred) {
    if (backfill_now(&p->board, &p->select, a)) {
        start(p, w, a, lic, preferred);
        return true;
    }
    uint32_t minutes = a->size.time_min ? backfill_shortened(&p->board, &p->select, a) : 0;
    if (minutes) {
        struct ask shorter = ask_shorter(a, minutes);
        start(p, w, &shorter, lic, preferred);
        return true;
    }
    a->blocked = p->epoch;
    return false;
}

static bool try_now(struct pass *p, struct entry *e, const struct license_take *lic) {
    for (uint32_t i = 0; i < e->n_preferred; i++) {
        if (e->preferred[i]->blocked != p->epoch && try_ask(p, e->w, e->preferred[i], lic, true))
            return true;
    }
    for (uint32_t i = 0; i < e->n_asks; i++) {
        if (e->ask[i]->blocked != p->epoch && try_ask(p, e->w, e->ask[i], lic, false))
            return true;
    }
    return false;
}

/* It has a promise in a partition of a higher tier. That must not be in its own way, and goes when it starts here. */
static bool try_instead(struct pass *p, struct entry *e, const struct license_take *lic) {
    struct waiting *w = e->w;
    for (uint32_t i = 0; i < w->n_seats; i++)
        board_withdraw(&p->board, w->seat[i].rank, w->job->id);
    p->epoch++;
    if (try_now(p, e, lic)) {
        w->promised = NULL;
        w->n_seats = 0;
        w->expected = 0;
        return true;
    }
    p->select.n_pick = w->n_seats;
    memcpy(p->select.pick, w->seat, w->n_seats * sizeof(*w->seat));
    memcpy(p->select.claim, w->claim, w->n_seats * sizeof(*w->claim));
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
    w->claim = arena_memdup(p->scratch, p->select.claim, w->n_seats * sizeof(*w->claim));
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
    for (uint32_t i = 0; i < e->n_preferred; i++) {
        if (e->preferred[i]->blocked != p->epoch)
            return false;
    }
    return true;
}

/* From those behind it, while it waits. */
static void keep_licenses(struct pass *p, struct waiting *w, const struct license_take *lic) {
    licenses_give_back(&p->licenses, &w->kept);
    w->kept = *lic;
    licenses_take(&p->licenses, lic);
}

/* What keeps a job from starting beside nodes. */
static uint32_t bar(struct pass *p, struct waiting *w, struct license_take *lic) {
    keep_licenses(p, w, &(struct license_take){0}); /* those of an earlier turn are not in its own way */
    if (w->is_single && !singletons_may_start(p->singletons, w->job))
        return REASON_DEPENDENCY;
    if (w->use && w->use->max_running && w->use->n_running >= w->use->max_running)
        return REASON_ARRAY_TASK_LIMIT;
    *lic = (struct license_take){0};
    const struct job_more *m = w->job->spec->more;
    if (m && m->n_licenses && !licenses_fit(&p->licenses, w->job->spec, lic)) {
        keep_licenses(p, w, lic);
        return REASON_LICENSES;
    }
    return REASON_NONE;
}

/* The next task of an array; false: it was the last one. */
static bool next_task(struct waiting *w) {
    const struct job_array *a = w->job->array;
    if (!w->is_array)
        return false;
    if (w->task < a->pending[w->range].last) {
        w->task++;
        return true;
    }
    if (++w->range == a->n_pending)
        return false;
    w->task = a->pending[w->range].first;
    return true;
}

static bool is_full(const struct pass *p) {
    return p->plan->n_starts >= p->s->params.max_starts;
}

/* A job whose answer is known from one that asked the same costs nothing and doesn't count as looked at. An array goes on
 * with its next task as long as one starts. */
static void take_turn(struct pass *p, struct entry *e) {
    struct waiting *w = e->w;
    bool more = true;
    if (p->look && p->look->job_id == w->job->id)
        why_turn(p, e);
    p->plan->n_considered += !is_answered(p, e);
    while (more && !is_full(p)) {
        struct license_take lic;
        uint32_t reason = bar(p, w, &lic);
        if (reason) {
            set_reason(w, NULL, reason);
            return;
        }
        if (!(w->promised ? try_instead(p, e, &lic) : try_now(p, e, &lic))) {
            keep_waiting(p, e);
            if (w->promised)
                keep_licenses(p, w, &lic);
            return;
        }
        more = next_task(w);
    }
    w->is_started = !more;
    if (more) {
        p->plan->is_cut = true;
        set_reason(w, NULL, REASON_PRIORITY);
    }
}

static void take_turns(struct pass *p) {
    const struct rconf *conf = p->v->cluster->conf;
    uint32_t most = conf && conf->max_jobs_per_cycle ? conf->max_jobs_per_cycle : UINT32_MAX;
    for (uint32_t i = 0; i < p->n_entries; i++) {
        struct entry *e = &p->entry[i];
        if (e->w->is_started)
            continue;
        if (p->plan->n_considered >= most || is_full(p)) {
            p->plan->is_cut = true;
            set_reason(e->w, NULL, REASON_PRIORITY);
            continue;
        }
        take_turn(p, e);
    }
}

static void look_before(struct pass *p) {
    for (uint32_t i = 0; p->look && i < p->n_waiting; i++) {
        if (p->waiting[i].job->id == p->look->job_id)
            why_gates(p, &p->waiting[i]);
    }
}

void sched_plan(struct sched *s, const struct view *v, int64_t now_unix, struct arena *a, struct sched_plan *out) {
    pass_run(s, v, now_unix, a, out, NULL);
}

void pass_run(struct sched *s, const struct view *v, int64_t now_unix, struct arena *a, struct sched_plan *out,
              struct why_look *look) {
    bring_up(s, v);
    arena_reset(&s->scratch);
    *out = (struct sched_plan){.index = v->index};
    struct pass p = {.s = s, .v = v, .now = now_unix, .out = a, .scratch = &s->scratch, .plan = out, .epoch = 1,
                     .look = look};
    p.scale = (struct priority_scale){v->cluster->conf, s->grid.n_nodes, s->grid.n_cpus, s->grid.max_factor};
    p.queue = arena_calloc(p.scratch, s->grid.n_parts + 1, sizeof(*p.queue));
    board_init(&p.board, &s->grid, &s->timeline, now_unix, p.scratch);
    select_init(&p.select, &s->grid, p.scratch);
    asks_init(&p.asks, &s->grid, v->cluster->conf, now_unix, p.scratch);
    licenses_init(&p.licenses, v->cluster->conf, p.scratch);
    pass_collect(&p);
    look_before(&p);
    qsort(p.entry, p.n_entries, sizeof(*p.entry), by_turn);
    p.starts_cap = MIN(p.n_waiting, s->params.max_starts) + 1;
    out->starts = arena_alloc(a, p.starts_cap * sizeof(*out->starts));
    take_turns(&p);
    pass_write_notes(&p);
    if (out->is_cut)
        out->next_unix = now_unix;
    asks_fini(&p.asks);
    maps_fini(&p.names);
    map64_fini(&p.arrays);
    singletons_free(p.singletons);
}
