/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge_inside.h"

struct turn { /* a job in the queue of a tier */
    const struct job *job;
    uint64_t priority;
    uint32_t tier;
    int part[J_PARTS];
    int n_parts;
};

/* ---- gates ---- */

static uint32_t deps_gate(const struct judge *g, const struct job *j) {
    bool waits = false;
    for (uint32_t i = 0; i < j->n_deps;) {
        bool done = false, open = false, single = false;
        do {
            const struct dep *d = &j->deps[i];
            done |= d->state == DEP_DONE && d->from_unix <= g->now;
            single |= d->state == DEP_WAITING && d->kind == DEP_SINGLETON;
            open |= (d->state == DEP_DONE && d->from_unix > g->now) || (d->state == DEP_WAITING && d->kind != DEP_SINGLETON);
        } while (++i < j->n_deps && j->deps[i].is_or);
        if (!done && !open && !single)
            return REASON_DEP_NEVER;
        waits |= !done && !single;
    }
    return waits ? REASON_DEPENDENCY : REASON_NONE;
}

/* Some group of its dependencies hangs on a singleton alone, and that doesn't hold. */
static bool singleton_waits(const struct judge *g, const struct job *j) {
    bool needed = false;
    for (uint32_t i = 0; i < j->n_deps;) {
        bool done = false, single = false;
        do {
            done |= j->deps[i].state == DEP_DONE && j->deps[i].from_unix <= g->now;
            single |= j->deps[i].state == DEP_WAITING && j->deps[i].kind == DEP_SINGLETON;
        } while (++i < j->n_deps && j->deps[i].is_or);
        needed |= !done && single;
    }
    const struct job *o;
    for (uint64_t k = 0; needed && (o = view_next_job(g->v, &k)); k++) {
        if (job_is_over(o) || o->spec->uid != j->spec->uid || !str_eq(o->spec->name, j->spec->name))
            continue;
        if (job_holds_nodes(o) || g->is_started[o->id] || o->id < j->id)
            return true;
    }
    return false;
}

static uint32_t job_gate(const struct judge *g, const struct job *j) {
    if (j->completing)
        return REASON_CLEANING;
    if (j->hold)
        return j->hold == HOLD_ADMIN ? REASON_HELD_ADMIN : REASON_HELD_USER;
    uint32_t reason = deps_gate(g, j);
    if (reason)
        return reason;
    return j->spec->begin_unix > g->now ? REASON_BEGIN_TIME : REASON_NONE;
}

/* It can't end before its deadline, even with the least limit that it takes. */
static bool is_late(const struct judge *g, const struct job *j, int part) {
    const struct job_more *m = job_spec_more(j->spec);
    uint32_t limit = limit_of(g, j, part), least = m->time_min_min ? MIN(m->time_min_min, limit) : limit;
    return m->deadline_unix && g->now + secs_of(least) > m->deadline_unix;
}

static const char *asked(const struct job *j) {
    return job_spec_more(j->spec)->features;
}

static struct wish own_wish(const struct judge *g, const struct job *j, int part) {
    return wish_of(g, j, part, asked(j));
}

static uint32_t part_gate(const struct judge *g, const struct job *j, int part, const char *features) {
    const struct part *p = g->part[part];
    struct wish w = wish_of(g, j, part, features);
    uint32_t there = 0;
    if (p->state == PART_DOWN)
        return REASON_PARTITION_DOWN;
    if (p->state == PART_INACTIVE)
        return REASON_PARTITION_INACTIVE;
    if (w.limit > p->max_time_min)
        return REASON_PARTITION_TIME;
    for (int n = 0; n < g->n_nodes; n++)
        there += part_has_node(p, g->node[n]);
    if (w.min > w.max || w.min > there)
        return REASON_PARTITION_NODES;
    return is_late(g, j, part) ? REASON_DEADLINE : REASON_NONE;
}

static bool some_may(const struct judge *g, const struct wish *w) {
    const struct rich_wish *f = rich_wish(w->features);
    const struct job_spec *s = w->job->spec;
    for (int n = 0; n < g->n_nodes; n++) {
        unsigned have = rich_features(g->node[n]);
        bool each = !f->each[0] || (have & f->each[0]) == f->each[0] || (f->each[1] && (have & f->each[1]) == f->each[1]);
        bool alt = !f->alt[0] || (have & f->alt[0]) == f->alt[0] || (have & f->alt[1]) == f->alt[1];
        bool listed = !s->n_req_nodes || w->named;
        for (uint32_t i = 0; i < s->n_req_nodes; i++)
            listed |= strcmp(s->req_nodes[i], g->node[n]->name) == 0;
        for (uint32_t i = 0; i < s->n_exc_nodes; i++)
            listed &= strcmp(s->exc_nodes[i], g->node[n]->name) != 0;
        if (each && alt && listed && part_has_node(g->part[w->part], g->node[n]))
            return true;
    }
    return false;
}

/* Why it could not start even if nothing ran. */
static uint32_t never(const struct judge *g, const struct wish *w) {
    if (best_set(g, w, g->now, 0, true, false))
        return REASON_NONE;
    if (best_set(g, w, g->now, 0, true, true))
        return REASON_NODES_UNAVAIL;
    return w->features && !some_may(g, w) ? REASON_BAD_CONSTRAINTS : REASON_PARTITION_CONFIG;
}

/* ---- licences ---- */

static int64_t *pool(struct judge *g, const struct license_ask *a) {
    return &g->licence[a->name[1] - '1'];
}

static bool licences_fit(struct judge *g, const struct job *j) {
    const struct job_more *m = job_spec_more(j->spec);
    if (m->n_licenses == 2 && m->licenses[1].is_or)
        return *pool(g, &m->licenses[0]) >= m->licenses[0].count || *pool(g, &m->licenses[1]) >= m->licenses[1].count;
    for (uint32_t i = 0; i < m->n_licenses; i++) {
        if (*pool(g, &m->licenses[i]) < m->licenses[i].count)
            return false;
    }
    return true;
}

/* All that it asks for; of a choice the first that is there, else the first. */
static void licences_take(struct judge *g, const struct job *j) {
    const struct job_more *m = job_spec_more(j->spec);
    bool choice = m->n_licenses == 2 && m->licenses[1].is_or;
    for (uint32_t i = 0; i < m->n_licenses && !choice; i++)
        *pool(g, &m->licenses[i]) -= m->licenses[i].count;
    if (!choice)
        return;
    bool second = *pool(g, &m->licenses[0]) < m->licenses[0].count && *pool(g, &m->licenses[1]) >= m->licenses[1].count;
    *pool(g, &m->licenses[second]) -= m->licenses[second].count;
}

/* For a job that waits, from those behind it; not from itself at a later turn. */
static void licences_keep(struct judge *g, const struct job *j) {
    int64_t was[2] = {g->licence[0], g->licence[1]};
    licences_take(g, j);
    for (int i = 0; i < 2; i++)
        g->kept[j->id][i] = was[i] - g->licence[i];
}

static void licences_give_back(struct judge *g, const struct job *j) {
    for (int i = 0; i < 2; i++) {
        g->licence[i] += g->kept[j->id][i];
        g->kept[j->id][i] = 0;
    }
}

/* ---- turns ---- */

static uint32_t strength(uint32_t reason) {
    return reason == REASON_RESOURCES ? 4 : reason == REASON_PRIORITY ? 3 : reason == REASON_NODES_UNAVAIL ? 2 : reason ? 1 : 0;
}

static void tell(struct judge *g, const struct job *j, uint32_t reason) {
    if (strength(reason) > strength(g->told[j->id]))
        g->told[j->id] = reason;
}

static const struct sched_note *note_of(const struct judge *g, uint32_t id) {
    return note_in(g->plan, id);
}

static void lift(struct judge *g, uint32_t job, bool up) {
    for (int i = 0; i < g->n_holds; i++) {
        if (g->hold[i].promised == job)
            g->hold[i].is_lifted = up;
    }
}

static void drop_promise(struct judge *g, uint32_t job) {
    int n = 0;
    for (int i = 0; i < g->n_holds; i++) {
        if (g->hold[i].promised != job)
            g->hold[n++] = g->hold[i];
    }
    g->n_holds = n;
    g->has_promise[job] = false;
}

/* The longest limit that fits now; 0: none. */
static uint32_t limit_now(const struct judge *g, const struct wish *w) {
    if (best_set(g, w, g->now, secs_of(w->limit), false, false))
        return w->limit;
    for (uint32_t m = w->limit - 1; w->time_min && m >= w->time_min; m--) {
        if (best_set(g, w, g->now, secs_of(m), false, false))
            return m;
    }
    return 0;
}

static const char *next_start(const struct judge *g, const struct turn *t) {
    const struct sched_start *st = g->cursor < g->plan->n_starts ? &g->plan->starts[g->cursor] : NULL;
    for (int i = 0; st && st->job_id == t->job->id && i < t->n_parts; i++) {
        if (strcmp(st->partition, g->part[t->part[i]]->name) == 0)
            return st->partition;
    }
    return NULL;
}

static bool start_right(struct judge *g, const struct turn *t, const struct wish *w, uint32_t limit) {
    const struct sched_start *st = &g->plan->starts[g->cursor];
    const struct job *j = t->job;
    if (strcmp(st->partition, g->part[w->part]->name) != 0)
        return judge_wrong(g, j, "started elsewhere than in the first partition that had room");
    if (st->time_limit_min != limit) {
        str_addf(g->why, "job %u: a limit of %u minutes, not %u", j->id, st->time_limit_min, limit);
        return false;
    }
    if (!nodes_right(g, w, st->nodes, st->n_nodes, g->now, secs_of(limit)))
        return false;
    put_holds(g, j, st->nodes, st->n_nodes, w->part, g->now, g->now + secs_of(limit), 0);
    licences_take(g, j);
    g->cursor++;
    g->is_started[j->id] = true;
    g->tasks_left[j->id]--;
    if (j->array)
        g->n_running[j->array->job_id]++;
    if (g->has_promise[j->id])
        drop_promise(g, j->id);
    return true;
}

/* The earliest moment, among the partitions that still give promises: something ends then. */
static int64_t earliest(const struct judge *g, const struct turn *t, int *out_part) {
    int64_t best = 0;
    for (int i = 0; i < t->n_parts; i++) {
        struct wish w = own_wish(g, t->job, t->part[i]);
        if (never(g, &w) || g->n_promises[t->part[i]] >= g->promises)
            continue;
        for (int h = 0; h < g->n_holds; h++) {
            int64_t x = g->hold[h].to;
            if (x > g->now && (!best || x < best) && best_set(g, &w, x, secs_of(w.limit), false, false))
                best = x, *out_part = t->part[i];
        }
    }
    return best;
}

static bool starts_later(const struct judge *g, uint32_t job) {
    for (uint32_t i = g->cursor; i < g->plan->n_starts; i++) {
        if (g->plan->starts[i].job_id == job)
            return true;
    }
    return false;
}

static bool promise_right(struct judge *g, const struct turn *t) {
    const struct sched_note *note = note_of(g, t->job->id);
    const struct sched_detail *d = detail_in(g->plan, t->job->id);
    int part = -1;
    int64_t best = earliest(g, t, &part);
    if (!best)
        return true;
    if (starts_later(g, t->job->id)) { /* what it was promised here is not told */
        g->is_out_of_sight = true;
        return true;
    }
    if (!d || !d->nodes)
        return judge_wrong(g, t->job, "no promise");
    if (!note || note->expected_start_unix != best) {
        str_addf(g->why, "job %u: promised for %+lld, possible at %+lld", t->job->id,
                 (long long)(note ? note->expected_start_unix - g->now : 0), (long long)(best - g->now));
        return false;
    }
    struct wish w = own_wish(g, t->job, part);
    if (!nodes_right(g, &w, d->nodes, d->n_nodes, best, secs_of(w.limit)))
        return false;
    put_holds(g, t->job, d->nodes, d->n_nodes, part, best, best + secs_of(w.limit), t->job->id);
    g->has_promise[t->job->id] = true;
    g->n_promises[part]++;
    return true;
}

static bool must_wait(struct judge *g, const struct turn *t) {
    const struct job *j = t->job;
    for (int i = 0; i < t->n_parts; i++) {
        struct wish w = own_wish(g, j, t->part[i]);
        uint32_t reason = never(g, &w);
        tell(g, j, reason ? reason : g->is_blocked[t->part[i]] ? REASON_PRIORITY : REASON_RESOURCES);
    }
    for (int i = 0; i < t->n_parts; i++) {
        struct wish w = own_wish(g, j, t->part[i]);
        g->is_blocked[t->part[i]] |= !never(g, &w);
    }
    lift(g, j->id, false);
    if (!g->has_promise[j->id] && !promise_right(g, t))
        return false;
    if (g->has_promise[j->id])
        licences_keep(g, j);
    return true;
}

static uint32_t bar(struct judge *g, const struct job *j) {
    const struct job *head = j->array ? view_job(g->v, j->array->job_id) : NULL;
    uint32_t most = head && head->array ? head->array->max_running : 0;
    licences_give_back(g, j);
    if (singleton_waits(g, j))
        return REASON_DEPENDENCY;
    if (most && g->n_running[j->array->job_id] >= most)
        return REASON_ARRAY_TASK_LIMIT;
    if (licences_fit(g, j))
        return REASON_NONE;
    licences_keep(g, j);
    return REASON_LICENSES;
}

/* By what it prefers, or by its own: in the first of its partitions that has room. `out_limit` 0: in none. */
static bool try_parts(struct judge *g, const struct turn *t, bool preferred, uint32_t *out_limit) {
    const struct job *j = t->job;
    const char *features = preferred ? job_spec_more(j->spec)->prefer : asked(j);
    *out_limit = 0;
    for (int i = 0; i < t->n_parts && !*out_limit && (features || !preferred); i++) {
        struct wish w = wish_of(g, j, t->part[i], features);
        if (preferred && part_gate(g, j, t->part[i], features))
            continue;
        *out_limit = limit_now(g, &w);
        if (*out_limit && !next_start(g, t))
            return judge_wrong(g, j, "passed over though it fits");
        if (*out_limit && g->plan->starts[g->cursor].preferred != preferred)
            return judge_wrong(g, j, preferred ? "not started as it prefers" : "started as it prefers, though that doesn't fit");
        if (*out_limit && !start_right(g, t, &w, *out_limit))
            return false;
    }
    return true;
}

/* As many of its tasks as may. */
static bool take_turn(struct judge *g, const struct turn *t) {
    const struct job *j = t->job;
    while (g->tasks_left[j->id]) {
        uint32_t reason = bar(g, j), limit = 0;
        if (reason) {
            tell(g, j, reason);
            return !next_start(g, t) || judge_wrong(g, j, "started though its turn is barred");
        }
        lift(g, j->id, true);
        if (!try_parts(g, t, true, &limit) || (!limit && !try_parts(g, t, false, &limit)))
            return false;
        if (!limit)
            return next_start(g, t) ? judge_wrong(g, j, "started though it doesn't fit") : must_wait(g, t);
    }
    return true;
}

/* ---- the queue ---- */

/* Ids of "a,b", in order, that take it; the reason is that of the first. */
static int add_turns(struct judge *g, const struct job *j, struct turn *out) {
    int n = 0;
    uint32_t first = 0;
    for (const char *at = j->spec->partition; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        int p = 0, i = 0;
        while (p < g->n_parts && *at != *g->part[p]->name)
            p++;
        if (p == g->n_parts)
            continue;
        uint32_t reason = part_gate(g, j, p, asked(j));
        first = first ? first : reason;
        if (reason)
            continue;
        while (i < n && out[i].tier != g->part[p]->priority_tier)
            i++;
        if (i == n)
            out[n++] = (struct turn){j, sched_priority(g->v, j, g->now), g->part[p]->priority_tier, {0}, 0};
        out[i].part[out[i].n_parts++] = p;
    }
    if (!n)
        g->told[j->id] = first;
    return n;
}

static int by_turn(const void *pa, const void *pb) {
    const struct turn *a = pa, *b = pb;
    if (a->tier != b->tier)
        return a->tier > b->tier ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->job->id < b->job->id ? -1 : 1;
}

static void lay_running(struct judge *g) {
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(g->v, &k)); k++) {
        if (!job_holds_nodes(j))
            continue;
        int64_t end = j->completing ? 0 : j->start_ms / 1000 + secs_of(j->time_limit_min);
        int part = 0;
        while (part < g->n_parts && !str_eq(g->part[part]->name, j->partition))
            part++;
        put_holds(g, j, j->nodes, j->n_nodes, part, g->now, MAX(end, g->now + 1), 0);
        if (j->array)
            g->n_running[j->array->job_id]++;
        const struct job_rare *r = job_rare_of(j);
        for (uint32_t i = 0; i < r->n_licenses; i++)
            *pool(g, &r->licenses[i]) -= r->licenses[i].count;
        if (!r->n_licenses)
            licences_take(g, j);
    }
}

static int collect(struct judge *g, struct turn *turn) {
    int n = 0;
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(g->v, &k)); k++) {
        must(j->id < J_JOBS);
        if (j->state != JOB_PENDING)
            continue;
        g->tasks_left[j->id] = j->array && !j->array->task ? array_count(j->array->pending, j->array->n_pending) : 1;
        g->told[j->id] = job_gate(g, j);
        if (!g->told[j->id])
            n += add_turns(g, j, turn + n);
    }
    return n;
}

static bool notes_right(struct judge *g) {
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(g->v, &k)); k++) {
        const struct sched_note *n = note_of(g, j->id);
        bool waits = j->state == JOB_PENDING && g->tasks_left[j->id];
        const struct sched_detail *d = detail_in(g->plan, j->id);
        if (waits != (n != NULL))
            return judge_wrong(g, j, "no note though it waits, or a note though it doesn't");
        if (d && d->nodes && !g->has_promise[j->id])
            return judge_wrong(g, j, "a promise that was not due");
        if (!n || n->reason == g->told[j->id])
            continue;
        str_addf(g->why, "job %u: reason %s, not %s", j->id, job_reason_word(n->reason), job_reason_word(g->told[j->id]));
        return false;
    }
    return g->cursor == g->plan->n_starts || judge_wrong(g, view_job(g->v, g->plan->starts[g->cursor].job_id), "started out of turn");
}

static bool judge_all(struct judge *g, uint32_t *seen) {
    static struct turn turn[J_JOBS * J_PARTS];
    lay_running(g);
    int n = collect(g, turn);
    qsort(turn, (size_t)n, sizeof(*turn), by_turn);
    for (int i = 0; i < n && !g->is_out_of_sight; i++, ++*seen) {
        if (!take_turn(g, &turn[i]))
            return false;
    }
    return g->is_out_of_sight || notes_right(g);
}

bool judge_plan(const struct view *v, int64_t now, uint32_t promises, const struct sched_plan *p, struct str *why,
                uint32_t *seen) {
    struct judge *g = xcalloc(1, sizeof(*g));
    g->v = v, g->now = now, g->plan = p, g->promises = promises, g->why = why;
    g->licence[0] = 2, g->licence[1] = 3;
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++)
        g->node[g->n_nodes++] = n;
    const struct part *part;
    for (uint64_t k = 0; (part = view_next_part(v, &k)); k++)
        g->part[g->n_parts++] = part;
    bool ok = judge_all(g, seen);
    free(g);
    return ok;
}
