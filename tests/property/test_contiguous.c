/* SPDX-License-Identifier: Apache-2.0
 *
 * --contiguous against all windows of neighbours there are: it starts when some window holds it, on the fewest nodes that do,
 * the first of those by name, with the nodes that it names; else it waits, and is promised a time only where it fits one day.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "make_view.h"
#include "random_world.h"

#define NOW 1000000
#define MOST 9

struct cell {
    char name[8];
    uint32_t cpus, free;
    bool is_up, is_named;
};

/* The first of the shortest windows, as from << 8 | length; 0: none. */
static uint32_t brute(const struct cell *c, uint32_t n, uint32_t tasks, uint32_t min, uint32_t max, uint32_t n_named, bool idle) {
    for (uint32_t len = min; len <= MIN(MIN(max, n), tasks); len++) /* a node has a task at least */
        for (uint32_t from = 0; from + len <= n; from++) {
            uint32_t sum = 0, named = 0;
            bool ok = true;
            for (uint32_t i = from; i < from + len; i++) {
                uint32_t room = idle ? c[i].cpus : c[i].free;
                ok &= c[i].is_up && room > 0;
                sum += room;
                named += c[i].is_named;
            }
            if (ok && sum >= tasks && named == n_named)
                return from << 8 | len;
        }
    return 0;
}

static void one(struct dice *d, uint64_t seed) {
    struct world w;
    struct cell c[MOST] = {0};
    struct sched_plan plan;
    struct arena arena = {0};
    const char *named[2];
    uint32_t n = 1 + roll(d, MOST), n_named = 0;
    world_init(&w);
    world_part(&w, (struct part){.name = "debug", .all_nodes = true, .is_default = true, .max_time_min = 600, .default_time_min = 10,
                                 .priority_tier = 1});
    for (uint32_t i = 0; i < n; i++) {
        snprintf(c[i].name, sizeof(c[i].name), "n%u", i);
        c[i].cpus = 1 + roll(d, 4);
        c[i].is_up = !chance(d, 10);
        struct node node = {.id = w.next_node++, .name = c[i].name, .cpus = c[i].cpus, .mem_mb = 1000, .weight = 1 + roll(d, 3),
                            .base = c[i].is_up ? NODE_UP : NODE_DOWN};
        world_put_node(&w, &node);
        c[i].free = c[i].cpus;
        if (!c[i].is_up || !chance(d, 40))
            continue;
        uint32_t job = world_submit(&w, (struct job_spec){.n_tasks = 1, .cpus_per_task = 1 + roll(d, c[i].cpus)}, NOW);
        struct job_node jn = {.node_id = node.id, .name = c[i].name, .cpus = 1 + roll(d, c[i].cpus), .n_tasks = 1};
        world_start(&w, &(struct sched_start){.job_id = job, .partition = "debug", .nodes = &jn, .n_nodes = 1, .time_limit_min = 10}, NOW);
        c[i].free -= jn.cpus;
    }
    uint32_t min = 1 + roll(d, 4), max = chance(d, 50) ? min : min + roll(d, 3), tasks = min + roll(d, 8);
    for (uint32_t i = 0; n_named < min && n_named < 2 && i < n; i++)
        if (chance(d, 8)) {
            c[i].is_named = true;
            named[n_named++] = c[i].name;
        }
    struct job_more more = {.contiguous = true};
    uint32_t id = world_submit(&w, (struct job_spec){.more = &more, .n_tasks = tasks, .n_tasks_given = tasks, .min_nodes = min, .max_nodes = max,
                                                     .req_nodes = named, .n_req_nodes = n_named, .cpus_per_task = 1}, NOW);
    struct sched *sched = sched_new(NULL);
    struct view v = world_view(&w);
    sched_plan(sched, &v, NOW, &arena, &plan);
    const struct sched_start *st = start_in(&plan, id);
    uint32_t want = brute(c, n, tasks, min, max, n_named, false);
    if (!want != !st || (st && st->n_nodes != (want & 255)))
        fail_msg("seed %llu: %u nodes, not %u", (unsigned long long)seed, st ? st->n_nodes : 0, want & 255);
    for (uint32_t i = 0; st && i < st->n_nodes; i++)
        if (!str_eq(st->nodes[i].name, c[(want >> 8) + i].name))
            fail_msg("seed %llu: %s at place %u", (unsigned long long)seed, st->nodes[i].name, i);
    const struct sched_note *note = note_in(&plan, id);
    if (!st && !note->expected_start_unix != !brute(c, n, tasks, min, max, n_named, true))
        fail_msg("seed %llu: expected at %lld, reason %u", (unsigned long long)seed, (long long)note->expected_start_unix, note->reason);
    sched_free(sched);
    arena_fini(&arena);
    world_fini(&w);
}

static void windows(void **state) {
    const char *cases = getenv("SPUR_PROPERTY_CASES"), *first = getenv("SPUR_PROPERTY_SEED");
    uint64_t n = cases ? strtoull(cases, NULL, 10) : 20000, seed = first ? strtoull(first, NULL, 10) : 1;
    for (uint64_t i = 0; i < n; i++) {
        struct dice d = {seed + i};
        one(&d, seed + i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
