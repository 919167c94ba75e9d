/* SPDX-License-Identifier: Apache-2.0
 *
 * A dependency on a job that has left the state: history knows how it ended, also days later. The verdict goes into the
 * command, as the last word on that parent. What history doesn't know either is refused by apply, as an id that never was.
 *
 * aftercorr is between tasks: of an array that is gone it is judged only where all of its tasks ended well.
 */
#include "base/mem.h"
#include "spurctld/acct/acct.h"
#include "spurctld/admit/submission.h"

struct past {
    struct dep *deps;
    uint32_t n_deps;
    const char *path;
    void (*done)(void *arg);
    void *arg;
};

struct look {
    const struct dep *dep;
    uint32_t last_id; /* of the newest row so far: of several lives of a job the last one counts */
    bool any, last_ok, all_ok;
    int64_t began_ms; /* 0: it ended without */
};

static bool is_named(const struct dep *d, const struct job *j) {
    if (!d->task)
        return j->id == d->job_id || (j->array && j->array->job_id == d->job_id);
    return j->array && j->array->job_id == d->job_id && (d->task == DEP_ALL_TASKS || j->array->task == d->task);
}

static bool on_row(void *arg, const struct job *j, const struct step *steps, uint32_t n_steps) {
    struct look *l = arg;
    if (!is_named(l->dep, j))
        return true;
    if (l->any && l->last_id != j->id)
        l->all_ok &= l->last_ok;
    l->any = true;
    l->last_id = j->id;
    l->last_ok = j->state == JOB_COMPLETED;
    l->began_ms = j->start_ms;
    return true;
}

static uint32_t verdict(const struct look *l) {
    switch ((enum dep_kind)l->dep->kind) {
    case DEP_AFTER: /* it began, or was cancelled before */
    case DEP_AFTERANY: return DEP_DONE;
    case DEP_AFTEROK: return l->all_ok ? DEP_DONE : DEP_NEVER;
    case DEP_AFTERNOTOK: return l->all_ok ? DEP_NEVER : DEP_DONE;
    case DEP_AFTERCORR: return l->all_ok ? DEP_DONE : DEP_WAITING;
    case DEP_SINGLETON: return DEP_WAITING;
    }
    return DEP_WAITING;
}

/* On a worker. */
static void look(void *arg) {
    struct past *p = arg;
    for (uint32_t i = 0; i < p->n_deps; i++) {
        struct dep *d = &p->deps[i];
        struct look l = {.dep = d, .all_ok = true};
        struct acct_filter f = {.job_ids = &d->job_id, .n_job_ids = 1, .limit = UINT32_MAX >> 1};
        struct err e;
        if (!d->is_final || acct_read(p->path, &f, on_row, &l, &e) || !l.any) {
            d->is_final = false;
            continue;
        }
        l.all_ok &= l.last_ok;
        d->state = verdict(&l);
        d->is_final = d->state != DEP_WAITING;
        if (d->kind == DEP_AFTER && d->minutes && l.began_ms)
            d->from_unix = l.began_ms / 1000 + 60 * (int64_t)d->minutes;
    }
}

static void looked(void *arg) {
    struct past *p = arg;
    void (*done)(void *arg) = p->done;
    arg = p->arg;
    free(p);
    done(arg);
}

bool deps_past(struct room *r, struct dep *deps, uint32_t n, void (*done)(void *arg), void *arg) {
    struct view v;
    bool any = false;
    if (!r->acct || !n)
        return false;
    state_view(r->state, &v);
    for (uint32_t i = 0; i < n; i++) { /* for now: whether it is to be looked for */
        bool is_one_task = deps[i].task && deps[i].task != DEP_ALL_TASKS;
        deps[i].is_final = deps[i].job_id && (is_one_task || !view_job(&v, deps[i].job_id));
        any |= deps[i].is_final;
    }
    state_view_end(&v);
    if (!any)
        return false;
    struct past *p = xnew(struct past);
    *p = (struct past){.deps = deps, .n_deps = n, .path = acct_path(r->acct), .done = done, .arg = arg};
    r->host->work(r->host->impl, look, looked, p);
    return true;
}
