/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends: asked for, at the limit, by a node that is gone; and what becomes of a job afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/sql/sql.h"
#include "rig.h"

static void short_times(struct rconf *conf, struct arena *a) {
    conf->kill_wait_secs = 7;
    conf->min_job_age_secs = 60;
    conf->heartbeat_timeout_secs = 30;
}

static uint32_t running(struct rig *g, const struct rig_job *j) {
    uint32_t id = rig_submit(g, j);
    assert_int_not_equal(id, 0);
    rig_until(g, id, "RUNNING", 3000);
    return id;
}

/* ---- terminate ---- */

static void terminate_is_repeated_until_the_report(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    uint32_t id = running(&g, &(struct rig_job){0});
    assert_int_equal(rig_cancel(&g, 1000, id), 0);
    rig_run(&g, 100);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "COMPLETING");
    assert_int_equal(n->n_terminates, 1);
    assert_string_equal(n->why, "CANCELLED");
    assert_int_equal(n->kill_wait_secs, 7);
    rig_run(&g, 50000);
    assert_in_range(n->n_terminates, 3, 5);
    assert_int_equal(rig_report(&g, n, id, 1, 9), 0);
    rig_until(&g, id, "CANCELLED", 100);
    uint32_t n_terminates = n->n_terminates;
    assert_int_equal(rig_job(&g, id)->end_uid, 1001);
    assert_int_equal(rig_job(&g, id)->wait_status, 9);
    rig_run(&g, 50000);
    assert_int_equal(n->n_terminates, n_terminates);
    assert_int_equal(rig_cancel(&g, 1000, id), E_JOB_DONE);
    assert_true(rig_is_free(&g));
    rig_fini(&g);
}

static struct vanswer knows_no_run(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    return (struct vanswer){.code = m == WIRE_Agent_Terminate ? E_NOT_FOUND : 0};
}

static void nothing_there_is_a_report(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", knows_no_run, NULL);
    uint32_t id = running(&g, &(struct rig_job){0});
    assert_int_equal(rig_cancel(&g, 1000, id), 0);
    rig_until(&g, id, "CANCELLED", 1000);
    assert_int_equal(n->n_terminates, 1);
    assert_true(rig_is_free(&g));
    rig_fini(&g);
}

struct outage {
    uint32_t n_lost;
};

static struct vanswer is_away(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    struct outage *o = ctx;
    if (m != WIRE_Agent_Terminate || !o->n_lost)
        return (struct vanswer){0};
    o->n_lost--;
    return (struct vanswer){.code = E_UNREACHABLE};
}

static void an_agent_that_is_away_is_told_later(void **state) {
    struct rig g;
    struct outage o = {6};
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", is_away, &o);
    uint32_t id = running(&g, &(struct rig_job){0});
    assert_int_equal(rig_cancel(&g, 1000, id), 0);
    rig_run(&g, 2000);
    assert_in_range(n->n_terminates, 3, 4); /* 0.25, 0.5, 1, 2 … s */
    rig_run(&g, 30000);
    assert_int_equal(o.n_lost, 0);
    assert_int_equal(rig_report(&g, n, id, 1, 15), 0);
    assert_int_equal(rig_job(&g, id)->state, JOB_CANCELLED);
    rig_fini(&g);
}

/* One node of two is away: the other is not kept waiting for it, nor it for the other. */
static void a_node_that_answers_does_not_delay_another(void **state) {
    struct rig g;
    struct outage o = {2};
    rig_init(&g, short_times);
    struct vscript *a = rig_node(&g, "a", NULL, NULL), *b = rig_node(&g, "b", is_away, &o);
    uint32_t id = running(&g, &(struct rig_job){.min_nodes = 2, .n_tasks = 2});
    assert_int_equal(rig_cancel(&g, 1000, id), 0);
    rig_run(&g, 1500);
    assert_in_range(b->n_terminates, 3, 4);
    assert_int_equal(rig_report(&g, a, id, 1, 15), 0);
    assert_int_equal(vctl_node(g.c, "a")->alloc_cpus, 0); /* free before the other is */
    assert_string_equal(job_shown_state(rig_job(&g, id)), "COMPLETING");
    assert_int_equal(rig_report(&g, b, id, 1, 15), 0);
    assert_int_equal(rig_job(&g, id)->state, JOB_CANCELLED);
    rig_fini(&g);
}

/* ---- limits ---- */

/* LC-01: TIMEOUT however the script dies, also when a fail-over lies between the signal and the end. */
static void at_the_limit(uint32_t wait_status, bool fail_over) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    uint32_t id = running(&g, &(struct rig_job){.time_limit_min = 2});
    int64_t start_ms = rig_job(&g, id)->start_ms;
    rig_run(&g, 118000);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    assert_int_equal(n->n_terminates, 0);
    rig_until(&g, id, "COMPLETING", 5000);
    const struct job *j = rig_job(&g, id);
    assert_int_equal(j->state, JOB_TIMEOUT);
    assert_int_equal(j->reason, REASON_TIME_LIMIT);
    assert_in_range(j->kill_ms - start_ms, 120000, 122000);
    rig_run(&g, 100);
    assert_string_equal(n->why, "DUE TO TIME LIMIT");
    if (fail_over) {
        rig_restart(&g, true);
        rig_run(&g, 1000);
        assert_int_equal(n->n_terminates, 2);
    }
    assert_int_equal(rig_report(&g, n, id, 1, wait_status), 0);
    assert_int_equal(rig_job(&g, id)->state, JOB_TIMEOUT);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "TIMEOUT");
    rig_fini(&g);
}

static void a_time_limit_means_timeout(void **state) {
    const uint32_t how[] = {0, 1 << 8, 15, 9};
    for (size_t i = 0; i < ARRAY_LEN(how); i++) {
        at_the_limit(how[i], false);
        at_the_limit(how[i], true);
    }
}

/* ---- nodes that are gone ---- */

static void a_silent_node_is_down_and_its_jobs_have_failed(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *a = rig_node(&g, "a", NULL, NULL), *b = rig_node(&g, "b", NULL, NULL);
    uint32_t both = running(&g, &(struct rig_job){.min_nodes = 2, .n_tasks = 2});
    uint32_t other = running(&g, &(struct rig_job){.req_node = "a"});
    g.is_silent[1] = true;
    rig_run(&g, 29000 - 5000);
    assert_int_equal(vctl_node(g.c, "b")->base, NODE_UP);
    rig_run(&g, 13000);
    assert_int_equal(vctl_node(g.c, "b")->base, NODE_DOWN);
    assert_string_equal(vctl_node(g.c, "b")->down_reason, "Not responding");
    const struct job *j = rig_job(&g, both);
    assert_int_equal(j->state, JOB_NODE_FAIL);
    assert_int_equal(j->reason, REASON_NODE_DOWN);
    assert_string_equal(job_shown_state(j), "COMPLETING");
    assert_string_equal(a->why, "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS");
    assert_int_equal(b->n_terminates, 0);
    assert_int_equal(rig_report(&g, a, both, 1, 15), 0);
    j = rig_job(&g, both);
    assert_string_equal(job_shown_state(j), "NODE_FAIL");
    assert_int_equal(j->n_nodes, 2); /* sacct shows where it was */
    assert_string_equal(job_shown_state(rig_job(&g, other)), "RUNNING");
    /* LC-04: back with the run that it kept: told to end it; then idle and clean */
    g.is_silent[1] = false;
    assert_int_equal(b->n_runs, 1);
    rig_run(&g, 15000);
    assert_int_equal(b->n_runs, 0);
    assert_true(g.n_told_to_end >= 1);
    const struct node *n = vctl_node(g.c, "b");
    char text[64];
    assert_string_equal(node_state_upper(n, text), "IDLE");
    assert_null(n->down_reason);
    assert_int_equal(n->n_jobs + n->alloc_cpus + (uint32_t)n->alloc_mem_mb, 0);
    rig_fini(&g);
}

/* HA-01: what runs on a node that was given up keeps its share, there, until it is gone. */
static void a_node_that_is_not_clean_takes_no_work(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "a", NULL, NULL);
    uint32_t lost = running(&g, &(struct rig_job){.cpus_per_task = 4});
    uint32_t next = rig_submit(&g, &(struct rig_job){.cpus_per_task = 4});
    g.is_silent[0] = true;
    rig_until(&g, lost, "NODE_FAIL", 60000);
    g.is_silent[0] = false;
    g.ends_slowly = true;
    rig_run(&g, 40000);
    assert_int_equal(vctl_node(g.c, "a")->base, NODE_UP);
    assert_false(node_takes_work(vctl_node(g.c, "a")));
    assert_true(g.n_told_to_end >= 1);
    assert_int_equal(n->n_launches, 1);
    g.ends_slowly = false;
    rig_until(&g, next, "RUNNING", 12000);
    /* a run that comes from nowhere on a node that is up */
    n->runs[n->n_runs++] = (struct run_ref){4711, 1, RUN_RUNNING};
    g.ends_slowly = true;
    rig_run(&g, 12000);
    assert_false(node_takes_work(vctl_node(g.c, "a")));
    assert_string_equal(job_shown_state(rig_job(&g, next)), "RUNNING");
    g.ends_slowly = false;
    rig_run(&g, 12000);
    assert_true(node_takes_work(vctl_node(g.c, "a")));
    rig_fini(&g);
}

/* The one who said that the node is down said no more. */
static void a_down_node_is_cleaned_by_whoever_leads(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    rig_node(&g, "a", NULL, NULL);
    uint32_t id = running(&g, &(struct rig_job){0});
    g.is_silent[0] = true;
    vlog_refuse(g.log, CMD_NODE_DONE, E_FULL, UINT32_MAX);
    rig_run(&g, 40000);
    assert_int_equal(vctl_node(g.c, "a")->base, NODE_DOWN);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    rig_restart(&g, true);
    vlog_refuse(g.log, 0, 0, 0);
    rig_run(&g, 20000); /* it gets a full timeout to speak up */
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    rig_until(&g, id, "NODE_FAIL", 15000);
    assert_true(rig_is_free(&g));
    rig_fini(&g);
}

static void late(void *arg, int code, const struct err *why, const void *reply) {
}

/* HA-01 */
static void silence_is_measured_from_when_one_could_hear(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    rig_node(&g, "a", NULL, NULL);
    rig_node(&g, "b", NULL, NULL);
    uint32_t id = running(&g, &(struct rig_job){.min_nodes = 2, .n_tasks = 2, .time_limit_min = 600});
    vctl_stop(g.c);
    g.c = NULL;
    rig_run(&g, 300000);
    g.c = vctl_start(g.w, g.log, &g.conf);
    vctl_elect(g.c);
    rig_run(&g, 120000);
    vctl_depose(g.c); /* and where the process stays: without leading it hears nothing, but for what was under way */
    admit_heartbeat(&g.c->room, &(struct heartbeat_request){.name = "a", .boot_id = "b"}, late, NULL);
    rig_run(&g, 300000);
    vctl_elect(g.c);
    rig_run(&g, 120000);
    assert_int_equal(vlog_count(g.log, CMD_NODE_STATE), 0);
    assert_int_equal(vlog_count(g.log, CMD_NODE_DONE), 0);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    assert_int_equal(rig_job(&g, id)->start_no, 1);
    rig_fini(&g);
}

static void a_node_that_comes_back_without_the_job_has_lost_it(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *a = rig_node(&g, "a", NULL, NULL);
    uint32_t id = running(&g, &(struct rig_job){0});
    rig_run(&g, 30000);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    a->n_runs = 0;
    rig_run(&g, 12000);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "NODE_FAIL");
    assert_string_equal(rig_job(&g, id)->state_text, "the node came back without the job");
    assert_true(rig_is_free(&g));
    rig_fini(&g);
}

/* One list without the run is no proof: it may have been written before the launch. */
static void one_list_without_the_run_condemns_nobody(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *a = rig_node(&g, "a", NULL, NULL);
    uint32_t id = running(&g, &(struct rig_job){0});
    struct run_ref run = a->runs[0];
    for (int i = 0; i < 10; i++) {
        rig_run(&g, 60000);
        a->n_runs = 0; /* what a late list would say … */
        rig_run(&g, 5000);
        a->runs[a->n_runs++] = run; /* … and the next one takes back */
    }
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    rig_fini(&g);
}

/* ---- afterwards ---- */

static void ignore(void *arg, int code, const struct err *why, const void *reply) {
}

static void sql(struct rig *g, const char *text) {
    struct sql *db;
    struct err e;
    autofree char *path = xasprintf("%s/history-1.db", g->dir);
    assert_int_equal(sql_open(path, SQL_WRITE, &db, &e), 0);
    assert_int_equal(sql_exec(db, text, &e), 0);
    sql_close(db);
}

static uint32_t ended(struct rig *g, struct vscript *n) {
    uint32_t id = running(g, &(struct rig_job){0});
    assert_int_equal(rig_report(g, n, id, 1, 0), 0);
    rig_run(g, 20);
    return id;
}

static void a_job_leaves_the_state_when_it_is_old_and_written(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "a", NULL, NULL);
    uint32_t first = ended(&g, n);
    rig_run(&g, 58000);
    assert_non_null(rig_job(&g, first));
    rig_run(&g, 5000);
    assert_null(rig_job(&g, first));
    assert_int_equal(vctl_rows(g.c, NULL, NULL, NULL), 1);
    /* no row, no purge */
    sql(&g, "CREATE TRIGGER full BEFORE INSERT ON job BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END");
    uint32_t second = ended(&g, n), third = ended(&g, n);
    rig_run(&g, 120000);
    assert_non_null(rig_job(&g, second));
    assert_non_null(rig_job(&g, third));
    assert_true(acct_stats(g.c->room.acct).failures > 50);
    sql(&g, "DROP TRIGGER full");
    rig_run(&g, 3000);
    assert_null(rig_job(&g, second));
    assert_null(rig_job(&g, third));
    assert_int_equal(vctl_rows(g.c, NULL, NULL, NULL), 3);
    rig_fini(&g);
}

/* The one who leads next begins with what ended first, whatever its number. */
static void the_oldest_end_goes_first(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "a", NULL, NULL);
    uint32_t longer = running(&g, &(struct rig_job){0}), shorter = ended(&g, n);
    rig_run(&g, 40000);
    assert_int_equal(rig_report(&g, n, longer, 1, 0), 0);
    rig_restart(&g, true);
    rig_run(&g, 25000);
    assert_null(rig_job(&g, shorter));
    assert_non_null(rig_job(&g, longer));
    rig_fini(&g);
}

/* A history that is older than the state (a file that was lost) gets what the state still has. */
static void a_lost_history_is_filled_from_a_snapshot(void **state) {
    struct rig g;
    auto_buf snap = {0};
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "a", NULL, NULL);
    for (int i = 0; i < 3; i++)
        ended(&g, n);
    assert_true(vctl_snapshot(g.c, &snap));
    vctl_stop(g.c);
    autofree char *path = xasprintf("%s/history-1.db", g.dir);
    assert_int_equal(remove(path), 0);
    g.conf.snapshot = &snap;
    g.c = vctl_start(g.w, g.log, &g.conf);
    g.conf.snapshot = NULL;
    vctl_elect(g.c);
    rig_run(&g, 100);
    assert_int_equal(vctl_rows(g.c, NULL, NULL, NULL), 3);
    rig_fini(&g);
}

/* A purge that was refused is made again. */
static void a_refused_purge_is_made_again(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "a", NULL, NULL);
    uint32_t id = ended(&g, n);
    vlog_refuse(g.log, CMD_PURGE, E_FULL, UINT32_MAX);
    rig_run(&g, 90000);
    assert_non_null(rig_job(&g, id));
    vlog_refuse(g.log, 0, 0, 0);
    rig_run(&g, 1500);
    assert_null(rig_job(&g, id));
    assert_int_equal(vlog_count(g.log, CMD_PURGE), 1);
    rig_fini(&g);
}

/* A node whose clock runs ahead: its ends are now, and keep nobody in the state. */
static void an_end_is_never_in_the_future(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "a", NULL, NULL);
    uint32_t id = running(&g, &(struct rig_job){0});
    struct run_report r = {.name = n->name, .job_id = id, .start_no = 1,
                           .end_ms = VWORLD_BEGIN_UNIX_MS + vworld_now_ms(g.w) + 86400000};
    assert_int_equal(rig_report_all(&g, &r), 0);
    assert_in_range(rig_job(&g, id)->end_ms - VWORLD_BEGIN_UNIX_MS, vworld_now_ms(g.w) - 10, vworld_now_ms(g.w));
    uint32_t next = ended(&g, n);
    rig_run(&g, 65000);
    assert_null(rig_job(&g, id));
    assert_null(rig_job(&g, next));
    rig_fini(&g);
}

/* Ten thousand ends: they go in the order of their ends, in bounded entries, without waiting a second for each. */
static void many_go_in_bounded_entries(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    uint32_t ids[2500], n = 0;
    for (uint32_t i = 0; i < 2500; i++)
        ids[n++] = rig_submit(&g, &(struct rig_job){.hold = true});
    struct who root = vctl_user(0);
    struct cancel_request rq = {.job_ids = ids, .n_job_ids = n};
    admit_cancel(&g.c->room, &root, &rq, ignore, NULL);
    rig_run(&g, 62000);
    struct view v;
    state_peek(g.c->room.state, &v);
    assert_int_equal(cow_count(v.jobs), 0);
    assert_int_equal(vlog_count(g.log, CMD_PURGE), 3);
    assert_int_equal(vctl_rows(g.c, NULL, NULL, NULL), 2500);
    rig_fini(&g);
}

/* Jobs that end in one entry are all in the history, whenever the machine dies. */
static void count_row(void *arg, const struct job *j) {
    uint32_t *seen = arg;
    seen[j->id]++;
    assert_int_equal(j->state, JOB_CANCELLED);
}

static void rows_of_one_entry_are_all_there_after_a_crash(void **state) {
    for (uint64_t ms = 0; ms <= 12; ms++) {
        struct rig g;
        rig_init(&g, short_times);
        uint32_t ids[40], seen[64] = {0};
        for (uint32_t i = 0; i < 40; i++)
            ids[i] = rig_submit(&g, &(struct rig_job){.hold = true});
        struct who root = vctl_user(0);
        struct cancel_request rq = {.job_ids = ids, .n_job_ids = 40};
        admit_cancel(&g.c->room, &root, &rq, ignore, NULL);
        rig_run(&g, ms);
        rig_restart(&g, true);
        struct view v;
        state_peek(g.c->room.state, &v);
        bool was_committed = job_is_over(view_job(&v, ids[0]));
        rig_run(&g, 1000);
        assert_int_equal(vctl_rows(g.c, count_row, seen, NULL), was_committed ? 40 : 0);
        for (uint32_t i = 0; was_committed && i < 40; i++)
            assert_int_equal(seen[ids[i]], 1);
        rig_fini(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terminate_is_repeated_until_the_report),
        cmocka_unit_test(nothing_there_is_a_report),
        cmocka_unit_test(an_agent_that_is_away_is_told_later),
        cmocka_unit_test(a_node_that_answers_does_not_delay_another),
        cmocka_unit_test(a_time_limit_means_timeout),
        cmocka_unit_test(a_silent_node_is_down_and_its_jobs_have_failed),
        cmocka_unit_test(a_node_that_is_not_clean_takes_no_work),
        cmocka_unit_test(a_down_node_is_cleaned_by_whoever_leads),
        cmocka_unit_test(silence_is_measured_from_when_one_could_hear),
        cmocka_unit_test(a_node_that_comes_back_without_the_job_has_lost_it),
        cmocka_unit_test(one_list_without_the_run_condemns_nobody),
        cmocka_unit_test(a_job_leaves_the_state_when_it_is_old_and_written),
        cmocka_unit_test(the_oldest_end_goes_first),
        cmocka_unit_test(a_lost_history_is_filled_from_a_snapshot),
        cmocka_unit_test(a_refused_purge_is_made_again),
        cmocka_unit_test(an_end_is_never_in_the_future),
        cmocka_unit_test(many_go_in_bounded_entries),
        cmocka_unit_test(rows_of_one_entry_are_all_there_after_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
