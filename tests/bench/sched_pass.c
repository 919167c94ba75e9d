/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pass of the planner costs, on a cluster of 1,000 nodes with 10,000 pending jobs:
 *
 *     sched_pass [NODES [JOBS [ROUNDS [ONLY]]]]
 *
 * Each line is one situation: the first pass (which makes the timelines) and the median of those behind it (which keep
 * them), in milliseconds of processor time, and how many pending jobs a second that is. Build it with
 * -Dbuildtype=release: other builds compare the timelines with new ones at each pass.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "base/mem.h"
#include "make_view.h"

#define NOW 1000000
#define NODE_CPUS 64
#define NODE_MEM 256000

static uint32_t n_nodes = 1000, n_jobs = 10000, n_rounds = 9, only, n_measured;
static uint64_t dice = 1;

static uint32_t roll(uint32_t sides) {
    return (uint32_t)(hash_u64(dice++) % sides);
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* others may share the machine */
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void cluster(struct world *w, uint32_t n_parts) {
    world_init(w);
    w->conf = (struct rconf){.weight_age = 1000, .weight_job_size = 1000, .weight_partition = 1000};
    char name[32];
    for (uint32_t i = 1; i <= n_nodes; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        world_node(w, name, NODE_CPUS, NODE_MEM);
    }
    for (uint32_t p = 0; p < n_parts; p++) {
        snprintf(name, sizeof(name), p ? "p%u" : "debug", p);
        world_part(w, (struct part){.name = name, .all_nodes = true, .max_time_min = TIME_LIMIT_NONE,
                                    .default_time_min = 60, .priority_tier = 1});
    }
}

/* Jobs that run since some minutes: `each` CPUs each, `per_node` of them on each node. */
static void run_jobs(struct world *w, uint32_t per_node, uint32_t each) {
    for (uint32_t id = 1; id <= n_nodes; id++) {
        for (uint32_t i = 0; i < per_node; i++) {
            const struct node *n = cow_get(w->nodes.root, id);
            uint32_t job =
                world_submit(w, (struct job_spec){.n_tasks = each, .time_limit_min = 30 + roll(600)}, NOW - 900);
            struct job_node jn = {.node_id = id, .name = n->name, .cpus = each, .mem_mb = 1000, .n_tasks = each};
            struct sched_start st = {.job_id = job, .partition = "debug", .nodes = &jn, .n_nodes = 1,
                                     .time_limit_min = 30 + roll(600)};
            world_start(w, &st, NOW - 60 - roll(800));
        }
    }
}

static void submit_same(struct world *w, uint32_t n, uint32_t cpus) {
    for (uint32_t i = 0; i < n; i++)
        world_submit(w, (struct job_spec){.n_tasks = cpus, .n_tasks_given = cpus, .time_limit_min = 60}, NOW - 100);
}

/* All different: sizes, memory, limits; a tenth of them large. */
static void submit_mixed(struct world *w, uint32_t n, uint32_t n_parts, uint32_t least_min) {
    char part[16];
    for (uint32_t i = 0; i < n; i++) {
        struct job_spec s = {.n_tasks = 1 + roll(roll(10) ? 32 : 2000),
                             .cpus_per_task = 1 + roll(4),
                             .mem_node_mb = 1 + roll(8000),
                             .time_limit_min = least_min + roll(1440),
                             .nice = roll(500)};
        s.n_tasks_given = s.n_tasks;
        if (!roll(4))
            s.min_nodes = s.max_nodes = 1 + roll(MIN(s.n_tasks, 16u));
        uint32_t p = roll(n_parts);
        snprintf(part, sizeof(part), p ? "p%u" : "debug", p);
        s.partition = part;
        world_submit(w, s, NOW - roll(5000));
    }
}

/* ---- everything that may be asked for ---- */

static const char *const features[] = {"zen", "ib", "big"};

/* A fifth of the nodes have eight GPUs of one of two types; each has some of three features. */
static void rich_cluster(struct world *w) {
    static const struct license lic[] = {{"matlab", 40}};
    char name[32];
    world_init(w);
    w->conf = (struct rconf){.weight_age = 1000, .weight_job_size = 1000, .weight_partition = 1000, .licenses = lic, .n_licenses = 1};
    for (uint32_t i = 1; i <= n_nodes; i++) {
        static const char *const files[] = {"/dev/g0", "/dev/g1", "/dev/g2", "/dev/g3", "/dev/g4", "/dev/g5", "/dev/g6", "/dev/g7"};
        struct gres g = {.name = "gpu", .type = i % 2 ? "a100" : "h100", .count = 8, .files = files, .n_files = 8};
        snprintf(name, sizeof(name), "n%u", i);
        world_put_node(w, &(struct node){.id = w->next_node++, .name = name, .cpus = NODE_CPUS, .mem_mb = NODE_MEM, .base = NODE_UP,
                                         .weight = 1 + i % 3, .gres = &g, .n_gres = i % 5 == 0, .features = features, .n_features = 1 + i % 3});
    }
    static const char *const parts[] = {"debug", "long", "gpu"};
    for (uint32_t p = 0; p < 3; p++)
        world_part(w, (struct part){.name = parts[p], .all_nodes = true, .max_time_min = TIME_LIMIT_NONE, .default_time_min = 60,
                                    .priority_tier = p == 2 ? 2 : 1});
}

/* So many jobs of a thousand shapes: GPUs by node, task and job, features, lists of partitions, licences, arrays, nodes for
 * themselves, ranges of time. */
static void submit_rich(struct world *w, uint32_t n) {
    static const char *const wishes[] = {"zen", "zen&ib", "[ib|big]", "[zen*2&big*1]", "zen|big"};
    static const char *const parts[] = {"debug", "long", "gpu", "debug,long", "gpu,debug"};
    for (uint32_t i = 0; i < n; i++) {
        uint64_t was = dice;
        dice = 1000000 + i % 1000 * 64; /* its shape */
        struct gres_ask g = {.name = "gpu", .type = roll(2) ? "a100" : NULL, .count = 1 + roll(8), .per = roll(3)};
        struct license_ask lic = {"matlab", 1 + roll(3), false};
        struct array_range r = {0, 1 + roll(100)};
        struct job_more m = {0};
        struct job_spec s = {.n_tasks = 1 + roll(roll(8) ? 32 : 500), .cpus_per_task = 1 + roll(4), .time_limit_min = 1 + roll(1440),
                             .mem_node_mb = roll(3) ? 1 + roll(8000) : 0, .partition = parts[roll(5)], .more = &m, .uid = 1 + roll(50)};
        s.n_tasks_given = s.n_tasks;
        if (!roll(3))
            m.gres = &g, m.n_gres = 1;
        if (!roll(3))
            m.features = wishes[roll(5)];
        if (!roll(10))
            m.licenses = &lic, m.n_licenses = 1;
        if (!roll(5))
            m.array_ranges = &r, m.n_array_ranges = 1, m.array_max_running = roll(20);
        m.exclusive = roll(10) ? 0 : EXCLUSIVE_NODE;
        m.time_min_min = roll(5) ? 0 : 1 + roll(60);
        dice = was;
        s.nice = roll(500);
        world_submit(w, s, NOW - roll(5000));
    }
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *what, struct world *w) {
    if (only && ++n_measured != only) {
        world_fini(w);
        return;
    }
    struct sched *s = sched_new(NULL);
    double *ms = xcalloc(n_rounds + 1, sizeof(*ms));
    struct sched_plan p = {0};
    for (uint32_t i = 0; i <= n_rounds; i++) {
        struct view v = world_view(w);
        auto_arena a = {0};
        double from = now_ms();
        sched_plan(s, &v, NOW + i, &a, &p);
        ms[i] = now_ms() - from;
    }
    double first = ms[0];
    qsort(ms + 1, n_rounds, sizeof(*ms), by_time);
    double mid = ms[1 + n_rounds / 2];
    printf("%-46s first %7.2f ms, then %7.2f ms (worst %7.2f), %9.0f jobs/s; %u started, %u looked at\n", what, first,
           mid, ms[n_rounds], (p.n_notes + p.n_starts) / mid * 1e3, p.n_starts, p.n_considered);
    free(ms);
    sched_free(s);
    world_fini(w);
}

/* The question that every submit asks on the state loop. */
static void measure_submit(const char *what, const char *part, struct job_spec spec, int code) {
    enum { TIMES = 2000 };
    struct world w;
    cluster(&w, 1);
    char name[3][16];
    const char *last[3];
    for (uint32_t i = 0; i < 3; i++) {
        snprintf(name[i], sizeof(name[i]), "n%u", n_nodes - i);
        last[i] = name[i];
    }
    world_part(&w, (struct part){.name = "last", .nodes = last, .n_nodes = 3, .max_time_min = TIME_LIMIT_NONE});
    spec.partition = part;
    struct job j = {.spec = &spec};
    struct view v = world_view(&w);
    double from = now_ms();
    for (uint32_t i = 0; i < TIMES; i++)
        must(sched_possible(&v, &j, NULL) == code);
    printf("%-46s %7.2f us\n", what, (now_ms() - from) * 1e3 / TIMES);
    world_fini(&w);
}

int main(int argc, char **argv) {
    if (argc > 1)
        n_nodes = (uint32_t)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        n_jobs = (uint32_t)strtoul(argv[2], NULL, 10);
    if (argc > 3)
        n_rounds = (uint32_t)strtoul(argv[3], NULL, 10);
    if (argc > 4)
        only = (uint32_t)strtoul(argv[4], NULL, 10);
    struct world w;
    cluster(&w, 1);
    run_jobs(&w, 16, 4);
    submit_same(&w, n_jobs, 4);
    measure("full cluster, all ask the same", &w);
    cluster(&w, 1);
    run_jobs(&w, 16, 4);
    submit_mixed(&w, n_jobs, 1, 1);
    measure("full cluster, all different", &w);
    cluster(&w, 1);
    run_jobs(&w, 15, 4);
    submit_same(&w, n_jobs, 5);
    measure("4 CPUs free on each node, all ask for 5 tasks", &w);
    cluster(&w, 1);
    run_jobs(&w, 8, 4);
    submit_same(&w, 1, n_nodes * NODE_CPUS);
    submit_mixed(&w, n_jobs, 1, 1);
    measure("half free, one promise, all different", &w);
    cluster(&w, 1);
    run_jobs(&w, 8, 4);
    submit_same(&w, 1, n_nodes * NODE_CPUS);
    submit_mixed(&w, n_jobs, 1, 1440);
    measure("half free, one promise in the way of all", &w);
    cluster(&w, 1);
    run_jobs(&w, 8, 4);
    submit_same(&w, 1, n_nodes * NODE_CPUS);
    submit_same(&w, n_jobs, 4);
    measure("half free, one promise, all ask the same", &w);
    cluster(&w, 1);
    submit_same(&w, n_jobs, 4);
    measure("empty cluster, all start", &w);
    cluster(&w, 10);
    run_jobs(&w, 12, 4);
    submit_mixed(&w, n_jobs, 10, 1);
    measure("quarter free, ten partitions of all nodes", &w);
    rich_cluster(&w);
    run_jobs(&w, 15, 4);
    submit_rich(&w, n_jobs);
    measure("nearly full, 1,000 shapes, GPUs and features", &w);
    rich_cluster(&w);
    run_jobs(&w, 8, 4);
    submit_rich(&w, n_jobs);
    measure("half free, 1,000 shapes, GPUs and features", &w);
    struct job_spec s = {.n_tasks = 1, .min_nodes = 1, .cpus_per_task = 1};
    measure_submit("submit: one task", "debug", s, 0);
    measure_submit("submit: one task, a partition of three nodes", "last", s, 0);
    s.mem_node_mb = NODE_MEM + 1;
    measure_submit("submit: too much memory", "debug", s, E_NODES_UNAVAIL);
    return 0;
}
