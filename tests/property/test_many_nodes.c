/* SPDX-License-Identifier: Apache-2.0
 *
 * Resources of a job as a whole (-G) and groups of features, on more nodes than all sets of are tried for by the planner:
 * here all sets are. A job starts exactly where there is a set that holds it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "random_world.h"

#define NOW 1000000
#define MOST 13

struct spot { /* a node */
    uint32_t cpus, gpus, features; /* bits */
};

struct wanted {
    uint32_t tasks, min, max, gpus, count[2];
};

static bool groups_filled(const struct spot *n, unsigned set, const struct wanted *w) {
    uint32_t have[3] = {0};
    for (int i = 0; i < MOST; i++) {
        have[0] += (set >> i & 1) && n[i].features & 1;
        have[1] += (set >> i & 1) && n[i].features & 2;
        have[2] += (set >> i & 1) && n[i].features;
    }
    return have[0] >= w->count[0] && have[1] >= w->count[1] && have[2] >= w->count[0] + w->count[1];
}

static bool there_is_one(const struct spot *n, uint32_t n_nodes, unsigned required, const struct wanted *w) {
    for (unsigned set = 1; set < 1u << n_nodes; set++) {
        uint32_t size = 0, tasks = 0, gpus = 0;
        bool ok = (set & required) == required;
        for (uint32_t i = 0; i < n_nodes && ok; i++) {
            if (!(set >> i & 1))
                continue;
            size++;
            tasks += n[i].cpus;
            gpus += n[i].gpus;
            ok = !w->gpus || n[i].gpus;
        }
        if (ok && size >= w->min && size <= w->max && tasks >= w->tasks && gpus >= w->gpus && (!w->gpus || size <= w->gpus) &&
            groups_filled(n, set, w))
            return true;
    }
    return false;
}

static void one(uint64_t seed, bool totals, uint32_t *n_yes, uint32_t *n_no) {
    static const char *const features[] = {"red", "blue"};
    static const char *const names[MOST] = {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12", "n13"};
    struct dice d = {seed};
    struct world w;
    struct spot n[MOST] = {0};
    uint32_t n_nodes = 11 + roll(&d, 3);
    world_init(&w);
    for (uint32_t i = 0; i < n_nodes; i++) {
        n[i] = (struct spot){1 + roll(&d, 6), totals ? roll(&d, 5) : 0, totals ? 0 : roll(&d, 4)};
        struct gres g = {.name = "gpu", .count = n[i].gpus};
        const char *has[2];
        struct node node = {.id = w.next_node++, .name = names[i], .cpus = n[i].cpus, .weight = 1, .base = NODE_UP, .gres = &g,
                            .n_gres = n[i].gpus > 0, .features = has};
        for (uint32_t k = 0; k < 2; k++) {
            if (n[i].features >> k & 1)
                has[node.n_features++] = features[k];
        }
        world_put_node(&w, &node);
    }
    world_part(&w, (struct part){.name = "debug", .all_nodes = true, .max_time_min = TIME_LIMIT_NONE, .default_time_min = 1});
    struct wanted x = {.tasks = 8 + roll(&d, 20), .gpus = totals ? 4 + roll(&d, 16) : 0};
    struct gres_ask ask = {.name = "gpu", .count = x.gpus, .per = GRES_PER_JOB};
    char text[64];
    struct job_more m = {.gres = &ask, .n_gres = totals};
    x.min = x.max = 2 + roll(&d, 5);
    x.tasks = MAX(x.tasks, x.max);
    if (!totals) {
        x.count[0] = 1 + roll(&d, 2), x.count[1] = 1;
        x.min = x.max = MAX(x.max, x.count[0] + 1);
        snprintf(text, sizeof(text), "[red*%u&blue*1]", x.count[0]);
        m.features = text;
    }
    unsigned required = chance(&d, 30) ? 1u << roll(&d, n_nodes) : 0;
    struct job_spec s = {.more = &m, .n_tasks = x.tasks, .n_tasks_given = x.tasks, .min_nodes = x.min, .max_nodes = x.max};
    const char *req[1] = {required ? names[__builtin_ctz(required)] : NULL};
    s.req_nodes = req, s.n_req_nodes = required != 0;
    uint32_t id = world_submit(&w, s, NOW);
    struct view v = world_view(&w);
    struct sched *sched = sched_new(NULL);
    auto_arena a = {0};
    struct sched_plan p;
    sched_plan(sched, &v, NOW, &a, &p);
    bool may = there_is_one(n, n_nodes, required, &x), does = start_in(&p, id) != NULL;
    if (may != does)
        fail_msg("seed %llu: there is %s set of nodes, and it is %s", (unsigned long long)seed, may ? "a" : "no",
                 does ? "started" : "left");
    ++*(may ? n_yes : n_no);
    sched_free(sched);
    world_fini(&w);
}

static void exact(bool totals) {
    uint32_t n_yes = 0, n_no = 0, n = property_cases(1000);
    for (uint32_t i = 0; i < n; i++)
        one(property_seed() * 20011 + i, totals, &n_yes, &n_no);
    assert_true(n < 100 || (n_yes > n / 20 && n_no > n / 20));
}

static void resources_in_all(void **state) {
    exact(true);
}

static void groups_of_features(void **state) {
    exact(false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_in_all),
        cmocka_unit_test(groups_of_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
