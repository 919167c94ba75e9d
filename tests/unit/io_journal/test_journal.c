/* SPDX-License-Identifier: Apache-2.0
 *
 * One member: propose, commit, order, restart, lock, close with open proposals.
 */
#include "rig.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int setup(void **state) {
    struct rig *r = xnew(struct rig);
    char *dir = temp_dir();
    rig_init(r, dir, NULL);
    free(dir);
    *state = r;
    return 0;
}

static int teardown(void **state) {
    struct rig *r = *state;
    rig_fini(r);
    temp_remove(r->dir);
    free(r);
    return 0;
}

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void test_leads_soon_and_keeps_order(void **state) {
    struct rig *r = *state;
    uint64_t t0 = now_ms();
    rig_open(r);
    rig_lead(r);
    print_message("an empty log: leader after %d ms\n", (int)(now_ms() - t0));
    for (int i = 0; i < 1000; i++)
        rig_propose(r, (size_t)(8 + i % 300));
    rig_settle(r);
    assert_int_equal(r->refused, 0);
    rig_expect_values(r, 1, 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(r->log.p[i].n, 8 + i % 300);
    struct journal_stats s = journal_stats(r->j);
    assert_int_equal(s.role, JOURNAL_LEADER);
    assert_int_equal(s.leader_id, 1);
    assert_true(s.commit_index >= 1000 && s.last_index >= s.commit_index && s.log_entries >= 1000);
    assert_true(s.appends > 0 && s.appends < 1000 && s.append_max_us > 0);
    assert_false(s.disk_refuses);
    journal_stats_reset(r->j);
    assert_int_equal(journal_stats(r->j).appends, 0);
}

static void test_restart_replays_exactly(void **state) {
    struct rig *r = *state;
    rig_open(r);
    rig_lead(r);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 50; i++)
            rig_propose(r, 100);
        rig_settle(r);
        size_t n = r->log.n;
        struct seen *before = xmemdup(r->log.p, n * sizeof(*before));
        rig_reopen(r);
        rig_lead(r);
        assert_int_equal(r->log.n, n);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(r->log.p[i].index, before[i].index);
            assert_int_equal(r->log.p[i].term, before[i].term);
            assert_int_equal(r->log.p[i].value, before[i].value);
            assert_false(r->log.p[i].mine);
        }
        free(before);
    }
    assert_int_equal(r->refused, 0);
    rig_expect_values(r, 1, 200);
}

static void test_all_sizes_come_back_as_they_were(void **state) {
    struct rig *r = *state;
    rig_open(r);
    rig_lead(r);
    size_t sizes[] = {8, 9, 15, 16, 17, 4095, 4096, 4097, 65536, 1000003, 3 << 20};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        rig_propose(r, sizes[i]);
    rig_settle(r);
    assert_int_equal(r->refused, 0);
    rig_reopen(r);
    rig_lead(r);
    rig_expect_values(r, 1, ARRAY_LEN(sizes));
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        assert_int_equal(r->log.p[i].n, sizes[i]);
    rig_propose(r, (4 << 20) + 1);
    rig_settle(r);
    assert_int_equal(r->refused_code, E_TOO_BIG);
}

static void test_before_leadership_it_refuses(void **state) {
    struct rig *r = *state;
    rig_open(r);
    rig_propose(r, 8); /* the owner can't have heard of leadership */
    rig_settle(r);
    if (r->refused)
        assert_int_equal(r->refused_code, E_NOT_LEADER);
}

static void test_second_opener_is_refused(void **state) {
    struct rig *r = *state;
    rig_open(r);
    struct rig other;
    rig_init(&other, r->dir, r->loop);
    struct err e = {0};
    assert_int_equal(rig_try_open(&other, &e), E_EXISTS);
    assert_non_null(strstr(e.text, "in use by process"));
    /* another process as well */
    pid_t child = fork();
    if (child == 0) {
        struct rig c;
        rig_init(&c, r->dir, NULL);
        _exit(rig_try_open(&c, NULL) == E_EXISTS ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rig_close(r);
    rig_open(&other); /* and now it is free */
    rig_fini(&other);
}

static void test_close_answers_every_proposal(void **state) {
    struct rig *r = *state;
    rig_open(r);
    rig_lead(r);
    for (int i = 0; i < 5000; i++)
        rig_propose(r, 2000);
    rig_close(r); /* checks that all were answered */
    assert_true(r->refused == 0 || r->refused_code == E_STOPPING);
    uint64_t applied = r->applied;
    rig_forget(r);
    rig_open(r);
    rig_lead(r);
    assert_true(r->log.n >= applied);
    for (size_t i = 0; i < r->log.n; i++)
        assert_int_equal(r->log.p[i].value, i + 1);
}

static void close_in_the_middle(struct rig *r) {
    if (r->log.n != 10)
        return;
    struct journal *j = r->j;
    r->j = NULL;
    journal_close(j);
}

static bool is_closed(struct rig *r) {
    return !r->j;
}

static void test_close_from_within_a_callback(void **state) {
    struct rig *r = *state;
    rig_open(r);
    rig_lead(r);
    r->on_entry = close_in_the_middle;
    for (int i = 0; i < 100; i++)
        rig_propose(r, 50);
    rig_until(r, is_closed, 10000);
    assert_int_equal(r->applied + r->refused, 100);
    assert_true(r->log.n >= 10);
}

static void test_other_member_other_list(void **state) {
    struct rig *r = *state;
    rig_open(r);
    rig_lead(r);
    rig_close(r);
    struct err e = {0};
    r->conf.id = 2;
    assert_int_equal(rig_try_open(r, &e), E_CONFIG);
    r->conf.id = 1;
    struct journal_peer peers[2] = {{1, "127.0.0.1:1"}, {2, "127.0.0.1:2"}};
    r->conf.peers = peers;
    r->conf.n_peers = 2;
    assert_int_equal(rig_try_open(r, &e), E_CONFIG);
    assert_non_null(strstr(e.text, "a way to reach them"));
    r->conf.n_peers = 0;
    r->conf.dir = "/nonexistent/dir";
    assert_int_equal(rig_try_open(r, &e), E_SYS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_leads_soon_and_keeps_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restart_replays_exactly, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_sizes_come_back_as_they_were, setup, teardown),
        cmocka_unit_test_setup_teardown(test_before_leadership_it_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second_opener_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_answers_every_proposal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_from_within_a_callback, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_member_other_list, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
