/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner on small clusters, by hand: where jobs go, who waits and why, when they are expected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "make_view.h"

#define NOW 1000000

struct fix {
    struct world w;
    struct sched *s;
    struct arena a;
    struct sched_plan p;
};

/* n1…n4 of 8 CPUs, n5 of 16 (weight 10), n6 of 32 (weight 20), as the recorded cluster; partitions debug, long, gpu. */
static void fix_init(struct fix *f) {
    memset(f, 0, sizeof(*f));
    world_init(&f->w);
    world_node(&f->w, "n1", 8, 16000);
    world_node(&f->w, "n2", 8, 16000);
    world_node(&f->w, "n3", 8, 16000);
    world_node(&f->w, "n4", 8, 16000);
    uint32_t id = world_node(&f->w, "n5", 16, 256000);
    struct node n = *(const struct node *)cow_get(f->w.nodes.root, id);
    n.weight = 10;
    world_put_node(&f->w, &n);
    id = world_node(&f->w, "n6", 32, 64000);
    n = *(const struct node *)cow_get(f->w.nodes.root, id);
    n.weight = 20;
    world_put_node(&f->w, &n);
    static const char *const four[] = {"n1", "n2", "n3", "n4"};
    static const char *const six[] = {"n6"};
    world_part(&f->w, (struct part){.name = "debug", .is_default = true, .nodes = four, .n_nodes = 4,
                                    .max_time_min = 60, .default_time_min = 10, .priority_tier = 1});
    world_part(&f->w, (struct part){.name = "long", .all_nodes = true, .max_time_min = TIME_LIMIT_NONE,
                                    .priority_tier = 1});
    world_part(&f->w, (struct part){.name = "gpu", .nodes = six, .n_nodes = 1, .max_time_min = 1440,
                                    .default_time_min = 30, .priority_tier = 1});
    f->s = sched_new(NULL);
}

static void fix_fini(struct fix *f) {
    sched_free(f->s);
    arena_fini(&f->a);
    world_fini(&f->w);
}

static void plan(struct fix *f, int64_t now) {
    struct view v = world_view(&f->w);
    sched_plan(f->s, &v, now, &f->a, &f->p);
}

static void plan_and_start(struct fix *f, int64_t now) {
    plan(f, now);
    for (uint32_t i = 0; i < f->p.n_starts; i++)
        world_start(&f->w, &f->p.starts[i], now);
}

/* "n1:3 n2:1" */
static const char *where(const struct fix *f, uint32_t id) {
    static char text[256];
    const struct sched_start *st = start_in(&f->p, id);
    if (!st)
        return "waits";
    auto_str s = {0};
    for (uint32_t i = 0; i < st->n_nodes; i++)
        str_addf(&s, "%s%s:%u", i ? " " : "", st->nodes[i].name, st->nodes[i].n_tasks);
    strncpy(text, str_text(&s), sizeof(text) - 1);
    return text;
}

static uint32_t reason(const struct fix *f, uint32_t id) {
    const struct sched_note *n = note_in(&f->p, id);
    assert_non_null(n);
    return n->reason;
}

static int64_t expected(const struct fix *f, uint32_t id) {
    const struct sched_note *n = note_in(&f->p, id);
    assert_non_null(n);
    return n->expected_start_unix;
}

/* Where the recorded Slurm put the same requests, each on the idle cluster. */
static void places_as_recorded(void **state) {
    static const struct {
        struct job_spec spec;
        const char *where;
        uint32_t limit_min;
    } t[] = {
        {{.n_tasks = 1}, "n1:1", 10},
        {{.n_tasks = 9, .n_tasks_given = 9}, "n1:8 n2:1", 10},
        {{.n_tasks = 4, .min_nodes = 2, .max_nodes = 2, .n_tasks_given = 4}, "n1:3 n2:1", 10},
        {{.n_tasks = 8, .min_nodes = 2, .max_nodes = 2, .n_tasks_given = 8}, "n1:7 n2:1", 10},
        {{.n_tasks = 4, .min_nodes = 3, .max_nodes = 3, .n_tasks_given = 4}, "n1:2 n2:1 n3:1", 10},
        {{.n_tasks = 1, .cpus_per_task = 17, .partition = "long"}, "n6:1", TIME_LIMIT_NONE},
        {{.n_tasks = 1, .mem_node_mb = 20000, .partition = "long"}, "n5:1", TIME_LIMIT_NONE},
        {{.n_tasks = 40, .n_tasks_given = 40, .partition = "debug,long"}, "n1:8 n2:8 n3:8 n4:8 n5:8", 10},
        {{.n_tasks = 20, .n_tasks_given = 20, .partition = "debug,gpu"}, "n1:8 n2:8 n3:4", 10},
        {{.min_nodes = 2, .max_nodes = 9}, "n1:1 n2:1 n3:1 n4:1", 10},
        {{.mem_all = true}, "n1:1", 10},
        {{.n_tasks = 1, .partition = "gpu"}, "n6:1", 30},
        {{.n_tasks = 1, .time_limit_min = 7}, "n1:1", 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        struct fix f;
        fix_init(&f);
        uint32_t id = world_submit(&f.w, t[i].spec, NOW);
        plan(&f, NOW);
        assert_string_equal(where(&f, id), t[i].where);
        assert_int_equal(f.p.starts[0].time_limit_min, t[i].limit_min);
        assert_int_equal(f.p.n_notes, 0);
        fix_fini(&f);
    }
}

static void names_as_recorded(void **state) {
    static const char *const n12[] = {"n1", "n2"}, *const n13[] = {"n1", "n2", "n3"}, *const n1[] = {"n1"},
                            *const n156[] = {"n1", "n5", "n6"}, *const n3[] = {"n3"},
                            *const twice[] = {"n2", "n2"};
    static const struct {
        struct job_spec spec;
        const char *where;
    } t[] = {
        {{.req_nodes = twice, .n_req_nodes = 2, .n_tasks = 2}, "n2:2"},
        {{.req_nodes = n12, .n_req_nodes = 2, .min_nodes = 1, .max_nodes = 1}, "n1:1"},
        {{.req_nodes = n1, .n_req_nodes = 1, .min_nodes = 2, .max_nodes = 2}, "n1:1 n2:1"},
        {{.req_nodes = n13, .n_req_nodes = 3, .n_tasks = 1}, "n1:1"},
        {{.req_nodes = n3, .n_req_nodes = 1}, "n3:1"},
        {{.req_nodes = n3, .n_req_nodes = 1, .n_tasks = 9}, "n1:8 n3:1"}, /* n1 on top: block, in the order of names */
        {{.req_nodes = n156, .n_req_nodes = 3, .min_nodes = 3, .max_nodes = 3, .partition = "long"}, "n1:1 n5:1 n6:1"},
        {{.exc_nodes = n13, .n_exc_nodes = 3}, "n4:1"},
        {{.req_nodes = n1, .n_req_nodes = 1, .partition = "gpu,debug"}, "n1:1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        struct fix f;
        fix_init(&f);
        uint32_t id = world_submit(&f.w, t[i].spec, NOW);
        plan(&f, NOW);
        assert_string_equal(where(&f, id), t[i].where);
        fix_fini(&f);
    }
}

/* The tightest hole that holds it; fewest nodes before that. */
static void best_fit(void **state) {
    struct fix f;
    fix_init(&f);
    world_submit(&f.w, (struct job_spec){.n_tasks = 3, .cpus_per_task = 2}, NOW); /* n1: 2 left */
    plan_and_start(&f, NOW);
    uint32_t b = world_submit(&f.w, (struct job_spec){.n_tasks = 5}, NOW); /* n2: 3 left */
    plan_and_start(&f, NOW);
    assert_string_equal(where(&f, b), "n2:5");
    uint32_t c = world_submit(&f.w, (struct job_spec){.n_tasks = 2}, NOW);
    plan_and_start(&f, NOW);
    assert_string_equal(where(&f, c), "n1:2");
    uint32_t d = world_submit(&f.w, (struct job_spec){.n_tasks = 4}, NOW);
    plan_and_start(&f, NOW);
    assert_string_equal(where(&f, d), "n3:4");
    fix_fini(&f);
}

static void reasons_as_recorded(void **state) {
    static const struct {
        struct job_spec spec;
        uint32_t reason;
    } t[] = {
        {{.n_tasks = 9999, .n_tasks_given = 9999}, REASON_PARTITION_CONFIG},
        {{.n_tasks = 33, .n_tasks_given = 33}, REASON_PARTITION_CONFIG},
        {{.n_tasks = 999, .n_tasks_given = 999, .partition = "long"}, REASON_PARTITION_CONFIG},
        {{.min_nodes = 5, .max_nodes = 5}, REASON_PARTITION_NODES},
        {{.min_nodes = 7, .max_nodes = 7, .partition = "long"}, REASON_PARTITION_NODES},
        {{.time_limit_min = 61}, REASON_PARTITION_TIME},
        {{.time_limit_min = TIME_LIMIT_NONE}, REASON_PARTITION_TIME},
        {{.hold = true}, REASON_HELD_USER},
        {{.begin_unix = NOW + 100}, REASON_BEGIN_TIME},
        {{.partition = "nopart"}, REASON_PARTITION_GONE},
    };
    struct fix f;
    fix_init(&f);
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        world_submit(&f.w, t[i].spec, NOW);
    plan(&f, NOW);
    assert_int_equal(f.p.n_starts, 0);
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        assert_int_equal(reason(&f, (uint32_t)i + 1), t[i].reason);
    assert_int_equal(expected(&f, 9), NOW + 100);
    plan(&f, NOW + 100);
    assert_string_equal(where(&f, 9), "n1:1");
    fix_fini(&f);
}

static void dependencies(void **state) {
    static const struct dep wait[] = {{.kind = DEP_AFTEROK, .job_id = 9}},
                            never[] = {{.kind = DEP_AFTEROK, .job_id = 9, .state = DEP_NEVER},
                                       {.kind = DEP_AFTERANY, .job_id = 8}},
                            done[] = {{.kind = DEP_AFTEROK, .job_id = 9, .state = DEP_DONE}},
                            either[] = {{.kind = DEP_AFTEROK, .job_id = 9, .state = DEP_NEVER},
                                        {.kind = DEP_AFTERANY, .job_id = 8, .state = DEP_DONE, .is_or = true}},
                            neither[] = {{.kind = DEP_AFTEROK, .job_id = 9, .state = DEP_NEVER},
                                         {.kind = DEP_AFTERANY, .job_id = 8, .is_or = true}},
                            no_hope[] = {{.kind = DEP_AFTEROK, .job_id = 9, .state = DEP_NEVER},
                                         {.kind = DEP_AFTERANY, .job_id = 8, .state = DEP_NEVER, .is_or = true}};
    struct fix f;
    fix_init(&f);
    world_submit(&f.w, (struct job_spec){.deps = wait, .n_deps = 1}, NOW);
    world_submit(&f.w, (struct job_spec){.deps = never, .n_deps = 2}, NOW);
    world_submit(&f.w, (struct job_spec){.deps = done, .n_deps = 1}, NOW);
    world_submit(&f.w, (struct job_spec){.deps = either, .n_deps = 2}, NOW);
    world_submit(&f.w, (struct job_spec){.deps = neither, .n_deps = 2}, NOW);
    world_submit(&f.w, (struct job_spec){.deps = no_hope, .n_deps = 2}, NOW);
    plan(&f, NOW);
    assert_int_equal(reason(&f, 1), REASON_DEPENDENCY);
    assert_int_equal(reason(&f, 2), REASON_DEP_NEVER);
    assert_non_null(start_in(&f.p, 3));
    assert_non_null(start_in(&f.p, 4));
    assert_int_equal(reason(&f, 5), REASON_DEPENDENCY);
    assert_int_equal(reason(&f, 6), REASON_DEP_NEVER);
    fix_fini(&f);
}

/* One at a time, in the order of submission; another user's and another name's jobs don't count. */
static void singleton(void **state) {
    static const struct dep one[] = {{.kind = DEP_SINGLETON}};
    struct fix f;
    fix_init(&f);
    struct job_spec s = {.name = "train", .uid = 5, .deps = one, .n_deps = 1};
    world_submit(&f.w, s, NOW);
    world_submit(&f.w, s, NOW);
    s.uid = 6;
    world_submit(&f.w, s, NOW);
    s.name = "test";
    world_submit(&f.w, s, NOW);
    s.n_deps = 0;
    world_submit(&f.w, s, NOW); /* no singleton itself, but of the family of job 4 */
    plan_and_start(&f, NOW);
    assert_non_null(start_in(&f.p, 1));
    assert_int_equal(reason(&f, 2), REASON_DEPENDENCY);
    assert_non_null(start_in(&f.p, 3));
    assert_non_null(start_in(&f.p, 4));
    assert_non_null(start_in(&f.p, 5));
    world_completing(&f.w, 1);
    plan_and_start(&f, NOW + 1);
    assert_int_equal(reason(&f, 2), REASON_DEPENDENCY);
    world_end(&f.w, 1);
    plan_and_start(&f, NOW + 2);
    assert_non_null(start_in(&f.p, 2));
    /* one of the family that comes later and starts first, in the same pass, is waited for too */
    f.w.conf.weight_age = 1000;
    f.w.conf.max_age_secs = 1000;
    s = (struct job_spec){.name = "late", .deps = one, .n_deps = 1};
    uint32_t waits = world_submit(&f.w, s, NOW);
    s.n_deps = 0;
    s.nice = -100;
    uint32_t first = world_submit(&f.w, s, NOW);
    plan(&f, NOW + 3);
    assert_non_null(start_in(&f.p, first));
    assert_int_equal(reason(&f, waits), REASON_DEPENDENCY);
    fix_fini(&f);
}

static void set_node(struct fix *f, uint32_t id, uint32_t base, bool silent) {
    struct node n = *(const struct node *)cow_get(f->w.nodes.root, id);
    n.base = base;
    n.not_responding = silent;
    world_put_node(&f->w, &n);
}

static void drain_node(struct fix *f, uint32_t id) {
    struct node n = *(const struct node *)cow_get(f->w.nodes.root, id);
    struct drain d = {.owner = "admin", .text = "bad disk"};
    n.drains = &d;
    n.n_drains = 1;
    world_put_node(&f->w, &n);
}

static void nodes_that_take_no_work(void **state) {
    struct fix f;
    fix_init(&f);
    set_node(&f, 1, NODE_DOWN, false);
    set_node(&f, 2, NODE_UP, true);
    drain_node(&f, 3);
    static const char *const n3[] = {"n3"};
    world_submit(&f.w, (struct job_spec){.n_tasks = 1}, NOW);
    world_submit(&f.w, (struct job_spec){.req_nodes = n3, .n_req_nodes = 1}, NOW);
    world_submit(&f.w, (struct job_spec){.min_nodes = 2, .max_nodes = 2}, NOW);
    plan(&f, NOW);
    assert_string_equal(where(&f, 1), "n4:1");
    assert_int_equal(reason(&f, 2), REASON_NODES_UNAVAIL);
    assert_int_equal(reason(&f, 3), REASON_NODES_UNAVAIL);
    assert_string_equal(detail_in(&f.p, 2)->text, "ReqNodeNotAvail, May be reserved for other job");
    assert_string_equal(detail_in(&f.p, 3)->text, "Nodes required for job are DOWN, DRAINED or reserved for jobs in "
                                                  "higher priority partitions");
    set_node(&f, 2, NODE_UP, false);
    plan(&f, NOW);
    assert_string_equal(where(&f, 3), "n2:1 n4:1");
    set_node(&f, 2, NODE_DOWN, false);
    set_node(&f, 5, NODE_DOWN, false);
    static const char *const n25[] = {"n2", "n5"};
    world_submit(&f.w, (struct job_spec){.req_nodes = n25, .n_req_nodes = 2, .n_tasks = 2, .partition = "long"}, NOW);
    plan(&f, NOW);
    assert_string_equal(detail_in(&f.p, 4)->text, "ReqNodeNotAvail, UnavailableNodes:n[2,5]");
    fix_fini(&f);
}

/* The first that can't start waits for resources and is told when; those behind it wait for their turn. */
static void promise_and_backfill(void **state) {
    struct fix f;
    fix_init(&f);
    uint32_t a = world_submit(&f.w, (struct job_spec){.n_tasks = 16, .n_tasks_given = 16, .time_limit_min = 20}, NOW);
    plan_and_start(&f, NOW);
    assert_string_equal(where(&f, a), "n1:8 n2:8");
    uint32_t big = world_submit(&f.w, (struct job_spec){.n_tasks = 32, .n_tasks_given = 32, .time_limit_min = 30}, NOW);
    uint32_t too_long = world_submit(&f.w, (struct job_spec){.n_tasks = 1, .time_limit_min = 21}, NOW);
    uint32_t fits =
        world_submit(&f.w, (struct job_spec){.n_tasks = 16, .n_tasks_given = 16, .time_limit_min = 19}, NOW);
    uint32_t more = world_submit(&f.w, (struct job_spec){.n_tasks = 1, .time_limit_min = 5}, NOW);
    plan(&f, NOW + 60);
    assert_int_equal(reason(&f, big), REASON_RESOURCES);
    assert_int_equal(expected(&f, big), NOW + 1200);
    assert_int_equal(detail_in(&f.p, big)->n_nodes, 4);
    assert_string_equal(detail_in(&f.p, big)->nodes[3].name, "n4");
    assert_null(detail_in(&f.p, too_long));
    assert_int_equal(reason(&f, too_long), REASON_PRIORITY);
    assert_int_equal(expected(&f, too_long), 0);
    assert_string_equal(where(&f, fits), "n3:8 n4:8"); /* ends at the very second of the promise */
    assert_int_equal(reason(&f, more), REASON_PRIORITY);
    assert_int_equal(f.p.n_backfilled, 1);
    /* one second later it no longer fits before the promise */
    plan(&f, NOW + 61);
    assert_string_equal(where(&f, fits), "waits");
    fix_fini(&f);
}

/* A node that no promise needs may be taken for as long as one likes; so may what a promise leaves of its nodes. */
static void backfill_beside_a_promise(void **state) {
    struct fix f;
    fix_init(&f);
    world_submit(&f.w, (struct job_spec){.min_nodes = 3, .max_nodes = 3, .n_tasks = 15, .n_tasks_given = 15,
                                         .time_limit_min = 20}, NOW);
    plan_and_start(&f, NOW); /* n1:8 n2:6 n3:1 */
    uint32_t big = world_submit(&f.w,
                                (struct job_spec){.min_nodes = 3,
                                                  .max_nodes = 3,
                                                  .n_tasks = 18,
                                                  .cpus_per_task = 1,
                                                  .n_tasks_given = 18,
                                                  .time_limit_min = 60},
                                NOW);
    uint32_t rest = world_submit(&f.w, (struct job_spec){.n_tasks = 8, .time_limit_min = 60}, NOW);
    uint32_t seven = world_submit(&f.w, (struct job_spec){.n_tasks = 7, .time_limit_min = 60}, NOW);
    uint32_t six = world_submit(&f.w, (struct job_spec){.n_tasks = 6, .time_limit_min = 60}, NOW);
    plan(&f, NOW + 1);
    assert_int_equal(reason(&f, big), REASON_RESOURCES); /* 7 of n3, 8 of n4, 2 of n2: one short */
    assert_int_equal(expected(&f, big), NOW + 1200);     /* n1:8 n2:8 n3:2 */
    assert_string_equal(where(&f, rest), "n4:8");
    assert_int_equal(reason(&f, seven), REASON_PRIORITY);
    assert_string_equal(where(&f, six), "n3:6");
    fix_fini(&f);
}

/* A job past its limit is being killed; one that is completing is being cleaned up: both give back their nodes soon. */
static void overdue_and_completing(void **state) {
    struct fix f;
    fix_init(&f);
    uint32_t a = world_submit(&f.w, (struct job_spec){.n_tasks = 32, .n_tasks_given = 32, .time_limit_min = 1}, NOW);
    plan_and_start(&f, NOW);
    uint32_t b = world_submit(&f.w, (struct job_spec){.n_tasks = 32, .n_tasks_given = 32, .time_limit_min = 1}, NOW);
    plan(&f, NOW + 30);
    assert_int_equal(expected(&f, b), NOW + 60);
    plan(&f, NOW + 90);
    assert_int_equal(expected(&f, b), NOW + 91);
    world_completing(&f.w, a);
    plan(&f, NOW + 30);
    assert_int_equal(expected(&f, b), NOW + 31);
    struct job j = *(const struct job *)cow_get(f.w.jobs.root, a);
    struct job_node nodes[4];
    memcpy(nodes, j.nodes, sizeof(nodes));
    for (int i = 0; i < 4; i++)
        nodes[i].is_done = true; /* clean on every node, and the record not closed yet */
    j.nodes = nodes;
    world_put_job(&f.w, &j);
    plan(&f, NOW + 30);
    assert_non_null(start_in(&f.p, b));
    fix_fini(&f);
}

/* Jobs of a higher tier first, then priority, then id; a higher nice value comes later. */
static void order(void **state) {
    struct fix f;
    fix_init(&f);
    f.w.conf.weight_age = 1000;
    f.w.conf.max_age_secs = 1000;
    static const char *const four[] = {"n1", "n2", "n3", "n4"};
    world_part(&f.w,
               (struct part){.name = "urgent", .nodes = four, .n_nodes = 4, .max_time_min = 60, .priority_tier = 5});
    struct job_spec all = {.n_tasks = 32, .n_tasks_given = 32, .time_limit_min = 60};
    world_submit(&f.w, all, NOW);
    all.nice = 10;
    world_submit(&f.w, all, NOW);
    all.nice = -10;
    world_submit(&f.w, all, NOW);
    all.partition = "urgent";
    all.nice = 0;
    world_submit(&f.w, all, NOW + 500);
    const uint32_t turns[] = {4, 3, 1, 2};
    for (int i = 0; i < 4; i++) {
        int64_t now = NOW + 500 + i;
        plan(&f, now);
        assert_int_equal(f.p.n_starts, 1);
        assert_int_equal(f.p.starts[0].job_id, turns[i]);
        plan_and_start(&f, now);
        world_end(&f.w, turns[i]);
    }
    fix_fini(&f);
}

static void memory_counts(void **state) {
    struct fix f;
    fix_init(&f);
    static const char *const n1[] = {"n1"};
    struct job_spec on_n1 = {.req_nodes = n1, .n_req_nodes = 1, .mem_node_mb = 9000};
    world_submit(&f.w, on_n1, NOW);
    world_submit(&f.w, on_n1, NOW);
    on_n1.mem_node_mb = 0;
    world_submit(&f.w, on_n1, NOW);
    on_n1.mem_all = true;
    world_submit(&f.w, on_n1, NOW);
    plan(&f, NOW);
    assert_non_null(start_in(&f.p, 1));
    assert_int_equal(start_in(&f.p, 1)->nodes[0].mem_mb, 9000);
    assert_int_equal(reason(&f, 2), REASON_RESOURCES);
    assert_non_null(start_in(&f.p, 3)); /* no memory counted */
    assert_int_equal(start_in(&f.p, 3)->nodes[0].mem_mb, 0);
    assert_int_equal(reason(&f, 4), REASON_PRIORITY);
    fix_fini(&f);
    fix_init(&f);
    f.w.conf.def_mem_per_cpu_mb = 4000; /* so four CPUs fill a node of 16000 */
    uint32_t a = world_submit(&f.w, (struct job_spec){.n_tasks = 6}, NOW);
    uint32_t b = world_submit(&f.w, (struct job_spec){.mem_all = true}, NOW);
    plan(&f, NOW);
    assert_string_equal(where(&f, a), "n1:4 n2:2");
    assert_int_equal(start_in(&f.p, a)->nodes[1].mem_mb, 8000);
    assert_string_equal(where(&f, b), "n3:1");
    assert_int_equal(start_in(&f.p, b)->nodes[0].mem_mb, 16000);
    fix_fini(&f);
}

static void partition_states(void **state) {
    struct fix f;
    fix_init(&f);
    world_part(&f.w, (struct part){.name = "down", .all_nodes = true, .state = PART_DOWN});
    world_part(&f.w, (struct part){.name = "inactive", .all_nodes = true, .state = PART_INACTIVE});
    world_part(&f.w, (struct part){.name = "drain", .all_nodes = true, .state = PART_DRAIN});
    static const char *const later[] = {"n99"};
    world_part(&f.w, (struct part){.name = "later", .nodes = later, .n_nodes = 1});
    world_submit(&f.w, (struct job_spec){.partition = "down"}, NOW);
    world_submit(&f.w, (struct job_spec){.partition = "inactive"}, NOW);
    world_submit(&f.w, (struct job_spec){.partition = "drain"}, NOW);
    world_submit(&f.w, (struct job_spec){.partition = "later"}, NOW);
    world_submit(&f.w, (struct job_spec){.partition = "down,debug"}, NOW);
    plan(&f, NOW);
    assert_int_equal(reason(&f, 1), REASON_PARTITION_DOWN);
    assert_int_equal(reason(&f, 2), REASON_PARTITION_INACTIVE);
    assert_non_null(start_in(&f.p, 3));
    assert_int_equal(reason(&f, 4), REASON_NODES_UNAVAIL);
    assert_string_equal(start_in(&f.p, 5)->partition, "debug");
    world_node(&f.w, "n99", 2, 100); /* it comes, and the kept pictures notice */
    plan(&f, NOW);
    assert_string_equal(where(&f, 4), "n99:1");
    fix_fini(&f);
}

static void cut(void **state) {
    struct fix f;
    fix_init(&f);
    f.w.conf.max_jobs_per_cycle = 2;
    for (uint32_t i = 1; i <= 3; i++)
        world_submit(&f.w, (struct job_spec){.n_tasks = 1, .time_limit_min = i}, NOW);
    plan(&f, NOW);
    assert_true(f.p.is_cut);
    assert_int_equal(f.p.n_starts, 2);
    assert_int_equal(reason(&f, 3), REASON_PRIORITY);
    fix_fini(&f);
}

/* A job in partitions of two tiers: it takes its turn in the higher one, is promised something there, and may start in
 * the lower one at its turn there. Its own promise is not in its way, and goes with the start. */
static void two_tiers(void **state) {
    struct fix f;
    fix_init(&f);
    static const char *const n1[] = {"n1"}, *const n12[] = {"n1", "n2"};
    world_part(&f.w,
               (struct part){.name = "high", .nodes = n1, .n_nodes = 1, .priority_tier = 9, .default_time_min = 60});
    world_part(&f.w,
               (struct part){.name = "low", .nodes = n12, .n_nodes = 2, .priority_tier = 0, .default_time_min = 60});
    static const char *const n2[] = {"n2"};
    world_submit(&f.w, (struct job_spec){.n_tasks = 4, .n_tasks_given = 4, .partition = "high", .time_limit_min = 30},
                 NOW);
    world_submit(&f.w, (struct job_spec){.n_tasks = 8, .n_tasks_given = 8, .partition = "low", .req_nodes = n2,
                                         .n_req_nodes = 1, .time_limit_min = 90}, NOW);
    plan_and_start(&f, NOW);
    assert_string_equal(where(&f, 1), "n1:4");
    assert_string_equal(where(&f, 2), "n2:8");
    uint32_t id = world_submit(&f.w, (struct job_spec){.n_tasks = 8, .n_tasks_given = 8, .partition = "low,high"}, NOW);
    uint32_t never =
        world_submit(&f.w, (struct job_spec){.n_tasks = 12, .n_tasks_given = 12, .partition = "high,low"}, NOW);
    plan(&f, NOW + 60);
    assert_int_equal(reason(&f, id), REASON_RESOURCES);
    assert_int_equal(expected(&f, id), NOW + 1800);
    assert_string_equal(detail_in(&f.p, id)->nodes[0].name, "n1");
    /* too large for high, second in low; the first to be promised something there */
    assert_int_equal(reason(&f, never), REASON_PRIORITY);
    assert_int_equal(expected(&f, never), NOW + 5400);
    world_end(&f.w, 2);
    plan(&f, NOW + 61);
    assert_string_equal(where(&f, id), "n2:8");
    assert_string_equal(start_in(&f.p, id)->partition, "low");
    fix_fini(&f);
}

/* With its promise out of the way a job of several tiers can take what was promised to it. */
static void own_promise(void **state) {
    struct fix f;
    fix_init(&f);
    static const char *const n1[] = {"n1"}, *const n12[] = {"n1", "n2"};
    world_part(&f.w,
               (struct part){.name = "high", .nodes = n1, .n_nodes = 1, .priority_tier = 9, .default_time_min = 60});
    world_part(&f.w,
               (struct part){.name = "low", .nodes = n12, .n_nodes = 2, .priority_tier = 0, .default_time_min = 60});
    world_submit(&f.w, (struct job_spec){.n_tasks = 2, .n_tasks_given = 2, .partition = "high", .time_limit_min = 30},
                 NOW);
    plan_and_start(&f, NOW);
    uint32_t id = world_submit(&f.w, (struct job_spec){.n_tasks = 8, .n_tasks_given = 8, .partition = "high,low",
                                                       .time_limit_min = 60}, NOW);
    static const char *const n2[] = {"n2"}; /* the next one leaves 2 CPUs of n2; n1 has 6 */
    world_submit(&f.w, (struct job_spec){.n_tasks = 6, .n_tasks_given = 6, .partition = "debug", .req_nodes = n2,
                                         .n_req_nodes = 1, .time_limit_min = 60}, NOW);
    plan(&f, NOW + 60);
    assert_string_equal(where(&f, 3), "n2:6");
    assert_string_equal(where(&f, id), "n1:6 n2:2");
    fix_fini(&f);
}

/* What didn't fit beside a promise may fit for the one whose promise it is, though both ask the same. */
static void same_ask_and_own_promise(void **state) {
    struct fix f;
    fix_init(&f);
    static const char *const n1[] = {"n1"}, *const n2[] = {"n2"}, *const n12[] = {"n1", "n2"};
    world_part(&f.w,
               (struct part){.name = "high", .nodes = n1, .n_nodes = 1, .priority_tier = 9, .default_time_min = 60});
    world_part(&f.w,
               (struct part){.name = "low", .nodes = n12, .n_nodes = 2, .priority_tier = 0, .default_time_min = 60});
    struct job_spec s = {.n_tasks = 4, .n_tasks_given = 4, .partition = "low", .time_limit_min = 30};
    s.req_nodes = n1, s.n_req_nodes = 1;
    world_submit(&f.w, s, NOW);
    s.req_nodes = n2, s.time_limit_min = 90;
    world_submit(&f.w, s, NOW);
    plan_and_start(&f, NOW);
    s = (struct job_spec){.n_tasks = 8, .n_tasks_given = 8, .partition = "low", .time_limit_min = 60};
    uint32_t before = world_submit(&f.w, s, NOW);
    s.partition = "high,low";
    uint32_t id = world_submit(&f.w, s, NOW);
    plan(&f, NOW);
    assert_int_equal(expected(&f, before), NOW + 5400); /* n1 is promised to the other from +30 to +90 minutes */
    assert_string_equal(where(&f, id), "n1:4 n2:4");
    fix_fini(&f);
}

/* Two promises on one node, the second begins before the first: both count for whoever wants to run across them. */
static void promises_share_a_node(void **state) {
    struct fix f;
    fix_init(&f);
    sched_free(f.s);
    f.s = sched_new(&(struct sched_params){.promises = 2});
    static const char *const n1[] = {"n1"}, *const n2[] = {"n2"}, *const n12[] = {"n1", "n2"};
    struct job_spec on_1 = {.req_nodes = n1, .n_req_nodes = 1, .n_tasks = 3, .n_tasks_given = 3, .time_limit_min = 10};
    world_submit(&f.w, on_1, NOW);
    on_1.time_limit_min = 20;
    world_submit(&f.w, on_1, NOW);
    world_submit(&f.w, (struct job_spec){.req_nodes = n2, .n_req_nodes = 1, .n_tasks = 8, .n_tasks_given = 8,
                                         .time_limit_min = 15}, NOW);
    plan_and_start(&f, NOW);
    on_1.n_tasks = on_1.n_tasks_given = on_1.min_nodes = on_1.max_nodes = 1;
    on_1.cpus_per_task = 6, on_1.time_limit_min = 30;
    uint32_t a = world_submit(&f.w, on_1, NOW); /* n1: 6 CPUs from +20 */
    uint32_t b = world_submit(
        &f.w,
        (struct job_spec){.req_nodes = n12, .n_req_nodes = 2, .min_nodes = 2, .max_nodes = 2, .time_limit_min = 60},
        NOW); /* n1: 1 CPU from +15 */
    on_1.cpus_per_task = 2, on_1.time_limit_min = 60;
    uint32_t two = world_submit(&f.w, on_1, NOW);
    on_1.cpus_per_task = 1;
    uint32_t one = world_submit(&f.w, on_1, NOW);
    plan(&f, NOW);
    assert_int_equal(expected(&f, a), NOW + 1200);
    assert_int_equal(expected(&f, b), NOW + 900);
    assert_string_equal(where(&f, two), "waits");
    assert_string_equal(where(&f, one), "n1:1");
    fix_fini(&f);
}

/* n10 comes behind n2, whoever registered first; so does the batch host. */
static void order_of_names(void **state) {
    struct fix f;
    fix_init(&f);
    world_node(&f.w, "m10", 2, 0);
    world_node(&f.w, "m2", 2, 0);
    static const char *const m[] = {"m10", "m2"};
    world_part(&f.w, (struct part){.name = "m", .nodes = m, .n_nodes = 2});
    f.w.cluster.conf = NULL; /* before the first configuration */
    uint32_t one = world_submit(&f.w, (struct job_spec){.partition = "m"}, NOW);
    uint32_t two = world_submit(&f.w, (struct job_spec){.partition = "m", .n_tasks = 3}, NOW);
    plan(&f, NOW);
    assert_string_equal(where(&f, one), "m2:1");
    assert_string_equal(where(&f, two), "m2:1 m10:2");
    assert_int_equal(start_in(&f.p, one)->time_limit_min, TIME_LIMIT_NONE);
    fix_fini(&f);
}

static void spread_tasks(void **state) {
    struct job_node n[3] = {{.cpus = 8}, {.cpus = 8}, {.cpus = 8}};
    sched_spread_tasks(10, 1, n, 3);
    assert_int_equal(n[0].n_tasks, 8);
    assert_int_equal(n[1].n_tasks, 1);
    assert_int_equal(n[2].n_tasks, 1);
    sched_spread_tasks(5, 4, n, 3);
    assert_int_equal(n[0].n_tasks, 2);
    assert_int_equal(n[1].n_tasks, 2);
    assert_int_equal(n[2].n_tasks, 1);
    sched_spread_tasks(26, 1, n, 3); /* two more than there are CPUs */
    assert_int_equal(n[0].n_tasks, 9);
    assert_int_equal(n[1].n_tasks, 9);
    assert_int_equal(n[2].n_tasks, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_as_recorded),
        cmocka_unit_test(names_as_recorded),
        cmocka_unit_test(best_fit),
        cmocka_unit_test(reasons_as_recorded),
        cmocka_unit_test(dependencies),
        cmocka_unit_test(singleton),
        cmocka_unit_test(nodes_that_take_no_work),
        cmocka_unit_test(promise_and_backfill),
        cmocka_unit_test(backfill_beside_a_promise),
        cmocka_unit_test(overdue_and_completing),
        cmocka_unit_test(order),
        cmocka_unit_test(memory_counts),
        cmocka_unit_test(partition_states),
        cmocka_unit_test(cut),
        cmocka_unit_test(two_tiers),
        cmocka_unit_test(own_promise),
        cmocka_unit_test(same_ask_and_own_promise),
        cmocka_unit_test(promises_share_a_node),
        cmocka_unit_test(order_of_names),
        cmocka_unit_test(spread_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
