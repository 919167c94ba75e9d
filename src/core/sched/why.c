/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/text.h"
#include "core/sched/explain.h"

#define BEFORE_MAX 20u /* jobs that are named */

struct why_fact *why_add(struct why_look *l, const char *kind, const char *fmt, ...) {
    auto_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vaddf(&text, fmt, ap);
    va_end(ap);
    struct why_fact f = {.kind = kind, .text = arena_strdup(l->arena, str_text(&text))};
    vec_push(&l->facts, f);
    return &l->facts.p[l->facts.n - 1];
}

/* ---- gates of the job ---- */

static void say_hold(struct why_look *l, const struct job *j) {
    if (j->hold == HOLD_ADMIN)
        why_add(l, "hold", "an administrator holds it (`scontrol release %u` lets it go, by an administrator)", j->id);
    else if (j->hold)
        why_add(l, "hold", "it is held (`scontrol release %u` lets it go)", j->id);
}

static const char *what_for(uint32_t kind) {
    switch (kind) {
    case DEP_AFTER:
        return "to begin (after)";
    case DEP_AFTEROK:
        return "to end well (afterok)";
    case DEP_AFTERNOTOK:
        return "to fail (afternotok)";
    case DEP_AFTERCORR:
        return "to end well, task by task (aftercorr)";
    default:
        return "to end (afterany)";
    }
}

static void say_dep(struct pass *p, const struct job *j, const struct dep *d) {
    const struct job *other = view_job(p->v, d->job_id);
    auto_str id = {0};
    struct why_fact *f = NULL;
    str_addf(&id, d->task && d->task != DEP_ALL_TASKS ? "%u_%u" : "%u", d->job_id, d->task - 1);
    if (d->kind == DEP_SINGLETON)
        return;
    if (d->state == DEP_NEVER)
        f = why_add(p->look, "dependency", "it waits for job %s %s, and that can't come any more", str_text(&id), what_for(d->kind));
    else if (d->state == DEP_DONE && d->from_unix > p->now)
        f = why_add(p->look, "dependency", "it waits %u minutes after the beginning of job %s", d->minutes, str_text(&id));
    else if (d->state == DEP_WAITING)
        f = why_add(p->look, "dependency", "it waits for job %s %s, which is %s", str_text(&id), what_for(d->kind),
                    other ? job_shown_state(other) : "gone");
    if (!f)
        return;
    f->when_unix = d->state == DEP_DONE ? d->from_unix : 0;
    f->jobs = arena_memdup(p->look->arena, &d->job_id, sizeof(d->job_id));
    f->n_jobs = 1;
}

static void say_singleton(struct pass *p, const struct job *j) {
    const struct job *o;
    size_t was = p->look->facts.n;
    for (uint64_t k = 0; (o = view_next_job(p->v, &k)); k++) {
        if (o->id == j->id || job_is_over(o) || o->spec->uid != j->spec->uid || !str_eq(o->spec->name, j->spec->name))
            continue;
        if (!job_holds_nodes(o) && o->id > j->id)
            continue;
        struct why_fact *f = why_add(p->look, "dependency", "it waits for job %u, which has its name, %s (singleton)", o->id,
                                     o->spec->name ? o->spec->name : "");
        f->jobs = arena_memdup(p->look->arena, &o->id, sizeof(o->id));
        f->n_jobs = 1;
    }
    if (p->look->facts.n == was)
        why_add(p->look, "dependency", "a job of its name, %s, starts now, and it waits for that one (singleton)",
                j->spec->name ? j->spec->name : "");
}

/* ---- gates of a partition ---- */

static void say_times(struct pass *p, const struct job *j, const struct part *part, uint32_t first) {
    uint32_t limit = gate_time_limit(j, part, p->s->grid.part[first].rec, p->asks.conf);
    auto_str asked = {0}, most = {0};
    time_limit_print(limit, &asked);
    time_limit_print(part->max_time_min, &most);
    if (part->max_time_min && limit > part->max_time_min)
        why_add(p->look, "limit", "partition %s: max_time is %s, and it asks for %s", part->name, str_text(&most), str_text(&asked));
    const struct job_more *m = job_spec_more(j->spec);
    if (m->deadline_unix && gate_last_start(j, limit) < p->now)
        why_add(p->look, "deadline", "partition %s: with a limit of %s it can't end before its deadline any more", part->name,
                str_text(&asked))
            ->when_unix = m->deadline_unix;
}

static void say_counts(struct pass *p, const struct grid_part *gp, const struct ask_size *z) {
    uint32_t there = gp->n_nodes + gp->n_missing;
    const struct part *part = gp->rec;
    if (z->min_nodes > z->max_nodes && part->max_nodes && z->min_nodes > part->max_nodes)
        why_add(p->look, "limit", "partition %s: max_nodes is %u, and it asks for %u", part->name, part->max_nodes, z->min_nodes);
    else if (z->min_nodes > z->max_nodes)
        why_add(p->look, "limit", "partition %s: it asks for at least %u nodes and may have %u", part->name, z->min_nodes, z->max_nodes);
    else if (there && z->min_nodes > there)
        why_add(p->look, "limit", "partition %s has %u nodes, and it asks for %u", part->name, there, z->min_nodes);
}

static void say_access(struct pass *p, const struct part *part, const struct job *j) {
    uint32_t reason = gate_access(part, j);
    if (reason == REASON_ACCOUNT)
        why_add(p->look, "partition", "partition %s doesn't take account %s", part->name, j->spec->account ? j->spec->account : "(none)");
    else if (reason && part->root_only)
        why_add(p->look, "partition", "partition %s is root's alone", part->name);
    else if (reason)
        why_add(p->look, "partition", "partition %s doesn't take group %s", part->name, j->spec->group ? j->spec->group : "(none)");
}

static void say_partition(struct pass *p, const struct job *j, uint32_t index, uint32_t first) {
    const struct grid_part *gp = &p->s->grid.part[index];
    const struct ask *a = ask_of(&p->asks, j, index, first);
    if (gp->rec->state == PART_DOWN || gp->rec->state == PART_INACTIVE)
        why_add(p->look, "partition", "partition %s is %s", gp->rec->name, part_state_name(gp->rec->state));
    say_access(p, gp->rec, j);
    say_times(p, j, gp->rec, first);
    say_counts(p, gp, &a->size);
}

void why_gates(struct pass *p, const struct waiting *w) {
    const struct job *j = w->job;
    struct part_names names;
    const char *text = j->spec->partition ? j->spec->partition : "";
    if (j->completing)
        why_add(p->look, "cleaning", "its former run is still being ended");
    say_hold(p->look, j);
    for (uint32_t i = 0; i < j->n_deps; i++)
        say_dep(p, j, &j->deps[i]);
    if (j->spec->begin_unix > p->now)
        why_add(p->look, "begin", "its --begin is in the future")->when_unix = j->spec->begin_unix;
    if (j->retry_unix > p->now)
        why_add(p->look, "begin", "its last run ended or failed to start, and it is not tried again before")->when_unix = j->retry_unix;
    pass_part_names(&p->s->grid, text, p->scratch, &names);
    if (!names.n)
        why_add(p->look, "partition", "there is no partition %s any more", *text ? text : "by default");
    for (uint32_t i = 0; i < names.n; i++)
        say_partition(p, j, names.part[i], names.first);
}

/* ---- at its turn ---- */

static void say_licence(struct pass *p, const struct license_ask *a) {
    const struct pool *pool = NULL;
    const struct job *o;
    VEC(uint32_t) held = {0};
    for (uint32_t i = 0; i < p->licenses.n; i++)
        pool = str_eq(p->licenses.pool[i].name, a->name) ? &p->licenses.pool[i] : pool;
    for (uint64_t k = 0; (o = view_next_job(p->v, &k)); k++) {
        const struct job_rare *r = job_rare_of(o);
        const struct job_more *m = job_spec_more(o->spec);
        const struct license_ask *has = r->n_licenses ? r->licenses : m->licenses;
        for (uint32_t i = 0; job_holds_nodes(o) && i < (r->n_licenses ? r->n_licenses : m->n_licenses); i++) {
            if (str_eq(has[i].name, a->name))
                vec_push(&held, o->id);
        }
    }
    struct why_fact *f = why_add(p->look, "licence", "licence %s: it needs %u, %lld of %u free", a->name, a->count,
                                 (long long)MAX(pool ? pool->free : 0, (int64_t)0), pool ? pool->total : 0);
    f->jobs = arena_memdup(p->look->arena, held.p, held.n * sizeof(*held.p));
    f->n_jobs = (uint32_t)held.n;
    vec_fini(&held);
}

static void say_bars(struct pass *p, const struct waiting *w) {
    const struct job_more *m = job_spec_more(w->job->spec);
    struct license_take lic;
    if (w->is_single && !singletons_may_start(p->singletons, w->job))
        say_singleton(p, w->job);
    if (w->use && w->use->max_running && w->use->n_running >= w->use->max_running)
        why_add(p->look, "array", "%u tasks of its array run, and its %%%u allows no more", w->use->n_running, w->use->max_running);
    if (!m->n_licenses || licenses_fit(&p->licenses, w->job->spec, &lic))
        return;
    for (uint32_t i = 0; i < m->n_licenses; i++)
        say_licence(p, &m->licenses[i]);
}

static bool same_partition(const struct entry *a, const struct entry *b) {
    for (uint32_t i = 0; i < a->n_asks; i++) {
        for (uint32_t k = 0; k < b->n_asks; k++) {
            if (a->ask[i]->size.part == b->ask[k]->size.part)
                return true;
        }
    }
    return false;
}

static void say_before(struct pass *p, const struct entry *e) {
    if (!p->look->told)
        p->look->told = arena_calloc(p->scratch, bits_words(p->n_waiting) + 1, sizeof(*p->look->told));
    for (const struct entry *o = p->entry; o < e; o++) {
        size_t at = (size_t)(o->w - p->waiting);
        if (o->w == e->w || o->w->is_started || bits_has(p->look->told, at) || !same_partition(o, e))
            continue;
        bits_set(p->look->told, at);
        p->look->n_before_all++;
        if (p->look->before.n < BEFORE_MAX)
            vec_push(&p->look->before, o->w->job->id);
    }
}

void why_turn(struct pass *p, const struct entry *e) {
    say_bars(p, e->w);
    for (uint32_t i = 0; i < e->n_asks; i++)
        why_nodes(p, e->w, e->ask[i]);
    say_before(p, e);
}

/* ---- the answer ---- */

static const struct sched_note *note_of(const struct sched_plan *plan, uint32_t job_id) {
    for (uint32_t i = 0; i < plan->n_notes; i++) {
        if (plan->notes[i].job_id == job_id)
            return &plan->notes[i];
    }
    return NULL;
}

static void take_names(struct arena *a, const struct job_node *nodes, uint32_t n, struct why *out) {
    const char **names = arena_alloc(a, (n + 1) * sizeof(*names));
    for (uint32_t i = 0; i < n; i++)
        names[i] = nodes[i].name;
    out->expected_nodes = names;
    out->n_expected_nodes = n;
}

static void take_plan(const struct sched_plan *plan, uint32_t job_id, int64_t now, struct arena *a, struct why *out) {
    const struct sched_note *note = note_of(plan, job_id);
    for (uint32_t i = 0; i < plan->n_starts && !out->starts; i++) {
        if (plan->starts[i].job_id != job_id)
            continue;
        out->starts = true;
        out->expected_unix = now;
        take_names(a, plan->starts[i].nodes, plan->starts[i].n_nodes, out);
    }
    if (note) {
        out->reason = note->reason;
        out->priority = note->priority;
        out->expected_unix = out->starts ? now : note->expected_start_unix;
    }
    for (uint32_t i = 0; i < plan->n_details && !out->starts; i++) {
        if (plan->details[i].job_id != job_id)
            continue;
        out->reason_text = plan->details[i].text;
        take_names(a, plan->details[i].nodes, plan->details[i].nodes ? plan->details[i].n_nodes : 0, out);
    }
}

static void take_look(const struct why_look *l, struct why *out) {
    out->facts = arena_memdup(l->arena, l->facts.p, l->facts.n * sizeof(*l->facts.p));
    out->n_facts = (uint32_t)l->facts.n;
    out->nodes = arena_memdup(l->arena, l->rows.p, l->rows.n * sizeof(*l->rows.p));
    out->n_nodes = (uint32_t)l->rows.n;
    out->before = arena_memdup(l->arena, l->before.p, l->before.n * sizeof(*l->before.p));
    out->n_before = (uint32_t)l->before.n;
    out->n_before_all = l->n_before_all;
    out->n_rows_more = l->n_rows_more;
}

int sched_explain(const struct view *v, uint32_t job_id, int64_t now_unix, struct arena *a, struct why *out, struct err *e) {
    const struct job *j = view_job(v, job_id);
    *out = (struct why){0};
    if (!j || j->state != JOB_PENDING)
        return err_set(e, E_JOB_ID, NULL);
    struct why_look look = {.job_id = job_id, .arena = a};
    struct sched_plan plan;
    struct sched *s = sched_new(NULL);
    pass_run(s, v, now_unix, a, &plan, &look);
    take_plan(&plan, job_id, now_unix, a, out);
    if (!out->starts && out->reason == REASON_PRIORITY && plan.is_cut)
        why_add(&look, "limit", "the planner looks at so many jobs in one pass (max_jobs_per_cycle), and it was not yet among them");
    take_look(&look, out);
    sched_free(s);
    vec_fini(&look.facts);
    vec_fini(&look.rows);
    vec_fini(&look.before);
    return 0;
}
