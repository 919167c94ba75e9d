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
#include "core/sched/ask.h"
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
    bool is_choice;     /* -w names more nodes than it may have: it gets some of them */
    bool is_named_bad;  /* a node of -w is not in the partition, or too small */
    uint32_t n_nodes, n_with_cpus, n_with_mem;
    uint32_t n_fit, most; /* nodes with room for a task; tasks of the largest */
    uint64_t sum;
    VEC(uint32_t) room; /* of those that fit */
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

static void survey_node(struct survey *s, const struct node *n) {
    uint32_t cpus = MIN(n->cpus, GRID_CPUS_MAX);
    uint64_t mem = MIN(n->mem_mb, GRID_MEM_MAX);
    s->n_nodes++;
    s->n_with_cpus += cpus >= s->size.cpus_per_task;
    s->n_with_mem += mem >= s->size.mem_mb && mem >= s->size.task_mem_mb;
    if (has_name(s->spec->exc_nodes, s->spec->n_exc_nodes, n->name) || (s->is_choice && !is_named(s, n)))
        return;
    uint32_t tasks = ask_tasks_in(&s->size, cpus, (int64_t)mem, mem);
    if (!tasks) {
        s->is_named_bad |= is_named(s, n) && !s->is_choice;
        return;
    }
    s->n_fit++;
    s->sum += tasks;
    s->most = MAX(s->most, tasks);
    vec_push(&s->room, tasks);
}

/* Enough has been seen to say yes. */
static bool is_enough(const struct survey *s) {
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

static int judge(struct survey *s, struct err *e) {
    const struct ask_size *z = &s->size;
    if (!s->n_nodes || z->min_nodes > z->max_nodes)
        return 0;
    if (!s->n_with_cpus)
        return err_set(e, E_TOO_MANY_CPUS, "CPU count per node can not be satisfied");
    if (!s->n_with_mem)
        return err_set(e, E_NODES_UNAVAIL, "Memory specification can not be satisfied");
    if (z->min_nodes > s->n_nodes) /* waits: PartitionNodeLimit */
        return 0;
    if (s->is_named_bad || s->n_fit < z->min_nodes)
        return err_set(e, E_NODES_UNAVAIL, NULL);
    if (!s->spec->max_nodes || sum_largest(s, z->max_nodes) >= z->n_tasks) /* else waits: PartitionConfig */
        return 0;
    if (z->max_nodes <= s->n_fit || (uint64_t)s->most * z->max_nodes < z->n_tasks)
        return err_set(e, E_NODES_UNAVAIL, NULL);
    return 0;
}

static int possible_in(const struct view *v, const struct job *j, const struct part *p, struct err *e) {
    struct survey s = {.part = p, .spec = j->spec, .size = ask_size_of(j, p, v->cluster->conf)};
    s.is_choice = s.spec->n_req_nodes > s.size.max_nodes;
    if (is_outside(&s, v))
        return err_set(e, E_NODES_UNAVAIL, NULL);
    survey_part(&s, v);
    struct err why = {0};
    int rc = judge(&s, &why);
    vec_fini(&s.room);
    maps_fini(&s.names);
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

/* All names must be known; one partition that could run it is enough. */
int sched_possible(const struct view *v, const struct job *j, struct err *e) {
    const struct job_spec *s = j->spec;
    int rc = check_names(v, s, e);
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
        if (!is_possible && (is_held || !possible_in(v, j, p, &here)))
            is_possible = true;
        if (!is_open)
            why = here; /* the first one's */
        is_open = true;
    }
    if (is_possible)
        return 0;
    return is_open ? err_set(e, why.code, "%s", why.text) : err_set(e, E_PARTITION_DOWN, NULL);
}
