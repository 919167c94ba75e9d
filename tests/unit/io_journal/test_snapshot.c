/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots: at exactly one moment, the manifest later, entries meanwhile, the log trimmed, the start short.
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

static void propose_all(struct rig *r, uint64_t n, size_t bytes) {
    for (uint64_t i = 0; i < n; i++) {
        rig_propose(r, bytes);
        if (i % 64 == 63)
            rig_settle(r);
    }
    rig_settle(r);
    assert_int_equal(r->refused, 0);
}

static bool is_stored(struct rig *r) {
    return journal_stats(r->j).snapshot_index > 0;
}

static bool is_asked(struct rig *r) {
    return r->snapshot_index > 0;
}

static void test_on_demand_and_restart(void **state) {
    struct rig *r = *state;
    rig_open(r);
    journal_snapshot_now(r->j); /* of nothing: waits for a first entry */
    rig_lead(r);
    propose_all(r, 100, 64);
    rig_until(r, is_stored, 10000);
    propose_all(r, 10, 64);
    rig_reopen(r);
    rig_lead(r);
    assert_int_equal(r->restores, 1);
    rig_expect_values(r, 1, 110);
    propose_all(r, 10, 64);
    rig_reopen(r);
    rig_lead(r);
    assert_int_equal(r->restores, 2);
    rig_expect_values(r, 1, 120);
}

/* The owner takes its time; a thousand entries go by; the manifest is of the moment of the call. */
static void test_entries_go_on_meanwhile(void **state) {
    struct rig *r = *state;
    rig_open(r);
    rig_lead(r);
    r->answer_snapshots = false;
    propose_all(r, 50, 100);
    journal_snapshot_now(r->j);
    rig_until(r, is_asked, 10000);
    uint64_t index = r->snapshot_index;
    size_t values = r->snapshot_values;
    propose_all(r, 1000, 100);
    assert_int_equal(r->snapshots, 1);
    assert_int_equal(journal_stats(r->j).snapshot_index, 0);
    journal_snapshot_now(r->j); /* one at a time: the wish waits */
    propose_all(r, 10, 100);
    assert_int_equal(r->snapshots, 1);
    journal_snapshot_done(r->j, index + 7, "wrong", 5); /* not the moment that was asked for */
    rig_answer_snapshot(r);
    rig_until(r, is_stored, 10000);
    assert_true(journal_stats(r->j).snapshot_index >= index);
    rig_until(r, is_asked, 10000); /* and now it comes */
    rig_reopen(r);
    rig_lead(r);
    assert_int_equal(r->restores, 1);
    assert_int_equal(r->restored_index, index);
    assert_true(values >= 50);
    rig_expect_values(r, 1, 1060);
}

static void fail_it(struct rig *r) {
    uint64_t index = r->snapshot_index;
    r->snapshot_index = 0;
    journal_snapshot_failed(r->j, index);
}

static void test_owner_that_fails_is_asked_again(void **state) {
    struct rig *r = *state;
    rig_open(r);
    rig_lead(r);
    r->answer_snapshots = false;
    propose_all(r, 50, 100);
    journal_snapshot_now(r->j);
    rig_until(r, is_asked, 10000);
    fail_it(r);
    propose_all(r, 50, 100);
    journal_snapshot_now(r->j); /* don't wait for the timer */
    rig_until(r, is_asked, 10000);
    assert_int_equal(r->snapshot_index, r->last_index); /* of now, not of the first attempt */
    size_t values = r->snapshot_values;
    propose_all(r, 50, 100);
    rig_answer_snapshot(r);
    rig_until(r, is_stored, 10000);
    propose_all(r, 5, 100);
    rig_reopen(r);
    rig_lead(r);
    assert_int_equal(values, 100);
    assert_int_equal(r->restores, 1);
    rig_expect_values(r, 1, 155);
    r->answer_snapshots = true;
    journal_snapshot_now(r->j);
    propose_all(r, 5, 100);
    rig_reopen(r);
    rig_lead(r);
    rig_expect_values(r, 1, 160);
}

static void test_close_with_an_open_snapshot(void **state) {
    struct rig *r = *state;
    rig_open(r);
    rig_lead(r);
    r->answer_snapshots = false;
    propose_all(r, 50, 100);
    journal_snapshot_now(r->j);
    rig_until(r, is_asked, 10000);
    rig_reopen(r);
    rig_lead(r);
    rig_expect_values(r, 1, 50);
    assert_int_equal(r->restores, 0);
}

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void test_log_stays_small(void **state) {
    struct rig *r = *state;
    r->conf.snapshot_entries = 2000;
    r->conf.keep_entries = 500;
    rig_open(r);
    rig_lead(r);
    uint64_t most = 0;
    for (int round = 0; round < 40; round++) {
        propose_all(r, 1000, 400);
        uint64_t n = dir_bytes(r->dir);
        most = MAX(most, n);
    }
    struct journal_stats s = journal_stats(r->j);
    print_message("40,000 entries of 400 bytes: %u snapshots, directory at most %d MB, log %d entries, gap %d us\n",
                  r->snapshots, (int)(most >> 20), (int)s.log_entries, (int)s.gap_max_us);
    assert_true(r->snapshots >= 10);
    assert_true(s.log_entries < 5000);
    /* 3 segments of 8 MiB ahead, the reserve, two manifests of this very owner, and some 5,000 entries */
    assert_true(most < (60u << 20));
    assert_true(dir_count(r->dir, "snapshot-") <= 4);
    rig_close(r);
    rig_forget(r);
    uint64_t t0 = now_ms();
    rig_open(r);
    rig_lead(r);
    print_message("leader again after %d ms\n", (int)(now_ms() - t0));
    assert_int_equal(r->restores, 1);
    rig_expect_values(r, 1, 40000);
}

static void test_restore_that_fails_stops_the_opening(void **state) {
    struct rig *r = *state;
    rig_open(r);
    rig_lead(r);
    propose_all(r, 20, 64);
    journal_snapshot_now(r->j);
    rig_until(r, is_stored, 10000);
    rig_close(r);
    rig_forget(r);
    r->fail_restore = true;
    struct err e = {0};
    assert_int_equal(rig_try_open(r, &e), E_CORRUPT);
    assert_non_null(strstr(e.text, "the state's file is gone"));
    r->fail_restore = false;
    rig_open(r);
    rig_lead(r);
    rig_expect_values(r, 1, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_on_demand_and_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_entries_go_on_meanwhile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_owner_that_fails_is_asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_with_an_open_snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_stays_small, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restore_that_fails_stops_the_opening, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
