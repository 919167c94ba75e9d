/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays and what steers jobs: cancel by conditions, hold, requeue, suspend, update; signals before the end, deadlines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "rig.h"

#define SCRIPT "#!/bin/sh\n"

static void short_times(struct rconf *conf, struct arena *a) {
    conf->kill_wait_secs = 7;
    conf->min_job_age_secs = 60;
    conf->max_array_size = 101;
}

static void begin(struct rig *g, uint32_t nodes) {
    rig_init(g, short_times);
    for (uint32_t i = 0; i < nodes; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%u", i + 1);
        rig_node(g, name, NULL, NULL);
    }
}

struct array_ask {
    uint32_t uid, first, last, limit;
    bool hold;
    const char *name, *partition;
};

static uint32_t submit_array(struct rig *g, const struct array_ask *q) {
    struct array_range r = {q->first, q->last};
    struct job_more more = {.array = "as asked", .array_ranges = &r, .n_array_ranges = 1, .array_max_running = q->limit};
    struct job_spec spec = {.work_dir = "/", .more = &more, .n_tasks = 1, .hold = q->hold, .name = q->name,
                            .partition = q->partition, .time_limit_min = 60};
    return rig_submit_spec(g, q->uid ? q->uid : 1000, &spec, SCRIPT);
}

static const struct job *task_of(const struct rig *g, uint32_t array, uint32_t task) {
    struct view v;
    const struct job *j;
    state_peek(g->c->room.state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        if (j->array && j->array->job_id == array && j->array->task == task + 1)
            return j;
    return NULL;
}

static struct vscript *node_of(struct rig *g, const struct job *j) {
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (str_eq(g->node[i].name, j->nodes[0].name))
            return &g->node[i];
    return NULL;
}

static uint32_t count(const struct rig *g, uint32_t array, uint32_t state) {
    struct view v;
    const struct job *j;
    uint32_t n = 0;
    state_peek(g->c->room.state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        n += j->array && j->array->job_id == array && j->array->task && j->state == state && !j->configuring;
    return n;
}

static uint32_t n_pending(const struct rig *g, uint32_t array) {
    const struct job *j = rig_job(g, array);
    return array_count(j->array->pending, j->array->n_pending);
}

static void cancel(struct rig *g, uint32_t uid, const struct cancel_request *rq) {
    struct who who = vctl_user(uid);
    rig_cancel_all(g, &who, rq);
}

static int code_of_first(const struct rig *g) {
    return g->code ? g->code : g->results->n_results ? -(int)g->results->results[0].error : 1;
}

/* ---- arrays ---- */

static void an_array_runs_task_by_task(void **state) {
    struct rig g;
    begin(&g, 1); /* 4 CPUs */
    uint32_t id = submit_array(&g, &(struct array_ask){.first = 1, .last = 6});
    rig_run(&g, 3000);
    assert_int_equal(count(&g, id, JOB_RUNNING), 4);
    assert_int_equal(n_pending(&g, id), 2);
    assert_int_not_equal(g.node[0].launch_task, 0);
    for (uint32_t t = 1; t <= 6; t++) {
        const struct job *j = task_of(&g, id, t);
        assert_non_null(j);
        assert_int_equal(rig_report(&g, &g.node[0], j->id, 1, t == 3 ? 7 << 8 : 0), 0);
        rig_run(&g, 3000);
    }
    const struct job *head = rig_job(&g, id);
    assert_int_equal(head->array->over, 6);
    assert_int_equal(head->array->bad, 1);
    assert_int_equal(task_of(&g, id, 3)->state, JOB_FAILED);
    assert_int_equal(vctl_rows(g.c, NULL, NULL, NULL), 6);
    rig_run(&g, 200000);
    assert_null(rig_job(&g, id)); /* all of it leaves the state */
    rig_fini(&g);
}

static void a_limit_bounds_what_runs(void **state) {
    struct rig g;
    begin(&g, 1);
    uint32_t id = submit_array(&g, &(struct array_ask){.first = 0, .last = 9, .limit = 2});
    rig_run(&g, 5000);
    assert_int_equal(count(&g, id, JOB_RUNNING), 2);
    rig_report(&g, &g.node[0], task_of(&g, id, 0)->id, 1, 0);
    rig_run(&g, 5000);
    assert_int_equal(count(&g, id, JOB_RUNNING), 2);
    rig_fini(&g);
}

static void bad_arrays_are_refused(void **state) {
    struct rig g;
    begin(&g, 1);
    assert_int_equal(submit_array(&g, &(struct array_ask){.first = 0, .last = 101}), 0);
    assert_int_equal(g.code, E_ARRAY);
    assert_string_equal(g.text, "Invalid job array specification");
    assert_int_equal(submit_array(&g, &(struct array_ask){.first = 5, .last = 4}), 0);
    assert_int_equal(g.code, E_ARRAY);
    assert_int_not_equal(submit_array(&g, &(struct array_ask){.first = 100, .last = 100}), 0);
    rig_fini(&g);
}

static void tasks_are_cancelled_by_name(void **state) {
    struct rig g;
    begin(&g, 1);
    uint32_t id = submit_array(&g, &(struct array_ask){.first = 1, .last = 9});
    rig_run(&g, 3000);
    assert_int_equal(n_pending(&g, id), 5); /* 5 … 9 */
    struct array_range r[] = {{2, 2}, {7, 8}};
    struct job_target t = {.job_id = id, .tasks = r, .n_tasks = 2};
    cancel(&g, 1001, &(struct cancel_request){.targets = &t, .n_targets = 1});
    assert_int_equal(code_of_first(&g), E_DENIED);
    cancel(&g, 1000, &(struct cancel_request){.targets = &t, .n_targets = 1});
    assert_int_equal(code_of_first(&g), 0);
    assert_string_equal(g.results->results[0].id_text + strcspn(g.results->results[0].id_text, "_"), "_[2,7-8]");
    assert_int_equal(n_pending(&g, id), 3);
    assert_int_equal(task_of(&g, id, 2)->state, JOB_CANCELLED);
    assert_int_equal(rig_job(&g, id)->array->over, 2);
    /* conditions: those that wait */
    uint32_t pending = JOB_PENDING;
    cancel(&g, 1000, &(struct cancel_request){.job_ids = &id, .n_job_ids = 1, .states = &pending, .n_states = 1});
    assert_int_equal(rig_job(&g, id)->state, JOB_CANCELLED);
    rig_run(&g, 100);
    assert_int_equal(count(&g, id, JOB_RUNNING), 3);
    /* and all of it */
    cancel(&g, 1000, &(struct cancel_request){.job_ids = &id, .n_job_ids = 1});
    assert_int_equal(count(&g, id, JOB_RUNNING), 0);
    rig_fini(&g);
}

static void conditions_choose(void **state) {
    struct rig g;
    begin(&g, 2);
    uint32_t a = rig_submit(&g, &(struct rig_job){.name = "one", .n_tasks = 4});
    uint32_t b = rig_submit(&g, &(struct rig_job){.name = "two", .n_tasks = 4});
    uint32_t c = rig_submit(&g, &(struct rig_job){.name = "one", .hold = true});
    uint32_t d = rig_submit(&g, &(struct rig_job){.name = "one", .hold = true, .uid = 1001});
    rig_until(&g, a, "RUNNING", 3000);
    rig_until(&g, b, "RUNNING", 3000);
    uint32_t pending = JOB_PENDING;
    cancel(&g, 1000, &(struct cancel_request){.name = "nosuch"});
    assert_int_equal(g.results->n_results, 0);
    cancel(&g, 1000, &(struct cancel_request){.name = "two", .job_ids = &a, .n_job_ids = 1});
    assert_int_equal(g.results->n_results, 0);
    cancel(&g, 1000, &(struct cancel_request){.name = "one", .states = &pending, .n_states = 1});
    assert_int_equal(g.results->n_results, 1);
    assert_int_equal(rig_job(&g, c)->state, JOB_CANCELLED);
    assert_int_equal(rig_job(&g, d)->state, JOB_PENDING);
    assert_int_equal(rig_job(&g, a)->state, JOB_RUNNING);
    const char *const on[] = {rig_job(&g, b)->nodes[0].name};
    cancel(&g, 1000, &(struct cancel_request){.nodes = on, .n_nodes = 1});
    assert_int_equal(rig_job(&g, b)->state, JOB_CANCELLED);
    assert_int_equal(rig_job(&g, a)->state, JOB_RUNNING);
    cancel(&g, 1000, &(struct cancel_request){.user = "u1001"});
    assert_int_equal(code_of_first(&g), E_DENIED);
    rig_fini(&g);
}

static void signals_of_arrays_go_to_what_runs(void **state) {
    struct rig g;
    begin(&g, 1);
    uint32_t id = submit_array(&g, &(struct array_ask){.first = 1, .last = 9});
    rig_run(&g, 3000);
    cancel(&g, 1000, &(struct cancel_request){.job_ids = &id, .n_job_ids = 1, .signal = 10, .full = true});
    rig_run(&g, 100);
    assert_int_equal(g.node[0].n_signals, 4);
    assert_true(g.node[0].signal.full);
    struct array_range r = {3, 3};
    struct job_target t = {.job_id = id, .tasks = &r, .n_tasks = 1};
    cancel(&g, 1000, &(struct cancel_request){.targets = &t, .n_targets = 1, .signal = 12, .batch_only = true});
    rig_run(&g, 100);
    assert_int_equal(g.node[0].n_signals, 5);
    assert_int_equal(g.node[0].signal.job_id, task_of(&g, id, 3)->id);
    assert_true(g.node[0].signal.batch_only);
    rig_fini(&g);
}

static void an_array_is_asked_for_and_waited_for_as_one(void **state) {
    struct rig g;
    begin(&g, 1);
    uint32_t id = submit_array(&g, &(struct array_ask){.first = 1, .last = 3});
    rig_run(&g, 3000);
    struct rig_ask jobs = {.desc = jobs_reply_rec()}, wait = {.desc = wait_reply_rec()};
    rig_jobs(&g, 1000, &(struct jobs_request){.job_ids = &id, .n_job_ids = 1}, &jobs);
    assert_true(rig_answered(&g, &jobs, 1000));
    assert_int_equal(((const struct jobs_reply *)jobs.reply)->n_jobs, 3);
    rig_ask_fini(&jobs);
    rig_wait(&g, 1000, id, &wait);
    static const uint32_t order[] = {3, 1, 2};
    for (size_t i = 0; i < 3; i++) {
        assert_false(wait.is_answered);
        const struct job *j = task_of(&g, id, order[i]);
        rig_report(&g, node_of(&g, j), j->id, 1, order[i] == 1 ? 5 << 8 : 0);
    }
    assert_true(rig_answered(&g, &wait, 1000));
    assert_true(((const struct wait_reply *)wait.reply)->is_over);
    assert_int_equal(((const struct wait_reply *)wait.reply)->wait_status, 5 << 8);
    rig_ask_fini(&wait);
    rig_fini(&g);
}

static void tasks_are_held_and_released(void **state) {
    struct rig g;
    begin(&g, 1);
    uint32_t id = submit_array(&g, &(struct array_ask){.first = 1, .last = 3, .hold = true});
    struct array_range r = {2, 2};
    struct job_target t = {.job_id = id, .tasks = &r, .n_tasks = 1};
    assert_int_equal(rig_hold_all(&g, 1000, &(struct hold_request){.targets = &t, .n_targets = 1, .op = HOLD_OP_RELEASE}), 0);
    rig_run(&g, 3000);
    assert_int_equal(count(&g, id, JOB_RUNNING), 1);
    assert_int_equal(task_of(&g, id, 2)->state, JOB_RUNNING);
    assert_int_equal(rig_hold(&g, 1001, id, HOLD_OP_RELEASE), E_USER);
    assert_int_equal(rig_hold(&g, 1000, id, HOLD_OP_RELEASE), 0);
    rig_run(&g, 3000);
    assert_int_equal(count(&g, id, JOB_RUNNING), 3);
    rig_fini(&g);
}

/* ---- requeue, suspend ---- */

static int requeue(struct rig *g, uint32_t uid, uint32_t id, bool hold) {
    struct job_target t = {.job_id = id};
    return rig_requeue(g, uid, &(struct requeue_request){.targets = &t, .n_targets = 1, .hold = hold});
}

static int suspend(struct rig *g, uint32_t uid, uint32_t id, bool resume) {
    struct job_target t = {.job_id = id};
    return rig_suspend(g, uid, &(struct suspend_request){.targets = &t, .n_targets = 1, .resume = resume});
}

static void a_requeued_job_runs_again(void **state) {
    struct rig g;
    begin(&g, 1);
    uint32_t id = rig_submit(&g, &(struct rig_job){.requeue = true});
    rig_until(&g, id, "RUNNING", 3000);
    char sluid[16];
    snprintf(sluid, sizeof(sluid), "%s", rig_job(&g, id)->sluid);
    assert_int_equal(requeue(&g, 1001, id, false), E_DENIED);
    assert_int_equal(requeue(&g, 1000, id + 7, false), E_JOB_ID);
    assert_int_equal(requeue(&g, 1000, id, false), 0);
    rig_run(&g, 100);
    assert_int_equal(g.node[0].n_terminates, 1);
    rig_report(&g, &g.node[0], id, 1, 15);
    rig_run(&g, 100);
    assert_int_equal(rig_job(&g, id)->restarts, 1);
    assert_string_not_equal(rig_job(&g, id)->sluid, sluid);
    rig_run(&g, 200000); /* it may have to wait */
    assert_int_equal(rig_job(&g, id)->start_no, 2);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    assert_int_equal(requeue(&g, 1000, id, true), 0);
    rig_report(&g, &g.node[0], id, 2, 15);
    rig_run(&g, 200000);
    assert_int_equal(rig_job(&g, id)->state, JOB_PENDING);
    assert_int_equal(rig_job(&g, id)->hold, HOLD_USER);
    assert_int_equal(requeue(&g, 1000, id, false), E_JOB_PENDING);
    rig_fini(&g);
}

static void a_suspended_job_stands_still(void **state) {
    struct rig g;
    begin(&g, 2);
    uint32_t id = rig_submit(&g, &(struct rig_job){.n_tasks = 8, .time_limit_min = 2});
    rig_until(&g, id, "RUNNING", 3000);
    assert_int_equal(suspend(&g, 1001, id, false), E_DENIED);
    rig_run(&g, 60000);
    assert_int_equal(suspend(&g, 1000, id, false), 0);
    rig_run(&g, 100);
    assert_int_equal(g.node[0].n_suspends, 1);
    assert_int_equal(g.node[1].n_suspends, 1);
    rig_run(&g, 300000);
    assert_int_equal(rig_job(&g, id)->state, JOB_SUSPENDED);
    assert_int_equal(g.node[0].n_suspends, 1); /* said once */
    rig_restart(&g, true); /* whoever leads next says it again: nobody knows what was heard */
    rig_run(&g, 100);
    assert_int_equal(g.node[0].n_suspends, 2);
    assert_int_equal(suspend(&g, 1000, id, true), 0);
    rig_run(&g, 100);
    assert_int_equal(g.node[0].n_resumes, 1);
    assert_int_equal(g.node[1].n_resumes, 1);
    rig_run(&g, 50000);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    rig_run(&g, 15000);
    assert_int_equal(rig_job(&g, id)->state, JOB_TIMEOUT);
    assert_int_not_equal(suspend(&g, 1000, id, true), 0);
    rig_fini(&g);
}

static struct vanswer cannot_be_reached(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    bool *is_away = ctx;
    return (struct vanswer){.code = m == WIRE_Agent_Suspend && *is_away ? E_UNREACHABLE : 0};
}

static void a_suspend_is_said_until_it_is_heard(void **state) {
    struct rig g;
    bool is_away = true;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", cannot_be_reached, &is_away);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    rig_until(&g, id, "RUNNING", 3000);
    assert_int_equal(suspend(&g, 1000, id, false), 0);
    rig_run(&g, 20000);
    assert_true(n->n_suspends > 3);
    is_away = false;
    rig_run(&g, 15000);
    uint32_t heard = n->n_suspends;
    rig_run(&g, 60000);
    assert_int_equal(n->n_suspends, heard);
    assert_int_equal(react_stats(g.c->room.react).in_flight, 0);
    rig_fini(&g);
}

/* ---- update ---- */

static int update(struct rig *g, uint32_t uid, uint32_t id, uint32_t changes, const struct job_spec *spec) {
    struct job_target t = {.job_id = id};
    return rig_update(g, uid, &(struct update_request){.targets = &t, .n_targets = 1, .changes = changes, .spec = spec});
}

static void an_owner_makes_his_job_smaller_only(void **state) {
    struct rig g;
    begin(&g, 1);
    uint32_t run = rig_submit(&g, &(struct rig_job){.time_limit_min = 20});
    uint32_t held = rig_submit(&g, &(struct rig_job){.time_limit_min = 20, .hold = true});
    rig_until(&g, run, "RUNNING", 3000);
    const uint32_t limit = CHANGE_TIME_LIMIT;
    assert_int_equal(update(&g, 1001, run, limit, &(struct job_spec){.time_limit_min = 5}), E_USER);
    assert_int_equal(update(&g, 1000, run, limit, &(struct job_spec){.time_limit_min = 21}), E_DENIED);
    assert_int_equal(update(&g, 1000, run, limit, &(struct job_spec){.time_limit_min = 10}), 0);
    assert_int_equal(rig_job(&g, run)->time_limit_min, 10);
    assert_int_equal(update(&g, 0, run, limit, &(struct job_spec){.time_limit_min = TIME_LIMIT_NONE}), 0);
    assert_int_equal(rig_job(&g, run)->time_limit_min, TIME_LIMIT_NONE);
    assert_int_equal(update(&g, 1000, held, limit, &(struct job_spec){.time_limit_min = 30}), 0);
    assert_int_equal(rig_job(&g, held)->spec->time_limit_min, 30);
    assert_int_equal(update(&g, 1000, held, CHANGE_NICE, &(struct job_spec){.nice = -1}), E_DENIED);
    assert_int_equal(update(&g, 1000, held, CHANGE_NICE, &(struct job_spec){.nice = 7}), 0);
    assert_int_equal(rig_job(&g, held)->nice, 7);
    assert_int_equal(update(&g, 1000, run, CHANGE_PARTITION, &(struct job_spec){.partition = "default"}), E_JOB_NOT_PENDING);
    assert_int_equal(update(&g, 1000, held, CHANGE_PARTITION, &(struct job_spec){.partition = "nosuch"}), E_PARTITION);
    assert_int_equal(update(&g, 1000, held, 0, NULL), E_USAGE);
    assert_int_equal(update(&g, 1000, held, CHANGE_DEPENDENCY, &(struct job_spec){.dependency = "bogus:1"}), E_DEPENDENCY);
    assert_int_equal(update(&g, 1000, held, CHANGE_NAME, &(struct job_spec){.name = "newname"}), 0);
    assert_string_equal(rig_job(&g, held)->spec->name, "newname");
    assert_int_equal(update(&g, 1000, run, CHANGE_NODES, &(struct job_spec){.min_nodes = 3}), E_UNSUPPORTED);
    assert_int_equal(update(&g, 1000, held, CHANGE_ARRAY_LIMIT, NULL), E_UNSUPPORTED);
    struct job_target t = {.job_id = held};
    struct update_request prio = {.targets = &t, .n_targets = 1, .changes = CHANGE_PRIORITY, .priority_set = 11};
    assert_int_equal(rig_update(&g, 1000, &prio), E_JOB_HELD);
    assert_string_equal(g.results->results[0].text, "Job is in held state, pending scheduler release");
    rig_fini(&g);
}

static void nodes_are_updated_by_administrators(void **state) {
    struct rig g;
    begin(&g, 1);
    const char *const names[] = {"n1"}, *const other[] = {"n1", "n9"};
    struct node_update_request rq = {.names = names, .n_names = 1, .op = NODE_OP_DRAIN, .reason = "disk"};
    assert_int_equal(rig_update_node(&g, 1000, &rq), E_USER);
    assert_int_equal(rig_update_node(&g, 0, &rq), 0);
    assert_false(node_takes_work(vctl_node(g.c, "n1")));
    rq.op = NODE_OP_RESUME;
    assert_int_equal(rig_update_node(&g, 0, &rq), 0);
    assert_true(node_takes_work(vctl_node(g.c, "n1")));
    assert_int_equal(rig_update_node(&g, 0, &rq), E_JOB_STATE);
    assert_string_equal(g.text, "Invalid node state transition");
    rq.op = NODE_OP_DRAIN;
    rq.names = other;
    rq.n_names = 2;
    assert_int_equal(rig_update_node(&g, 0, &rq), E_NODE_NAME);
    rig_fini(&g);
}

/* ---- the clock ---- */

static void a_job_is_warned_once_before_its_end(void **state) {
    struct rig g;
    begin(&g, 1);
    struct job_more more = {.signal = 10, .signal_secs = 60, .signal_batch = true};
    struct job_spec spec = {.work_dir = "/", .more = &more, .n_tasks = 1, .time_limit_min = 3};
    uint32_t id = rig_submit_spec(&g, 1000, &spec, SCRIPT);
    rig_until(&g, id, "RUNNING", 3000);
    rig_run(&g, 115000);
    assert_int_equal(g.node[0].n_signals, 0);
    rig_run(&g, 10000);
    assert_int_equal(g.node[0].n_signals, 1);
    assert_int_equal(g.node[0].signal.signal, 10);
    assert_true(g.node[0].signal.batch_only);
    rig_restart(&g, true);
    rig_run(&g, 40000);
    assert_int_equal(g.node[0].n_signals, 1);
    rig_run(&g, 20000);
    assert_int_equal(rig_job(&g, id)->state, JOB_TIMEOUT);
    rig_fini(&g);
}

static void a_deadline_that_cannot_be_kept_ends_the_job(void **state) {
    struct rig g;
    begin(&g, 1);
    struct job_more more = {.deadline_unix = VWORLD_BEGIN_UNIX_MS / 1000 + 600};
    struct job_spec spec = {.work_dir = "/", .more = &more, .n_tasks = 1, .time_limit_min = 5, .hold = true};
    uint32_t id = rig_submit_spec(&g, 1000, &spec, SCRIPT);
    assert_int_not_equal(id, 0);
    rig_run(&g, 280000);
    assert_int_equal(rig_job(&g, id)->state, JOB_PENDING);
    rig_run(&g, 40000);
    assert_int_equal(rig_job(&g, id)->state, JOB_DEADLINE);
    assert_int_equal(rig_submit_spec(&g, 1000, &spec, SCRIPT), 0);
    assert_int_equal(g.code, E_TIME_LIMIT);
    more = (struct job_more){.time_min_min = 9};
    assert_int_equal(rig_submit_spec(&g, 1000, &spec, SCRIPT), 0);
    assert_int_equal(g.code, E_TIME_MIN);
    rig_fini(&g);
}

static void a_trial_keeps_nothing(void **state) {
    struct rig g;
    begin(&g, 2);
    struct job_spec spec = {.work_dir = "/", .n_tasks = 6};
    struct rig_ask a = {.desc = submit_reply_rec()};
    rig_try(&g, 1000, &spec, &a);
    assert_true(rig_answered(&g, &a, 2000));
    assert_int_equal(a.code, 0);
    const struct submit_reply *r = a.reply;
    assert_int_equal(r->n_nodes, 2);
    assert_int_equal(r->n_cpus, 6);
    assert_int_equal(r->start_unix, (VWORLD_BEGIN_UNIX_MS + vworld_now_ms(g.w)) / 1000);
    assert_null(rig_job(&g, r->job_id));
    rig_ask_fini(&a);
    rig_fini(&g);
}

/* ---- what an update names must be there ---- */

static int update_to(struct rig *g, uint32_t id, uint32_t changes, const struct job_spec *spec) {
    struct job_target t = {.job_id = id};
    return rig_update(g, 1000, &(struct update_request){.targets = &t, .n_targets = 1, .changes = changes, .spec = spec});
}

static void an_update_that_names_what_nobody_has_is_refused(void **state) {
    static const char *const nobody[] = {"n9"};
    struct rig g;
    begin(&g, 2);
    struct rig_job blocker = {.n_tasks = 8, .min_nodes = 2};
    assert_int_not_equal(rig_submit(&g, &blocker), 0);
    uint32_t id = rig_submit(&g, &blocker);
    struct gres_ask gpu = {.name = "gpu", .count = 1};
    struct license_ask license = {.name = "matlab", .count = 1};
    struct job_more features = {.features = "nosuch"}, gres = {.gres = &gpu, .n_gres = 1, .gres_text = "gpu"},
                    licenses = {.licenses = &license, .n_licenses = 1, .licenses_text = "matlab"};
    assert_int_equal(update_to(&g, id, CHANGE_FEATURES, &(struct job_spec){.more = &features}), E_FEATURE);
    assert_int_equal(update_to(&g, id, CHANGE_GRES, &(struct job_spec){.more = &gres}), E_GRES);
    assert_int_equal(update_to(&g, id, CHANGE_LICENSES, &(struct job_spec){.more = &licenses}), E_LICENSE);
    assert_int_equal(update_to(&g, id, CHANGE_NODE_LISTS, &(struct job_spec){.req_nodes = nobody, .n_req_nodes = 1}), E_NODE_NAME);
    assert_int_equal(rig_job(&g, id)->state, JOB_PENDING);
    assert_null(job_spec_more(rig_job(&g, id)->spec)->features);
    /* a size that the cluster hasn't got is taken, as recorded, and waits */
    assert_int_equal(update_to(&g, id, CHANGE_NODES, &(struct job_spec){.min_nodes = 3, .max_nodes = 3}), 0);
    assert_int_equal(rig_job(&g, id)->spec->min_nodes, 3);
    rig_run(&g, 5000);
    assert_int_equal(rig_job(&g, id)->state, JOB_PENDING);
    rig_fini(&g);
}

/* ---- a run gives nodes back ---- */

static int resize(struct rig *g, uint32_t id, uint32_t n_nodes) {
    struct job_target t = {.job_id = id};
    struct job_spec spec = {.min_nodes = n_nodes, .max_nodes = n_nodes};
    return rig_update(g, 1000, &(struct update_request){.targets = &t, .n_targets = 1, .changes = CHANGE_NODES, .spec = &spec});
}

static struct vanswer hears_late(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    return (struct vanswer){.never = m == WIRE_Agent_Terminate && *(const bool *)ctx};
}

/* Terminate to what was given back, and to that alone, again until it is clean; whoever leads. */
static void what_a_run_gave_back_is_ended(void **state) {
    struct rig g;
    bool is_deaf = true;
    rig_init(&g, NULL);
    struct vscript *a = rig_node(&g, "n1", NULL, NULL), *b = rig_node(&g, "n2", hears_late, &is_deaf);
    uint32_t id = rig_submit(&g, &(struct rig_job){.n_tasks = 2, .min_nodes = 2});
    rig_until(&g, id, "RUNNING", 3000);
    assert_int_equal(resize(&g, id, 3), E_UNSUPPORTED);
    assert_int_equal(resize(&g, id, 1), 0);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    assert_int_equal(rig_job(&g, id)->n_nodes, 1);
    rig_run(&g, 100);
    assert_int_equal(b->n_terminates, 1);
    rig_restart(&g, true); /* the next leader finds it in the state */
    rig_run(&g, 20000);
    assert_true(b->n_terminates >= 2);
    is_deaf = false;
    rig_run(&g, 20000);
    uint32_t n = b->n_terminates;
    assert_int_equal(a->n_terminates, 0);
    assert_false(rig_is_free(&g));
    assert_int_equal(rig_report(&g, b, id, 1, 9), 0);
    rig_run(&g, 60000);
    assert_int_equal(b->n_terminates, n);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    /* another one gets it */
    uint32_t second = rig_submit(&g, &(struct rig_job){.req_node = "n2"});
    rig_until(&g, second, "RUNNING", 3000);
    assert_int_equal(rig_report(&g, b, second, 1, 0), 0);
    assert_int_equal(rig_report(&g, a, id, 1, 0), 0);
    rig_until(&g, id, "COMPLETED", 1000);
    assert_true(rig_is_free(&g));
    rig_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_run_gave_back_is_ended),
        cmocka_unit_test(an_update_that_names_what_nobody_has_is_refused),
        cmocka_unit_test(an_array_runs_task_by_task),
        cmocka_unit_test(a_limit_bounds_what_runs),
        cmocka_unit_test(bad_arrays_are_refused),
        cmocka_unit_test(tasks_are_cancelled_by_name),
        cmocka_unit_test(conditions_choose),
        cmocka_unit_test(signals_of_arrays_go_to_what_runs),
        cmocka_unit_test(an_array_is_asked_for_and_waited_for_as_one),
        cmocka_unit_test(tasks_are_held_and_released),
        cmocka_unit_test(a_requeued_job_runs_again),
        cmocka_unit_test(a_suspended_job_stands_still),
        cmocka_unit_test(a_suspend_is_said_until_it_is_heard),
        cmocka_unit_test(an_owner_makes_his_job_smaller_only),
        cmocka_unit_test(nodes_are_updated_by_administrators),
        cmocka_unit_test(a_job_is_warned_once_before_its_end),
        cmocka_unit_test(a_deadline_that_cannot_be_kept_ends_the_job),
        cmocka_unit_test(a_trial_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
