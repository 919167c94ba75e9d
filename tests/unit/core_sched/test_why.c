/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a job waits: pairs of worlds that differ in one fact, which is named in one and not in the other.
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
#include "core/model/text.h"
#include "make_view.h"

#define NOW 1000000

static struct world w;
static struct arena arena;
static struct why why;

static int set_up(void **state) {
    static const struct license lic[] = {{"matlab", 3}};
    static const char *const zen[] = {"zen"};
    world_init(&w);
    w.conf.licenses = lic, w.conf.n_licenses = 1;
    for (uint32_t i = 1; i <= 3; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%u", i);
        world_put_node(&w, &(struct node){.id = w.next_node++, .name = name, .cpus = 4, .mem_mb = 8000, .weight = 1, .base = NODE_UP,
                                          .features = zen, .n_features = i < 3});
    }
    world_part(&w, (struct part){.name = "debug", .all_nodes = true, .is_default = true, .max_time_min = 60, .default_time_min = 10,
                                 .priority_tier = 1});
    arena = (struct arena){0};
    return 0;
}

static int tear_down(void **state) {
    arena_fini(&arena);
    world_fini(&w);
    return 0;
}

/* Everything that starts, starts. */
static void start_all(int64_t now) {
    struct view v = world_view(&w);
    struct sched *s = sched_new(NULL);
    auto_arena a = {0};
    struct sched_plan p;
    sched_plan(s, &v, now, &a, &p);
    for (uint32_t i = 0; i < p.n_starts; i++)
        world_start(&w, &p.starts[i], now);
    sched_free(s);
}

static uint32_t fill(uint32_t nodes, uint32_t minutes) {
    uint32_t id = world_submit(&w, (struct job_spec){.n_tasks = nodes * 4, .n_tasks_given = nodes * 4, .min_nodes = nodes,
                                                     .max_nodes = nodes, .time_limit_min = minutes}, NOW);
    start_all(NOW);
    return id;
}

static void ask_at(uint32_t id, int64_t now) {
    struct view v = world_view(&w);
    arena_reset(&arena);
    assert_int_equal(sched_explain(&v, id, now, &arena, &why, NULL), 0);
}

static bool says(const char *kind, const char *part) {
    for (uint32_t i = 0; i < why.n_facts; i++) {
        if (strcmp(why.facts[i].kind, kind) == 0 && strstr(why.facts[i].text, part))
            return true;
    }
    return false;
}

/* "n[1-2] busy …" */
static const struct why_node *row_of(const char *name) {
    for (uint32_t i = 0; i < why.n_nodes; i++) {
        for (uint32_t k = 0; k < why.nodes[i].n_names; k++) {
            if (strcmp(why.nodes[i].names[k], name) == 0)
                return &why.nodes[i];
        }
    }
    return NULL;
}

static void node_is(const char *name, const char *kind, const char *part) {
    const struct why_node *r = row_of(name);
    assert_non_null(r);
    if (strcmp(r->kind, kind) != 0 || !strstr(r->text, part))
        fail_msg("%s: %s: %s", name, r->kind, r->text);
}

static void busy(void **state) {
    uint32_t long_one = fill(2, 30), id = world_submit(&w, (struct job_spec){.n_tasks = 8, .n_tasks_given = 8, .time_limit_min = 5}, NOW);
    ask_at(id, NOW + 60);
    assert_int_equal(why.reason, REASON_RESOURCES);
    node_is("n1", "busy", "0 of its 4 CPUs are free, and 1 are needed");
    assert_ptr_equal(row_of("n1"), row_of("n2"));
    assert_int_equal(row_of("n1")->until_unix, NOW + 1800);
    assert_int_equal(row_of("n1")->n_jobs, 1);
    assert_int_equal(row_of("n1")->jobs[0], long_one);
    node_is("n3", "free", "room now for 4 of its tasks");
    assert_int_equal(why.expected_unix, NOW + 1800);
    assert_int_equal(why.n_expected_nodes, 2);
    assert_true(says("nodes", "1 of its nodes have room for 4 tasks now; it needs 1 nodes and 8 tasks"));
    world_end(&w, long_one);
    ask_at(id, NOW + 60);
    assert_true(why.starts);
    assert_int_equal(why.expected_unix, NOW + 60);
}

static void ill_nodes(void **state) {
    fill(1, 30);
    uint32_t id = world_submit(&w, (struct job_spec){.n_tasks = 12, .n_tasks_given = 12}, NOW);
    ask_at(id, NOW);
    node_is("n2", "free", "");
    struct node n = *(const struct node *)cow_get(w.nodes.root, 2);
    struct drain d = {.owner = "admin", .user = "root", .text = "new disk"};
    n.drains = &d, n.n_drains = 1;
    world_put_node(&w, &n);
    ask_at(id, NOW);
    assert_int_equal(why.reason, REASON_NODES_UNAVAIL);
    node_is("n2", "drained", "new disk (by root)");
    n = *(const struct node *)cow_get(w.nodes.root, 2); /* the one before went with the put */
    n.n_drains = 0, n.base = NODE_DOWN, n.down_reason = "no answer";
    world_put_node(&w, &n);
    ask_at(id, NOW);
    node_is("n2", "down", "no answer");
    assert_true(says("nodes", "down, drained or not there"));
}

static void unfit_nodes(void **state) {
    fill(1, 30);
    struct job_more zen = {.features = "zen"};
    uint32_t id = world_submit(&w, (struct job_spec){.n_tasks = 8, .n_tasks_given = 8, .more = &zen}, NOW);
    ask_at(id, NOW);
    node_is("n3", "unfit", "doesn't have the features zen");
    id = world_submit(&w, (struct job_spec){.n_tasks = 12, .n_tasks_given = 12}, NOW);
    ask_at(id, NOW);
    node_is("n3", "free", "");
    id = world_submit(&w, (struct job_spec){.n_tasks = 1, .n_tasks_given = 1, .mem_node_mb = 9000}, NOW);
    ask_at(id, NOW);
    node_is("n3", "unfit", "it has 8000 MB of memory, and 9000 are needed");
    assert_true(says("nodes", "no set of its nodes could hold it"));
    const char *exc[] = {"n3"};
    id = world_submit(&w, (struct job_spec){.n_tasks = 12, .n_tasks_given = 12, .exc_nodes = exc, .n_exc_nodes = 1}, NOW);
    ask_at(id, NOW);
    node_is("n3", "left out", "--exclude names it");
}

static void kept(void **state) {
    fill(2, 30);
    uint32_t first = world_submit(&w, (struct job_spec){.n_tasks = 12, .n_tasks_given = 12, .time_limit_min = 5}, NOW);
    uint32_t id = world_submit(&w, (struct job_spec){.n_tasks = 1, .n_tasks_given = 1, .time_limit_min = 40}, NOW);
    ask_at(id, NOW);
    assert_int_equal(why.reason, REASON_PRIORITY);
    node_is("n3", "kept", "promised to job 2");
    assert_int_equal(row_of("n3")->jobs[0], first);
    assert_int_equal(row_of("n3")->until_unix, NOW + 1800);
    assert_int_equal(why.n_before_all, 1);
    assert_int_equal(why.before[0], first);
    uint32_t brief = world_submit(&w, (struct job_spec){.n_tasks = 1, .n_tasks_given = 1, .time_limit_min = 10}, NOW);
    ask_at(brief, NOW);
    assert_true(why.starts);
}

static void limits(void **state) {
    uint32_t id = world_submit(&w, (struct job_spec){.n_tasks = 1, .n_tasks_given = 1, .time_limit_min = 90}, NOW);
    ask_at(id, NOW);
    assert_int_equal(why.reason, REASON_PARTITION_TIME);
    assert_true(says("limit", "max_time is 1:00:00, and it asks for 1:30:00"));
    id = world_submit(&w, (struct job_spec){.n_tasks = 1, .n_tasks_given = 1, .time_limit_min = 60}, NOW);
    ask_at(id, NOW);
    assert_true(why.starts);
    id = world_submit(&w, (struct job_spec){.n_tasks = 4, .n_tasks_given = 4, .min_nodes = 4, .max_nodes = 4}, NOW);
    ask_at(id, NOW);
    assert_int_equal(why.reason, REASON_PARTITION_NODES);
    assert_true(says("limit", "partition debug has 3 nodes, and it asks for 4"));
    struct part p = *(const struct part *)cow_get(w.parts.root, 1);
    p.state = PART_DOWN;
    cow_put(&w.parts, 1, rec_pack(part_rec(), &p));
    ask_at(id, NOW);
    assert_true(says("partition", "partition debug is DOWN"));
}

static void gates(void **state) {
    uint32_t first = fill(1, 30);
    struct dep d = {.kind = DEP_AFTEROK, .job_id = first, .state = DEP_WAITING};
    uint32_t id = world_submit(&w, (struct job_spec){.deps = &d, .n_deps = 1}, NOW);
    ask_at(id, NOW);
    assert_true(says("dependency", "it waits for job 1 to end well (afterok), which is RUNNING"));
    d.state = DEP_DONE;
    id = world_submit(&w, (struct job_spec){.deps = &d, .n_deps = 1}, NOW);
    ask_at(id, NOW);
    assert_true(why.starts);
    d.state = DEP_NEVER;
    id = world_submit(&w, (struct job_spec){.deps = &d, .n_deps = 1}, NOW);
    ask_at(id, NOW);
    assert_int_equal(why.reason, REASON_DEP_NEVER);
    assert_true(says("dependency", "that can't come any more"));
    id = world_submit(&w, (struct job_spec){.hold = true}, NOW);
    ask_at(id, NOW);
    assert_true(says("hold", "it is held"));
    id = world_submit(&w, (struct job_spec){.begin_unix = NOW + 100}, NOW);
    ask_at(id, NOW);
    assert_true(says("begin", "--begin"));
    assert_int_equal(why.expected_unix, NOW + 100);
}

static void licences(void **state) {
    struct license_ask two = {"matlab", 2, false};
    struct job_more m = {.licenses = &two, .n_licenses = 1};
    uint32_t holder = world_submit(&w, (struct job_spec){.n_tasks = 1, .n_tasks_given = 1, .more = &m}, NOW);
    start_all(NOW);
    uint32_t id = world_submit(&w, (struct job_spec){.n_tasks = 1, .n_tasks_given = 1, .more = &m}, NOW);
    ask_at(id, NOW);
    assert_int_equal(why.reason, REASON_LICENSES);
    assert_true(says("licence", "licence matlab: it needs 2, 1 of 3 free"));
    assert_int_equal(why.facts[0].jobs[0], holder);
    world_end(&w, holder);
    ask_at(id, NOW);
    assert_true(why.starts);
}

static void arrays(void **state) {
    struct array_range r = {1, 5};
    struct job_more m = {.array_ranges = &r, .n_array_ranges = 1, .array_max_running = 2};
    uint32_t id = world_submit(&w, (struct job_spec){.n_tasks = 1, .n_tasks_given = 1, .more = &m}, NOW);
    start_all(NOW);
    ask_at(id, NOW);
    assert_true(says("array", "2 tasks of its array run, and its %2 allows no more"));
    struct view v = world_view(&w);
    assert_int_equal(sched_explain(&v, 99, NOW, &arena, &why, NULL), E_JOB_ID);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(busy), TEST(ill_nodes), TEST(unfit_nodes), TEST(kept), TEST(limits), TEST(gates),
                                       TEST(licences), TEST(arrays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
