/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine, driven by commands alone, with all invariants checked after each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/state/state.h"

struct rig {
    struct state *s;
    struct applied r;
    uint64_t index;
    int64_t now_ms;
    struct answer answer;
    struct arena arena;
};

static void rig_init(struct rig *g) {
    *g = (struct rig){.s = state_new(), .now_ms = 1000000};
    state_set_checking(g->s, true);
}

static void rig_fini(struct rig *g) {
    applied_fini(&g->r);
    arena_fini(&g->arena);
    state_free(g->s);
}

static int act(struct rig *g, enum command c, const uint8_t *token, const void *cmd) {
    struct command_head h = {.command = c, .uid = 1000, .now_ms = g->now_ms += 10, .token = token};
    auto_buf b = {0};
    command_encode(&h, cmd, &b);
    arena_reset(&g->arena);
    assert_int_equal(state_apply(g->s, ++g->index, b.p, b.n, &g->r, NULL), 0);
    g->answer = (struct answer){0};
    assert_int_equal(rec_decode(answer_rec(), g->r.answer.p, g->r.answer.n, &g->arena, &g->answer, NULL), 0);
    return g->r.code;
}

static const struct job *job_of(struct rig *g, uint32_t id) {
    struct view v;
    state_peek(g->s, &v);
    return view_job(&v, id);
}

static const struct node *node_of(struct rig *g, uint32_t id) {
    struct view v;
    state_peek(g->s, &v);
    return view_node(&v, id);
}

static uint32_t add_node(struct rig *g, const char *name, uint32_t cpus, uint64_t mem_mb) {
    struct node n = {.name = name, .cpus = cpus, .mem_mb = mem_mb, .public_key = (const uint8_t *)name,
                     .n_public_key = (uint32_t)strlen(name)};
    assert_int_equal(act(g, CMD_NODE_REGISTER, NULL, &(struct cmd_node_register){.node = &n}), 0);
    return g->answer.node_id;
}

static int submit(struct rig *g, uint32_t id, const uint8_t *token, const struct dep *deps, uint32_t n_deps) {
    struct job_spec spec = {.name = "j", .uid = 1000, .n_tasks = 1, .deps = deps, .n_deps = n_deps};
    return act(g, CMD_SUBMIT, token, &(struct cmd_submit){.job_id = id, .sluid = "s1", .spec = &spec});
}

static int start(struct rig *g, uint32_t id, uint32_t start_no, uint32_t node, uint32_t cpus, uint32_t second_node) {
    struct job_node nodes[2] = {{.node_id = node, .cpus = cpus, .mem_mb = 10, .n_tasks = 1},
                                {.node_id = second_node, .cpus = cpus, .mem_mb = 10, .n_tasks = 1}};
    struct job_start st = {id, start_no, "p", nodes, second_node ? 2u : 1u, 60};
    assert_int_equal(act(g, CMD_START, NULL, &(struct cmd_start){&st, 1}), 0);
    return -(int)g->answer.items[0].error;
}

static int done(struct rig *g, uint32_t id, uint32_t start_no, uint32_t node, uint32_t status) {
    return act(g, CMD_NODE_DONE, NULL,
               &(struct cmd_node_done){.job_id = id, .start_no = start_no, .node_id = node, .wait_status = status});
}

static void a_job_runs_and_ends(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n1", 4, 100);
    assert_int_equal(submit(&g, 1, NULL, NULL, 0), 0);
    assert_int_equal(start(&g, 1, 1, n, 3, 0), 0);
    assert_int_equal(node_of(&g, n)->alloc_cpus, 3);
    assert_true(job_of(&g, 1)->configuring);
    assert_int_equal(submit(&g, 2, NULL, NULL, 0), 0);
    assert_int_equal(start(&g, 2, 1, n, 2, 0), E_NODES_UNAVAIL);
    assert_int_equal(act(&g, CMD_RUNNING, NULL, &(struct cmd_running){1, 1}), 0);
    assert_false(job_of(&g, 1)->configuring);
    assert_int_equal(done(&g, 1, 1, n, 3 << 8), 0);
    assert_true(job_is_over(job_of(&g, 1)));
    assert_int_equal(job_of(&g, 1)->state, JOB_FAILED);
    assert_int_equal(job_of(&g, 1)->wait_status, 3 << 8);
    assert_int_equal(node_of(&g, n)->alloc_cpus, 0);
    /* said again, and of an earlier start: changes nothing */
    uint64_t before = state_digest(g.s);
    struct view v;
    state_peek(g.s, &v);
    int64_t ended = job_of(&g, 1)->end_ms;
    assert_int_equal(done(&g, 1, 1, n, 0), 0);
    assert_int_equal(job_of(&g, 1)->end_ms, ended);
    assert_int_equal(job_of(&g, 1)->state, JOB_FAILED);
    assert_true(before != 0);
    assert_int_equal(start(&g, 2, 1, n, 2, 0), 0);
    rig_fini(&g);
}

static void a_start_has_the_number_that_was_planned(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n1", 4, 100);
    assert_int_equal(submit(&g, 1, NULL, NULL, 0), 0);
    assert_int_equal(start(&g, 1, 0, n, 1, 0), E_STALE);
    assert_int_equal(start(&g, 1, 2, n, 1, 0), E_STALE);
    assert_int_equal(start(&g, 1, 1, n, 1, n), E_NODES_UNAVAIL); /* one node twice */
    assert_int_equal(start(&g, 1, 1, n, 1, 0), 0);
    assert_int_equal(act(&g, CMD_UNDO, NULL, &(struct cmd_undo){.job_id = 1, .start_no = 1, .text = "no"}), 0);
    assert_int_equal(done(&g, 1, 1, n, 0), 0);
    assert_int_equal(start(&g, 1, 1, n, 1, 0), E_STALE);
    assert_int_equal(start(&g, 1, 2, n, 1, 0), 0);
    rig_fini(&g);
}

static int add_bytes(void *arg, const void *p, size_t n, struct err *e) {
    buf_add(arg, p, n);
    return 0;
}

/* Whoever came by a snapshot must judge later entries as those who saw all: here of a job that runs by one of its
 * alternatives, comes back to the queue, and sees the other one end. */
static void a_snapshot_knows_who_waits_for_whom(void **state) {
    struct rig g, h;
    struct dep deps[] = {{.kind = DEP_AFTERANY, .job_id = 1}, {.kind = DEP_AFTEROK, .job_id = 2, .is_or = true}};
    auto_buf snap = {0};
    struct view v;
    rig_init(&g);
    rig_init(&h);
    uint32_t n = add_node(&g, "n1", 4, 100);
    submit(&g, 1, NULL, NULL, 0);
    submit(&g, 2, NULL, NULL, 0);
    submit(&g, 3, NULL, deps, 2);
    assert_int_equal(start(&g, 2, 1, n, 1, 0), 0);
    uint32_t one = 1;
    assert_int_equal(act(&g, CMD_CANCEL, NULL, &(struct cmd_cancel){&one, 1}), 0);
    assert_int_equal(start(&g, 3, 1, n, 1, 0), 0);
    state_view(g.s, &v);
    assert_int_equal(state_snapshot_write(&v, add_bytes, &snap, NULL), 0);
    state_view_end(&v);
    assert_int_equal(state_restore(h.s, snap.p, snap.n, NULL), 0);
    h.index = g.index;
    h.now_ms = g.now_ms;
    struct rig *both[] = {&g, &h};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(act(both[i], CMD_UNDO, NULL, &(struct cmd_undo){.job_id = 3, .start_no = 1, .text = "no"}), 0);
        assert_int_equal(done(both[i], 3, 1, n, 0), 0);
        assert_int_equal(done(both[i], 2, 1, n, 0), 0);
        assert_int_equal(job_of(both[i], 3)->deps[1].state, DEP_DONE);
    }
    assert_int_equal(state_digest(g.s), state_digest(h.s));
    rig_fini(&g);
    rig_fini(&h);
}

static void a_start_is_all_or_nothing(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t a = add_node(&g, "a", 4, 100), b = add_node(&g, "b", 4, 100);
    submit(&g, 1, NULL, NULL, 0);
    assert_int_equal(start(&g, 1, 1, a, 2, b), 0);
    /* b could not launch: the whole start is taken back, a is asked to clean up */
    assert_int_equal(act(&g, CMD_UNDO, NULL, &(struct cmd_undo){1, 1, "b said no"}), 0);
    assert_int_equal(job_of(&g, 1)->state, JOB_PENDING);
    assert_true(job_of(&g, 1)->completing);
    assert_int_equal(node_of(&g, a)->alloc_cpus, 2);
    assert_int_equal(start(&g, 1, 2, a, 2, 0), E_STALE); /* not before it is clean everywhere */
    done(&g, 1, 1, b, 0);
    assert_int_equal(node_of(&g, b)->alloc_cpus, 0);
    done(&g, 1, 1, a, 0);
    assert_int_equal(node_of(&g, a)->alloc_cpus, 0);
    assert_false(job_of(&g, 1)->completing);
    assert_int_equal(job_of(&g, 1)->n_nodes, 0);
    assert_int_equal(job_of(&g, 1)->launch_failures, 1);
    assert_int_equal(start(&g, 1, 2, a, 2, 0), 0);
    /* a late word of the first start does not touch the second */
    done(&g, 1, 1, a, 9);
    assert_int_equal(job_of(&g, 1)->state, JOB_RUNNING);
    rig_fini(&g);
}

static void cancel_and_limit(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t a = add_node(&g, "a", 8, 100), b = add_node(&g, "b", 8, 100);
    for (uint32_t id = 1; id <= 3; id++)
        submit(&g, id, NULL, NULL, 0);
    const uint32_t ids[] = {1, 2, 99};
    start(&g, 2, 1, a, 1, b);
    act(&g, CMD_RUNNING, NULL, &(struct cmd_running){2, 1});
    assert_int_equal(act(&g, CMD_CANCEL, NULL, &(struct cmd_cancel){ids, 3}), 0);
    assert_int_equal(g.answer.items[2].error, -E_JOB_ID);
    assert_true(job_is_over(job_of(&g, 1)));
    assert_int_equal(job_of(&g, 1)->end_uid, 1001);
    assert_string_equal(job_shown_state(job_of(&g, 2)), "COMPLETING");
    done(&g, 2, 1, a, 0); /* exits 0 on SIGTERM: stays cancelled */
    assert_string_equal(job_shown_state(job_of(&g, 2)), "COMPLETING");
    done(&g, 2, 1, b, 0);
    assert_string_equal(job_shown_state(job_of(&g, 2)), "CANCELLED");
    start(&g, 3, 1, a, 1, 0);
    act(&g, CMD_RUNNING, NULL, &(struct cmd_running){3, 1});
    struct run_id run = {3, 1};
    act(&g, CMD_TIMEOUT, NULL, &(struct cmd_timeout){&run, 1});
    done(&g, 3, 1, a, 0); /* LC-01: TIMEOUT however it dies */
    assert_string_equal(job_shown_state(job_of(&g, 3)), "TIMEOUT");
    assert_int_equal(job_of(&g, 3)->reason, REASON_TIME_LIMIT);
    act(&g, CMD_PURGE, NULL, &(struct cmd_purge){ids, 2});
    assert_null(job_of(&g, 1));
    assert_non_null(job_of(&g, 3));
    rig_fini(&g);
}

static void dependencies(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 8, 100);
    struct dep ok = {.kind = DEP_AFTEROK, .job_id = 1}, any = {.kind = DEP_AFTERANY, .job_id = 1};
    assert_int_equal(submit(&g, 5, NULL, &ok, 1), E_DEPENDENCY);
    submit(&g, 1, NULL, NULL, 0);
    assert_int_equal(submit(&g, 2, NULL, &ok, 1), 0);
    assert_int_equal(submit(&g, 3, NULL, &any, 1), 0);
    assert_int_equal(job_of(&g, 2)->deps[0].state, DEP_WAITING);
    start(&g, 1, 1, n, 1, 0);
    done(&g, 1, 1, n, 256);
    assert_int_equal(job_of(&g, 2)->deps[0].state, DEP_NEVER);
    assert_int_equal(job_of(&g, 3)->deps[0].state, DEP_DONE);
    assert_int_equal(submit(&g, 4, NULL, &ok, 1), 0); /* DEP-04: the parent is already over */
    assert_int_equal(job_of(&g, 4)->deps[0].state, DEP_NEVER);
    rig_fini(&g);
}

static void a_repeat_gets_the_first_answer(void **state) {
    struct rig g;
    rig_init(&g);
    const uint8_t token[16] = "0123456789abcdef", other[16] = "0123456789abcdeg";
    assert_int_equal(submit(&g, 7, token, NULL, 0), 0);
    assert_int_equal(g.answer.job_id, 7);
    assert_int_equal(submit(&g, 8, token, NULL, 0), 0);
    assert_int_equal(g.answer.job_id, 7);
    assert_null(job_of(&g, 8));
    assert_int_equal(g.r.events.n, 0);
    assert_int_equal(submit(&g, 8, other, NULL, 0), 0);
    assert_int_equal(g.answer.job_id, 8);
    g.now_ms += 3600 * 1000; /* an hour later it is forgotten */
    submit(&g, 9, (const uint8_t *)"................", NULL, 0);
    assert_int_equal(submit(&g, 10, token, NULL, 0), 0);
    assert_int_equal(g.answer.job_id, 10);
    rig_fini(&g);
}

static void a_name_belongs_to_its_key(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t id = add_node(&g, "n1", 4, 100);
    struct node thief = {.name = "n1", .cpus = 64, .public_key = (const uint8_t *)"x", .n_public_key = 1};
    assert_int_equal(act(&g, CMD_NODE_REGISTER, NULL, &(struct cmd_node_register){.node = &thief}), E_NODE_KEY);
    assert_int_equal(node_of(&g, id)->cpus, 4);
    assert_int_equal(add_node(&g, "n1", 8, 100), id);
    assert_int_equal(node_of(&g, id)->cpus, 8);
    rig_fini(&g);
}

static int to_buf(void *arg, const void *p, size_t n, struct err *e) {
    buf_add(arg, p, n);
    return 0;
}

static void snapshot(struct rig *g, struct buf *out) {
    struct view v;
    state_view(g->s, &v);
    assert_int_equal(state_snapshot_write(&v, to_buf, out, NULL), 0);
    state_view_end(&v);
}

/* A member that gets a snapshot from another changes its state while readers are at work. */
static void views_outlive_their_state(void **state) {
    struct rig g;
    struct view first, second;
    auto_buf bytes = {0};
    rig_init(&g);
    submit(&g, 1, NULL, NULL, 0);
    state_view(g.s, &first);
    submit(&g, 2, NULL, NULL, 0);
    state_view(g.s, &second);
    snapshot(&g, &bytes);
    struct state *next = state_new();
    assert_int_equal(state_restore(next, bytes.p, bytes.n, NULL), 0);
    state_free(g.s);
    g.s = next;
    submit(&g, 3, NULL, NULL, 0);
    assert_non_null(view_job(&first, 1));
    assert_null(view_job(&first, 2));
    state_view_end(&first);
    assert_int_equal(view_job(&second, 2)->id, 2);
    assert_null(view_job(&second, 3));
    state_view_end(&second);
    rig_fini(&g);
}

static void random_step(struct rig *g, uint64_t *seed, uint32_t n_nodes) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *seed >> 24;
    struct view v;
    state_peek(g->s, &v);
    uint32_t next = v.counters.next_job_id, id = next > 1 ? 1 + (uint32_t)(x >> 8) % (next - 1) : 1;
    const struct job *j = view_job(&v, id);
    uint32_t no = j ? j->start_no : 0;
    uint32_t node = 1 + (uint32_t)(x >> 16) % n_nodes, second = 1 + (uint32_t)(x >> 20) % n_nodes;
    struct dep dep = {.kind = 1 + (uint32_t)(x >> 12) % 4, .job_id = id};
    struct run_id run = {id, no};
    uint8_t token[16] = {(uint8_t)(x >> 28), 1};
    switch (x % 10) {
    case 0:
    case 1: submit(g, next, x & 256 ? token : NULL, &dep, (x >> 9) % 3 == 0); break;
    case 2:
    case 3: start(g, id, no + 1, node, 1 + (uint32_t)(x >> 25) % 3, node == second ? 0 : second); break;
    case 4: act(g, CMD_RUNNING, NULL, &(struct cmd_running){id, no}); break;
    case 5:
    case 6: done(g, id, no, node, (x >> 11) % 3 << 8); break;
    case 7:
        if ((x >> 30) % 4 == 0)
            act(g, CMD_CANCEL, NULL, &(struct cmd_cancel){&id, 1});
        else
            act(g, CMD_UNDO, NULL, &(struct cmd_undo){id, no, "no"});
        break;
    case 8:
        if ((x >> 30) % 2)
            act(g, CMD_TIMEOUT, NULL, &(struct cmd_timeout){&run, 1});
        else
            act(g, CMD_HOLD, NULL, &(struct cmd_hold){&id, 1, (uint32_t)(x >> 33) % 3, true});
        break;
    case 9:
        if ((x >> 30) % 4 == 0)
            act(g, CMD_PURGE, NULL, &(struct cmd_purge){&id, 1});
        else
            act(g, CMD_NODE_STATE, NULL, &(struct cmd_node_state){node, x & 1024, (x & 7680) == 0, "r"});
        break;
    }
}

/* Whatever comes, in whatever order, the invariants hold; and a state restored from a snapshot goes on exactly like the
 * one that was never stopped. */
static void random_commands(void **state) {
    for (uint64_t round = 1; round <= 20; round++) {
        struct rig g, h;
        rig_init(&g);
        add_node(&g, "a", 4, 100);
        add_node(&g, "b", 4, 100);
        add_node(&g, "c", 2, 15);
        uint64_t seed = round * 77;
        for (int i = 0; i < 400; i++)
            random_step(&g, &seed, 3);
        auto_buf first = {0}, second = {0};
        snapshot(&g, &first);
        h = (struct rig){.s = state_new(), .index = g.index, .now_ms = g.now_ms};
        struct err e = {0};
        if (state_restore(h.s, first.p, first.n, &e))
            fail_msg("%s", e.text);
        state_set_checking(h.s, true);
        assert_true(state_digest(g.s) == state_digest(h.s));
        uint64_t seed_g = seed, seed_h = seed;
        for (int i = 0; i < 200; i++) {
            random_step(&g, &seed_g, 3);
            random_step(&h, &seed_h, 3);
            assert_true(state_digest(g.s) == state_digest(h.s));
        }
        buf_clear(&first);
        snapshot(&g, &first);
        snapshot(&h, &second);
        assert_int_equal(first.n, second.n);
        assert_memory_equal(first.p, second.p, first.n);
        rig_fini(&g);
        rig_fini(&h);
    }
}

static void damaged_snapshots_are_refused(void **state) {
    struct rig g;
    rig_init(&g);
    add_node(&g, "a", 4, 100);
    submit(&g, 1, NULL, NULL, 0);
    auto_buf b = {0};
    snapshot(&g, &b);
    for (size_t i = 0; i < b.n; i++) {
        struct state *s = state_new();
        b.p[i] ^= 0x10;
        assert_true(state_restore(s, b.p, b.n, NULL) < 0);
        b.p[i] ^= 0x10;
        state_free(s);
        s = state_new();
        assert_true(state_restore(s, b.p, i, NULL) < 0);
        state_free(s);
    }
    rig_fini(&g);
}

static void unknown_entries_stop_the_member(void **state) {
    struct rig g;
    rig_init(&g);
    struct err e = {0};
    assert_int_equal(state_apply(g.s, 1, "\x02\x01\x00\x00\x00\x00", 6, &g.r, &e), E_VERSION);
    assert_int_equal(state_apply(g.s, 1, "\x01\x7f\x00\x00\x00\x00", 6, &g.r, &e), E_VERSION);
    assert_int_equal(state_apply(g.s, 1, "\x01\x03\x00", 3, &g.r, &e), E_CORRUPT);
    assert_int_equal(state_apply(g.s, 1, "", 0, &g.r, &e), E_CORRUPT);
    assert_int_equal(state_index(g.s), 0);
    rig_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_and_ends),
        cmocka_unit_test(a_start_has_the_number_that_was_planned),
        cmocka_unit_test(a_snapshot_knows_who_waits_for_whom),
        cmocka_unit_test(a_start_is_all_or_nothing),
        cmocka_unit_test(cancel_and_limit),
        cmocka_unit_test(dependencies),
        cmocka_unit_test(a_repeat_gets_the_first_answer),
        cmocka_unit_test(a_name_belongs_to_its_key),
        cmocka_unit_test(random_commands),
        cmocka_unit_test(views_outlive_their_state),
        cmocka_unit_test(damaged_snapshots_are_refused),
        cmocka_unit_test(unknown_entries_stop_the_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
