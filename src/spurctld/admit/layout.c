/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules are Slurm's.
 *
 * A step takes its nodes from the job's in their order, and never gives two steps the same CPU, memory or GPU (but for
 * --overlap). Without --exact (or -c) it takes all CPUs that are free on its nodes, so that the next one waits; with it,
 * those that its tasks need. A step that says nothing of GPUs has all that the job has there. Memory counts where the
 * step asks for some.
 *
 * Tasks are laid out in blocks: one on each node, then as many as fit on the first, the second, …; or cyclic: one after
 * the other around the nodes; or in planes: so many on each node, and again around; or as the step says for each task.
 *
 * What can't be is told from what can't be now by asking twice: with the job's nodes empty, and as they are.
 */
#include "spurctld/admit/layout.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/constraint.h"

/* What one node of the job has left for the step. */
struct room_on {
    const struct job_node *jn;
    uint32_t cpus;
    uint64_t mem_mb;
    const struct node *node; /* NULL: it has gone */
    struct gres_held *gres; /* of the job there, less what steps have */
    uint32_t n_gres;
    uint32_t most_tasks; /* that fit */
    uint32_t n_tasks;    /* that it gets */
    uint32_t n_named;    /* tasks that the step says shall run there */
    bool is_required, is_taken;
};

struct layout {
    const struct job *j;
    const struct step_spec *s;
    struct arena *arena;
    struct room_on *on;
    uint32_t n_on;
    uint32_t n_tasks, cpus_per_task, min_nodes, max_nodes;
    bool checks_mem, checks_gres;
    struct features features;
};

static bool has_name(const char *const *names, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(names[i], name))
            return true;
    return false;
}

/* ---- what is there ---- */

static void copy_gres(struct layout *l, struct room_on *r) {
    r->n_gres = r->jn->n_gres;
    r->gres = arena_memdup(l->arena, r->jn->gres, r->n_gres * sizeof(*r->gres));
}

/* Of a step's -C what each node must have; brackets and counts are of jobs. */
static int read_features(struct layout *l, struct err *e) {
    int rc = features_parse(l->s->features, l->arena, &l->features, e);
    if (!rc && (l->features.n_alts || l->features.n_groups))
        return err_set(e, E_FEATURE, "brackets and counts in --constraint of a step are not supported yet");
    return rc;
}

static void add_node(struct layout *l, const struct view *v, const struct job_node *jn) {
    const struct step_spec *s = l->s;
    const struct node *n = view_node(v, jn->node_id);
    if (jn->is_done || has_name(s->exc_nodes, s->n_exc_nodes, jn->name))
        return;
    if (s->features && (!n || !features_active(&l->features.all, n)))
        return;
    struct room_on *r = &l->on[l->n_on++];
    *r = (struct room_on){.jn = jn, .node = n, .cpus = jn->cpus, .mem_mb = jn->mem_mb};
    r->is_required = has_name(s->req_nodes, s->n_req_nodes, jn->name);
    copy_gres(l, r);
}

/* How many tasks are to run on each node, where that is said. */
static void count_named(struct layout *l) {
    struct maps at = {0};
    for (uint32_t i = 0; i < l->n_on; i++)
        maps_put(&at, l->on[i].jn->name, &l->on[i]);
    for (uint32_t i = 0; i < l->s->n_task_nodes; i++) {
        struct room_on *r = maps_get(&at, l->s->task_nodes[i]);
        if (r)
            r->n_named++;
    }
    maps_fini(&at);
}

static void without_indexes(struct layout *l, struct gres_held *from, const struct gres_held *taken) {
    uint32_t *left = arena_calloc(l->arena, from->n_indexes + 1, sizeof(*left));
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < from->n_indexes; i++) {
        while (at < taken->n_indexes && taken->indexes[at] < from->indexes[i])
            at++;
        if (at == taken->n_indexes || taken->indexes[at] != from->indexes[i])
            left[n++] = from->indexes[i];
    }
    from->indexes = left;
    from->n_indexes = n;
}

static void without_gres(struct layout *l, struct room_on *r, const struct step_node *sn) {
    for (uint32_t i = 0; i < sn->n_gres; i++) {
        for (uint32_t k = 0; k < r->n_gres; k++) {
            struct gres_held *g = &r->gres[k];
            if (!str_eq(g->name, sn->gres[i].name) || !str_eq(g->type, sn->gres[i].type))
                continue;
            g->count -= MIN(g->count, sn->gres[i].count);
            if (sn->gres[i].n_indexes)
                without_indexes(l, g, &sn->gres[i]);
        }
    }
}

static void without_step(struct layout *l, const struct step *st) {
    for (uint32_t i = 0; i < st->n_nodes; i++) {
        const struct step_node *sn = &st->nodes[i];
        for (uint32_t k = 0; k < l->n_on && !sn->is_done; k++) {
            struct room_on *r = &l->on[k];
            if (r->jn->node_id != sn->node_id)
                continue;
            r->cpus -= MIN(r->cpus, sn->cpus);
            r->mem_mb -= MIN(r->mem_mb, sn->mem_mb);
            without_gres(l, r, sn);
        }
    }
}

static void without_steps(struct layout *l, const struct view *v) {
    const struct step *st;
    for (uint64_t k = step_key(l->j->id, 0); (st = view_next_step(v, &k)) && st->job_id == l->j->id; k++)
        if (!st->end_ms && st->start_no == l->j->start_no && !st->spec->overlap)
            without_step(l, st);
}

/* ---- how many tasks fit ---- */

static bool is_asked(const struct gres_ask *ask, const char *name, const char *type) {
    return str_eq(name, ask->name) && (!ask->type || str_eq(type, ask->type));
}

/* What nobody takes anything of is there for each step. */
static uint64_t gres_there(const struct room_on *r, const struct gres_ask *ask) {
    uint64_t n = 0;
    for (uint32_t i = 0; r->node && i < r->node->n_gres; i++)
        if (r->node->gres[i].no_consume && is_asked(ask, r->node->gres[i].name, r->node->gres[i].type))
            n += r->node->gres[i].count;
    for (uint32_t i = 0; i < r->n_gres; i++)
        if (is_asked(ask, r->gres[i].name, r->gres[i].type))
            n += r->gres[i].count;
    return n;
}

/* All that the job has there, since the step says nothing of it. */
static bool has_all_gres(const struct room_on *r) {
    for (uint32_t i = 0; i < r->n_gres; i++)
        if (r->gres[i].count < r->jn->gres[i].count)
            return false;
    return true;
}

static uint64_t fit_gres(const struct layout *l, const struct room_on *r, uint64_t most) {
    if (!l->s->n_gres)
        return has_all_gres(r) ? most : 0;
    for (uint32_t i = 0; i < l->s->n_gres; i++) {
        const struct gres_ask *ask = &l->s->gres[i];
        uint64_t there = gres_there(r, ask);
        if (ask->per == GRES_PER_NODE && there < ask->count)
            return 0;
        if (ask->per == GRES_PER_TASK && ask->count)
            most = MIN(most, there / ask->count);
    }
    return most;
}

/* A job whose memory is not counted has as much as it likes. */
static uint64_t fit_mem(const struct layout *l, const struct room_on *r, uint64_t most) {
    const struct step_spec *s = l->s;
    if (!r->jn->mem_mb)
        return most;
    if (s->mem_node_mb)
        return r->mem_mb >= s->mem_node_mb ? most : 0;
    return s->mem_cpu_mb ? MIN(most, r->mem_mb / s->mem_cpu_mb / l->cpus_per_task) : most;
}

static uint32_t fit(const struct layout *l, const struct room_on *r) {
    uint64_t most = !l->s->overcommit ? r->cpus / l->cpus_per_task : r->cpus ? l->n_tasks : 0;
    if (l->s->tasks_per_node)
        most = MIN(most, (uint64_t)l->s->tasks_per_node);
    if (l->checks_mem)
        most = fit_mem(l, r, most);
    if (l->checks_gres)
        most = fit_gres(l, r, most);
    return (uint32_t)MIN(most, (uint64_t)l->n_tasks);
}

/* ---- which nodes ---- */

static uint64_t job_wide_gres(const struct layout *l, const struct gres_ask *ask) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n_on; i++)
        n += l->on[i].is_taken ? gres_there(&l->on[i], ask) : 0;
    return n;
}

static bool has_job_wide_gres(const struct layout *l) {
    for (uint32_t i = 0; l->checks_gres && i < l->s->n_gres; i++)
        if (l->s->gres[i].per == GRES_PER_JOB && job_wide_gres(l, &l->s->gres[i]) < l->s->gres[i].count)
            return false;
    return true;
}

struct taken {
    uint32_t n_nodes;
    uint64_t n_tasks; /* that fit on them */
};

static void take(struct room_on *r, struct taken *t) {
    r->is_taken = true;
    t->n_nodes++;
    t->n_tasks += r->most_tasks;
}

static bool is_enough(const struct layout *l, const struct taken *t) {
    return t->n_nodes >= l->min_nodes && t->n_tasks >= l->n_tasks && has_job_wide_gres(l);
}

/* In the order of the job's nodes; where that takes too many, the roomiest first. */
static bool choose(struct layout *l, bool roomiest) {
    struct taken t = {0};
    for (uint32_t i = 0; i < l->n_on; i++) {
        l->on[i].is_taken = false;
        l->on[i].most_tasks = fit(l, &l->on[i]);
    }
    for (uint32_t i = 0; i < l->n_on; i++) {
        if (!l->on[i].is_required)
            continue;
        if (!l->on[i].most_tasks)
            return false;
        take(&l->on[i], &t);
    }
    while (!is_enough(l, &t) && t.n_nodes < l->max_nodes) {
        struct room_on *best = NULL;
        for (uint32_t i = 0; i < l->n_on; i++) {
            struct room_on *r = &l->on[i];
            if (!r->is_taken && r->most_tasks && (!best || (roomiest && r->most_tasks > best->most_tasks)))
                best = r;
        }
        if (!best)
            return false;
        take(best, &t);
    }
    return is_enough(l, &t) && t.n_nodes <= l->max_nodes && t.n_nodes <= l->n_tasks;
}

/* Each task's node is said. */
static bool choose_named(struct layout *l) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n_on; i++) {
        struct room_on *r = &l->on[i];
        r->most_tasks = fit(l, r);
        r->is_taken = r->n_named > 0;
        n += r->n_named;
        if (r->n_named > r->most_tasks)
            return false;
    }
    return n == l->n_tasks && has_job_wide_gres(l);
}

static bool find(struct layout *l) {
    return l->s->n_task_nodes ? choose_named(l) : choose(l, false) || choose(l, true);
}

/* ---- the tasks ---- */

static void spread_named(struct layout *l) {
    for (uint32_t i = 0; i < l->n_on; i++)
        l->on[i].n_tasks = l->on[i].n_named;
}

static void spread(struct layout *l) {
    uint32_t left = l->n_tasks, plane = l->s->plane ? l->s->plane - 1 : 0; /* one is on each node before the first round */
    for (uint32_t i = 0; i < l->n_on; i++) {
        l->on[i].n_tasks = l->on[i].is_taken;
        left -= l->on[i].is_taken;
    }
    uint32_t n_taken = l->n_tasks - left, each = (l->n_tasks + MAX(n_taken, 1u) - 1) / MAX(n_taken, 1u);
    while (left) {
        for (uint32_t i = 0; i < l->n_on && left; i++) {
            struct room_on *r = &l->on[i];
            uint32_t more = r->is_taken ? MIN(left, r->most_tasks - r->n_tasks) : 0;
            if (l->s->cyclic)
                more = MIN(more, 1u);
            else if (l->s->plane)
                more = MIN(more, plane);
            else if (l->s->overcommit) /* no CPU says how many: the same everywhere, but for the last ones */
                more = MIN(more, each - MIN(each, r->n_tasks));
            r->n_tasks += more;
            left -= more;
        }
        plane = l->s->plane;
    }
}

static void number_named(const struct step_spec *s, struct step_node *nodes, uint32_t n, uint32_t **ranks) {
    struct maps at = {0};
    uint32_t **next = xcalloc(n + 1, sizeof(*next));
    for (uint32_t i = 0; i < n; i++) {
        next[i] = ranks[i];
        maps_put(&at, nodes[i].name, &next[i]);
    }
    for (uint32_t rank = 0; rank < s->n_task_nodes; rank++) {
        uint32_t **to = maps_get(&at, s->task_nodes[rank]);
        *(*to)++ = rank;
    }
    maps_fini(&at);
    free(next);
}

static void number_block(struct step_node *nodes, uint32_t n, uint32_t **ranks) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < nodes[i].n_tasks; k++)
            ranks[i][k] = rank++;
}

/* So many on each node at a time. */
static void number_round(struct step_node *nodes, uint32_t n, uint32_t n_tasks, uint32_t each, uint32_t **ranks) {
    uint32_t rank = 0;
    for (uint64_t from = 0; rank < n_tasks; from += each)
        for (uint32_t i = 0; i < n; i++)
            for (uint64_t k = from; k < MIN((uint64_t)nodes[i].n_tasks, from + each); k++)
                ranks[i][k] = rank++;
}

/* ---- generic resources ---- */

static void take_gres(struct layout *l, struct room_on *r, const struct gres_ask *ask, uint64_t count,
                      struct gres_held *out, uint32_t *n) {
    for (uint32_t i = 0; i < r->n_gres && count; i++) {
        struct gres_held *g = &r->gres[i];
        if (!g->count || !str_eq(g->name, ask->name) || (ask->type && !str_eq(g->type, ask->type)))
            continue;
        struct gres_held *mine = &out[(*n)++];
        *mine = *g;
        mine->count = MIN(count, g->count);
        mine->n_indexes = (uint32_t)MIN((uint64_t)g->n_indexes, mine->count);
        count -= mine->count;
        g->count -= mine->count;
        if (mine->n_indexes)
            without_indexes(l, g, mine);
    }
}

/* Of those that the whole step asks for, each node gives what it has until there are enough. */
static void give_gres(struct layout *l, struct room_on *r, uint64_t *job_wide, struct step_node *sn) {
    const struct step_spec *s = l->s;
    if (!s->n_gres) {
        sn->gres = arena_memdup(l->arena, r->jn->gres, r->jn->n_gres * sizeof(*sn->gres));
        sn->n_gres = r->jn->n_gres;
        return;
    }
    struct gres_held *out = arena_calloc(l->arena, (size_t)s->n_gres * r->n_gres + 1, sizeof(*out));
    for (uint32_t i = 0; i < s->n_gres; i++) {
        const struct gres_ask *ask = &s->gres[i];
        uint64_t count = ask->per == GRES_PER_TASK ? ask->count * sn->n_tasks : ask->count;
        if (ask->per == GRES_PER_JOB) {
            count = MIN(job_wide[i], gres_there(r, ask));
            job_wide[i] -= count;
        }
        take_gres(l, r, ask, count, out, &sn->n_gres);
    }
    sn->gres = out;
}

/* ---- all of it ---- */

static bool is_exact(const struct layout *l) {
    return l->s->exact || l->cpus_per_task > 1;
}

static uint32_t cpus_of(const struct layout *l, const struct room_on *r) {
    return is_exact(l) ? (uint32_t)MIN((uint64_t)r->n_tasks * l->cpus_per_task, r->cpus) : r->cpus;
}

static uint64_t mem_of(const struct layout *l, const struct room_on *r) {
    return l->s->mem_node_mb ? l->s->mem_node_mb : l->s->mem_cpu_mb * r->n_tasks * l->cpus_per_task;
}

static void write_out(struct layout *l, const struct step_node **out, uint32_t *out_n) {
    struct step_node *nodes = arena_calloc(l->arena, l->n_on + 1, sizeof(*nodes));
    uint32_t **ranks = arena_calloc(l->arena, l->n_on + 1, sizeof(*ranks));
    uint64_t *job_wide = arena_calloc(l->arena, l->s->n_gres + 1, sizeof(*job_wide));
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->s->n_gres; i++)
        job_wide[i] = l->s->gres[i].count;
    for (uint32_t i = 0; i < l->n_on; i++) {
        struct room_on *r = &l->on[i];
        if (!r->is_taken)
            continue;
        nodes[n] = (struct step_node){.node_id = r->jn->node_id, .name = r->jn->name, .cpus = cpus_of(l, r),
                                      .mem_mb = mem_of(l, r), .n_tasks = r->n_tasks, .n_ranks = r->n_tasks};
        ranks[n] = arena_calloc(l->arena, r->n_tasks + 1, sizeof(**ranks));
        nodes[n].ranks = ranks[n];
        give_gres(l, r, job_wide, &nodes[n]);
        n++;
    }
    if (l->s->n_task_nodes)
        number_named(l->s, nodes, n, ranks);
    else if (l->s->cyclic || l->s->plane)
        number_round(nodes, n, l->n_tasks, l->s->cyclic ? 1 : l->s->plane, ranks);
    else
        number_block(nodes, n, ranks);
    *out = nodes;
    *out_n = n;
}

static void set_sizes(struct layout *l) {
    const struct step_spec *s = l->s;
    l->n_tasks = s->n_task_nodes ? s->n_task_nodes : MAX(s->n_tasks, 1u);
    l->cpus_per_task = MAX(s->cpus_per_task, 1u);
    l->min_nodes = MIN(MAX(s->min_nodes, 1u), l->n_tasks);
    l->max_nodes = s->max_nodes ? MAX(MIN(s->max_nodes, l->n_tasks), l->min_nodes)
                   : s->min_nodes ? l->min_nodes
                                  : l->n_on;
}

static bool names_others(const struct layout *l) {
    uint32_t n = 0, n_named = 0;
    for (uint32_t i = 0; i < l->n_on; i++) {
        n += l->on[i].is_required;
        n_named += l->on[i].n_named;
    }
    return n < l->s->n_req_nodes || n_named < l->s->n_task_nodes;
}

/* Whether it could run if the job ran nothing else; what the step asks for is added one after the other, to say why not. */
static int check_ever(struct layout *l, struct err *e) {
    if (names_others(l))
        return err_set(e, E_NODES_UNAVAIL, NULL);
    if (l->min_nodes > l->n_on || !find(l))
        return err_set(e, E_STEP_TOO_BIG, NULL);
    l->checks_mem = true;
    if (!find(l))
        return err_set(e, E_NODES_UNAVAIL, NULL);
    l->checks_gres = true;
    return find(l) ? 0 : err_set(e, E_GRES, NULL);
}

int step_layout(const struct view *v, const struct job *j, const struct step_spec *s, struct arena *a,
                const struct step_node **out, uint32_t *out_n, struct err *e) {
    struct layout l = {.j = j, .s = s, .arena = a, .on = arena_calloc(a, j->n_nodes + 1, sizeof(*l.on))};
    int rc = read_features(&l, e);
    for (uint32_t i = 0; !rc && i < j->n_nodes; i++)
        add_node(&l, v, &j->nodes[i]);
    count_named(&l);
    if (!rc && s->n_task_nodes && s->n_task_nodes != s->n_tasks)
        rc = err_set(e, E_TASK_COUNT, NULL);
    if (!rc && s->features && !l.n_on)
        rc = err_set(e, E_FEATURE, NULL);
    set_sizes(&l);
    rc = rc ? rc : check_ever(&l, e);
    if (rc)
        return rc;
    if (!s->overlap)
        without_steps(&l, v);
    if (!find(&l))
        return err_set(e, E_STEP_BUSY, NULL);
    if (s->n_task_nodes)
        spread_named(&l);
    else
        spread(&l);
    write_out(&l, out, out_n);
    return 0;
}
