/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/gate.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

/* Dependencies are joined by `,` (all must hold) and `?` (one must): groups of alternatives, all groups needed. What a
 * waiting singleton is worth depends on the starts of this pass, so it is not judged here. */
struct group {
    bool done, open, single; /* one holds; one may come to hold; a singleton may */
    int64_t when;            /* one holds from then on (after:ID+MINUTES); 0: none is known to */
};

static struct group next_group(const struct job *j, int64_t now, uint32_t *i) {
    struct group g = {0};
    do {
        const struct dep *d = &j->deps[*i];
        bool is_later = d->state == DEP_DONE && d->from_unix > now;
        if (is_later && (!g.when || d->from_unix < g.when))
            g.when = d->from_unix;
        g.done |= d->state == DEP_DONE && !is_later;
        g.open |= is_later || (d->state == DEP_WAITING && d->kind != DEP_SINGLETON);
        g.single |= d->state == DEP_WAITING && d->kind == DEP_SINGLETON;
    } while (++*i < j->n_deps && j->deps[*i].is_or);
    return g;
}

/* *out_when: when it is worth another look, though nothing else changes. */
static uint32_t dependencies(const struct job *j, int64_t now, int64_t *out_when) {
    bool waits = false;
    for (uint32_t i = 0; i < j->n_deps;) {
        struct group g = next_group(j, now, &i);
        if (!g.done && !g.open && !g.single)
            return REASON_DEP_NEVER;
        waits |= !g.done && !g.single;
        if (!g.done && g.when)
            *out_when = MAX(*out_when, g.when);
    }
    return waits ? REASON_DEPENDENCY : REASON_NONE;
}

bool gate_needs_singleton(const struct job *j, int64_t now) {
    for (uint32_t i = 0; i < j->n_deps;) {
        struct group g = next_group(j, now, &i);
        if (!g.done && g.single)
            return true;
    }
    return false;
}

static uint32_t held(const struct job *j) {
    if (j->hold == HOLD_NONE)
        return REASON_NONE;
    switch (j->reason) { /* held by the system, which says why */
    case REASON_LAUNCH_FAILED:
    case REASON_MAX_REQUEUE:
    case REASON_REQUEUED_HELD:
    case REASON_LICENSE_GONE:
        return j->reason;
    }
    return j->hold == HOLD_ADMIN ? REASON_HELD_ADMIN : REASON_HELD_USER;
}

uint32_t gate_job(const struct job *j, int64_t now, int64_t *out_when) {
    *out_when = 0;
    if (j->completing)
        return REASON_CLEANING;
    uint32_t reason = held(j);
    if (!reason)
        reason = dependencies(j, now, out_when);
    if (reason == REASON_DEP_NEVER)
        *out_when = 0;
    if (reason)
        return reason;
    int64_t when = MAX(j->spec->begin_unix, j->retry_unix);
    if (when <= now)
        return REASON_NONE;
    *out_when = when;
    return REASON_BEGIN_TIME;
}

/* A limit that was asked for is never cut: one beyond the partition's waits for a person. */
uint32_t gate_time_limit(const struct job *j, const struct part *p, const struct part *first, const struct rconf *conf) {
    if (j->spec->time_limit_min)
        return j->spec->time_limit_min;
    uint32_t most = p->max_time_min ? p->max_time_min : TIME_LIMIT_NONE;
    uint32_t limit = first->default_time_min;
    if (!limit && conf)
        limit = conf->default_time_min;
    if (first->max_time_min)
        limit = limit ? MIN(limit, first->max_time_min) : first->max_time_min;
    return limit ? MIN(limit, most) : most;
}

/* Without a limit it is the deadline itself, all but a minute, as with Slurm. */
int64_t gate_last_start(const struct job *j, uint32_t limit_min) {
    const struct job_more *m = job_spec_more(j->spec);
    uint32_t least = m->time_min_min ? MIN(m->time_min_min, limit_min) : limit_min == TIME_LIMIT_NONE ? 1 : limit_min;
    return m->deadline_unix ? m->deadline_unix - (int64_t)least * 60 : INT64_MAX;
}

static uint32_t part_state(const struct part *p) {
    if (p->state == PART_DOWN)
        return REASON_PARTITION_DOWN;
    return p->state == PART_INACTIVE ? REASON_PARTITION_INACTIVE : REASON_NONE; /* a draining one runs its queue */
}

uint32_t gate_partition(const struct grid_part *gp, const struct ask_size *size) {
    const struct part *p = gp->rec;
    uint32_t reason = part_state(p);
    if (reason)
        return reason;
    if (p->max_time_min && size->limit_min > p->max_time_min) /* TIME_LIMIT_NONE is the largest number */
        return REASON_PARTITION_TIME;
    uint64_t there = (uint64_t)gp->n_nodes + gp->n_missing;
    if (size->min_nodes > size->max_nodes || (there && size->min_nodes > there))
        return REASON_PARTITION_NODES;
    return REASON_NONE;
}

static bool names(const char *const *list, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(list[i], name))
            return true;
    }
    return n == 0;
}

/* By the group that the job runs with. Root may use every partition, as with Slurm, but not in everybody's account. */
uint32_t gate_access(const struct part *p, const struct job *j) {
    if (!p->n_allow_accounts && !p->n_allow_groups && !p->root_only)
        return REASON_NONE;
    if (!names(p->allow_accounts, p->n_allow_accounts, j->spec->account))
        return REASON_ACCOUNT;
    if (j->spec->uid == 0)
        return REASON_NONE;
    return p->root_only || !names(p->allow_groups, p->n_allow_groups, j->spec->group) ? REASON_PARTITION_CONFIG : REASON_NONE;
}

/* ---- singleton ---- */

struct family { /* one user's jobs of one name that are not over */
    struct family *twin;
    const char *name;
    uint32_t uid;
    uint32_t first_waiting; /* the lowest id; 0: none waits */
    uint32_t n_running;
};

struct singletons {
    struct map64 by_hash;
    struct arena arena;
};

static uint64_t family_hash(const struct job *j) {
    const char *name = j->spec->name ? j->spec->name : "";
    return hash_u64(hash_fixed(name, strlen(name)) ^ j->spec->uid);
}

static struct family *family_of(const struct singletons *s, const struct job *j) {
    struct family *f = map64_get(&s->by_hash, family_hash(j));
    while (f && (f->uid != j->spec->uid || !str_eq(f->name, j->spec->name)))
        f = f->twin;
    return f;
}

static struct family *family_make(struct singletons *s, const struct job *j) {
    struct family *f = family_of(s, j);
    if (f)
        return f;
    f = arena_calloc(&s->arena, 1, sizeof(*f));
    f->name = j->spec->name;
    f->uid = j->spec->uid;
    f->twin = map64_put(&s->by_hash, family_hash(j), f);
    return f;
}

struct singletons *singletons_new(const struct view *v) {
    struct singletons *s = xnew(struct singletons);
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(v, &k)); k++) {
        if (job_is_over(j))
            continue;
        struct family *f = family_make(s, j);
        if (job_holds_nodes(j))
            f->n_running++;
        else if (!f->first_waiting)
            f->first_waiting = j->id; /* ids come in ascending order */
    }
    return s;
}

void singletons_free(struct singletons *s) {
    if (!s)
        return;
    map64_fini(&s->by_hash);
    arena_fini(&s->arena);
    free(s);
}

bool singletons_may_start(const struct singletons *s, const struct job *j) {
    const struct family *f = family_of(s, j);
    return !f || (!f->n_running && f->first_waiting >= j->id);
}

void singletons_started(struct singletons *s, const struct job *j) {
    struct family *f = family_of(s, j);
    if (f)
        f->n_running++;
}
