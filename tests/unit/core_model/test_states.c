/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/model/view.h"

static void job_states(void **state) {
    static const struct {
        const char *text;
        uint32_t want;
    } ok[] = {{"PENDING", JOB_PENDING},   {"pd", JOB_PENDING},    {"r", JOB_RUNNING},
              {"Completed", JOB_COMPLETED}, {"CD", JOB_COMPLETED}, {"oom", JOB_OUT_OF_MEMORY},
              {"node_fail", JOB_NODE_FAIL}, {"to", JOB_TIMEOUT},   {"completing", JOB_N_STATES},
              {"cg", JOB_N_STATES},       {"CF", JOB_N_STATES + 1}, {"configuring", JOB_N_STATES + 1}};
    for (size_t i = 0; i < ARRAY_LEN(ok); i++) {
        uint32_t got = 99;
        assert_int_equal(job_state_parse(ok[i].text, &got), 0);
        assert_int_equal(got, ok[i].want);
    }
    static const char *const bad[] = {"", "bogus", "P", "PEND", "PENDING ", "completed,"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint32_t got = 99;
        assert_int_equal(job_state_parse(bad[i], &got), E_STATE_NAME);
        assert_int_equal(got, 99);
    }
    for (uint32_t s = 0; s < JOB_N_STATES; s++) {
        uint32_t got = 99;
        assert_int_equal(job_state_parse(job_state_name(s), &got), 0);
        assert_int_equal(got, s);
        assert_int_equal(job_state_parse(job_state_compact(s), &got), 0);
        assert_int_equal(got, s);
        assert_int_equal(job_state_is_end(s), s >= JOB_COMPLETED);
    }
    assert_false(job_state_is_end(JOB_N_STATES));
    assert_string_equal(job_state_name(77), "UNKNOWN");
    assert_string_equal(job_state_compact(77), "?");
}

static void job_moves(void **state) {
    assert_true(job_may_move(JOB_PENDING, JOB_RUNNING));
    assert_true(job_may_move(JOB_PENDING, JOB_CANCELLED));
    assert_false(job_may_move(JOB_PENDING, JOB_COMPLETED));
    assert_false(job_may_move(JOB_PENDING, JOB_TIMEOUT));
    assert_false(job_may_move(JOB_PENDING, JOB_PENDING));
    assert_true(job_may_move(JOB_RUNNING, JOB_PENDING));
    assert_true(job_may_move(JOB_COMPLETED, JOB_PENDING));
    assert_false(job_may_move(JOB_COMPLETED, JOB_RUNNING));
    assert_false(job_may_move(JOB_COMPLETED, JOB_FAILED));
    for (uint32_t s = JOB_COMPLETED; s < JOB_REQUEUED; s++) {
        assert_true(job_may_move(JOB_RUNNING, s));
        assert_true(job_may_move(JOB_SUSPENDED, s));
    }
    assert_false(job_may_move(JOB_N_STATES, JOB_PENDING));
    assert_false(job_may_move(JOB_PENDING, 40));
}

static void job_shown(void **state) {
    struct job j = {.state = JOB_RUNNING, .configuring = true};
    assert_string_equal(job_shown_state(&j), "CONFIGURING");
    assert_string_equal(job_shown_state_compact(&j), "CF");
    assert_true(job_holds_nodes(&j));
    j.configuring = false;
    assert_string_equal(job_shown_state(&j), "RUNNING");
    assert_string_equal(job_shown_state_compact(&j), "R");
    j = (struct job){.state = JOB_TIMEOUT, .completing = true};
    assert_string_equal(job_shown_state(&j), "COMPLETING");
    assert_string_equal(job_shown_state_compact(&j), "CG");
    assert_false(job_is_over(&j));
    assert_true(job_holds_nodes(&j));
    j.completing = false;
    assert_string_equal(job_shown_state(&j), "TIMEOUT");
    assert_string_equal(job_shown_state_compact(&j), "TO");
    assert_true(job_is_over(&j));
}

static void reasons(void **state) {
    assert_string_equal(job_reason_word(REASON_NONE), "None");
    assert_string_equal(job_reason_word(REASON_DEP_NEVER), "DependencyNeverSatisfied");
    assert_string_equal(job_reason_word(REASON_HELD_USER), "JobHeldUser");
    assert_string_equal(job_reason_word(REASON_BEGIN_TIME), "BeginTime");
    assert_string_equal(job_reason_word(REASON_PARTITION_CONFIG), "PartitionConfig");
    assert_string_equal(job_reason_word(REASON_PARTITION_NODES), "PartitionNodeLimit");
    assert_string_equal(job_reason_word(9999), "Unknown");
}

/* The words that Slurm 26.05 printed for nodes in these states. */
static void node_words(void **state) {
    static const struct drain cause = {.owner = "admin"};
#define DRAINED .drains = &cause, .n_drains = 1
    static const struct {
        struct node n;
        const char *full, *compact, *upper;
        bool takes_work;
    } rows[] = {
        {{.base = NODE_UP, .cpus = 8}, "idle", "idle", "IDLE", true},
        {{.base = NODE_UP, .cpus = 8, .alloc_cpus = 3, .n_jobs = 1}, "mixed", "mix", "MIXED", true},
        {{.base = NODE_UP, .cpus = 8, .alloc_cpus = 8, .n_jobs = 2}, "allocated", "alloc", "ALLOCATED", true},
        {{.base = NODE_UP, .cpus = 8, .alloc_cpus = 8, .n_jobs = 2, DRAINED}, "draining", "drng", "ALLOCATED+DRAIN",
         false},
        {{.base = NODE_UP, .cpus = 8, .alloc_cpus = 1, .n_jobs = 1, DRAINED}, "draining", "drng", "MIXED+DRAIN", false},
        {{.base = NODE_UP, .cpus = 8, DRAINED}, "drained", "drain", "IDLE+DRAIN", false},
        {{.base = NODE_UP, .cpus = 8, .n_jobs = 1, .n_completing = 1, .alloc_cpus = 2, DRAINED}, "draining", "drng",
         "IDLE+COMPLETING+DRAIN", false},
        {{.base = NODE_UP, .cpus = 8, .n_jobs = 1, .n_completing = 1, .alloc_cpus = 2}, "completing", "comp",
         "IDLE+COMPLETING", true},
        {{.base = NODE_UP, .cpus = 8, .n_jobs = 2, .n_completing = 1, .alloc_cpus = 2}, "mixed", "mix",
         "MIXED+COMPLETING", true},
        {{.base = NODE_UP, .cpus = 8, .n_jobs = 1, .n_completing = 1, .not_responding = true}, "completing*", "comp*",
         "IDLE+COMPLETING+NOT_RESPONDING", false},
        {{.base = NODE_UP, .cpus = 8, .n_jobs = 1, .alloc_cpus = 1, .not_responding = true}, "mixed*", "mix*",
         "MIXED+NOT_RESPONDING", false},
        {{.base = NODE_UP, .cpus = 8, .not_responding = true}, "idle*", "idle*", "IDLE+NOT_RESPONDING", false},
        {{.base = NODE_DOWN, .cpus = 8}, "down", "down", "DOWN", false},
        {{.base = NODE_DOWN, .cpus = 8, .not_responding = true}, "down*", "down*", "DOWN+NOT_RESPONDING", false},
        {{.base = NODE_DOWN, .cpus = 8, .not_responding = true, DRAINED}, "drained*", "drain*",
         "DOWN+DRAIN+NOT_RESPONDING", false},
        {{.base = NODE_UNKNOWN, .cpus = 8, .not_responding = true}, "unknown*", "unk*", "UNKNOWN+NOT_RESPONDING",
         false},
        {{.base = NODE_UP}, "idle", "idle", "IDLE", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char full[24], compact[24], upper[64];
        assert_string_equal(node_shown_state(&rows[i].n, false, full), rows[i].full);
        assert_string_equal(node_shown_state(&rows[i].n, true, compact), rows[i].compact);
        assert_string_equal(node_state_upper(&rows[i].n, upper), rows[i].upper);
        assert_int_equal(node_takes_work(&rows[i].n), rows[i].takes_work);
    }
}

static void partitions(void **state) {
    static const char *const names[] = {"n1", "n3"};
    struct node n = {.name = "n1"}, other = {.name = "n2"};
    struct part by_name = {.nodes = names, .n_nodes = 2}, all = {.all_nodes = true}, none = {0};
    assert_true(part_has_node(&by_name, &n));
    assert_false(part_has_node(&by_name, &other));
    assert_true(part_has_node(&all, &other));
    assert_false(part_has_node(&none, &n));
    assert_string_equal(part_state_name(PART_UP), "UP");
    assert_string_equal(part_state_name(PART_INACTIVE), "INACTIVE");
    assert_string_equal(part_state_name(9), "UNKNOWN");
}

static void views(void **state) {
    struct cow_epochs *ep = cow_epochs_new();
    struct cow_table nodes, parts;
    cow_init(&nodes, ep);
    cow_init(&parts, ep);
    cow_put(&nodes, 1, rec_pack(node_rec(), &(struct node){.id = 1, .name = "n1"}));
    cow_put(&nodes, 300, rec_pack(node_rec(), &(struct node){.id = 300, .name = "n300"}));
    cow_put(&parts, 1, rec_pack(part_rec(), &(struct part){.id = 1, .name = "main"}));
    struct view v = {.nodes = nodes.root, .parts = parts.root};
    assert_int_equal(view_find_node(&v, "n300")->id, 300);
    assert_null(view_find_node(&v, "n3"));
    assert_int_equal(view_find_part(&v, "main")->id, 1);
    assert_null(view_find_part(&v, "mai"));
    cow_fini(&nodes);
    cow_fini(&parts);
    cow_epochs_free(ep);
}

/* Each record goes through its encoding with every field set: a row that is described wrongly shows here. */
static void records(void **state) {
    auto_arena a = {0};
    auto_buf b = {0};
    static const char *const args[] = {"a", "b c"};
    static const struct dep deps[] = {{DEP_AFTEROK, 12, DEP_NEVER, false}, {DEP_AFTERANY, 13, 0, true}};
    static const struct job_rlimit limits[] = {{"NOFILE", UINT64_MAX}};
    struct job_spec spec = {.name = "x",      .uid = 1000,       .args = args, .n_args = 2,
                            .deps = deps,     .n_deps = 2,       .nice = -5,   .rlimits = limits,
                            .n_rlimits = 1,   .script_hash = (const uint8_t *)"\0\1", .n_script_hash = 2};
    struct job_node jn = {.node_id = 7, .name = "n7", .cpus = 2, .mem_mb = 100};
    struct job job = {.id = 9, .spec = &spec, .nodes = &jn, .n_nodes = 1, .submit_ms = 12345, .ended_index = 1ull << 40};
    rec_encode(job_rec(), &job, &b);
    struct job back;
    assert_int_equal(rec_decode(job_rec(), b.p, b.n, &a, &back, NULL), 0);
    assert_true(rec_same(job_rec(), &job, &back));
    assert_string_equal(back.spec->args[1], "b c");
    assert_int_equal(back.spec->deps[1].job_id, 13);
    assert_int_equal(back.spec->nice, -5);
    assert_string_equal(back.nodes[0].name, "n7");
    assert_int_equal(back.ended_index, 1ull << 40);
    const struct rec_desc *const all[] = {dep_rec(),      job_rlimit_rec(), job_spec_rec(), job_node_rec(),
                                          job_rec(),      drain_rec(),      node_rec(),     selector_rec(),
                                          part_rec(),     node_overlay_rec(), rconf_rec(),  member_rec(),
                                          cluster_rec()};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        for (size_t k = 0; k < all[i]->n_fields; k++) {
            for (size_t m = 0; m < k; m++)
                assert_int_not_equal(all[i]->field[k].tag, all[i]->field[m].tag);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_states), cmocka_unit_test(job_moves),  cmocka_unit_test(job_shown),
        cmocka_unit_test(reasons),    cmocka_unit_test(node_words), cmocka_unit_test(partitions),
        cmocka_unit_test(views),      cmocka_unit_test(records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
