/* SPDX-License-Identifier: Apache-2.0
 *
 * What the clock ends: runs and steps at their limit, jobs that can't meet their deadline any more; and --signal, which is
 * sent some time before. The time that a job was suspended does not count.
 */
#include "base/mem.h"
#include "core/sched/gate.h"
#include "core/sched/sched.h"
#include "spurctld/lead/inside.h"

typedef VEC(struct run_id) runs;

static int64_t limit_ms(const struct job *j) {
    uint32_t secs = job_spec_more(j->spec)->limit_secs;
    return secs && j->time_limit_min == 1 ? secs * INT64_C(1000) : j->time_limit_min * INT64_C(60000);
}

/* When the run must be over, in milliseconds; INT64_MAX: never. */
static int64_t end_of(const struct job *j) {
    int64_t deadline = job_spec_more(j->spec)->deadline_unix;
    int64_t end_ms = deadline ? deadline * 1000 : INT64_MAX;
    if (j->time_limit_min != TIME_LIMIT_NONE)
        end_ms = MIN(end_ms, j->start_ms + job_rare_of(j)->suspended_total_ms + limit_ms(j));
    return end_ms;
}

/* ---- runs ---- */

static bool is_late(const struct job *j, int64_t now_ms) {
    int64_t deadline_ms = job_spec_more(j->spec)->deadline_unix * 1000;
    if (j->state == JOB_SUSPENDED)
        return deadline_ms && now_ms >= deadline_ms;
    return j->state == JOB_RUNNING && !j->configuring && !j->completing && now_ms >= end_of(j);
}

static bool wants_warning(const struct job *j, int64_t now_ms) {
    const struct job_more *more = job_spec_more(j->spec);
    int64_t end_ms = end_of(j);
    return more->signal && j->state == JOB_RUNNING && !j->configuring && !j->completing && !job_rare_of(j)->warned &&
           end_ms != INT64_MAX && now_ms >= end_ms - 1000 * (int64_t)more->signal_secs;
}

struct warning {
    struct lead *lead;
    runs runs;
};

/* It is in the log that they were warned: once, whoever leads next. */
static void on_warned(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct warning *w = arg;
    struct view v;
    state_peek(w->lead->room->state, &v);
    for (size_t i = 0; !code && i < w->runs.n; i++) {
        const struct job *j = view_job(&v, w->runs.p[i].job_id);
        if (!j || j->start_no != w->runs.p[i].start_no || !job_rare_of(j)->warned || j->state != JOB_RUNNING)
            continue;
        room_warn_job(w->lead->room, j);
    }
    vec_fini(&w->runs);
    free(w);
}

static void warn_them(struct lead *l, const runs *list) {
    struct warning *w = xnew(struct warning);
    w->lead = l;
    for (size_t i = 0; i < list->n; i++)
        vec_push(&w->runs, list->p[i]);
    struct cmd_warned cmd = {list->p, (uint32_t)list->n};
    room_propose(l->room, CMD_WARNED, &cmd, 0, NULL, on_warned, w);
}

static void watch_runs(struct lead *l, const struct view *v, int64_t now_ms) {
    runs late = {0}, warned = {0};
    size_t cursor = 0;
    uint32_t id;
    while (lead_next_holding(l, &cursor, &id)) {
        const struct job *j = view_job(v, id);
        if (!j)
            continue;
        struct run_id run = {j->id, j->start_no};
        if (is_late(j, now_ms))
            vec_push(&late, run);
        else if (wants_warning(j, now_ms))
            vec_push(&warned, run);
    }
    if (late.n) {
        struct cmd_timeout cmd = {late.p, (uint32_t)late.n};
        room_propose_quietly(l->room, CMD_TIMEOUT, &cmd);
    }
    if (warned.n)
        warn_them(l, &warned);
    vec_fini(&late);
    vec_fini(&warned);
}

/* ---- steps ---- */

static void note_step(struct lead *l, const struct step *st) {
    uint64_t key = step_key(st->job_id, st->id);
    if (!step_is_over(st) && st->spec->time_limit_min && st->spec->time_limit_min != TIME_LIMIT_NONE)
        map64_put(&l->steps, key, l); /* only those that have one of their own */
    else
        map64_del(&l->steps, key);
}

static void watch_steps(struct lead *l, const struct view *v, int64_t now_ms) {
    VEC(struct cmd_step_cancel) late = {0};
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (map64_next(&l->steps, &cursor, &key, &value)) {
        const struct step *st = cow_get(v->steps, key);
        const struct job *j = st ? view_job(v, st->job_id) : NULL;
        if (!j || st->kill_ms || j->state != JOB_RUNNING || j->start_no != st->start_no)
            continue;
        struct cmd_step_cancel cmd = {.job_id = st->job_id, .step_id = st->id, .is_timeout = true};
        if (now_ms >= st->start_ms + (int64_t)st->spec->time_limit_min * 60000)
            vec_push(&late, cmd);
    }
    for (size_t i = 0; i < late.n; i++)
        room_propose_quietly(l->room, CMD_STEP_CANCEL, &late.p[i]);
    vec_fini(&late);
}

/* ---- deadlines ---- */

static bool ends_of_itself(const struct job_more *m) {
    return m->deadline_unix || m->kill_invalid_dep == 2;
}

static void note_deadline(struct lead *l, const struct job *j) {
    if (j->state == JOB_PENDING && ends_of_itself(job_spec_more(j->spec)))
        map64_put(&l->deadlines, j->id, l);
    else if (l->deadlines.n)
        map64_del(&l->deadlines, j->id);
}

static bool is_dep_invalid(const struct job *j, int64_t now_ms) {
    int64_t when;
    return job_spec_more(j->spec)->kill_invalid_dep == 2 && gate_job(j, now_ms / 1000, &when) == REASON_DEP_NEVER;
}

static void watch_deadlines(struct lead *l, const struct view *v, int64_t now_ms) {
    VEC(uint32_t) ids = {0};
    VEC(uint32_t) invalid = {0};
    size_t cursor = 0;
    uint64_t id;
    void *value;
    while (map64_next(&l->deadlines, &cursor, &id, &value)) {
        const struct job *j = view_job(v, (uint32_t)id);
        if (j && j->state == JOB_PENDING && !j->completing && job_spec_more(j->spec)->deadline_unix &&
            now_ms / 1000 > sched_last_start(v, j))
            vec_push(&ids, j->id);
        else if (j && j->state == JOB_PENDING && !j->completing && is_dep_invalid(j, now_ms))
            vec_push(&invalid, j->id);
    }
    if (invalid.n) {
        struct cmd_deadline cmd = {.job_ids = invalid.p, .n_job_ids = (uint32_t)invalid.n, .invalid_dep = true};
        room_propose_quietly(l->room, CMD_DEADLINE, &cmd);
    }
    vec_fini(&invalid);
    if (ids.n) {
        struct cmd_deadline cmd = {.job_ids = ids.p, .n_job_ids = (uint32_t)ids.n};
        room_propose_quietly(l->room, CMD_DEADLINE, &cmd);
    }
    vec_fini(&ids);
}

/* ---- all of them ---- */

void limits_begin(struct lead *l, const struct view *v) {
    const struct job *j;
    const struct step *st;
    for (uint64_t k = 0; (j = view_next_job(v, &k)); k++)
        note_deadline(l, j);
    for (uint64_t k = 0; (st = view_next_step(v, &k)); k++)
        note_step(l, st);
}

void limits_on_event(struct lead *l, const struct view *v, const struct event *ev) {
    if (!ev->job_id)
        return;
    if (ev->kind == EV_STEP_STARTED || ev->kind == EV_STEP_CHANGED || ev->kind == EV_STEP_OVER) {
        const struct step *st = view_step(v, ev->job_id, ev->step_id);
        if (st)
            note_step(l, st);
        return;
    }
    const struct job *j = view_job(v, ev->job_id);
    if (j)
        note_deadline(l, j);
    else if (l->deadlines.n)
        map64_del(&l->deadlines, ev->job_id);
}

void limits_end(struct lead *l) {
    map64_fini(&l->steps);
    map64_fini(&l->deadlines);
}

void limits_tick(struct lead *l, const struct view *v) {
    int64_t now_ms = l->room->host->unix_ms(l->room->host->impl);
    watch_runs(l, v, now_ms);
    watch_steps(l, v, now_ms);
    watch_deadlines(l, v, now_ms);
}
