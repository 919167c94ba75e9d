/* SPDX-License-Identifier: Apache-2.0 */
#include "random_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

uint32_t roll(struct dice *d, uint32_t sides) {
    d->state += 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash_u64(d->state) % sides);
}

static const char *const node_names[] = {"n1", "n2", "n3", "n4", "n5", "n10", "n7", "n8", "n9"};
static const char *const part_names[] = {"a", "b", "c"};
/* Lists of partitions: the first one for one partition, the first five without "c" for two, all for three. */
static const char *const lists[] = {"a", "b", "c", "a,b", "b,a", "c,a", "a,b,c"};

static void random_node(struct dice *d, const struct kind *k, struct world *w, const char *name) {
    struct node n = {.id = w->next_node++, .name = name, .weight = 1, .base = NODE_UP};
    n.cpus = 1 + roll(d, k->max_cpus);
    n.mem_mb = roll(d, k->max_mem + 1);
    if (!k->one_weight)
        n.weight = 1 + roll(d, 3);
    struct drain drain = {.owner = "admin", .text = "x"};
    if (k->ill_nodes && chance(d, 10))
        n.base = NODE_DOWN;
    if (k->ill_nodes && chance(d, 5))
        n.not_responding = true;
    if (k->ill_nodes && chance(d, 10)) {
        n.drains = &drain;
        n.n_drains = 1;
    }
    world_put_node(w, &n);
}

static void random_part(struct dice *d, const struct kind *k, struct world *w, const char *name, uint32_t n_nodes,
                        uint32_t tier) {
    const char *names[ARRAY_LEN(node_names)];
    struct part p = {.name = name, .nodes = names, .priority_tier = tier, .max_time_min = TIME_LIMIT_NONE};
    for (uint32_t i = 0; i < n_nodes; i++) {
        if (chance(d, 60))
            names[p.n_nodes++] = node_names[i];
    }
    p.all_nodes = chance(d, 30);
    p.default_time_min = chance(d, 70) ? 1 + roll(d, k->max_minutes) : 0;
    if (chance(d, 50))
        p.max_time_min = k->max_minutes - roll(d, 2);
    if (k->odd_parts && chance(d, 20))
        p.max_nodes = 1 + roll(d, 3);
    if (k->odd_parts && chance(d, 10))
        p.min_nodes = 1 + roll(d, 2);
    if (k->odd_parts && chance(d, 15))
        p.state = roll(d, 4);
    world_part(w, p);
}

void random_cluster(struct dice *d, const struct kind *k, struct world *w) {
    world_init(w);
    w->conf = (struct rconf){.weight_age = roll(d, 1000), .weight_job_size = roll(d, 1000), .max_age_secs = 300,
                             .weight_partition = roll(d, 100), .default_time_min = roll(d, 3),
                             .def_mem_per_cpu_mb = chance(d, 30) ? 1 + roll(d, 4) : 0};
    if (chance(d, 10))
        w->cluster.conf = NULL;
    uint32_t n_nodes = 1 + roll(d, k->max_nodes), n_parts = 1 + roll(d, k->max_parts);
    bool is_flat = chance(d, 60);
    for (uint32_t i = 0; i < n_nodes; i++)
        random_node(d, k, w, node_names[i]);
    for (uint32_t i = 0; i < n_parts; i++)
        random_part(d, k, w, part_names[i], n_nodes, is_flat ? 1 : i);
}

static const char *random_list(struct dice *d, const struct world *w) {
    uint32_t n_parts = w->next_part - 1;
    uint32_t n = n_parts == 1 ? 1 : n_parts == 2 ? 5 : 7;
    uint32_t i = roll(d, n);
    if (n == 5 && i == 2)
        i = 0;
    return lists[i];
}

static uint32_t random_names(struct dice *d, const struct world *w, const char **out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->next_node - 1; i++) {
        if (chance(d, 30))
            out[n++] = node_names[i];
    }
    return n;
}

static void random_nodes(struct dice *d, const struct kind *k, struct job_spec *s) {
    s->n_tasks = s->n_tasks_given = 1 + roll(d, chance(d, 80) ? k->max_cpus : k->max_cpus * 3);
    s->min_nodes = 1;
    switch (roll(d, 5)) {
    case 0:
        s->min_nodes = s->max_nodes = 1 + roll(d, MIN(k->max_nodes, s->n_tasks));
        break;
    case 1:
        s->min_nodes = 1 + roll(d, MIN(k->max_nodes, s->n_tasks));
        s->max_nodes = s->min_nodes + roll(d, 3);
        break;
    case 2: /* -N without -n */
        s->min_nodes = 1 + roll(d, k->max_nodes);
        s->max_nodes = s->min_nodes + roll(d, 3);
        s->n_tasks = s->min_nodes;
        s->n_tasks_given = 0;
        break;
    default:
        break;
    }
}

uint32_t random_job(struct dice *d, const struct kind *k, struct world *w, int64_t now) {
    struct job_spec s = {.partition = random_list(d, w)};
    const char *req[ARRAY_LEN(node_names)], *exc[ARRAY_LEN(node_names)];
    random_nodes(d, k, &s);
    s.cpus_per_task = chance(d, 70) ? 1 : 1 + roll(d, MAX(k->max_cpus / 2, 1));
    if (chance(d, 40))
        s.mem_node_mb = 1 + roll(d, MAX(k->max_mem, 1));
    else if (chance(d, 5))
        s.mem_all = true;
    if (chance(d, 80))
        s.time_limit_min = chance(d, 3) ? TIME_LIMIT_NONE : 1 + roll(d, k->max_minutes);
    if (chance(d, 10)) {
        s.n_req_nodes = random_names(d, w, req);
        s.req_nodes = req;
    }
    if (chance(d, 10)) {
        s.n_exc_nodes = random_names(d, w, exc);
        s.exc_nodes = exc;
    }
    s.nice = chance(d, 20) ? (int64_t)roll(d, 400) - 200 : 0;
    s.hold = chance(d, 3);
    s.begin_unix = chance(d, 5) ? now - 30 + roll(d, 90) : 0;
    return world_submit(w, s, now - roll(d, 200));
}

uint64_t property_seed(void) {
    const char *s = getenv("SPUR_PROPERTY_SEED");
    return s ? strtoull(s, NULL, 10) : 1;
}

uint32_t property_cases(uint32_t usual) {
    const char *s = getenv("SPUR_PROPERTY_CASES");
    return s ? (uint32_t)strtoul(s, NULL, 10) : usual;
}
