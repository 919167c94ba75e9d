/* SPDX-License-Identifier: Apache-2.0
 *
 * What must be true after every apply, second part: generic resources and sharing, arrays, steps, licences. All of it is
 * counted anew from the jobs.
 */
#include "base/mem.h"
#include "base/str.h"
#include "core/state/inside.h"

/* ---- nodes ---- */

static const struct job_node *share_of(const struct state *s, uint32_t job_id, uint32_t node_id) {
    const struct job *j = state_job(s, job_id);
    return j && job_holds_nodes(j) ? job_held_on(j, node_id) : NULL;
}

static int check_gres(const struct state *s, const struct node *n, const struct gres *g, struct err *e) {
    const struct idset *there = idset_of(&s->node_jobs, n->id);
    uint64_t sum = 0, found = 0;
    for (size_t i = 0; there && i < there->ids.n; i++) {
        const struct job_node *jn = share_of(s, there->ids.p[i], n->id);
        for (uint32_t k = 0; jn && k < jn->n_gres; k++) {
            const struct gres_held *h = &jn->gres[k];
            if (!str_eq(h->name, g->name) || !str_eq(h->type, g->type))
                continue;
            sum += h->count;
            for (uint32_t m = 0; m < h->n_indexes; m++)
                for (uint32_t x = 0; x < g->n_taken; x++)
                    found += g->taken[x] == h->indexes[m];
        }
    }
    if (sum != g->alloc || found != g->n_taken)
        return err_set(e, E_INTERNAL, "node %s says that %llu of its %s are taken, its jobs have %llu", n->name,
                       (unsigned long long)g->alloc, g->name, (unsigned long long)sum);
    for (uint32_t i = 1; i < g->n_taken; i++)
        if (g->taken[i] <= g->taken[i - 1])
            return err_set(e, E_INTERNAL, "node %s: one of its %s is taken twice", n->name, g->name);
    return 0;
}

int check_shares(const struct state *s, const struct node *n, struct err *e) {
    const struct idset *there = idset_of(&s->node_jobs, n->id);
    bool none = false, user = false, over = false;
    for (size_t i = 0; there && i < there->ids.n; i++) {
        const struct job_node *jn = share_of(s, there->ids.p[i], n->id);
        if (!jn)
            return err_set(e, E_INTERNAL, "job %u is no more on node %s", there->ids.p[i], n->name);
        none |= jn->share == SHARE_NONE;
        user |= jn->share == SHARE_USER;
        over |= jn->share == SHARE_OVER;
    }
    uint32_t kind = none ? SHARE_NONE : user ? SHARE_USER : over ? SHARE_OVER : SHARE_CORES;
    if (kind != n->share_kind || (none && there->ids.n > 1))
        return err_set(e, E_INTERNAL, "node %s is shared as %u, its jobs say %u", n->name, n->share_kind, kind);
    int rc = 0;
    for (uint32_t i = 0; i < n->n_gres && !rc; i++)
        rc = check_gres(s, n, &n->gres[i], e);
    return rc;
}

/* ---- arrays ---- */

static bool ranges_are_sound(const struct array_range *r, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (r[i].last < r[i].first || (i && r[i].first <= r[i - 1].last))
            return false;
    return n > 0;
}

static int check_array(const struct state *s, const struct job *j, struct err *e) {
    const struct job_array *a = j->array;
    const struct job *head = state_job(s, a->job_id);
    bool is_head = j->id == a->job_id;
    if (!head || !head->array || head->array->job_id != a->job_id)
        return err_set(e, E_INTERNAL, "job %u is of array %u, which is not there", j->id, a->job_id);
    bool stands_alone = is_head && job_is_hollow(j) && a->first_id && job_is_over(j);
    if (a->task ? a->n_pending : !stands_alone && !ranges_are_sound(a->pending, a->n_pending))
        return err_set(e, E_INTERNAL, "job %u of an array has wrong tasks", j->id);
    if (job_is_group(j) && job_holds_nodes(j))
        return err_set(e, E_INTERNAL, "job %u runs and stands for several tasks", j->id);
    if (!is_head)
        return idset_has(idset_of(&s->arrays, a->job_id), j->id)
                   ? 0
                   : err_set(e, E_INTERNAL, "job %u is not found by its array", j->id);
    const struct idset *others = idset_of(&s->arrays, j->id);
    uint64_t n = 0, over = 0, bad = 0, begun = 0, running = 0;
    for (size_t i = 0; i <= (others ? others->ids.n : 0); i++) {
        const struct job *o = i ? state_job(s, others->ids.p[i - 1]) : j;
        if (!o || !o->array)
            return err_set(e, E_INTERNAL, "array %u has a record that is not there", j->id);
        uint32_t k = job_n_tasks(o);
        n += k;
        over += job_is_over(o) ? k : 0;
        bad += job_is_over(o) && o->state != JOB_COMPLETED ? k : 0;
        begun += job_has_begun(o) ? k : 0;
        running += job_holds_nodes(o);
    }
    uint64_t gone = a->n - n; /* records of tasks that are over and left */
    if (n > a->n || a->over != over + gone || a->begun != begun + gone || a->bad < bad || a->bad > bad + gone)
        return err_set(e, E_INTERNAL, "array %u counts %u tasks, %u over, %u bad; its records say %llu, %llu, %llu", j->id,
                       a->n, a->over, a->bad, (unsigned long long)n, (unsigned long long)over, (unsigned long long)bad);
    if (running != (others ? others->count : 0))
        return err_set(e, E_INTERNAL, "array %u counts %u that run, there are %llu", j->id, others ? others->count : 0,
                       (unsigned long long)running);
    return 0;
}

/* ---- steps ---- */

static int check_step(const struct state *s, const struct step *st, struct err *e) {
    const struct job *j = state_job(s, st->job_id);
    bool any_left = false;
    if (!j || st->start_no > j->start_no || st->id >= job_rare_of(j)->next_step_id || !st->spec)
        return err_set(e, E_INTERNAL, "step %u.%u belongs to no job", st->job_id, st->id);
    for (uint32_t i = 0; i < st->n_nodes; i++) {
        if (st->nodes[i].is_done)
            continue;
        any_left = true;
        if (st->start_no != j->start_no || !share_of(s, j->id, st->nodes[i].node_id))
            return err_set(e, E_INTERNAL, "step %u.%u is where its job is not", st->job_id, st->id);
    }
    if (any_left == step_is_over(st) || (step_is_over(st) && !job_state_is_end(st->state)))
        return err_set(e, E_INTERNAL, "step %u.%u is over or not", st->job_id, st->id);
    return 0;
}

static int check_room(const struct state *s, const struct job *j, const struct job_node *jn, struct err *e) {
    const struct step *st;
    uint64_t cpus = 0, mem = 0;
    for (uint64_t k = step_key(j->id, 0); (st = cow_next(s->steps.root, &k)) && st->job_id == j->id; k++) {
        for (uint32_t i = 0; !st->spec->overlap && i < st->n_nodes; i++) {
            if (st->nodes[i].node_id != jn->node_id || st->nodes[i].is_done)
                continue;
            cpus += st->nodes[i].cpus;
            mem += st->nodes[i].mem_mb;
        }
    }
    if (cpus > jn->cpus || (jn->mem_mb && mem > jn->mem_mb))
        return err_set(e, E_INTERNAL, "the steps of job %u have more of node %u than it has", j->id, jn->node_id);
    return 0;
}

/* ---- licences ---- */

static int check_licenses(const struct state *s, struct err *e) {
    uint64_t held = 0, counted = 0;
    const struct job *j;
    size_t cursor = 0;
    void *u;
    for (uint64_t k = 0; (j = cow_next(s->jobs.root, &k)); k++)
        for (uint32_t i = 0; job_holds_nodes(j) && i < job_rare_of(j)->n_licenses; i++)
            held += job_rare_of(j)->licenses[i].count;
    while (maps_next(&s->licenses, &cursor, NULL, &u))
        counted += ((const struct license_use *)u)->used;
    return held == counted ? 0 : err_set(e, E_INTERNAL, "%llu licences are counted, jobs have %llu",
                                         (unsigned long long)counted, (unsigned long long)held);
}

int check_others(const struct state *s, struct err *e) {
    const struct job *j;
    const struct step *st;
    int rc = check_licenses(s, e);
    for (uint64_t k = 0; !rc && (j = cow_next(s->jobs.root, &k)); k++) {
        rc = j->array ? check_array(s, j, e) : 0;
        for (uint32_t i = 0; !rc && job_holds_nodes(j) && job_rare_of(j)->next_step_id && i < j->n_nodes; i++)
            rc = j->nodes[i].is_done ? 0 : check_room(s, j, &j->nodes[i], e);
    }
    for (uint64_t k = 0; !rc && (st = cow_next(s->steps.root, &k)); k++)
        rc = check_step(s, st, e);
    return rc;
}
