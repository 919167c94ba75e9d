/* SPDX-License-Identifier: Apache-2.0
 *
 * What a start takes beside CPUs and memory: generic resources, the right to share a node or not, licences. Who has whom
 * beside it on a node: SHARE_CORES any with CPUs of their own, SHARE_USER the same user's, SHARE_NONE nobody, SHARE_OVER
 * its like; those of one partition may together have its over_count times the node's CPUs.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/state/inside.h"

/* ---- generic resources ---- */

static const struct gres *gres_of(const struct node *n, const struct gres_held *h) {
    for (uint32_t i = 0; i < n->n_gres; i++)
        if (str_eq(n->gres[i].name, h->name) && str_eq(n->gres[i].type, h->type))
            return &n->gres[i];
    return NULL;
}

/* By name, not by kind: after a change of the node's list a former kind's index may be another's now. */
static bool is_taken(const struct node *n, const char *name, uint32_t index) {
    for (uint32_t i = 0; i < n->n_gres; i++)
        for (uint32_t k = 0; str_eq(n->gres[i].name, name) && k < n->gres[i].n_taken; k++)
            if (n->gres[i].taken[k] == index)
                return true;
    return false;
}

static bool gres_free(const struct node *n, const struct gres_held *h) {
    const struct gres *g = gres_of(n, h);
    if (!g || !h->count || g->alloc > g->count || h->count > g->count - g->alloc)
        return false;
    if (!g->n_files)
        return !h->n_indexes;
    if (h->n_indexes != h->count)
        return false;
    for (uint32_t i = 0; i < h->n_indexes; i++)
        if (h->indexes[i] < g->first || h->indexes[i] - g->first >= g->count || is_taken(n, h->name, h->indexes[i]) ||
            (i && h->indexes[i] <= h->indexes[i - 1]))
            return false;
    return true;
}

static bool gres_fits(const struct node *n, const struct job_node *want) {
    for (uint32_t i = 0; i < want->n_gres; i++) {
        if (!gres_free(n, &want->gres[i]))
            return false;
        for (uint32_t k = 0; k < i; k++) /* one row a kind */
            if (gres_of(n, &want->gres[k]) == gres_of(n, &want->gres[i]))
                return false;
    }
    return true;
}

/* Ascending lists: a with b's in it, or without them. */
static uint32_t merge(uint32_t *out, const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b) {
    uint32_t n = 0, i = 0, k = 0;
    while (i < n_a || k < n_b)
        out[n++] = k >= n_b || (i < n_a && a[i] < b[k]) ? a[i++] : b[k++];
    return n;
}

static uint32_t without(uint32_t *out, const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b) {
    uint32_t n = 0;
    for (uint32_t i = 0, k = 0; i < n_a; i++) {
        while (k < n_b && b[k] < a[i])
            k++;
        if (k >= n_b || b[k] != a[i])
            out[n++] = a[i];
    }
    return n;
}

static void change_gres(struct apply *ap, struct node *n, const struct job_node *jn, bool take) {
    struct gres *list = arena_memdup(ap->arena, n->gres, n->n_gres * sizeof(*list));
    for (uint32_t i = 0; i < jn->n_gres; i++) {
        const struct gres_held *h = &jn->gres[i];
        const struct gres *old = gres_of(n, h);
        must(old && (take || old->alloc >= h->count));
        struct gres *g = &list[old - n->gres];
        uint32_t *taken = arena_calloc(ap->arena, g->n_taken + h->n_indexes + 1, sizeof(*taken));
        g->alloc += take ? h->count : -h->count;
        g->n_taken = take ? merge(taken, g->taken, g->n_taken, h->indexes, h->n_indexes)
                          : without(taken, g->taken, g->n_taken, h->indexes, h->n_indexes);
        g->taken = taken;
    }
    uint32_t k = 0;
    for (uint32_t i = 0; i < n->n_gres; i++)
        if (list[i].count || list[i].alloc) /* a kind that the node lost goes with its last job */
            list[k++] = list[i];
    n->gres = list;
    n->n_gres = k;
}

/* ---- sharing ---- */

static bool may_share(const struct job *a, const struct job_node *an, const struct job *b, const struct job_node *bn) {
    if (an->share == SHARE_NONE || bn->share == SHARE_NONE)
        return false;
    if ((an->share == SHARE_OVER) != (bn->share == SHARE_OVER))
        return false;
    return (an->share != SHARE_USER && bn->share != SHARE_USER) || a->spec->uid == b->spec->uid;
}

static bool company_fits(const struct state *s, const struct job *j, const struct node *n,
                         const struct job_node *want) {
    const struct idset *there = idset_of(&s->node_jobs, n->id);
    if (n->share_kind == SHARE_CORES && want->share == SHARE_CORES)
        return true;
    for (size_t i = 0; there && i < there->ids.n; i++) {
        const struct job *other = state_job(s, there->ids.p[i]);
        const struct job_node *on = other ? job_held_on(other, n->id) : NULL;
        if (on && !may_share(j, want, other, on))
            return false;
    }
    return true;
}

/* What those of the partition who share CPUs have of the node; each partition has a bound of its own. */
static uint64_t cpus_shared_in(const struct state *s, const struct node *n, const char *partition) {
    const struct idset *there = idset_of(&s->node_jobs, n->id);
    uint64_t cpus = 0;
    for (size_t i = 0; there && i < there->ids.n; i++) {
        const struct job *other = state_job(s, there->ids.p[i]);
        const struct job_node *on = other ? job_held_on(other, n->id) : NULL;
        cpus += on && on->share == SHARE_OVER && str_eq(other->partition, partition) ? on->cpus : 0;
    }
    return cpus;
}

static uint64_t cpus_left(const struct state *s, const struct node *n, const struct job_start *st,
                          const struct job_node *want) {
    uint64_t all = n->cpus, used = n->alloc_cpus;
    const struct part *p;
    if (want->share == SHARE_OVER) {
        used = cpus_shared_in(s, n, st->partition);
        for (uint64_t k = 0; (p = cow_next(s->parts.root, &k)); k++)
            if (str_eq(p->name, st->partition))
                all *= MAX(p->over_count, 1u);
    }
    return all - MIN(all, used);
}

int share_check(struct apply *ap, const struct job *j, const struct job_start *st, const struct node *n,
                const struct job_node *want) {
    if (want->share > SHARE_OVER || want->cpus > n->cpus || want->cpus > cpus_left(ap->s, n, st, want) ||
        want->mem_mb > n->mem_mb - MIN(n->mem_mb, n->alloc_mem_mb))
        return E_NODES_UNAVAIL;
    return gres_fits(n, want) && company_fits(ap->s, j, n, want) ? 0 : E_NODES_UNAVAIL;
}

static uint32_t strictness(uint32_t share) {
    static const uint32_t order[] = {[SHARE_CORES] = 0, [SHARE_OVER] = 1, [SHARE_USER] = 2, [SHARE_NONE] = 3};
    return share <= SHARE_OVER ? order[share] : 0;
}

/* Anew from the jobs that are there: a few, and only where one of them is special. */
static void set_share(const struct state *s, struct node *n) {
    const struct idset *there = idset_of(&s->node_jobs, n->id);
    n->share_kind = SHARE_CORES;
    n->share_uid = 0;
    for (size_t i = 0; there && i < there->ids.n; i++) {
        const struct job *other = state_job(s, there->ids.p[i]);
        const struct job_node *on = other ? job_held_on(other, n->id) : NULL;
        if (!on || strictness(on->share) <= strictness(n->share_kind))
            continue;
        n->share_kind = on->share;
        n->share_uid = on->share == SHARE_USER ? other->spec->uid + 1 : 0;
    }
}

/* The job is put already, with the node as its own or as clean. */
void share_hold(struct apply *ap, const struct job *j, const struct job_node *jn, struct node *n, bool take) {
    if (take)
        idset_add(&ap->s->node_jobs, n->id, j->id);
    else
        idset_del(&ap->s->node_jobs, n->id, j->id);
    if (jn->n_gres)
        change_gres(ap, n, jn, take);
    if (jn->share != SHARE_CORES || n->share_kind != SHARE_CORES)
        set_share(ap->s, n);
}

/* ---- licences ---- */

static uint32_t used_of(const struct state *s, const char *name) {
    const struct license_use *u = maps_get(&s->licenses, name);
    return u ? u->used : 0;
}

static bool is_there(const struct state *s, const struct license_ask *l, const struct license_ask *mine, uint32_t n, bool when_idle) {
    const struct rconf *conf = s->cluster->conf;
    uint64_t want = (uint64_t)l->count + (when_idle ? 0 : used_of(s, l->name));
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(mine[i].name, l->name))
            want += mine[i].count;
    for (uint32_t i = 0; conf && i < conf->n_licenses; i++)
        if (str_eq(conf->licenses[i].name, l->name))
            return want <= conf->licenses[i].count;
    return false;
}

/* From groups of alternatives, each joined by `|`, one of each, into `list`. `alone`: each stands for itself. */
static int pick(struct apply *ap, const struct license_ask *from, uint32_t n_from, bool alone, bool when_idle,
                struct license_ask *list, uint32_t *out_n) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_from;) {
        bool found = false;
        do {
            if (!found && from[i].name && is_there(ap->s, &from[i], list, n, when_idle)) {
                list[n] = from[i];
                list[n++].is_or = false;
                found = true;
            }
        } while (++i < n_from && from[i].is_or && !alone);
        if (!found)
            return E_LICENSE;
    }
    *out_n = n;
    return 0;
}

int licenses_pick(struct apply *ap, const struct job_spec *spec, const struct job_start *st,
                  const struct license_ask **out, uint32_t *out_n) {
    const struct job_more *more = job_spec_more(spec);
    const struct license_ask *from = st->n_licenses ? st->licenses : more->licenses;
    uint32_t n_from = st->n_licenses ? st->n_licenses : more->n_licenses;
    struct license_ask *list = arena_calloc(ap->arena, n_from + 1, sizeof(*list));
    *out = list;
    return pick(ap, from, n_from, st->n_licenses != 0, false, list, out_n);
}

bool licenses_exist(struct apply *ap, const struct job_spec *spec) {
    const struct job_more *more = job_spec_more(spec);
    uint32_t n;
    struct license_ask *list = arena_calloc(ap->arena, more->n_licenses + 1, sizeof(*list));
    return pick(ap, more->licenses, more->n_licenses, false, true, list, &n) == 0;
}

void licenses_count(struct state *s, const struct job *j, bool take) {
    const struct job_rare *rare = job_rare_of(j);
    for (uint32_t i = 0; i < rare->n_licenses; i++) {
        const char *name = rare->licenses[i].name;
        struct license_use *u = maps_get(&s->licenses, name);
        if (!u) {
            u = xcalloc(1, sizeof(*u) + strlen(name) + 1);
            memcpy(u->name, name, strlen(name) + 1);
            maps_put(&s->licenses, u->name, u);
        }
        must(take || u->used >= rare->licenses[i].count);
        u->used += take ? rare->licenses[i].count : -rare->licenses[i].count;
        if (!u->used)
            free(maps_del(&s->licenses, u->name));
    }
}

void licenses_free(struct state *s) {
    size_t cursor = 0;
    void *u;
    while (maps_next(&s->licenses, &cursor, NULL, &u))
        free(u);
    maps_fini(&s->licenses);
}
