/* SPDX-License-Identifier: Apache-2.0
 *
 * Single passes over thousands of random clusters on which everything may be asked for: a slow judge agrees on every start,
 * every promise and every reason (judge.h). A case that goes wrong is shown with the jobs alone that it needs.
 *
 *   every theme by itself, any two of them, all together
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge.h"

#define NOW 1000000
#define IDS 256

/* Jobs that run already: what passes of the planner itself started in the last minutes. */
static void fill(struct dice *d, unsigned themes, struct world *w) {
    struct sched *s = sched_new(NULL);
    auto_arena a = {0};
    for (int64_t now = NOW - 200; now < NOW; now += 50) {
        for (uint32_t n = roll(d, 4); n; n--)
            rich_job(d, themes, w, now);
        struct view v = world_view(w);
        struct sched_plan p;
        sched_plan(s, &v, now, &a, &p);
        for (uint32_t i = 0; i < p.n_starts; i++) {
            uint32_t id = p.starts[i].array_task ? 0 : p.starts[i].job_id;
            world_start(w, &p.starts[i], now);
            if (id && chance(d, 10))
                world_completing(w, id);
        }
    }
    sched_free(s);
}

/* The same from the same seed; jobs whose bit is set are left out. */
static void build(uint64_t seed, unsigned themes, const bool *without, struct world *w) {
    struct dice d = {seed};
    rich_cluster(&d, themes, w);
    fill(&d, themes, w);
    for (uint32_t n = 1 + roll(&d, 9); n; n--)
        rich_job(&d, themes, w, NOW);
    for (uint32_t id = 0; id < IDS; id++) {
        if (without[id])
            cow_del(&w->jobs, id);
    }
}

static bool is_right(struct world *w, uint32_t promises, struct str *why, uint32_t *seen) {
    struct view v = world_view(w);
    struct sched *s = sched_new(&(struct sched_params){.promises = promises});
    auto_arena a = {0};
    struct sched_plan p;
    sched_plan(s, &v, NOW, &a, &p);
    bool ok = judge_plan(&v, NOW, promises, &p, why, seen);
    sched_free(s);
    return ok;
}

static bool goes_wrong(uint64_t seed, unsigned themes, const bool *without, uint32_t promises, struct str *out) {
    struct world w;
    auto_str why = {0};
    uint32_t seen = 0;
    build(seed, themes, without, &w);
    bool ok = is_right(&w, promises, &why, &seen);
    if (!ok && out) {
        str_addf(out, "%s\n", str_text(&why));
        rich_print(&w, NOW, out);
    }
    world_fini(&w);
    return !ok;
}

/* Leaves out every job without which it goes wrong as well. */
static void show(uint64_t seed, unsigned themes, uint32_t promises) {
    bool without[IDS] = {0};
    for (uint32_t id = 1; id < IDS; id++) {
        without[id] = true;
        without[id] = goes_wrong(seed, themes, without, promises, NULL);
    }
    auto_str out = {0};
    goes_wrong(seed, themes, without, promises, &out);
    fail_msg("seed %llu, themes %u, %u promises: %s", (unsigned long long)seed, themes, promises, str_text(&out));
}

static uint32_t one(uint64_t seed, unsigned themes, uint32_t promises) {
    static const bool without[IDS];
    struct world w;
    auto_str why = {0};
    uint32_t seen = 0;
    build(seed, themes, without, &w);
    bool ok = is_right(&w, promises, &why, &seen);
    world_fini(&w);
    if (!ok)
        show(seed, themes, promises);
    return seen;
}

static void single_themes(void **state) {
    for (uint32_t i = 0; i < property_cases(12000); i++)
        one(property_seed() * 1000003 + i, 1u << i % 12, 1 + i / 12 % 2);
}

static void pairs_of_themes(void **state) {
    for (uint32_t i = 0; i < property_cases(20000); i++)
        one(property_seed() * 1000033 + i, 1u << i % 12 | 1u << i / 12 % 12, 1 + i / 144 % 2);
}

static void all_themes(void **state) {
    uint32_t seen = 0, n = property_cases(20000);
    for (uint32_t i = 0; i < n; i++)
        seen += one(property_seed() * 1000037 + i, T_ALL, 1 + i % 3);
    assert_true(seen >= n); /* turns that were judged */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_themes),
        cmocka_unit_test(pairs_of_themes),
        cmocka_unit_test(all_themes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
