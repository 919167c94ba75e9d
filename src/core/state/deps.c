/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependencies: an index from a job to those that wait for it, and the verdict when it is over. The verdict is kept in
 * the waiting job, so that its parent may leave the state.
 *
 * The index must be the same whether it grew with the entries or was made from a snapshot. So it is judged for every
 * child that is not over, also one that runs (by another of its alternatives) and may yet come back to the queue.
 */
#include "base/mem.h"
#include "base/vec.h"
#include "core/state/inside.h"

struct children {
    VEC(uint32_t) ids;
};

static struct children *children_of(struct state *s, uint32_t parent, bool make) {
    struct children *c = map64_get(&s->children, parent);
    if (!c && make) {
        c = xnew(struct children);
        map64_put(&s->children, parent, c);
    }
    return c;
}

void deps_index(struct state *s, const struct job *j) {
    if (job_is_over(j))
        return;
    for (uint32_t i = 0; i < j->n_deps; i++)
        if (j->deps[i].state == DEP_WAITING && j->deps[i].job_id)
            vec_push(&children_of(s, j->deps[i].job_id, true)->ids, j->id);
}

static void drop(struct children *c) {
    vec_fini(&c->ids);
    free(c);
}

void deps_unindex(struct state *s, uint32_t parent_id) {
    struct children *c = map64_del(&s->children, parent_id);
    if (c)
        drop(c);
}

void deps_free(struct state *s) {
    size_t cursor = 0;
    void *c;
    while (map64_next(&s->children, &cursor, NULL, &c))
        drop(c);
    map64_fini(&s->children);
}

uint32_t deps_verdict(const struct dep *d, const struct job *parent) {
    bool over = job_is_over(parent);
    bool began = parent->start_no > 0 || over;
    switch ((enum dep_kind)d->kind) {
    case DEP_AFTER: return began ? DEP_DONE : DEP_WAITING;
    case DEP_AFTERANY: return over ? DEP_DONE : DEP_WAITING;
    case DEP_AFTEROK:
    case DEP_AFTERCORR: return !over ? DEP_WAITING : parent->state == JOB_COMPLETED ? DEP_DONE : DEP_NEVER;
    case DEP_AFTERNOTOK: return !over ? DEP_WAITING : parent->state == JOB_COMPLETED ? DEP_NEVER : DEP_DONE;
    case DEP_SINGLETON: return DEP_WAITING; /* of all jobs of a name and user: the planner's, not one parent's */
    }
    return DEP_NEVER;
}

static void resolve_one(struct apply *ap, uint32_t child_id, const struct job *parent) {
    const struct job *old = state_job(ap->s, child_id);
    if (!old || job_is_over(old))
        return;
    struct job next = *old;
    struct dep *deps = arena_memdup(ap->arena, old->deps, old->n_deps * sizeof(*deps));
    bool changed = false;
    for (uint32_t i = 0; i < old->n_deps; i++) {
        if (deps[i].job_id != parent->id || deps[i].state != DEP_WAITING)
            continue;
        deps[i].state = deps_verdict(&deps[i], parent);
        changed |= deps[i].state != DEP_WAITING;
    }
    if (!changed)
        return;
    next.deps = deps;
    state_put_job(ap->s, &next);
    apply_event(ap, EV_JOB_CHANGED, child_id, next.start_no, 0);
}

void deps_resolve(struct apply *ap, const struct job *parent) {
    struct children *c = children_of(ap->s, parent->id, false);
    struct job copy = *parent; /* the record may be replaced while we go */
    for (size_t i = 0; c && i < c->ids.n; i++)
        resolve_one(ap, c->ids.p[i], &copy);
    if (c && job_is_over(&copy))
        deps_unindex(ap->s, copy.id);
}
