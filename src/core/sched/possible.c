/* SPDX-License-Identifier: Apache-2.0
 *
 * What is refused at submit because no node could ever do it; the line between refusing and letting wait is Slurm's
 * (recorded): too much for every node, for the number of nodes asked, or for the nodes named or left over is refused;
 * more nodes or tasks than the partition has, or a longer time, waits. Held jobs are not measured at all.
 *
 * Where nodes are named that have not registered yet, nothing is called impossible, but for names that nobody knows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/model/constraint.h"
#include "core/model/text.h"
#include "core/sched/ask.h"
#include "core/sched/gate.h"
#include "core/sched/license.h"
#include "core/sched/sched.h"

static bool has_name(const char *const *names, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(names[i], name))
            return true;
    }
    return false;
}

/* Registered, or named by the configuration. */
static bool is_known(const struct view *v, const char *name) {
    if (view_find_node(v, name))
        return true;
    const struct part *p;
    for (uint64_t k = 0; (p = view_next_part(v, &k)); k++) {
        if (has_name(p->nodes, p->n_nodes, name))
            return true;
    }
    const struct rconf *c = v->cluster->conf;
    for (uint32_t i = 0; c && i < c->n_overlays; i++) {
        if (has_name(c->overlays[i].names, c->overlays[i].n_names, name))
            return true;
    }
    return false;
}

static int check_names(const struct view *v, const struct job_spec *s, struct err *e) {
    for (uint32_t i = 0; i < s->n_req_nodes; i++) {
        if (!is_known(v, s->req_nodes[i]) || has_name(s->exc_nodes, s->n_exc_nodes, s->req_nodes[i]))
            return err_set(e, E_NODE_NAME, NULL);
    }
    for (uint32_t i = 0; i < s->n_exc_nodes; i++) {
        if (!is_known(v, s->exc_nodes[i]))
            return err_set(e, E_NODE_NAME, NULL);
    }
    return 0;
}

struct survey { /* of a partition's nodes, empty */
    const struct part *part;
    struct maps names; /* of the partition, made when many nodes had to be asked about: not nodes times names */
    uint32_t n_asked;
    const struct job_spec *spec;
    struct ask_size size;
    struct features features;
    struct ask_want want[ASK_WANTS_MAX];
    uint32_t n_wants;
    uint64_t total[ASK_WANTS_MAX];   /* by want: what the nodes that fit have in all, */
    uint64_t best_of[ASK_WANTS_MAX]; /* and what the richest has */
    uint32_t *n_group;  /* by group of features: nodes that fit and have it */
    uint32_t *n_alt;    /* by alternative */
    bool is_choice;     /* -w names more nodes than it may have: it gets some of them */
    bool is_named_bad;  /* a node of -w is not in the partition, or too small */
    uint32_t n_nodes, n_with_cpus, n_with_mem, n_with_tmp, n_shaped;
    uint32_t n_fit, most; /* nodes with room for a task; tasks of the largest */
    uint64_t sum;
    VEC(uint32_t) room; /* of those that fit */
    struct maps dealt; /* where each task's node is said: how many there, by name */
    const struct view *view;
    struct map64 tasks; /* with --contiguous: of those that fit, by node id */
};

static bool is_member(struct survey *s, const struct node *n) {
    const struct part *p = s->part;
    if (p->all_nodes || p->n_selectors || ++s->n_asked < 32)
        return part_has_node(p, n);
    for (uint32_t i = 0; s->n_asked == 32 && i < p->n_nodes; i++)
        maps_put(&s->names, p->nodes[i], s);
    return maps_get(&s->names, n->name) != NULL;
}

static bool is_named(const struct survey *s, const struct node *n) {
    return has_name(s->spec->req_nodes, s->spec->n_req_nodes, n->name);
}

/* What an empty node has of a want. */
static uint64_t has_gres(const struct node *n, const struct ask_want *w) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n->n_gres; i++) {
        if (str_eq(n->gres[i].name, w->name) && (!w->type || str_eq(n->gres[i].type, w->type)))
            sum += MIN(n->gres[i].count, GRID_MEM_MAX);
    }
    return sum;
}

static uint32_t by_gres(const struct survey *s, const struct node *n, uint32_t tasks) {
    for (uint32_t i = 0; i < s->n_wants && tasks; i++) {
        uint64_t have = has_gres(n, &s->want[i]);
        if (!have || have < s->want[i].node)
            return 0;
        if (s->want[i].task)
            tasks = (uint32_t)MIN(tasks, have / s->want[i].task);
    }
    return tasks;
}

/* Whether it has what each node must have, and some alternative. */
static bool is_featured(const struct survey *s, const struct node *n) {
    const struct features *f = &s->features;
    bool ok = f->n_alts == 0;
    for (uint32_t i = 0; i < f->n_alts && !ok; i++)
        ok = features_active(&f->alt[i], n);
    return ok && features_active(&f->all, n);
}

static void count_featured(struct survey *s, const struct node *n) {
    for (uint32_t i = 0; i < s->features.n_groups; i++)
        s->n_group[i] += features_active(&s->features.group[i].expr, n);
    for (uint32_t i = 0; i < s->features.n_alts; i++)
        s->n_alt[i] += features_active(&s->features.alt[i], n);
    for (uint32_t i = 0; i < s->n_wants; i++)
        s->total[i] += has_gres(n, &s->want[i]);
    for (uint32_t i = 0; i < s->n_wants; i++)
        s->best_of[i] = MAX(s->best_of[i], has_gres(n, &s->want[i]));
}

/* For itself alone it takes all CPUs, and memory for them. */
static bool is_too_full(const struct survey *s, uint32_t cpus, uint64_t mem) {
    uint32_t most = s->part->max_cpus_per_node;
    return s->size.share == SHARE_NONE &&
           ((most && most < cpus) || s->size.task_mem_mb / s->size.cpus_per_task * cpus > mem);
}

/* As many as are to run there, where that is said; 0: they don't fit. */
static uint32_t as_dealt(const struct survey *s, const struct node *n, uint32_t tasks) {
    uint32_t wanted = (uint32_t)(uintptr_t)maps_get(&s->dealt, n->name);
    return tasks >= wanted ? wanted : 0;
}

static void survey_node(struct survey *s, const struct node *n) {
    uint32_t cpus = MIN(n->cpus, GRID_CPUS_MAX);
    uint64_t mem = MIN(n->mem_mb, GRID_MEM_MAX);
    uint32_t most = s->part->max_cpus_per_node;
    uint64_t each = MAX((uint64_t)s->size.cpus_per_task * MAX(s->size.tasks_per_node, 1), s->size.node_cpus);
    s->n_nodes++;
    s->n_with_cpus += cpus >= each;
    s->n_with_mem += mem >= s->size.mem_mb && mem >= s->size.task_mem_mb;
    s->n_with_tmp += n->tmp_disk_mb >= s->size.tmp_mb;
    bool is_shaped = ask_fits_shape(&s->size, n->tmp_disk_mb, n->sockets, n->cores_per_socket, n->threads_per_core);
    s->n_shaped += is_shaped || n->tmp_disk_mb < s->size.tmp_mb;
    if (has_name(s->spec->exc_nodes, s->spec->n_exc_nodes, n->name) || (s->is_choice && !is_named(s, n)))
        return;
    bool is_out = !is_featured(s, n) || is_too_full(s, cpus, mem) || !is_shaped || (most ? MIN(cpus, most) : cpus) < s->size.node_cpus;
    cpus = most ? MIN(cpus, most) : cpus;
    uint32_t usable = s->size.one_thread ? cpus / MAX(n->threads_per_core, 1u) : cpus;
    uint32_t tasks = ask_tasks_by_shape(&s->size, ask_tasks_in(&s->size, usable, (int64_t)mem, mem), n->sockets, n->cores_per_socket);
    tasks = is_out ? 0 : by_gres(s, n, tasks);
    if (s->size.is_dealt)
        tasks = as_dealt(s, n, tasks);
    if (!tasks) {
        s->is_named_bad |= is_named(s, n) && !s->is_choice;
        return;
    }
    s->n_fit++;
    s->sum += tasks;
    s->most = MAX(s->most, tasks);
    vec_push(&s->room, tasks);
    if (s->size.is_contiguous)
        map64_put(&s->tasks, n->id, (void *)(uintptr_t)tasks);
    count_featured(s, n);
}

/* Enough has been seen to say yes. */
static bool is_enough(const struct survey *s) {
    if (s->size.is_contiguous || s->n_wants || s->features.n_groups || s->features.n_alts || s->size.tasks_per_node ||
        ask_minds_shape(&s->size))
        return false; /* all nodes are looked at */
    if (s->n_fit < s->size.min_nodes || s->sum < s->size.n_tasks)
        return false;
    return s->n_fit <= s->size.max_nodes || s->most >= s->size.n_tasks;
}

static void survey_part(struct survey *s, const struct view *v) {
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
        if (is_member(s, n))
            survey_node(s, n);
        if (!s->spec->n_req_nodes && is_enough(s))
            return;
    }
}

static int descending(const void *pa, const void *pb) {
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    return (a < b) - (a > b);
}

static uint64_t sum_largest(struct survey *s, uint32_t k) {
    uint64_t sum = 0;
    qsort(s->room.p, s->room.n, sizeof(*s->room.p), descending);
    for (size_t i = 0; i < s->room.n && i < k; i++)
        sum += s->room.p[i];
    return sum;
}

static bool names_a_stranger(const struct view *v, const struct part *p) {
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        if (!view_find_node(v, p->nodes[i]))
            return true;
    }
    return false;
}

/* A node of -w that is here but not in the partition, and not one still to come. */
static bool is_outside(const struct survey *s, const struct view *v) {
    for (uint32_t i = 0; !s->is_choice && i < s->spec->n_req_nodes; i++) {
        const struct node *n = view_find_node(v, s->spec->req_nodes[i]);
        if (n ? !part_has_node(s->part, n)
              : !s->part->all_nodes && !has_name(s->part->nodes, s->part->n_nodes, s->spec->req_nodes[i]))
            return true;
    }
    return false;
}

static bool is_group_short(const struct survey *s) {
    for (uint32_t i = 0; i < s->features.n_groups; i++) {
        if (s->n_group[i] < s->features.group[i].count)
            return true;
    }
    return false;
}

/* Features and resources that the nodes together don't have. */
static bool is_short(const struct survey *s) {
    const struct features *f = &s->features;
    bool some = f->n_alts == 0;
    for (uint32_t i = 0; i < f->n_alts; i++)
        some |= s->n_alt[i] >= s->size.min_nodes;
    for (uint32_t i = 0; i < s->n_wants; i++) {
        const struct ask_want *w = &s->want[i];
        some &= s->total[i] >= MAX(w->job, w->task ? w->task * s->size.n_tasks : 0);
        some &= !w->job || w->job >= s->size.min_nodes;
    }
    return !some;
}

/* In all of so few nodes as it may have: of resources for the job as a whole. */
static bool is_split_short(const struct survey *s) {
    for (uint32_t i = 0; i < s->n_wants; i++) {
        if (s->want[i].job && s->size.max_nodes < s->n_fit && s->best_of[i] * s->size.max_nodes < s->want[i].job)
            return true;
    }
    return false;
}

static int by_name(const void *pa, const void *pb) {
    return hostname_compare((*(const struct node *const *)pa)->name, (*(const struct node *const *)pb)->name);
}

/* Whether the nodes from the first on, which are in the order of names, hold it as neighbours. */
static bool holds_run(const struct survey *s, const struct node *const *first, size_t n, uint32_t n_must) {
    uint64_t tasks = 0;
    uint32_t n_named = 0;
    for (uint32_t i = 0; i < n && i < s->size.max_nodes; i++) {
        uint32_t room = (uint32_t)(uintptr_t)map64_get(&s->tasks, first[i]->id);
        tasks += room;
        n_named += is_named(s, first[i]);
        if (!room)
            return false;
        if (i + 1 >= s->size.min_nodes && tasks >= s->size.n_tasks && (s->is_choice || n_named == n_must))
            return true;
    }
    return false;
}

/* --contiguous, and no neighbours would hold it. */
static bool is_apart(const struct survey *s) {
    if (!s->size.is_contiguous)
        return false;
    VEC(const struct node *) all = {0};
    const struct node *n;
    uint32_t n_must = 0;
    for (uint64_t k = 0; (n = view_next_node(s->view, &k)); k++) {
        n_must += is_named(s, n);
        vec_push(&all, n);
    }
    qsort(all.p, all.n, sizeof(*all.p), by_name);
    bool found = false;
    for (size_t i = 0; i < all.n && !found; i++)
        found = holds_run(s, all.p + i, all.n - i, n_must);
    vec_fini(&all);
    return !found;
}

static int judge(struct survey *s, struct err *e) {
    const struct ask_size *z = &s->size;
    if (!s->n_nodes || z->min_nodes > z->max_nodes)
        return 0;
    if (!s->n_with_cpus)
        return err_set(e, E_TOO_MANY_CPUS, "CPU count per node can not be satisfied");
    if (!s->n_with_mem)
        return err_set(e, E_NODES_UNAVAIL, "Memory specification can not be satisfied");
    if (!s->n_with_tmp)
        return err_set(e, E_NODES_UNAVAIL, "Temporary disk specification can not be satisfied");
    if (!s->n_shaped)
        return err_set(e, E_NODES_UNAVAIL, "Socket, core and/or thread specification can not be satisfied");
    if (is_group_short(s))
        return err_set(e, E_NODES_UNAVAIL, NULL);
    if (z->min_nodes > s->n_nodes) /* waits: PartitionNodeLimit */
        return 0;
    if (s->is_named_bad || s->n_fit < z->min_nodes || is_short(s) || is_split_short(s) || is_apart(s))
        return err_set(e, E_NODES_UNAVAIL, NULL);
    if (!s->spec->max_nodes || sum_largest(s, z->max_nodes) >= z->n_tasks) /* else waits: PartitionConfig */
        return 0;
    if (z->max_nodes <= s->n_fit || (uint64_t)s->most * z->max_nodes < z->n_tasks)
        return err_set(e, E_NODES_UNAVAIL, NULL);
    return 0;
}

/* Numbers of nodes that features and resources ask for. */
static void ask_resources(struct survey *s, struct arena *a) {
    const struct job_more *m = job_spec_more(s->spec);
    uint64_t n = 0;
    /* As recorded: what is preferred is measured, and what is asked for only where nothing is. Both are readable: check_features. */
    features_parse(m->prefer ? m->prefer : m->features, a, &s->features, NULL);
    s->n_wants = ask_wants(m->gres, m->n_gres, s->want);
    s->n_group = arena_calloc(a, s->features.n_groups + 1, sizeof(*s->n_group));
    s->n_alt = arena_calloc(a, s->features.n_alts + 1, sizeof(*s->n_alt));
    for (uint32_t i = 0; i < s->features.n_groups; i++)
        n += s->features.group[i].count;
    for (uint32_t i = 0; i < m->n_task_nodes; i++) {
        uintptr_t so_far = (uintptr_t)maps_get(&s->dealt, m->task_nodes[i]);
        maps_put(&s->dealt, m->task_nodes[i], (void *)(so_far + 1));
    }
    s->size.min_nodes = MAX(s->size.min_nodes, (uint32_t)MIN(n, UINT32_MAX));
    if (!s->spec->max_nodes)
        s->size.max_nodes = MAX(s->size.max_nodes, (uint32_t)MIN(n, UINT32_MAX));
}

static int possible_in(const struct view *v, const struct job *j, const struct part *p, struct err *e) {
    struct survey s = {.part = p, .view = v, .spec = j->spec, .size = ask_size_of(j, p, p, v->cluster->conf)};
    auto_arena a = {0};
    ask_resources(&s, &a);
    s.is_choice = s.spec->n_req_nodes > s.size.max_nodes;
    if (is_outside(&s, v))
        return err_set(e, E_NODES_UNAVAIL, NULL);
    survey_part(&s, v);
    struct err why = {0};
    int rc = judge(&s, &why);
    vec_fini(&s.room);
    maps_fini(&s.names);
    maps_fini(&s.dealt);
    map64_fini(&s.tasks);
    return rc && !names_a_stranger(v, p) ? err_set(e, rc, "%s", why.text) : 0;
}

static const struct part *find_part(const struct view *v, const char *name, size_t n) {
    const struct part *p;
    for (uint64_t k = 0; (p = view_next_part(v, &k)); k++) {
        if (strncmp(p->name, name, n) == 0 && p->name[n] == '\0')
            return p;
    }
    return NULL;
}

static bool some_node_has(void *arg, const char *name) {
    const struct view *v = arg;
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
        if (has_name(n->features, n->n_features, name))
            return true;
    }
    const struct rconf *c = v->cluster->conf;
    for (uint32_t i = 0; c && i < c->n_overlays; i++) {
        if (has_name(c->overlays[i].features, c->overlays[i].n_features, name))
            return true;
    }
    return false;
}

static bool is_gres_known(const struct view *v, const char *name) {
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
        for (uint32_t i = 0; i < n->n_gres; i++) {
            if (str_eq(n->gres[i].name, name))
                return true;
        }
    }
    const struct rconf *c = v->cluster->conf;
    for (uint32_t i = 0; c && i < c->n_overlays; i++) {
        for (uint32_t k = 0; k < c->overlays[i].n_gres; k++) {
            if (str_eq(c->overlays[i].gres[k].name, name))
                return true;
        }
    }
    return false;
}

static bool is_mixed(const struct job_more *m, const struct gres_ask *g) {
    for (uint32_t i = 0; i < m->n_gres; i++) {
        if (str_eq(m->gres[i].name, g->name) && m->gres[i].per == g->per && !m->gres[i].type != !g->type)
            return true;
    }
    return false;
}

/* `code`: of those that can't be read, or that no node has. */
static int check_features(const struct view *v, const char *text, int code, struct arena *a, bool *has_total, struct err *e) {
    struct features f;
    if (features_parse(text, a, &f, e) || !features_known(&f, some_node_has, (void *)v))
        return err_set(e, code, NULL);
    *has_total |= f.n_alts || f.n_groups;
    return 0;
}

/* What nobody has or knows is refused, even of a held job. */
static int check_resources(const struct view *v, const struct job_spec *s, struct err *e) {
    const struct job_more *m = job_spec_more(s);
    auto_arena a = {0};
    bool has_total = false;
    int rc = check_features(v, m->features, E_FEATURE, &a, &has_total, e);
    if (!rc)
        rc = check_features(v, m->prefer, E_PREFER, &a, &has_total, e);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < m->n_gres; i++) {
        if (m->gres[i].count && !is_gres_known(v, m->gres[i].name))
            return err_set(e, E_GRES, NULL);
        if (is_mixed(m, &m->gres[i]))
            return err_set(e, E_GRES, "Invalid GRES specification (with and without type identification)");
    }
    for (uint32_t i = 0; i < m->n_gres; i++)
        has_total |= m->gres[i].per == GRES_PER_JOB;
    if (m->contiguous && has_total)
        return err_set(e, E_NODES_UNAVAIL, "--contiguous with groups of features or GPUs of the job as a whole is not supported yet");
    if (m->n_licenses && licenses_never(v->cluster->conf, s))
        return err_set(e, E_LICENSE, NULL);
    return 0;
}

/* 0, or why this partition doesn't take its jobs at all. */
static int access_of(const struct part *p, const struct job *j) {
    if (gate_access(p, j) != REASON_PARTITION_CONFIG)
        return 0;
    return p->root_only ? E_DENIED : E_PART_GROUP;
}

/* All names must be known; one partition that could run it is enough. */
int sched_possible(const struct view *v, const struct job *j, struct err *e) {
    const struct job_spec *s = j->spec;
    int rc = check_names(v, s, e);
    if (!rc)
        rc = check_resources(v, s, e);
    if (rc)
        return rc;
    bool is_held = j->hold != HOLD_NONE || s->hold;
    struct err why = {.code = E_PARTITION_DOWN};
    bool is_open = false, is_possible = false;
    for (const char *at = s->partition ? s->partition : ""; *at;) {
        size_t n = strcspn(at, ",");
        const struct part *p = find_part(v, at, n);
        if (!p)
            return err_set(e, E_PARTITION, "invalid partition specified: %s", s->partition);
        at += n + (at[n] == ',');
        if (p->state == PART_INACTIVE || p->state == PART_DRAIN)
            continue;
        struct err here = {0};
        int denied = access_of(p, j);
        if (denied && !is_open)
            why = (struct err){.code = denied};
        if (denied)
            continue;
        if (!is_possible && (is_held || !possible_in(v, j, p, &here)))
            is_possible = true;
        if (!is_open && here.code)
            why = here; /* the first one's */
        is_open = true;
    }
    if (is_possible)
        return 0;
    return err_set(e, why.code, *why.text ? "%s" : NULL, why.text);
}
