/* SPDX-License-Identifier: Apache-2.0
 *
 * Each factor is a fraction between 0 and 1, times its weight; integers throughout: every machine gets the same. As recorded,
 * the sum is cut to whole points, while sprio rounds each factor by itself.
 *
 *     age        time since it could have started, up to max_age
 *     size       half the share of the cluster's nodes, half the share of its CPUs: large jobs come first, as in Slurm
 *     partition  its factor (else its tier) over the highest of all partitions
 *
 * What an administrator has set goes before all of it.
 */
#include "core/sched/priority.h"

#include <string.h>

#include "base/mem.h"
#include "core/sched/gate.h"
#include "core/sched/sched.h"

#define DEFAULT_MAX_AGE 604800u /* Slurm's PriorityMaxAge: 7 days */

/* In thousandths of a point, so that what the factors leave over isn't lost before they are summed up. */
static int64_t fraction(uint64_t weight, uint64_t part, uint64_t whole) {
    return whole ? (int64_t)((unsigned __int128)weight * 1000 * MIN(part, whole) / whole) : 0; /* weights are below 2^32 */
}

static int64_t age_points(const struct rconf *c, const struct job *j, int64_t now) {
    int64_t since = j->eligible_unix ? j->eligible_unix : j->submit_ms / 1000;
    uint64_t age = now > since ? (uint64_t)(now - since) : 0;
    return fraction(c->weight_age, age, c->max_age_secs ? c->max_age_secs : DEFAULT_MAX_AGE);
}

static int64_t size_points(const struct priority_scale *s, const struct job *j) {
    const struct job_spec *spec = j->spec;
    uint64_t cpus = (uint64_t)MAX(spec->n_tasks, 1) * MAX(spec->cpus_per_task, 1);
    uint64_t w = s->conf->weight_job_size;
    return (fraction(w, MAX(spec->min_nodes, 1), s->n_nodes) + fraction(w, cpus, s->n_cpus)) / 2;
}

static uint64_t rounded(int64_t milli) {
    return (uint64_t)(milli + 500) / 1000;
}

uint64_t priority_points_of(const struct priority_scale *s, const struct job *j, uint32_t factor, int64_t now,
                            struct priority_points *out) {
    int64_t age = 0, size = 0, part = 0;
    if (s->conf) {
        age = s->conf->weight_age ? age_points(s->conf, j, now) : 0;
        size = s->conf->weight_job_size ? size_points(s, j) : 0;
        part = s->conf->weight_partition ? fraction(s->conf->weight_partition, factor, s->max_factor) : 0;
    }
    *out = (struct priority_points){rounded(age), rounded(size), rounded(part), MAX(MIN(j->nice, NICE_MAX), -(int64_t)NICE_MAX),
                                    job_rare_of(j)->priority_set != 0};
    if (j->hold != HOLD_NONE)
        return 0;
    if (out->is_set)
        return job_rare_of(j)->priority_set - 1;
    int64_t points = (age + size + part) / 1000 - out->nice;
    return points > 1 ? (uint64_t)points : 1;
}

uint64_t priority_of(const struct priority_scale *s, const struct job *j, uint32_t factor, int64_t now) {
    struct priority_points points;
    return priority_points_of(s, j, factor, now, &points);
}

/* The highest factor of the partitions in "a,b". */
static uint32_t factor_of(const struct view *v, const char *names) {
    uint32_t factor = 0;
    for (const char *p = names; p && *p;) {
        size_t n = strcspn(p, ",");
        const struct part *part;
        for (uint64_t k = 0; (part = view_next_part(v, &k)); k++) {
            if (strncmp(part->name, p, n) == 0 && part->name[n] == '\0')
                factor = MAX(factor, priority_factor(part));
        }
        p += n + (p[n] == ',');
    }
    return factor;
}

/* Calls `see` with each partition that the job names, in order; none named: the default one. */
typedef void (*part_fn)(void *arg, const struct part *p);
static void each_part(const struct view *v, const struct job *j, part_fn see, void *arg) {
    const char *at = j->spec->partition ? j->spec->partition : "";
    do {
        size_t n = strcspn(at, ",");
        const struct part *p;
        for (uint64_t k = 0; (p = view_next_part(v, &k)); k++) {
            if (n ? strncmp(p->name, at, n) == 0 && p->name[n] == '\0' : p->is_default)
                see(arg, p);
        }
        at += n + (at[n] == ',');
    } while (*at);
}

struct limits { /* of a job */
    const struct view *v;
    const struct job *job;
    const struct part *first;
    int64_t last;
};

static void see_first(void *arg, const struct part *p) {
    struct limits *l = arg;
    if (!l->first || p->priority_tier > l->first->priority_tier)
        l->first = p;
}

static void see_last(void *arg, const struct part *p) {
    struct limits *l = arg;
    l->last = MAX(l->last, gate_last_start(l->job, gate_time_limit(l->job, p, l->first, l->v->cluster->conf)));
}

uint32_t sched_time_limit(const struct view *v, const struct job *j) {
    struct limits l = {.v = v, .job = j};
    each_part(v, j, see_first, &l);
    return l.first ? gate_time_limit(j, l.first, l.first, v->cluster->conf) : j->spec->time_limit_min;
}

int64_t sched_last_start(const struct view *v, const struct job *j) {
    struct limits l = {.v = v, .job = j, .last = INT64_MIN};
    each_part(v, j, see_first, &l);
    each_part(v, j, see_last, &l);
    if (!l.first) /* its partition is gone */
        l.last = gate_last_start(j, j->spec->time_limit_min ? j->spec->time_limit_min : TIME_LIMIT_NONE);
    return l.last;
}

void priority_scale_of(const struct view *v, struct priority_scale *out) {
    *out = (struct priority_scale){.conf = v->cluster->conf};
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
        out->n_nodes++;
        out->n_cpus += n->cpus;
    }
    const struct part *p;
    for (uint64_t k = 0; (p = view_next_part(v, &k)); k++)
        out->max_factor = MAX(out->max_factor, priority_factor(p));
}

uint64_t sched_priority(const struct view *v, const struct job *j, int64_t now_unix) {
    struct priority_scale s;
    priority_scale_of(v, &s);
    return priority_in(&s, v, j, now_unix);
}

uint64_t priority_in(const struct priority_scale *s, const struct view *v, const struct job *j, int64_t now_unix) {
    return priority_of(s, j, factor_of(v, j->spec->partition), now_unix);
}
