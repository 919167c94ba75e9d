/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependencies: an index from a job to those that name it, and what is known of each dependency. While the job that is
 * named is in the state, what is known follows from its record (for a whole array: from the counters in the array's own);
 * so it is judged anew when that job begins, is over, or waits again after a requeue. When it leaves the state the last
 * word stands (dep.is_final).
 *
 * aftercorr between two arrays is between tasks of the same number: when a task of the first is over, the task of the
 * second is taken out of its group as a record of its own, which may start.
 */
#include "base/mem.h"
#include "base/vec.h"
#include "core/state/inside.h"

#define CYCLE_MAX 10000u /* jobs that are looked at for a circle */

void deps_index(struct state *s, const struct job *j) {
    for (uint32_t i = 0; i < j->n_deps; i++)
        if (j->deps[i].job_id && !j->deps[i].is_final)
            idset_add(&s->children, j->deps[i].job_id, j->id);
}

void deps_unindex(struct state *s, const struct job *j) {
    for (uint32_t i = 0; i < j->n_deps; i++)
        if (j->deps[i].job_id && !j->deps[i].is_final)
            idset_del(&s->children, j->deps[i].job_id, j->id);
}

/* ---- what is known ---- */

struct fate {
    bool is_gone; /* its record has left: the head's memory tells */
    bool began, over, ok;
    int64_t began_ms; /* 0: as far as is known now */
};

static struct fate fate_of_record(const struct job *j) {
    bool over = job_is_over(j);
    return (struct fate){false, job_has_begun(j), over, over && j->state == JOB_COMPLETED, j->start_ms};
}

static struct fate fate_of_array(const struct job *head) {
    const struct job_array *a = head->array;
    bool over = a->over >= a->n;
    return (struct fate){false, a->begun >= a->n, over, over && !a->bad, 0};
}

static bool stands_for(const struct job *j, uint32_t task) {
    return job_is_group(j) ? array_has(j->array->pending, j->array->n_pending, task) : j->array->task == task + 1;
}

static const struct job *record_of_task(const struct state *s, const struct job *head, uint32_t task) {
    const struct idset *others = idset_of(&s->arrays, head->id);
    if (stands_for(head, task))
        return head;
    for (size_t i = 0; others && i < others->ids.n; i++) {
        const struct job *j = state_job(s, others->ids.p[i]);
        if (j && stands_for(j, task))
            return j;
    }
    return NULL;
}

/* Of one of its tasks: what has no record is over, and the head knows how. */
static struct fate fate_of_task(const struct state *s, const struct job *head, uint32_t task) {
    const struct job *j = record_of_task(s, head, task);
    const struct job_array *a = head->array;
    return j ? fate_of_record(j) : (struct fate){true, true, true, !array_has(a->gone_bad, a->n_gone_bad, task), 0};
}

static bool is_head(const struct job *j) {
    return j->array && j->array->job_id == j->id;
}

static uint32_t verdict_of(struct fate f, uint32_t kind) {
    switch ((enum dep_kind)kind) {
    case DEP_AFTER: return f.began ? DEP_DONE : DEP_WAITING;
    case DEP_AFTERANY: return f.over ? DEP_DONE : DEP_WAITING;
    case DEP_AFTEROK:
    case DEP_AFTERCORR: return !f.over ? DEP_WAITING : f.ok ? DEP_DONE : DEP_NEVER;
    case DEP_AFTERNOTOK: return !f.over ? DEP_WAITING : f.ok ? DEP_NEVER : DEP_DONE;
    case DEP_SINGLETON: return DEP_WAITING; /* of all jobs of a name and user: the planner's, not one parent's */
    }
    return DEP_NEVER;
}

/* A group's tasks wait together: for the first partner that is not over. Tasks without one wait for nobody. */
static uint32_t verdict_corr(const struct state *s, const struct job *head, const struct job *child, bool *is_gone) {
    const struct array_range *all = job_spec_more(head->spec)->array_ranges, one = {child->array->task - 1,
                                                                                    child->array->task - 1};
    uint32_t n_all = job_spec_more(head->spec)->n_array_ranges;
    bool group = job_is_group(child);
    const struct array_range *mine = group ? child->array->pending : &one;
    uint32_t n_mine = group ? child->array->n_pending : 1;
    uint32_t verdict = DEP_DONE;
    for (uint32_t i = 0; i < n_mine; i++) {
        for (uint32_t t = mine[i].first; t <= mine[i].last; t++) {
            if (!array_has(all, n_all, t))
                continue;
            struct fate f = fate_of_task(s, head, t);
            uint32_t v = verdict_of(f, DEP_AFTERCORR);
            if (v == DEP_WAITING) {
                *is_gone = false;
                return v;
            }
            *is_gone |= f.is_gone;
            verdict = v == DEP_NEVER ? v : verdict;
        }
    }
    return verdict;
}

/* BY_NOTHING: what was said before stands. So it does where a task has left and was judged while it was there. */
enum judged { BY_NOTHING, BY_MEMORY, BY_RECORDS };

static enum judged judge(const struct state *s, const struct job *child, const struct dep *d, int64_t now_ms,
                         struct dep *out) {
    const struct job *p = d->job_id && !d->is_final ? state_job(s, d->job_id) : NULL;
    if (!p)
        return BY_NOTHING;
    *out = *d;
    if (d->kind == DEP_AFTERCORR && is_head(p) && child->array && (!d->task || d->task == DEP_ALL_TASKS)) {
        bool is_gone = false;
        out->state = verdict_corr(s, p, child, &is_gone);
        return !is_gone ? BY_RECORDS : d->state == DEP_WAITING ? BY_MEMORY : BY_NOTHING;
    }
    bool whole = is_head(p) && (!d->task || d->task == DEP_ALL_TASKS);
    struct fate f = whole                     ? fate_of_array(p)
                    : is_head(p) && d->task ? fate_of_task(s, p, d->task - 1)
                                              : fate_of_record(p);
    if (f.is_gone && d->state != DEP_WAITING)
        return BY_NOTHING;
    out->state = verdict_of(f, d->kind);
    if (d->kind != DEP_AFTER || out->state != DEP_DONE || !d->minutes)
        out->from_unix = 0;
    else if (d->state != DEP_DONE)
        out->from_unix = (f.began_ms ? f.began_ms : now_ms) / 1000 + 60 * (int64_t)d->minutes;
    return f.is_gone ? BY_MEMORY : BY_RECORDS;
}

static bool rejudge(struct apply *ap, uint32_t child_id, uint32_t parent_id) {
    const struct job *old = state_job(ap->s, child_id);
    struct dep *deps = NULL;
    for (uint32_t i = 0; old && i < old->n_deps; i++) {
        struct dep next;
        if ((parent_id && old->deps[i].job_id != parent_id) || judge(ap->s, old, &old->deps[i], ap->now_ms, &next) == BY_NOTHING ||
            next.state == old->deps[i].state)
            continue;
        if (!deps)
            deps = arena_memdup(ap->arena, old->deps, old->n_deps * sizeof(*deps));
        deps[i] = next;
    }
    if (!deps)
        return false;
    struct job next = *old;
    next.deps = deps;
    state_put_job(ap->s, &next);
    if (!job_is_over(&next))
        apply_event(ap, EV_JOB_CHANGED, child_id, next.start_no, 0);
    return true;
}

void deps_split(struct apply *ap, uint32_t from, uint32_t id) {
    rejudge(ap, from, 0);
    rejudge(ap, id, 0);
}

/* ---- aftercorr ---- */

static bool has_corr(const struct job *j, uint32_t array_id) {
    for (uint32_t i = 0; i < j->n_deps; i++)
        if (j->deps[i].kind == DEP_AFTERCORR && j->deps[i].job_id == array_id && !j->deps[i].is_final)
            return true;
    return false;
}

/* The tasks of a waiting group whose partners are these get a record of their own. */
static void split_corr(struct apply *ap, uint32_t child_id, uint32_t array_id, const struct array_range *partners, uint32_t n_partners) {
    const struct job *child = state_job(ap->s, child_id);
    if (!child || !job_is_group(child) || child->state != JOB_PENDING || !has_corr(child, array_id))
        return;
    uint32_t n;
    const struct array_range *tasks = array_both(ap, child->array->pending, child->array->n_pending, partners, n_partners, &n);
    if (!n || array_count(tasks, n) >= job_n_tasks(child))
        return; /* none, or all that are left: these may keep the record */
    uint32_t id = array_split(ap, child, tasks, n, 0, NULL);
    if (id)
        apply_event(ap, EV_JOB_PENDING, id, child->start_no, 0);
}

static void split_corr_over(struct apply *ap, uint32_t child_id, const struct job *over) {
    struct array_range one = {over->array->task - 1, over->array->task - 1};
    bool group = job_is_group(over);
    split_corr(ap, child_id, over->array->job_id, group ? over->array->pending : &one, group ? over->array->n_pending : 1);
}

static void split_corr_all(struct apply *ap, uint32_t child_id, uint32_t array_id) {
    const struct idset *others = idset_of(&ap->s->arrays, array_id);
    uint32_t n = others ? (uint32_t)others->ids.n : 0;
    uint32_t *ids = arena_memdup(ap->arena, n ? others->ids.p : NULL, n * sizeof(*ids));
    for (uint32_t i = 0; i <= n; i++) {
        const struct job *p = state_job(ap->s, i ? ids[i - 1] : array_id);
        if (p && p->array && job_is_over(p))
            split_corr_over(ap, child_id, p);
    }
    const struct job *head = state_job(ap->s, array_id);
    if (head && is_head(head))
        split_corr(ap, child_id, array_id, head->array->gone_bad, head->array->n_gone_bad);
}

/* ---- events ---- */

static void resolve_key(struct apply *ap, uint32_t key, const struct job *parent) {
    const struct idset *c = idset_of(&ap->s->children, key);
    if (!c)
        return;
    size_t n = c->ids.n; /* grows when groups are split: those are judged there */
    uint32_t *ids = arena_memdup(ap->arena, c->ids.p, n * sizeof(*ids));
    bool corr = parent->array && key == parent->array->job_id && job_is_over(parent);
    for (size_t i = 0; i < n; i++) {
        if (corr)
            split_corr_over(ap, ids[i], parent);
        rejudge(ap, ids[i], key);
    }
}

void deps_resolve(struct apply *ap, const struct job *parent) {
    struct job copy = *parent; /* the record may be replaced while we go */
    resolve_key(ap, copy.id, &copy);
    if (copy.array && copy.array->job_id != copy.id)
        resolve_key(ap, copy.array->job_id, &copy);
}

void deps_orphan(struct apply *ap, uint32_t parent_id) {
    const struct idset *c = idset_of(&ap->s->children, parent_id);
    size_t n = c ? c->ids.n : 0;
    uint32_t *ids = arena_memdup(ap->arena, c ? c->ids.p : NULL, n * sizeof(*ids));
    for (size_t i = 0; i < n; i++) {
        const struct job *old = state_job(ap->s, ids[i]);
        if (!old)
            continue;
        struct job next = *old;
        struct dep *deps = arena_memdup(ap->arena, old->deps, old->n_deps * sizeof(*deps));
        for (uint32_t k = 0; k < old->n_deps; k++)
            deps[k].is_final |= deps[k].job_id == parent_id;
        next.deps = deps;
        state_put_job(ap->s, &next);
    }
    idset_drop(&ap->s->children, parent_id);
}

void deps_judge(struct apply *ap, uint32_t job_id) {
    const struct job *j = state_job(ap->s, job_id);
    if (!j || !j->n_deps)
        return;
    for (uint32_t i = 0; i < j->n_deps && job_is_group(j); i++)
        if (j->deps[i].kind == DEP_AFTERCORR)
            split_corr_all(ap, job_id, j->deps[i].job_id);
    rejudge(ap, job_id, 0);
}

/* ---- new ones ---- */

/* Whether job_id is among those that `from` waits for, near or far. */
static bool leads_to(const struct state *s, uint32_t from, uint32_t job_id) {
    struct map64 seen = {0};
    VEC(uint32_t) todo = {0};
    bool found = false;
    vec_push(&todo, from);
    for (size_t at = 0; at < todo.n && !found && todo.n < CYCLE_MAX; at++) {
        const struct job *j = state_job(s, todo.p[at]);
        found = todo.p[at] == job_id;
        for (uint32_t i = 0; j && !found && i < j->n_deps; i++) {
            uint32_t next = j->deps[i].job_id;
            if (!next || j->deps[i].state != DEP_WAITING || map64_get(&seen, next))
                continue;
            map64_put(&seen, next, &seen);
            vec_push(&todo, next);
        }
    }
    map64_fini(&seen);
    vec_fini(&todo);
    return found;
}

static bool is_there(const struct state *s, const struct dep *d) {
    const struct job *p = state_job(s, d->job_id);
    if (!p)
        return false;
    if (!d->task || d->task == DEP_ALL_TASKS)
        return !d->task || is_head(p);
    return is_head(p) && record_of_task(s, p, d->task - 1); /* of one that has left, history knows more */
}

/* A parent that is not here can't be waited for: Slurm's "Job dependency problem". But for one that has left the proposer may say
 * how it ended, which history knows. */
int deps_check(struct apply *ap, uint32_t job_id, const struct job_spec *spec, struct dep *out) {
    bool is_new = !state_job(ap->s, job_id); /* nobody can name it yet */
    for (uint32_t i = 0; i < spec->n_deps; i++) {
        const struct dep *d = &spec->deps[i];
        if (d->kind < DEP_AFTER || d->kind > DEP_AFTERCORR)
            return E_DEPENDENCY;
        bool is_past = d->job_id && d->is_final && d->state != DEP_WAITING && d->state <= DEP_NEVER && !is_there(ap->s, d);
        if (d->job_id && !is_past && (!is_there(ap->s, d) || (!is_new && leads_to(ap->s, d->job_id, job_id))))
            return E_DEPENDENCY;
        if (!out)
            continue;
        out[i] = *d;
        if (is_past)
            continue;
        out[i].state = DEP_WAITING;
        out[i].from_unix = 0;
        out[i].is_final = false;
    }
    return 0;
}

void deps_replace(struct apply *ap, struct job *j, const struct job_spec *spec) {
    struct dep *deps = arena_calloc(ap->arena, spec->n_deps + 1, sizeof(*deps));
    deps_unindex(ap->s, j);
    deps_check(ap, j->id, spec, deps);
    j->deps = deps;
    j->n_deps = spec->n_deps;
    deps_index(ap->s, j);
}

bool deps_are_sound(const struct state *s, const struct job *j) {
    for (uint32_t i = 0; i < j->n_deps; i++) {
        const struct dep *d = &j->deps[i];
        struct dep next;
        if (!d->job_id || d->is_final)
            continue;
        if (!idset_has(idset_of(&s->children, d->job_id), j->id))
            return false;
        if (judge(s, j, d, 0, &next) == BY_RECORDS && next.state != d->state)
            return false;
    }
    return true;
}
