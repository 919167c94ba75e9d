/* SPDX-License-Identifier: Apache-2.0
 *
 * Leadership lost and gained again, the controller killed, another one in its place: at each moment of a job's life. The
 * agents are spurd's own rooms, so that what is counted is what would have run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "rig.h"

enum change { CHANGE_DEPOSED, CHANGE_STOPPED, CHANGE_KILLED, CHANGE_FAIL_OVER, CHANGE_N };

struct life {
    struct rig g;
    struct vctl *other; /* a second member that follows */
    struct vctl_conf other_conf;
    struct vagent *agent[2];
    uint32_t id, n_batch, n_runs;
    enum change change;
    uint64_t away_ms;
};

static void on_ran(void *arg, const struct vagent *a, enum vran what, uint32_t job_id, uint32_t start_no,
                   bool is_batch, uint32_t wait_status) {
    struct life *l = arg;
    if (what != VRAN_BEGAN)
        return;
    l->n_batch += is_batch;
    l->n_runs++;
}

static bool both_up(void *arg) {
    struct life *l = arg;
    const struct node *a = vctl_node(l->g.c, "a"), *b = vctl_node(l->g.c, "b");
    return a && b && node_takes_work(a) && node_takes_work(b);
}

static void life_begin(struct life *l, unsigned seed) {
    *l = (struct life){0};
    rig_init(&l->g, NULL);
    vlog_delay(l->g.log, 1, 6 + seed);
    vnet_faults(l->g.w, &(struct vfaults){.delay_min_ms = 1, .delay_max_ms = 8 + seed});
    l->other_conf = l->g.conf;
    l->other_conf.member_id = 2;
    l->other = vctl_start(l->g.w, l->g.log, &l->other_conf);
    for (int i = 0; i < 2; i++) {
        l->agent[i] = vagent_new(l->g.w, i ? "b" : "a", 4, 1000);
        vagent_watch(l->agent[i], on_ran, l);
        vagent_start(l->agent[i]);
    }
    assert_true(vworld_run_until(l->g.w, both_up, l, 5000));
}

static void life_end(struct life *l) {
    for (int i = 0; i < 2; i++)
        vagent_free(l->agent[i]);
    if (l->other)
        vctl_stop(l->other);
    rig_fini(&l->g);
}

static void on_back(void *arg) {
    struct life *l = arg;
    struct rig *g = &l->g;
    if (l->change == CHANGE_STOPPED || l->change == CHANGE_KILLED)
        g->c = vctl_start(g->w, g->log, &g->conf);
    vctl_elect(g->c);
}

static void on_change(void *arg) {
    struct life *l = arg;
    struct rig *g = &l->g;
    switch (l->change) {
    case CHANGE_DEPOSED: vctl_depose(g->c); break;
    case CHANGE_STOPPED: vctl_stop(g->c); break;
    case CHANGE_KILLED: vctl_kill(g->c); break;
    default:
        vctl_kill(g->c);
        g->c = l->other;
        l->other = NULL;
    }
    if (l->change == CHANGE_STOPPED || l->change == CHANGE_KILLED)
        g->c = NULL;
    vworld_at(g->w, l->away_ms, on_back, l);
}

static bool is_over(void *arg) {
    const struct life *l = arg;
    const struct job *j = l->g.c && l->g.c->is_elected ? rig_job(&l->g, l->id) : NULL;
    return j && job_is_over(j);
}

static void count_row(void *arg, const struct job *j) {
    struct life *l = arg;
    assert_int_equal(j->id, l->id);
    assert_true(rec_same(job_rec(), j, rig_job(&l->g, l->id)));
}

/* `at_ms` after the submit comes the change; what the job comes to must be what it would have come to without. */
static void one_life(enum change change, uint64_t at_ms, uint64_t away_ms, unsigned seed) {
    struct life l;
    life_begin(&l, seed);
    l.change = change;
    l.away_ms = away_ms;
    l.id = rig_submit(&l.g, &(struct rig_job){.min_nodes = 2, .n_tasks = 2, .script = "#!/bin/sh\n# run 150 exit 3\n"});
    vworld_at(l.g.w, at_ms, on_change, &l);
    vworld_run(l.g.w, at_ms + away_ms + 1);
    assert_true(vworld_run_until(l.g.w, is_over, &l, 60000));
    const struct job *j = rig_job(&l.g, l.id);
    assert_string_equal(job_shown_state(j), "FAILED");
    assert_int_equal(j->wait_status, 3 << 8);
    assert_int_equal(j->start_no, 1);
    assert_int_equal(l.n_batch, 1);
    assert_int_equal(l.n_runs, 2);
    vworld_run(l.g.w, 30000);
    assert_true(rig_is_free(&l.g));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(vagent_live(l.agent[i]), 0);
        assert_int_equal(vagent_known(l.agent[i]), 0);
    }
    assert_int_equal(vctl_rows(l.g.c, count_row, &l, NULL), 1);
    assert_int_equal(react_stats(l.g.c->room.react).in_flight, 0);
    life_end(&l);
}

static void a_job_lives_once_whoever_leads(void **state) {
    for (unsigned k = 0; k < CHANGE_N; k++)
        for (uint64_t at_ms = 0; at_ms < 320; at_ms += 11)
            one_life(k, at_ms, at_ms % 3 ? 1 : 700, (unsigned)(at_ms / 11 % 5));
}

/* The same of a job that is cancelled: no effect is lost, the end stays the one that was asked for. */
static void one_cancelled_life(enum change change, uint64_t at_ms, uint64_t away_ms, unsigned seed) {
    struct life l;
    life_begin(&l, seed);
    l.change = change;
    l.away_ms = away_ms;
    l.id = rig_submit(&l.g, &(struct rig_job){.min_nodes = 2, .n_tasks = 2, .script = "#!/bin/sh\n# run 600000 exit 0\n"});
    rig_until(&l.g, l.id, "RUNNING", 2000);
    assert_int_equal(rig_cancel(&l.g, 1000, l.id), 0);
    vworld_at(l.g.w, at_ms, on_change, &l);
    vworld_run(l.g.w, at_ms + away_ms + 1);
    assert_true(vworld_run_until(l.g.w, is_over, &l, 60000));
    assert_string_equal(job_shown_state(rig_job(&l.g, l.id)), "CANCELLED");
    assert_int_equal(l.n_batch, 1);
    vworld_run(l.g.w, 30000);
    assert_true(rig_is_free(&l.g));
    assert_int_equal(vagent_live(l.agent[0]) + vagent_live(l.agent[1]), 0);
    assert_int_equal(vctl_rows(l.g.c, count_row, &l, NULL), 1);
    life_end(&l);
}

static void an_end_that_was_asked_for_comes_whoever_leads(void **state) {
    for (unsigned k = 0; k < CHANGE_N; k++)
        for (uint64_t at_ms = 0; at_ms < 100; at_ms += 5)
            one_cancelled_life(k, at_ms, at_ms % 2 ? 1 : 700, (unsigned)(at_ms / 5 % 5));
}

/* Jobs that run don't notice who leads. */
static void running_jobs_are_untouched(void **state) {
    struct life l;
    life_begin(&l, 0);
    uint32_t ids[8];
    for (int i = 0; i < 8; i++) {
        ids[i] = rig_submit(&l.g, &(struct rig_job){.script = "#!/bin/sh\n# run 3600000 exit 0\n", .time_limit_min = 200});
        rig_until(&l.g, ids[i], "RUNNING", 5000);
    }
    for (unsigned k = 0; k < 30; k++) {
        l.change = k % CHANGE_FAIL_OVER;
        l.away_ms = k * 1000;
        on_change(&l);
        vworld_run(l.g.w, l.away_ms + 20000);
    }
    for (int i = 0; i < 8; i++) {
        assert_string_equal(job_shown_state(rig_job(&l.g, ids[i])), "RUNNING");
        assert_int_equal(rig_job(&l.g, ids[i])->start_no, 1);
    }
    assert_int_equal(l.n_runs, 8);
    assert_int_equal(vlog_count(l.g.log, CMD_NODE_DONE), 0);
    vworld_run(l.g.w, 3600000);
    for (int i = 0; i < 8; i++)
        assert_null(rig_job(&l.g, ids[i])); /* done, and old enough to be history */
    assert_int_equal(vctl_rows(l.g.c, NULL, NULL, NULL), 8);
    life_end(&l);
}

/* An agent that is started anew keeps its runs, and reports what ended meanwhile with its real code. */
static void an_agent_that_restarts_loses_nothing(void **state) {
    for (uint64_t at_ms = 0; at_ms < 300; at_ms += 10) {
        struct life l;
        life_begin(&l, 1);
        l.id = rig_submit(&l.g, &(struct rig_job){.script = "#!/bin/sh\n# run 120 exit 7\n"});
        vworld_run(l.g.w, at_ms);
        for (int i = 0; i < 2; i++)
            vagent_stop(l.agent[i]);
        vworld_run(l.g.w, 300);
        for (int i = 0; i < 2; i++)
            vagent_start(l.agent[i]);
        assert_true(vworld_run_until(l.g.w, is_over, &l, 60000));
        assert_int_equal(rig_job(&l.g, l.id)->state, JOB_FAILED);
        assert_int_equal(rig_job(&l.g, l.id)->wait_status, 7 << 8);
        assert_int_equal(l.n_batch, 1);
        life_end(&l);
    }
}

/* A pass that took long, another leader meanwhile: what was planned is not what there is now. */
static struct vanswer refuses(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    return (struct vanswer){.code = m == WIRE_Agent_Launch ? E_LAUNCH : E_NOT_FOUND, .text = "no"};
}

static void an_old_plan_starts_nothing_that_has_been_undone_since(void **state) {
    uint32_t n_old = 0;
    for (uint64_t ms = 500; ms < 4000; ms += 250) {
        struct rig g;
        rig_init(&g, NULL);
        rig_node(&g, "n1", refuses, NULL);
        struct vctl_conf slow = g.conf;
        slow.member_id = 2;
        slow.work_max_ms = 5000; /* its passes are out for seconds */
        struct vctl *other = vctl_start(g.w, g.log, &slow);
        vlog_refuse(g.log, CMD_START, E_FULL, UINT32_MAX);
        uint32_t id = rig_submit(&g, &(struct rig_job){0});
        vctl_depose(g.c);
        vctl_elect(other);
        vlog_refuse(g.log, 0, 0, 0);
        rig_run(&g, 20); /* it has seen the job, and plans */
        vctl_depose(other);
        vctl_elect(g.c);
        rig_run(&g, ms); /* started and undone, once or more */
        vctl_depose(g.c);
        vctl_elect(other);
        const struct job *j = vctl_job(other, id);
        uint32_t start_no = j->start_no;
        int64_t left_ms = j->retry_unix * 1000 - VWORLD_BEGIN_UNIX_MS - vworld_now_ms(g.w);
        if (start_no && left_ms > 1) {
            rig_run(&g, (uint64_t)left_ms - 1);
            assert_int_equal(vctl_job(other, id)->start_no, start_no);
            n_old += plan_stats(other->room.plan).refused > 0;
        }
        vctl_stop(other);
        rig_fini(&g);
    }
    assert_true(n_old > 0);
}

/* A machine that dies with all it knew, at any moment of a start: the script of that start runs once at most. */
static void what_a_machine_has_forgotten_is_not_run_again(void **state) {
    uint32_t n_lost = 0;
    for (uint64_t at_ms = 0; at_ms < 90; at_ms += 3)
        for (unsigned with_leader = 0; with_leader < 2; with_leader++) {
            struct life l;
            life_begin(&l, (unsigned)(at_ms % 5));
            vnet_faults(l.g.w, &(struct vfaults){.lose_reply = 600, .delay_min_ms = 1, .delay_max_ms = 10});
            l.id = rig_submit(&l.g, &(struct rig_job){.req_node = "a", .script = "#!/bin/sh\n# run 60 exit 0\n"});
            vworld_run(l.g.w, at_ms);
            vagent_reboot(l.agent[0], true);
            l.change = CHANGE_KILLED;
            l.away_ms = 5;
            if (with_leader)
                on_change(&l);
            vnet_faults(l.g.w, &(struct vfaults){.delay_min_ms = 1, .delay_max_ms = 10});
            vworld_run(l.g.w, 50);
            vagent_start(l.agent[0]);
            assert_true(vworld_run_until(l.g.w, is_over, &l, 200000));
            const struct job *j = rig_job(&l.g, l.id);
            assert_true(l.n_batch <= j->start_no);
            assert_true(j->state == JOB_NODE_FAIL || j->state == JOB_COMPLETED);
            n_lost += j->state == JOB_NODE_FAIL;
            vworld_run(l.g.w, 30000);
            assert_true(rig_is_free(&l.g));
            life_end(&l);
        }
    assert_true(n_lost > 0);
}

/* ---- ids ---- */

static void few_ids(struct rconf *conf, struct arena *a) {
    conf->first_job_id = 3;
    conf->max_job_id = 7;
    conf->min_job_age_secs = 10;
}

static void job_ids_wrap_and_skip_what_is_used(void **state) {
    struct rig g;
    rig_init(&g, few_ids);
    for (uint32_t id = 3; id <= 7; id++)
        assert_int_equal(rig_submit(&g, &(struct rig_job){.hold = true}), id);
    assert_int_equal(rig_submit(&g, &(struct rig_job){.hold = true}), 0);
    assert_int_equal(g.code, E_ID_SPACE);
    assert_int_equal(rig_cancel(&g, 1000, 4), 0);
    assert_int_equal(rig_cancel(&g, 1000, 6), 0);
    assert_int_equal(rig_submit(&g, &(struct rig_job){.hold = true}), 0); /* over, but not yet history */
    rig_run(&g, 12000);
    uint32_t again = rig_submit(&g, &(struct rig_job){.hold = true});
    assert_true(again == 4 || again == 6);
    rig_restart(&g, true);
    assert_int_equal(rig_submit(&g, &(struct rig_job){.hold = true}), 10 - again);
    assert_int_equal(rig_submit(&g, &(struct rig_job){.hold = true}), 0);
    assert_int_equal(g.code, E_ID_SPACE);
    /* two jobs of one number in the history, told apart by their second id */
    assert_int_equal(rig_cancel(&g, 1000, 4), 0);
    rig_run(&g, 12000);
    assert_int_equal(vctl_rows(g.c, NULL, NULL, NULL), 3);
    rig_fini(&g);
}

/* All at once: a number is not used before its entry is there, so it is given twice, and taken back quietly. */
static void on_one_of_five(void *arg, int code, const struct err *why, const void *reply) {
    uint32_t *n = arg;
    assert_true(code == 0 || code == E_ID_SPACE);
    n[code == 0]++;
}

static void numbers_are_given_once_in_a_burst(void **state) {
    struct rig g;
    uint32_t n[2] = {0};
    rig_init(&g, few_ids);
    vlog_delay(g.log, 5, 20);
    for (int i = 0; i < 9; i++) {
        struct who who = vctl_user(1000);
        struct job_spec spec = {.work_dir = "/", .hold = true};
        struct submit_request rq = {.spec = &spec, .script = (const uint8_t *)"#!/bin/sh\n", .n_script = 10};
        admit_submit(&g.c->room, &who, &rq, on_one_of_five, n);
    }
    rig_run(&g, 5000);
    assert_int_equal(n[1], 5);
    assert_int_equal(n[0], 4);
    rig_fini(&g);
}

/* Several at once, and the leader changes under them: nobody is told that a number exists already. */
struct many {
    uint32_t n_answers, n_ok, seen[64];
};

static void on_one(void *arg, int code, const struct err *why, const void *reply) {
    struct many *m = arg;
    m->n_answers++;
    assert_int_not_equal(code, E_EXISTS);
    if (code)
        return;
    m->n_ok++;
    assert_int_equal(m->seen[((const struct submit_reply *)reply)->job_id]++, 0);
}

static void submit_quietly(struct rig *g, struct many *m) {
    struct who who = vctl_user(1000);
    struct job_spec spec = {.work_dir = "/", .hold = true};
    struct submit_request rq = {.spec = &spec, .script = (const uint8_t *)"#!/bin/sh\n", .n_script = 10};
    admit_submit(&g->c->room, &who, &rq, on_one, m);
}

static void a_number_that_an_earlier_leader_gave_away_is_not_the_clients_trouble(void **state) {
    for (uint64_t ms = 0; ms < 30; ms++) {
        struct rig g;
        struct many m = {0};
        rig_init(&g, NULL);
        vlog_delay(g.log, 1, 20);
        for (int i = 0; i < 10; i++)
            submit_quietly(&g, &m);
        rig_run(&g, ms);
        vctl_depose(g.c);
        assert_int_equal(m.n_answers, 10);
        vctl_elect(g.c);
        rig_run(&g, 50);
        for (int i = 0; i < 10; i++)
            submit_quietly(&g, &m);
        rig_run(&g, 500);
        assert_int_equal(m.n_answers, 20);
        assert_true(m.n_ok >= 10);
        rig_fini(&g);
    }
}

/* ---- the configuration ---- */

static void conf_a(struct rconf *conf, struct arena *a) {
    conf->interval_secs = 3;
}

static void conf_b(struct rconf *conf, struct arena *a) {
    conf->interval_secs = 5;
}

struct members {
    struct vworld *w;
    struct vlog *log;
    struct vctl *m[4];
    char dir[64];
};

static void up(struct members *s, uint32_t id, void (*fill)(struct rconf *conf, struct arena *a)) {
    struct vctl_conf conf = {.dir = s->dir, .member_id = id, .fill = fill};
    s->m[id] = vctl_start(s->w, s->log, &conf);
}

static uint64_t lead(struct members *s, uint32_t id) {
    uint64_t before = vlog_count(s->log, CMD_CONFIG_SET);
    for (uint32_t i = 1; i < 4; i++)
        if (s->m[i])
            vctl_depose(s->m[i]);
    vctl_elect(s->m[id]);
    vworld_run(s->w, 100);
    assert_true(s->m[id]->room.is_leader);
    return vlog_count(s->log, CMD_CONFIG_SET) - before;
}

static uint32_t in_force(const struct members *s, uint32_t id) {
    return vctl_conf_in_force(s->m[id])->interval_secs;
}

static void restart_with(struct members *s, uint32_t id, void (*fill)(struct rconf *conf, struct arena *a)) {
    vctl_depose(s->m[id]);
    vctl_stop(s->m[id]);
    up(s, id, fill);
}

/* Each member starts (here: leads first, since only a leader writes), then the file changes one member at a time. */
static void a_rolling_restart_does_not_flap(void **state) {
    struct members s = {.w = vworld_new(7)};
    rig_make_dir(s.dir, sizeof(s.dir));
    s.log = vlog_new(s.w);
    for (uint32_t i = 1; i < 4; i++)
        up(&s, i, conf_a);
    for (uint32_t i = 1; i < 4; i++)
        lead(&s, i);
    assert_int_equal(in_force(&s, 1), 3);
    /* a fail-over offers nothing */
    for (uint32_t i = 1; i < 4; i++)
        assert_int_equal(lead(&s, i), 0);
    /* onto the new file, and fail-overs between all the time: once it is in force it stays */
    restart_with(&s, 1, conf_b);
    assert_int_equal(in_force(&s, 2), 3);
    assert_int_equal(lead(&s, 1), 1);
    for (uint32_t i = 2; i < 4; i++) {
        assert_int_equal(lead(&s, i), 0); /* still with the old file */
        assert_int_equal(in_force(&s, i), 5);
        restart_with(&s, i, conf_b);
        lead(&s, i);
        assert_int_equal(in_force(&s, i), 5);
    }
    for (uint32_t i = 1; i < 4; i++)
        assert_int_equal(lead(&s, i), 0);
    /* and back */
    for (uint32_t i = 3; i > 0; i--) {
        restart_with(&s, i, conf_a);
        lead(&s, i);
        assert_int_equal(in_force(&s, i), 3);
        for (uint32_t k = 1; k < 4; k++) {
            assert_int_equal(lead(&s, k), 0);
            assert_int_equal(in_force(&s, k), 3);
        }
    }
    /* the same file again is no news; scontrol reconfigure always offers the leader's */
    restart_with(&s, 2, conf_a);
    assert_int_equal(lead(&s, 2), 0);
    for (uint32_t i = 1; i < 4; i++)
        vctl_stop(s.m[i]);
    vlog_free(s.log);
    vworld_free(s.w);
    rig_remove_dir(s.dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_lives_once_whoever_leads),
        cmocka_unit_test(an_end_that_was_asked_for_comes_whoever_leads),
        cmocka_unit_test(running_jobs_are_untouched),
        cmocka_unit_test(an_agent_that_restarts_loses_nothing),
        cmocka_unit_test(what_a_machine_has_forgotten_is_not_run_again),
        cmocka_unit_test(job_ids_wrap_and_skip_what_is_used),
        cmocka_unit_test(numbers_are_given_once_in_a_burst),
        cmocka_unit_test(an_old_plan_starts_nothing_that_has_been_undone_since),
        cmocka_unit_test(a_number_that_an_earlier_leader_gave_away_is_not_the_clients_trouble),
        cmocka_unit_test(a_rolling_restart_does_not_flap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
