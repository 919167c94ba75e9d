/* SPDX-License-Identifier: Apache-2.0
 *
 * Single passes over thousands of random clusters with running and waiting jobs: a slow judge agrees on every start,
 * every promise and every reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "random_world.h"
#include "reference.h"

#define NOW 1000000

/* Jobs that run already: what a pass of the planner itself starts, at some moment of the last minutes. */
static void fill(struct dice *d, const struct kind *k, struct world *w) {
    struct sched *s = sched_new(NULL);
    auto_arena a = {0};
    for (int64_t now = NOW - 200; now < NOW; now += 50) {
        for (uint32_t n = roll(d, 4); n; n--)
            random_job(d, k, w, now);
        struct view v = world_view(w);
        struct sched_plan p;
        sched_plan(s, &v, now, &a, &p);
        for (uint32_t i = 0; i < p.n_starts; i++) {
            world_start(w, &p.starts[i], now);
            if (chance(d, 10))
                world_completing(w, p.starts[i].job_id);
        }
    }
    sched_free(s);
}

static void one(uint64_t seed, const struct kind *k, uint32_t promises) {
    struct dice d = {seed};
    struct world w;
    random_cluster(&d, k, &w);
    fill(&d, k, &w);
    for (uint32_t n = 1 + roll(&d, 12); n; n--)
        random_job(&d, k, &w, NOW);
    struct view v = world_view(&w);
    struct sched *s = sched_new(&(struct sched_params){.promises = promises});
    auto_arena a = {0};
    struct sched_plan p;
    sched_plan(s, &v, NOW, &a, &p);
    auto_str why = {0};
    if (!reference_check(&v, NOW, promises, &p, &why))
        fail_msg("seed %llu, %u promises: %s", (unsigned long long)seed, promises, str_text(&why));
    sched_free(s);
    world_fini(&w);
}

static void easy(void **state) {
    const struct kind k = {
        .max_nodes = 4, .max_cpus = 6, .max_mem = 16, .max_parts = 1, .max_minutes = 5, .one_weight = true};
    for (uint32_t i = 0; i < property_cases(1500); i++)
        one(property_seed() * 1000003 + i, &k, 1);
}

static void several_partitions(void **state) {
    const struct kind k = {
        .max_nodes = 5, .max_cpus = 4, .max_mem = 8, .max_parts = 3, .max_minutes = 4, .one_weight = true};
    for (uint32_t i = 0; i < property_cases(1500); i++)
        one(property_seed() * 1000033 + i, &k, 1);
}

static void weights_and_ill_nodes(void **state) {
    const struct kind k = {.max_nodes = 5, .max_cpus = 4, .max_mem = 8, .max_parts = 3, .max_minutes = 4,
                           .ill_nodes = true, .odd_parts = true};
    for (uint32_t i = 0; i < property_cases(1500); i++)
        one(property_seed() * 1000037 + i, &k, 1);
}

static void many_promises(void **state) {
    const struct kind k = {.max_nodes = 3, .max_cpus = 4, .max_mem = 8, .max_parts = 2, .max_minutes = 3};
    for (uint32_t i = 0; i < property_cases(4000); i++)
        one(property_seed() * 1000039 + i, &k, 2 + i % 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(easy),
        cmocka_unit_test(several_partitions),
        cmocka_unit_test(weights_and_ill_nodes),
        cmocka_unit_test(many_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
