/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts: confirmed, refused, lost, half done.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "rig.h"
#include "spurd/table/table.h"

static void short_times(struct rconf *conf, struct arena *a) {
    conf->launch_timeout_secs = 7; /* less than a call may take */
    conf->max_launch_failures = 3;
    conf->max_launch_backoff_secs = 300;
    conf->kill_wait_secs = 7;
}

static void a_confirmed_launch_runs(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.time_limit_min = 5, .script = "#!/bin/sh\necho hi\n"});
    assert_int_equal(id, 1);
    rig_until(&g, id, "RUNNING", 1000);
    assert_int_equal(n->n_launches, 1);
    assert_int_equal(n->launch.start_no, 1);
    assert_int_equal(n->launch.n_script, strlen("#!/bin/sh\necho hi\n"));
    assert_int_equal(n->launch.n_env, 4);
    assert_int_equal(n->launch.time_limit_min, 5);
    rig_run(&g, 60000);
    assert_int_equal(n->n_launches, 1); /* said once, heard once */
    assert_int_equal(rig_report(&g, n, id, 1, 0), 0);
    rig_until(&g, id, "COMPLETED", 1000);
    assert_true(rig_is_free(&g));
    rig_run(&g, 10);
    assert_int_equal(vctl_rows(g.c, NULL, NULL, NULL), 1);
    assert_int_equal(react_stats(g.c->room.react).in_flight, 0);
    rig_fini(&g);
}

/* A launch whose reply is lost is asked again; the run is one. */
struct losing {
    uint32_t left;
};

static struct vanswer loses_replies(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    struct losing *l = ctx;
    if (m != WIRE_Agent_Launch || !l->left)
        return (struct vanswer){0};
    l->left--;
    return (struct vanswer){.never = true, .is_taken = true};
}

static void a_lost_reply_is_asked_for_again(void **state) {
    struct rig g;
    struct losing l = {1};
    rig_init(&g, NULL);
    struct vscript *n = rig_node(&g, "n1", loses_replies, &l);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    rig_until(&g, id, "RUNNING", 25000);
    assert_int_equal(n->n_launches, 2);
    assert_int_equal(n->launch.start_no, 1);
    assert_int_equal(rig_report(&g, n, id, 1, 3 << 8), 0);
    assert_int_equal(rig_job(&g, id)->state, JOB_FAILED);
    assert_int_equal(rig_job(&g, id)->wait_status, 3 << 8);
    rig_fini(&g);
}

static struct vanswer refuses_launches(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    if (m == WIRE_Agent_Launch)
        return (struct vanswer){.code = E_LAUNCH, .text = "no such user"};
    return (struct vanswer){.code = E_NOT_FOUND};
}

static void a_refusal_is_undone_with_a_pause_that_doubles_and_then_held(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", refuses_launches, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    uint64_t last_unix = 0, pause[3] = {0};
    for (uint32_t k = 1; k < 3; k++) {
        while (n->n_launches < k)
            rig_run(&g, 10);
        rig_until(&g, id, "PENDING", 1000);
        const struct job *j = rig_job(&g, id);
        uint64_t now_unix = (uint64_t)(VWORLD_BEGIN_UNIX_MS + vworld_now_ms(g.w)) / 1000;
        assert_int_equal(j->launch_failures, k);
        assert_string_equal(j->state_text, "n1: no such user");
        assert_int_equal(j->hold, HOLD_NONE);
        assert_int_equal(j->reason, REASON_NONE);
        assert_true((uint64_t)j->retry_unix >= now_unix);
        pause[k] = (uint64_t)j->retry_unix - now_unix;
        assert_true(now_unix >= last_unix);
        last_unix = (uint64_t)j->retry_unix;
        assert_true(rig_is_free(&g));
    }
    assert_in_range(pause[1], 0, 1);
    assert_in_range(pause[2], 1, 2);
    while (rig_job(&g, id)->hold == HOLD_NONE)
        rig_run(&g, 50);
    assert_int_equal(n->n_launches, 3);
    rig_until(&g, id, "PENDING", 100);
    const struct job *j = rig_job(&g, id);
    assert_int_equal(j->state, JOB_PENDING);
    assert_int_equal(j->hold, HOLD_ADMIN);
    assert_int_equal(j->reason, REASON_LAUNCH_FAILED);
    assert_string_equal(job_reason_word(j->reason), "launch failed requeued held");
    /* its owner can't release it, an administrator can: then it is tried at once, and from the beginning */
    assert_true(j->retry_unix > (VWORLD_BEGIN_UNIX_MS + vworld_now_ms(g.w)) / 1000);
    assert_int_equal(rig_hold(&g, 1000, id, HOLD_OP_RELEASE), E_DENIED);
    assert_int_equal(rig_hold(&g, 0, id, HOLD_OP_RELEASE), 0);
    rig_run(&g, 500);
    assert_int_equal(n->n_launches, 4);
    assert_int_equal(rig_job(&g, id)->launch_failures, 1);
    rig_run(&g, 10000);
    assert_int_equal(n->n_launches, 6);
    rig_run(&g, 600000); /* held again, and left alone */
    assert_int_equal(n->n_launches, 6);
    rig_fini(&g);
}

static void a_script_that_cannot_be_read_is_a_failed_launch(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.hold = true});
    vhost_fail_blobs(g.c->host, 1, E_CORRUPT);
    assert_int_equal(rig_hold(&g, 1000, id, HOLD_OP_RELEASE), 0);
    rig_until(&g, id, "COMPLETING", 3000);
    assert_int_equal(n->n_launches, 0);
    assert_non_null(strstr(rig_job(&g, id)->state_text, "script or environment can't be read"));
    rig_fini(&g);
}

static struct vanswer is_mute(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    return (struct vanswer){.never = true};
}

static struct vanswer has_nothing(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    if (m == WIRE_Agent_Terminate && s->n_launches == 0)
        return (struct vanswer){.code = E_NOT_FOUND};
    return (struct vanswer){0};
}

/* HA-03: half a launch. The start is undone within its time, and the job goes elsewhere: soon where the mute node at
 * least says that it has nothing of it, else when it is known to be down. */
static void half_a_launch(uint32_t mute, unsigned seed, bool is_silent) {
    struct rig g;
    rig_init(&g, short_times);
    vlog_delay(g.log, 1, 1 + seed * 7);
    vnet_faults(g.w, &(struct vfaults){.delay_min_ms = 1, .delay_max_ms = 1 + seed * 11, .twice = seed * 10});
    struct vscript *n[4];
    for (uint32_t i = 0; i < 2; i++)
        n[i] = rig_node(&g, i ? "b" : "a", i == mute ? is_mute : has_nothing, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.min_nodes = 2, .n_tasks = 2});
    rig_until(&g, id, "CONFIGURING", 2000);
    int64_t begun_ms = vworld_now_ms(g.w);
    g.is_silent[mute] = is_silent;
    rig_until(&g, id, "COMPLETING", 9000);
    assert_in_range(vworld_now_ms(g.w) - begun_ms, 6900, 7500);
    assert_int_equal(rig_job(&g, id)->state, JOB_PENDING);
    assert_string_equal(rig_job(&g, id)->state_text, "the nodes could not be reached in time");
    /* the script's node is asked last: so nothing of it ran where the other did not confirm */
    if (mute == 1)
        assert_int_equal(n[0]->n_launches, 0);
    if (n[1 - mute]->n_launches) {
        rig_run(&g, 1000);
        assert_int_equal(rig_report(&g, n[1 - mute], id, 1, 15), 0);
    }
    rig_run(&g, 500);
    assert_int_equal(vctl_node(g.c, n[1 - mute]->name)->alloc_cpus, 0);
    assert_int_equal(vctl_node(g.c, n[mute]->name)->alloc_cpus, 1); /* not known to be clean */
    n[2] = rig_node(&g, "c", NULL, NULL);
    n[3] = rig_node(&g, "d", NULL, NULL);
    n[mute]->fn = has_nothing; /* when it is reached again, it has nothing */
    vnet_listen(g.w, n[mute]->address, NULL, NULL);
    rig_until(&g, id, "RUNNING", is_silent ? 100000 : 25000);
    assert_int_equal(vctl_node(g.c, n[mute]->name)->base, is_silent ? NODE_DOWN : NODE_UP);
    assert_true(vctl_node(g.c, n[mute]->name)->not_responding);
    const struct job *j = rig_job(&g, id);
    assert_int_equal(j->start_no, 2);
    assert_int_equal(j->launch_failures, 1);
    for (uint32_t i = 0; i < 2; i++)
        assert_string_not_equal(j->nodes[i].name, n[mute]->name);
    assert_int_equal(vctl_node(g.c, n[mute]->name)->n_jobs, 0);
    g.is_silent[mute] = false; /* and after a while it gets its chance */
    rig_run(&g, 40000);
    assert_true(node_takes_work(vctl_node(g.c, n[mute]->name)));
    rig_fini(&g);
}

static void half_a_launch_is_undone_everywhere(void **state) {
    for (unsigned seed = 0; seed < 5; seed++)
        for (unsigned k = 0; k < 4; k++)
            half_a_launch(k & 1, seed, k & 2);
}

/* An agent that was just started takes no launch before it knows the controller's key: that is no failure. */
struct keyless {
    uint32_t n_refused, n_more;
};

static struct vanswer has_no_key(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    struct keyless *k = ctx;
    if (m == WIRE_Agent_Terminate)
        return (struct vanswer){.code = E_NOT_FOUND};
    if (!k->n_more)
        return (struct vanswer){0};
    k->n_more--;
    k->n_refused++;
    return (struct vanswer){.code = E_CREDENTIAL, .text = "no key yet"};
}

static void an_agent_without_the_key_is_asked_again(void **state) {
    struct rig g;
    struct keyless k = {.n_more = 3};
    rig_init(&g, short_times);
    rig_node(&g, "n1", has_no_key, &k);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    rig_until(&g, id, "RUNNING", 5000);
    assert_int_equal(k.n_refused, 3);
    assert_int_equal(rig_job(&g, id)->launch_failures, 0);
    k.n_more = 1000; /* one that never gets it is told by name */
    id = rig_submit(&g, &(struct rig_job){0});
    rig_until(&g, id, "CONFIGURING", 1000);
    rig_until(&g, id, "PENDING", 9000);
    assert_string_equal(rig_job(&g, id)->state_text, "n1: no key yet");
    assert_false(vctl_node(g.c, "n1")->not_responding);
    rig_fini(&g);
}

/* The machine was started anew after it was asked: whatever it did with that is not done again. */
static void a_machine_that_was_started_anew_is_not_asked_again(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    struct vscript *n = rig_node(&g, "n1", is_mute, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    rig_until(&g, id, "CONFIGURING", 1000);
    rig_run(&g, 1000);
    assert_int_equal(n->n_launches, 1);
    snprintf(n->boot, sizeof(n->boot), "c");
    rig_until(&g, id, "NODE_FAIL", 15000);
    assert_int_equal(n->n_launches, 1);
    assert_string_equal(rig_job(&g, id)->state_text, "the node was started anew");
    assert_true(rig_is_free(&g));
    rig_fini(&g);
}

/* And of two, where the script's node was not asked yet: nothing has run, so it is only undone. */
static void a_start_of_which_nothing_ran_is_undone(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    struct vscript *a = rig_node(&g, "a", NULL, NULL), *b = rig_node(&g, "b", is_mute, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.min_nodes = 2, .n_tasks = 2});
    rig_until(&g, id, "CONFIGURING", 1000);
    rig_run(&g, 1000);
    snprintf(a->boot, sizeof(a->boot), "c");
    snprintf(b->boot, sizeof(b->boot), "c");
    b->fn = rig_takes_all;
    rig_until(&g, id, "COMPLETING", 15000);
    assert_int_equal(rig_job(&g, id)->state, JOB_PENDING);
    assert_int_equal(a->n_launches, 0);
    rig_fini(&g);
}

/* A launch that was on its way all that time is refused by the agent: it can't know whether it ran. */
struct started {
    uint32_t n;
};

static void start_run(void *impl, uint64_t key, struct buf request, steps_started_fn fn, void *arg) {
    ((struct started *)impl)->n++;
    buf_fini(&request);
}

static void find_none(void *impl, void (*fn)(void *arg, const struct steps_found *found), void *arg) {
}

static void on_taken(void *arg, int code, const struct err *why, uint32_t pid) {
    *(int *)arg = code;
}

static void an_agent_refuses_a_start_of_an_earlier_boot(void **state) {
    struct vworld *w = vworld_new(1);
    struct vhost *h = vhost_new(w, &(struct vhost_conf){0});
    struct started st = {0};
    struct steps steps = {.impl = &st, .find = find_none, .start = start_run};
    struct table *t = table_new(vhost_host(h), &(struct table_conf){.boot = 7});
    struct job_spec spec = {.uid = 1};
    struct job_node node = {.boot = 5};
    struct launch_request q = {.job_id = 1, .start_no = 1, .spec = &spec, .nodes = &node, .n_nodes = 1};
    int code = 1;
    table_adopt(t, &steps);
    table_launch(t, &q, "", 0, on_taken, &code);
    assert_int_equal(code, E_STALE);
    assert_int_equal(st.n, 0);
    node.boot = 7;
    table_launch(t, &q, "", 0, on_taken, &code);
    q.job_id = 2;
    node.boot = 0; /* by a controller that does not say */
    table_launch(t, &q, "", 0, on_taken, &code);
    assert_int_equal(st.n, 2);
    table_stop(t);
    table_free(t);
    vhost_free(h);
    vworld_free(w);
}

/* A node that says no ends the whole start, whatever the other is doing. */
static void one_refusal_undoes_the_start_at_once(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *a = rig_node(&g, "a", has_nothing, NULL);
    rig_node(&g, "b", refuses_launches, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.min_nodes = 2, .n_tasks = 2});
    rig_until(&g, id, "COMPLETING", 1000);
    rig_until(&g, id, "PENDING", 1000);
    assert_int_equal(a->n_launches, 0);
    assert_true(a->n_terminates >= 1);
    assert_true(rig_is_free(&g));
    rig_fini(&g);
}

/* The disk is full when the outcome of a launch is to be written: nothing is forgotten. */
static void a_full_disk_delays_the_outcome(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    vlog_refuse(g.log, CMD_RUNNING, E_FULL, UINT32_MAX);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    rig_run(&g, 60000);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "CONFIGURING");
    vlog_refuse(g.log, 0, 0, 0);
    rig_until(&g, id, "RUNNING", 11000);
    assert_int_equal(n->n_launches, 1);
    assert_int_equal(rig_report(&g, n, id, 1, 0), 0);
    rig_fini(&g);
}

static void a_full_disk_delays_the_undoing(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", refuses_launches, NULL);
    vlog_refuse(g.log, CMD_UNDO, E_FULL, UINT32_MAX);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    rig_run(&g, 60000);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "CONFIGURING");
    assert_int_equal(n->n_launches, 1);
    vlog_refuse(g.log, CMD_NODE_DONE, E_FULL, UINT32_MAX); /* and then the answer that nothing of it is there */
    rig_until(&g, id, "COMPLETING", 11000);
    rig_run(&g, 30000);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "COMPLETING");
    vlog_refuse(g.log, 0, 0, 0);
    rig_until(&g, id, "PENDING", 16000);
    assert_string_equal(rig_job(&g, id)->state_text, "n1: no such user");
    rig_fini(&g);
}

/* The step daemon took it and then could not run the script, after the start was confirmed. */
static void a_script_that_never_ran_is_no_completed_job(void **state) {
    struct rig g;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    for (uint32_t k = 1; k <= 3; k++) {
        rig_until(&g, id, "RUNNING", 10000);
        struct run_report r = {.name = n->name, .job_id = id, .start_no = k, .never_started = true,
                               .text = "setuid failed", .end_ms = VWORLD_BEGIN_UNIX_MS + vworld_now_ms(g.w)};
        assert_int_equal(rig_report_all(&g, &r), 0);
        assert_int_equal(rig_job(&g, id)->state, JOB_PENDING);
        assert_int_equal(rig_job(&g, id)->launch_failures, k);
        assert_string_equal(rig_job(&g, id)->state_text, "setuid failed");
    }
    assert_int_equal(rig_job(&g, id)->hold, HOLD_ADMIN);
    assert_int_equal(rig_job(&g, id)->reason, REASON_LAUNCH_FAILED);
    rig_fini(&g);
}

/* The report of a quick job is there before the confirmation of its start. */
struct hasty {
    struct rig *g;
    bool has_ended;
};

static void nothing_more(void *arg, int code, const struct err *why, const void *reply) {
    assert_int_equal(code, 0);
}

static struct vanswer reports_first(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    struct hasty *h = ctx;
    const struct launch_request *l = q;
    if (m == WIRE_Agent_Launch && !h->has_ended) {
        h->has_ended = true;
        struct run_report r = {.name = s->name, .job_id = l->job_id, .start_no = l->start_no, .wait_status = 2 << 8,
                               .end_ms = VWORLD_BEGIN_UNIX_MS + vworld_now_ms(s->world)};
        admit_report(&h->g->c->room, &r, nothing_more, NULL);
    }
    return (struct vanswer){0};
}

static void an_end_may_come_before_the_confirmation(void **state) {
    struct rig g;
    struct hasty h = {.g = &g};
    rig_init(&g, NULL);
    struct vscript *n = rig_node(&g, "n1", reports_first, &h);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    rig_until(&g, id, "FAILED", 1000);
    rig_run(&g, 20000);
    assert_int_equal(rig_job(&g, id)->wait_status, 2 << 8);
    assert_int_equal(n->n_launches, 1);
    assert_int_equal(react_stats(g.c->room.react).in_flight, 0);
    assert_true(rig_is_free(&g));
    rig_fini(&g);
}

/* Releasing a job that is just being undone must not end the undoing. */
static struct vanswer terminates_late(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    if (m == WIRE_Agent_Launch)
        return (struct vanswer){.code = E_LAUNCH, .text = "no", .is_taken = true}; /* or so its lists say */
    return s->n_terminates < 3 ? (struct vanswer){.never = true} : (struct vanswer){.code = E_NOT_FOUND};
}

static void one_failure_holds(struct rconf *conf, struct arena *a) {
    conf->max_launch_failures = 1;
}

static void a_release_does_not_end_the_undoing(void **state) {
    struct rig g;
    rig_init(&g, one_failure_holds);
    struct vscript *n = rig_node(&g, "n1", terminates_late, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    rig_until(&g, id, "COMPLETING", 1000);
    assert_int_equal(rig_job(&g, id)->hold, HOLD_ADMIN);
    assert_int_equal(rig_hold(&g, 0, id, HOLD_OP_RELEASE), 0);
    rig_until(&g, id, "PENDING", 60000);
    assert_int_equal(n->n_terminates, 3);
    rig_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_confirmed_launch_runs),
        cmocka_unit_test(a_lost_reply_is_asked_for_again),
        cmocka_unit_test(a_refusal_is_undone_with_a_pause_that_doubles_and_then_held),
        cmocka_unit_test(a_script_that_cannot_be_read_is_a_failed_launch),
        cmocka_unit_test(half_a_launch_is_undone_everywhere),
        cmocka_unit_test(an_agent_without_the_key_is_asked_again),
        cmocka_unit_test(a_machine_that_was_started_anew_is_not_asked_again),
        cmocka_unit_test(a_start_of_which_nothing_ran_is_undone),
        cmocka_unit_test(an_agent_refuses_a_start_of_an_earlier_boot),
        cmocka_unit_test(one_refusal_undoes_the_start_at_once),
        cmocka_unit_test(a_full_disk_delays_the_outcome),
        cmocka_unit_test(a_full_disk_delays_the_undoing),
        cmocka_unit_test(a_script_that_never_ran_is_no_completed_job),
        cmocka_unit_test(an_end_may_come_before_the_confirmation),
        cmocka_unit_test(a_release_does_not_end_the_undoing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
