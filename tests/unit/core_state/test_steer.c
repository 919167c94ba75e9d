/* SPDX-License-Identifier: Apache-2.0
 *
 * Requeue, suspend, updates, steps, what jobs share, and what administrators do, in the state machine.
 */
#include "rig.h"

static int requeue(struct rig *g, uint32_t id, uint32_t hold) {
    static const char *const sluids[] = {"s9"};
    struct job_target t = {.job_id = id};
    return act1(g, CMD_REQUEUE, &(struct cmd_requeue){&t, 1, hold, sluids, 1});
}

static void a_run_is_queued_again(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, 1);
    assert_int_equal(requeue(&g, 1, HOLD_NONE), E_JOB_PENDING);
    start(&g, 1, (struct job_node){.node_id = n, .cpus = 1});
    running(&g, 1);
    assert_int_equal(requeue(&g, 1, HOLD_NONE), 0);
    assert_true(saw(&g, EV_JOB_ENDING, 1));
    assert_true(job_of(&g, 1)->completing);
    done(&g, 1, n, 15);
    assert_true(saw(&g, EV_JOB_REQUEUED, 1) && saw(&g, EV_JOB_PENDING, 1));
    const struct job *life = g.r.lives.p[0];
    assert_int_equal(life->state, JOB_REQUEUED);
    assert_string_equal(life->sluid, "s1");
    assert_int_equal(life->wait_status, 15);
    const struct job *j = job_of(&g, 1);
    assert_int_equal(j->state, JOB_PENDING);
    assert_string_equal(j->sluid, "s9");
    assert_int_equal(j->restarts, 1);
    assert_int_equal(j->start_no, 1);
    assert_int_equal(j->start_ms + j->end_ms + j->wait_status + j->n_nodes, 0);
    finish(&g, 1, n, 0);
    /* over and still here: back, and held */
    assert_int_equal(requeue(&g, 1, HOLD_USER), 0);
    assert_int_equal(job_of(&g, 1)->hold, HOLD_USER);
    assert_int_equal(job_of(&g, 1)->reason, REASON_REQUEUED_HELD);
    assert_int_equal(job_of(&g, 1)->restarts, 2);
    assert_int_equal(start(&g, 1, (struct job_node){.node_id = n, .cpus = 1}), E_JOB_HELD);
    /* a cancel has the last word */
    uint32_t id = 1;
    act(&g, CMD_HOLD, &(struct cmd_hold){&id, 1, HOLD_NONE, false});
    start(&g, 1, (struct job_node){.node_id = n, .cpus = 1});
    running(&g, 1);
    requeue(&g, 1, HOLD_NONE);
    assert_int_equal(cancel(&g, 1), 0);
    done(&g, 1, n, 9);
    assert_int_equal(job_of(&g, 1)->state, JOB_CANCELLED);
    assert_true(job_is_over(job_of(&g, 1)));
    submit_spec(&g, 2, (struct job_spec){.no_requeue = true});
    finish(&g, 2, n, 0);
    assert_int_equal(requeue(&g, 2, HOLD_NONE), E_REQUEUE);
    rig_fini(&g);
}

static void what_is_held_while_it_runs_stays_held(void **state) {
    struct rig g;
    uint32_t id = 1;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, id);
    start(&g, id, (struct job_node){.node_id = n, .cpus = 1});
    assert_int_equal(act1(&g, CMD_HOLD, &(struct cmd_hold){.job_ids = &id, .n_job_ids = 1, .hold = HOLD_USER, .runs_too = true}), 0);
    running(&g, id);
    assert_int_equal(job_of(&g, id)->state, JOB_RUNNING);
    assert_int_equal(job_of(&g, id)->reason, REASON_HELD_USER);
    requeue(&g, id, HOLD_NONE);
    done(&g, id, n, 15);
    assert_int_equal(job_of(&g, id)->state, JOB_PENDING);
    assert_int_equal(job_of(&g, id)->reason, REASON_HELD_USER);
    assert_int_equal(start(&g, id, (struct job_node){.node_id = n, .cpus = 1}), E_JOB_HELD);
    /* an undone start is held as well */
    act1(&g, CMD_HOLD, &(struct cmd_hold){&id, 1, HOLD_NONE, false});
    start(&g, id, (struct job_node){.node_id = n, .cpus = 1});
    assert_int_equal(act1(&g, CMD_HOLD, &(struct cmd_hold){.job_ids = &id, .n_job_ids = 1, .hold = HOLD_ADMIN, .as_admin = true, .runs_too = true}), 0);
    act(&g, CMD_UNDO, &(struct cmd_undo){.job_id = id, .start_no = job_of(&g, id)->start_no});
    done(&g, id, n, 0);
    assert_int_equal(job_of(&g, id)->hold, HOLD_ADMIN);
    assert_int_equal(job_of(&g, id)->reason, REASON_HELD_ADMIN);
    assert_int_equal(act1(&g, CMD_HOLD, &(struct cmd_hold){&id, 1, HOLD_NONE, false}), E_DENIED);
    rig_fini(&g);
}

static void lose_node(struct rig *g, uint32_t id, uint32_t n) {
    start(g, id, (struct job_node){.node_id = n, .cpus = 1});
    running(g, id);
    struct cmd_node_done cmd = {.job_id = id, .start_no = job_of(g, id)->start_no, .node_id = n, .node_failed = true,
                                .new_sluid = "s7"};
    act(g, CMD_NODE_DONE, &cmd);
}

static void what_is_queued_again_may_have_to_wait(void **state) {
    struct rig g;
    rig_init(&g);
    config(&g, (struct rconf){.requeue_delay_secs = 120, .max_requeues = 9});
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, 1);
    start(&g, 1, (struct job_node){.node_id = n, .cpus = 1});
    running(&g, 1);
    assert_int_equal(requeue(&g, 1, HOLD_NONE), 0);
    done(&g, 1, n, 15);
    int64_t once = job_of(&g, 1)->retry_unix;
    assert_int_equal(once, job_of(&g, 1)->submit_ms / 1000 + 120);
    lose_node(&g, 1, n);
    assert_int_equal(job_of(&g, 1)->retry_unix, job_of(&g, 1)->submit_ms / 1000 + 120);
    rig_fini(&g);
}

static void a_release_keeps_the_delay_of_a_requeue(void **state) {
    struct rig g;
    uint32_t id = 1;
    struct job_target t = {.job_id = id};
    rig_init(&g);
    config(&g, (struct rconf){.requeue_delay_secs = 120, .max_requeues = 9});
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, id);
    start(&g, id, (struct job_node){.node_id = n, .cpus = 1});
    running(&g, id);
    requeue(&g, id, HOLD_USER);
    done(&g, id, n, 15);
    int64_t when = job_of(&g, id)->submit_ms / 1000 + 120;
    struct cmd_hold release = {.job_ids = &id, .n_job_ids = 1, .keeps = true, .keeps_delay = true};
    assert_int_equal(act1(&g, CMD_HOLD, &release), 0);
    assert_int_equal(job_of(&g, id)->hold, HOLD_NONE);
    assert_int_equal(job_of(&g, id)->retry_unix, when);
    /* a new begin replaces it, but for entries that did not know of that */
    struct job_spec soon = {.begin_unix = 1};
    struct cmd_update up = {.targets = &t, .n_targets = 1, .changes = CHANGE_BEGIN, .spec = &soon};
    assert_int_equal(act1(&g, CMD_UPDATE, &up), 0);
    assert_int_equal(job_of(&g, id)->retry_unix, when);
    up.lifts_delay = true;
    assert_int_equal(act1(&g, CMD_UPDATE, &up), 0);
    assert_int_equal(job_of(&g, id)->retry_unix, 0);
    /* what launches that failed have made of it is lifted, and an old entry lifts all */
    start(&g, id, (struct job_node){.node_id = n, .cpus = 1});
    act(&g, CMD_UNDO, &(struct cmd_undo){.job_id = id, .start_no = job_of(&g, id)->start_no});
    done(&g, id, n, 0);
    assert_true(job_of(&g, id)->retry_unix > 0);
    act1(&g, CMD_HOLD, &(struct cmd_hold){.job_ids = &id, .n_job_ids = 1, .hold = HOLD_USER});
    assert_int_equal(act1(&g, CMD_HOLD, &release), 0);
    assert_int_equal(job_of(&g, id)->retry_unix, 0);
    start(&g, id, (struct job_node){.node_id = n, .cpus = 1});
    running(&g, id);
    requeue(&g, id, HOLD_USER);
    done(&g, id, n, 15);
    act1(&g, CMD_HOLD, &(struct cmd_hold){.job_ids = &id, .n_job_ids = 1});
    assert_int_equal(job_of(&g, id)->retry_unix, 0);
    rig_fini(&g);
}

static void a_job_that_lost_a_node_is_queued_again(void **state) {
    struct rig g;
    rig_init(&g);
    config(&g, (struct rconf){.max_requeues = 2});
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, 1);
    lose_node(&g, 1, n);
    assert_int_equal(((const struct job *)g.r.lives.p[0])->state, JOB_NODE_FAIL);
    assert_int_equal(job_of(&g, 1)->state, JOB_PENDING);
    assert_string_equal(job_of(&g, 1)->sluid, "s7");
    lose_node(&g, 1, n);
    assert_int_equal(job_of(&g, 1)->hold, HOLD_NONE);
    lose_node(&g, 1, n);
    assert_int_equal(job_of(&g, 1)->hold, HOLD_ADMIN);
    assert_int_equal(job_of(&g, 1)->reason, REASON_MAX_REQUEUE);
    submit_spec(&g, 2, (struct job_spec){.no_requeue = true});
    lose_node(&g, 2, n);
    assert_int_equal(job_of(&g, 2)->state, JOB_NODE_FAIL);
    struct job_more more = {.interactive = true};
    submit_spec(&g, 3, (struct job_spec){.more = &more});
    lose_node(&g, 3, n);
    assert_int_equal(job_of(&g, 3)->state, JOB_NODE_FAIL);
    rig_fini(&g);
}

static int suspend(struct rig *g, uint32_t id, bool resume) {
    struct job_target t = {.job_id = id};
    return act1(g, CMD_SUSPEND, &(struct cmd_suspend){&t, 1, resume});
}

static void clocks_stand_still(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, 1);
    assert_int_equal(suspend(&g, 1, false), E_JOB_PENDING);
    start(&g, 1, (struct job_node){.node_id = n, .cpus = 1});
    running(&g, 1);
    assert_int_equal(suspend(&g, 1, true), E_REQUEUE);
    assert_int_equal(suspend(&g, 1, false), 0);
    assert_true(saw(&g, EV_JOB_SUSPENDED, 1));
    assert_int_equal(suspend(&g, 1, false), 0);
    assert_int_equal(g.r.events.n, 0);
    struct run_id run = {1, 1};
    act(&g, CMD_TIMEOUT, &(struct cmd_timeout){&run, 1});
    assert_int_equal(job_of(&g, 1)->state, JOB_SUSPENDED);
    g.now_ms += 5000;
    assert_int_equal(suspend(&g, 1, true), 0);
    assert_int_equal(job_of(&g, 1)->rare->suspended_total_ms, 5030);
    suspend(&g, 1, false);
    g.now_ms += 1000;
    cancel(&g, 1);
    assert_int_equal(job_of(&g, 1)->rare->suspended_total_ms, 6040);
    done(&g, 1, n, 15);
    assert_int_equal(suspend(&g, 1, true), E_JOB_DONE);
    rig_fini(&g);
}

static int note_stop(struct rig *g, uint32_t id, bool resume) {
    struct job_target t = {.job_id = id};
    return act1(g, CMD_SUSPEND, &(struct cmd_suspend){&t, 1, resume, true});
}

static void a_stop_by_a_signal_is_noted(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, 1);
    assert_int_equal(note_stop(&g, 1, false), E_JOB_PENDING);
    start(&g, 1, (struct job_node){.node_id = n, .cpus = 1});
    running(&g, 1);
    assert_int_equal(note_stop(&g, 1, false), 0);
    assert_int_equal(job_of(&g, 1)->state, JOB_RUNNING);
    assert_string_equal(job_shown_state(job_of(&g, 1)), "STOPPED");
    assert_string_equal(job_shown_state_compact(job_of(&g, 1)), "ST");
    assert_true(saw(&g, EV_JOB_CHANGED, 1));
    assert_int_equal(note_stop(&g, 1, true), 0);
    assert_string_equal(job_shown_state(job_of(&g, 1)), "RUNNING");
    note_stop(&g, 1, false);
    suspend(&g, 1, false);
    assert_string_equal(job_shown_state(job_of(&g, 1)), "SUSPENDED");
    suspend(&g, 1, true); /* SIGCONT */
    assert_string_equal(job_shown_state(job_of(&g, 1)), "RUNNING");
    note_stop(&g, 1, false);
    done(&g, 1, n, 0);
    assert_string_equal(job_shown_state(job_of(&g, 1)), "COMPLETED");
    assert_int_equal(note_stop(&g, 1, false), E_JOB_DONE);
    rig_fini(&g);
}

static int update(struct rig *g, uint32_t id, uint32_t changes, struct job_spec spec) {
    struct job_target t = {.job_id = id};
    return act1(g, CMD_UPDATE, &(struct cmd_update){.targets = &t, .n_targets = 1, .changes = changes, .spec = &spec});
}

static void fields_change_as_the_state_allows(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    struct job_more more = {.features = "ib"};
    submit(&g, 1);
    assert_int_equal(update(&g, 1, 0, (struct job_spec){0}), E_SYNTAX);
    assert_int_equal(update(&g, 1, CHANGE_NAME | CHANGE_FEATURES, (struct job_spec){.name = "new", .more = &more}), 0);
    assert_string_equal(job_of(&g, 1)->spec->name, "new");
    assert_string_equal(job_of(&g, 1)->spec->more->features, "ib");
    assert_int_equal(update(&g, 1, CHANGE_FEATURES, (struct job_spec){0}), 0);
    assert_null(job_of(&g, 1)->spec->more);
    assert_int_equal(update(&g, 1, CHANGE_ARRAY_LIMIT, (struct job_spec){0}), E_UNSUPPORTED);
    assert_int_equal(update(&g, 1, CHANGE_HOLD, (struct job_spec){0}), 0);
    assert_int_equal(job_of(&g, 1)->reason, REASON_HELD_USER);
    uint32_t id = 1;
    act(&g, CMD_HOLD, &(struct cmd_hold){&id, 1, HOLD_NONE, false});
    start(&g, 1, (struct job_node){.node_id = n, .cpus = 1});
    running(&g, 1);
    assert_int_equal(update(&g, 1, CHANGE_TIME_LIMIT, (struct job_spec){.time_limit_min = 5}), 0);
    assert_int_equal(job_of(&g, 1)->time_limit_min, 5);
    assert_int_equal(update(&g, 1, CHANGE_PARTITION, (struct job_spec){.partition = "q"}), E_JOB_NOT_PENDING);
    assert_int_equal(update(&g, 1, CHANGE_NODES, (struct job_spec){0}), E_UNSUPPORTED);
    done(&g, 1, n, 0);
    assert_int_equal(update(&g, 1, CHANGE_NAME, (struct job_spec){.name = "x"}), E_JOB_DONE);
    rig_fini(&g);
}

/* ---- steps ---- */

static int step(struct rig *g, uint32_t job, uint32_t node, uint32_t cpus, bool overlap) {
    struct step_spec spec = {.name = "s", .n_tasks = 1, .overlap = overlap};
    struct step_node sn = {.node_id = node, .cpus = cpus, .n_tasks = 1};
    return act(g, CMD_STEP_START,
               &(struct cmd_step_start){job, job_of(g, job) ? job_of(g, job)->start_no : 1, &spec, &sn, 1});
}

static int step_done(struct rig *g, uint32_t job, uint32_t id, uint32_t node, uint32_t status) {
    return act(g, CMD_STEP_DONE,
               &(struct cmd_step_done){.job_id = job, .start_no = job_of(g, job)->start_no, .step_id = id,
                                       .node_id = node, .wait_status = status, .max_rss_kb = 7});
}

static void steps_never_have_more_than_the_job(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, 1);
    assert_int_equal(step(&g, 9, n, 1, false), E_JOB_ID);
    assert_int_equal(step(&g, 1, n, 1, false), E_JOB_PENDING);
    start(&g, 1, (struct job_node){.node_id = n, .cpus = 2});
    running(&g, 1);
    assert_int_equal(step(&g, 1, n, 3, false), E_STEP_TOO_BIG);
    assert_int_equal(step(&g, 1, n, 1, false), 0);
    assert_int_equal(g.answer.step_id, 0);
    assert_true(saw(&g, EV_STEP_STARTED, 1));
    assert_int_equal(step(&g, 1, n, 2, false), E_STEP_BUSY);
    assert_int_equal(step(&g, 1, n, 2, true), 0); /* --overlap */
    assert_int_equal(g.answer.step_id, 1);
    assert_int_equal(step(&g, 1, n, 1, false), 0);
    assert_int_equal(step_done(&g, 1, 0, n, 3 << 8), 0);
    assert_true(saw(&g, EV_STEP_OVER, 1));
    assert_int_equal(step_of(&g, 1, 0)->state, JOB_FAILED);
    assert_int_equal(step_of(&g, 1, 0)->max_rss_kb, 7);
    assert_int_equal(step_done(&g, 1, 0, n, 0), 0); /* said again */
    assert_int_equal(g.r.events.n, 0);
    assert_int_equal(step(&g, 1, n, 1, false), 0);
    struct cmd_step_cancel late = {1, 2, true};
    assert_int_equal(act(&g, CMD_STEP_CANCEL, &late), 0);
    assert_true(saw(&g, EV_STEP_ENDING, 1));
    assert_int_equal(act(&g, CMD_STEP_CANCEL, &late), E_JOB_DONE);
    assert_int_equal(step(&g, 1, n, 1, false), E_STEP_BUSY); /* it still has its share */
    step_done(&g, 1, 2, n, 15);
    assert_int_equal(step_of(&g, 1, 2)->state, JOB_TIMEOUT);
    /* the job's end ends them */
    done(&g, 1, n, 0);
    assert_int_equal(step_of(&g, 1, 1)->state, JOB_CANCELLED);
    assert_true(step_is_over(step_of(&g, 1, 1)) && step_is_over(step_of(&g, 1, 3)));
    assert_int_equal(step(&g, 1, n, 1, false), E_JOB_DONE);
    uint32_t id = 1;
    act(&g, CMD_PURGE, &(struct cmd_purge){&id, 1});
    assert_null(step_of(&g, 1, 0));
    rig_fini(&g);
}

/* A step that its memory limit killed makes the job OUT_OF_MEMORY, 0:125, whatever its script returns; the next start knows
 * nothing of it. */
static void a_step_without_memory_is_the_jobs_end(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    for (uint32_t code = 0; code < 2; code++) {
        uint32_t id = code + 1;
        submit(&g, id);
        start(&g, id, (struct job_node){.node_id = n, .cpus = 1});
        running(&g, id);
        assert_int_equal(step(&g, id, n, 1, false), 0);
        act(&g, CMD_STEP_DONE,
            &(struct cmd_step_done){.job_id = id, .start_no = 1, .node_id = n, .wait_status = 9, .out_of_memory = true});
        assert_int_equal(step_of(&g, id, 0)->state, JOB_OUT_OF_MEMORY);
        assert_int_equal(step_of(&g, id, 0)->wait_status, 125);
        if (code == 0) { /* what it is queued again for begins anew */
            requeue(&g, id, HOLD_NONE);
            done(&g, id, n, 15);
            start(&g, id, (struct job_node){.node_id = n, .cpus = 1});
            running(&g, id);
        }
        done(&g, id, n, code << 8);
        assert_int_equal(job_of(&g, id)->state, code ? JOB_OUT_OF_MEMORY : JOB_COMPLETED);
        assert_int_equal(job_of(&g, id)->wait_status, code ? 125 : 0);
        assert_int_equal(job_of(&g, id)->reason, code ? REASON_OUT_OF_MEMORY : REASON_NONE);
    }
    rig_fini(&g);
}

static void old_steps_leave_and_the_next_start_counts_anew(void **state) {
    struct rig g;
    rig_init(&g);
    config(&g, (struct rconf){.max_steps = 1005});
    state_set_checking(g.s, false); /* of each of a thousand */
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, 1);
    start(&g, 1, (struct job_node){.node_id = n, .cpus = 1});
    running(&g, 1);
    for (uint32_t i = 0; i < 1005; i++) {
        assert_int_equal(step(&g, 1, n, 1, false), 0);
        step_done(&g, 1, i, n, 0);
    }
    assert_int_equal(step(&g, 1, n, 1, false), E_STEP_LIMIT);
    assert_null(step_of(&g, 1, 0));
    assert_non_null(step_of(&g, 1, 1004));
    assert_true(state_stats(g.s).steps <= 1002);
    requeue(&g, 1, HOLD_NONE);
    done(&g, 1, n, 15);
    start(&g, 1, (struct job_node){.node_id = n, .cpus = 1});
    assert_int_equal(state_stats(g.s).steps, 0);
    running(&g, 1);
    assert_int_equal(step(&g, 1, n, 1, false), 0);
    assert_int_equal(g.answer.step_id, 0);
    assert_int_equal(state_check(g.s, NULL), 0);
    rig_fini(&g);
}

/* ---- what jobs share ---- */

static void nothing_is_sold_twice(void **state) {
    struct rig g;
    rig_init(&g);
    static const char *const files[] = {"/dev/g0", "/dev/g1"};
    const struct gres kinds[] = {{.name = "gpu", .type = "a", .count = 2, .files = files, .n_files = 2},
                                 {.name = "shard", .count = 3}};
    uint32_t n = add_node(&g, "n", 8, kinds, 2);
    uint32_t both[] = {0, 1}, out[] = {2};
    struct gres_held gpus = {"gpu", "a", 1, both + 1, 1}, shards = {"shard", NULL, 2, NULL, 0};
    for (uint32_t i = 1; i <= 4; i++)
        submit(&g, i);
    struct job_node jn = {.node_id = n, .cpus = 1, .gres = &gpus, .n_gres = 1};
    assert_int_equal(start(&g, 1, jn), 0);
    assert_int_equal(node_of(&g, n)->gres[0].alloc, 1);
    assert_int_equal(node_of(&g, n)->gres[0].taken[0], 1);
    assert_int_equal(start(&g, 2, jn), E_NODES_UNAVAIL);
    gpus.indexes = out;
    assert_int_equal(start(&g, 2, jn), E_NODES_UNAVAIL); /* no such one */
    gpus = (struct gres_held){"gpu", "a", 1, NULL, 0};
    assert_int_equal(start(&g, 2, jn), E_NODES_UNAVAIL); /* which? */
    gpus = (struct gres_held){"gpu", "a", 1, both, 1};
    assert_int_equal(start(&g, 2, jn), 0);
    jn.gres = &shards;
    assert_int_equal(start(&g, 3, jn), 0);
    assert_int_equal(start(&g, 4, jn), E_NODES_UNAVAIL);
    /* the node comes back with one GPU less: what is taken stays so until it is given back */
    const struct gres less[] = {{.name = "gpu", .type = "a", .count = 1, .files = files, .n_files = 1}};
    add_node(&g, "n", 8, less, 1);
    assert_int_equal(node_of(&g, n)->gres[0].alloc, 2);
    done(&g, 1, n, 0);
    done(&g, 2, n, 0);
    done(&g, 3, n, 0);
    assert_int_equal(node_of(&g, n)->n_gres, 1);
    assert_int_equal(node_of(&g, n)->gres[0].alloc, 0);
    rig_fini(&g);
}

static void nodes_are_shared_as_asked(void **state) {
    struct rig g;
    rig_init(&g);
    config(&g, (struct rconf){0});
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    for (uint32_t i = 1; i <= 6; i++)
        submit_spec(&g, i, (struct job_spec){.uid = i < 4 ? 1000 : 1001});
    struct job_node jn = {.node_id = n, .cpus = 1};
    start(&g, 1, jn);
    jn.share = SHARE_NONE;
    assert_int_equal(start(&g, 2, jn), E_NODES_UNAVAIL);
    jn.share = SHARE_USER;
    assert_int_equal(start(&g, 4, jn), E_NODES_UNAVAIL);
    assert_int_equal(start(&g, 2, jn), 0);
    assert_int_equal(node_of(&g, n)->share_kind, SHARE_USER);
    assert_int_equal(node_of(&g, n)->share_uid, 1001);
    jn.share = SHARE_CORES;
    assert_int_equal(start(&g, 4, jn), E_NODES_UNAVAIL);
    done(&g, 2, n, 0);
    assert_int_equal(node_of(&g, n)->share_kind, SHARE_CORES);
    assert_int_equal(start(&g, 4, jn), 0);
    done(&g, 1, n, 0);
    done(&g, 4, n, 0);
    jn = (struct job_node){.node_id = n, .cpus = 4, .share = SHARE_OVER};
    assert_int_equal(start(&g, 3, jn), 0);
    assert_int_equal(start(&g, 5, jn), 0); /* twice: as the partition says */
    jn.cpus = 1;
    assert_int_equal(start(&g, 6, jn), E_NODES_UNAVAIL);
    rig_fini(&g);
}

static void licences_are_counted(void **state) {
    struct rig g;
    rig_init(&g);
    struct license lic[] = {{"a", 2}, {"b", 1}};
    config(&g, (struct rconf){.licenses = lic, .n_licenses = 2});
    uint32_t n = add_node(&g, "n", 8, NULL, 0);
    struct license_ask ask[] = {{"a", 2, false}, {"b", 1, true}};
    struct job_more two = {.licenses = ask, .n_licenses = 1}, any = {.licenses = ask, .n_licenses = 2};
    submit_spec(&g, 1, (struct job_spec){.more = &two});
    submit_spec(&g, 2, (struct job_spec){.more = &two});
    submit_spec(&g, 3, (struct job_spec){.more = &any});
    struct job_node jn = {.node_id = n, .cpus = 1};
    assert_int_equal(start(&g, 1, jn), 0);
    assert_int_equal(start(&g, 2, jn), E_LICENSE);
    assert_int_equal(start(&g, 3, jn), 0);
    assert_string_equal(job_of(&g, 3)->rare->licenses[0].name, "b");
    done(&g, 1, n, 0);
    assert_int_equal(start(&g, 2, jn), 0);
    rig_fini(&g);
}

/* ---- ends ---- */

static void a_client_ends_its_job(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    struct job_more more = {.interactive = true};
    for (uint32_t i = 1; i <= 2; i++) {
        submit_spec(&g, i, (struct job_spec){.more = &more});
        start(&g, i, (struct job_node){.node_id = n, .cpus = 1});
        running(&g, i);
        act(&g, CMD_CANCEL, &(struct cmd_cancel){.job_ids = &i, .n_job_ids = 1, .complete = i == 1 ? 1 : 1 + (3 << 8)});
    }
    assert_int_equal(job_of(&g, 1)->state, JOB_COMPLETED);
    assert_int_equal(job_of(&g, 2)->state, JOB_FAILED);
    assert_int_equal(job_of(&g, 2)->wait_status, 3 << 8);
    done(&g, 1, n, 15);
    done(&g, 2, n, 15);
    assert_int_equal(job_of(&g, 1)->wait_status, 0);
    assert_int_equal(job_of(&g, 2)->wait_status, 3 << 8);
    rig_fini(&g);
}

/* An old entry of the log, which lacks the word, takes the reason away as it always did. */
static void what_was_held_says_so_when_it_is_cancelled(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    for (uint32_t i = 1; i <= 3; i++) {
        submit(&g, i);
        if (i == 3)
            start(&g, i, (struct job_node){.node_id = n, .cpus = 1});
        else
            act1(&g, CMD_HOLD, &(struct cmd_hold){.job_ids = &i, .n_job_ids = 1, .hold = HOLD_USER});
        assert_int_equal(act1(&g, CMD_CANCEL, &(struct cmd_cancel){.job_ids = &i, .n_job_ids = 1, .keep_reason = i != 2}), 0);
        assert_int_equal(job_of(&g, i)->state, JOB_CANCELLED);
        assert_int_equal(job_of(&g, i)->reason, i == 1 ? REASON_HELD_USER : REASON_NONE);
    }
    rig_fini(&g);
}

static void a_deadline_ends_what_waits(void **state) {
    struct rig g;
    rig_init(&g);
    struct job_more more = {.deadline_unix = 2000};
    submit_spec(&g, 1, (struct job_spec){.more = &more});
    submit(&g, 2);
    uint32_t ids[] = {1, 2};
    act(&g, CMD_DEADLINE, &(struct cmd_deadline){ids, 2});
    assert_int_equal(job_of(&g, 1)->state, JOB_DEADLINE);
    assert_true(job_is_over(job_of(&g, 1)));
    assert_int_equal(job_of(&g, 2)->state, JOB_PENDING);
    rig_fini(&g);
}

/* ---- administrators ---- */

static int node_op(struct rig *g, uint32_t id, struct cmd_node_update cmd) {
    cmd.node_ids = &id;
    cmd.n_node_ids = 1;
    return act(g, CMD_NODE_UPDATE, &cmd);
}

static void drains_have_owners(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, 1);
    submit(&g, 2);
    start(&g, 1, (struct job_node){.node_id = n, .cpus = 1});
    assert_int_equal(node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_DELETE}), E_NODES_BUSY);
    act(&g, CMD_NODE_DONE, &(struct cmd_node_done){.job_id = 1, .start_no = 1, .node_id = n, .drain_node = true});
    node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_DRAIN, .reason = "disk", .user = "root"});
    assert_int_equal(node_of(&g, n)->n_drains, 2);
    assert_string_equal(node_of(&g, n)->drains[1].text, "disk");
    assert_int_equal(start(&g, 2, (struct job_node){.node_id = n, .cpus = 1}), E_NODES_UNAVAIL);
    node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_RESUME});
    assert_int_equal(node_of(&g, n)->n_drains, 0);
    node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_DOWN, .reason = "hot"});
    add_node(&g, "n", 4, NULL, 0);
    act(&g, CMD_NODE_STATE, &(struct cmd_node_state){.node_id = n});
    assert_int_equal(node_of(&g, n)->base, NODE_DOWN);
    assert_string_equal(node_of(&g, n)->down_reason, "hot");
    node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_RESUME});
    assert_int_equal(node_of(&g, n)->base, NODE_UP);
    static const char *const features[] = {"x"};
    node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_SET, .features = features, .n_features = 1,
                                            .has_features = true, .weight = 1 + 9});
    add_node(&g, "n", 4, NULL, 0); /* what was set outlives a registration, but no new configuration */
    assert_int_equal(node_of(&g, n)->weight, 9);
    assert_string_equal(node_of(&g, n)->features[0], "x");
    assert_false(node_of(&g, n)->has_active);
    config(&g, (struct rconf){0});
    assert_int_equal(node_of(&g, n)->weight, 1);
    assert_int_equal(node_of(&g, n)->n_features, 0);
    assert_int_equal(node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_DELETE}), 0);
    assert_null(node_of(&g, n));
    assert_null(state_find_node(g.s, "n"));
    assert_int_equal(node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_DRAIN}), E_NODE_NAME);
    assert_int_equal(add_node(&g, "n", 4, NULL, 0), n + 1);
    rig_fini(&g);
}

static void features_are_active_apart_from_those_there_are(void **state) {
    static const char *const there[] = {"a", "b"}, *const active[] = {"b", "gone"};
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0), n_active;
    node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_SET, .features = there, .n_features = 2, .has_features = true});
    node_active(node_of(&g, n), &n_active);
    assert_int_equal(n_active, 2);
    node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_SET, .active = active, .n_active = 2, .has_active = true});
    add_node(&g, "n", 4, NULL, 0); /* outlives a registration */
    assert_int_equal(node_of(&g, n)->n_features, 2);
    assert_string_equal(node_active(node_of(&g, n), &n_active)[0], "b");
    assert_int_equal(n_active, 1);
    node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_SET, .has_active = true});
    node_active(node_of(&g, n), &n_active);
    assert_int_equal(n_active, 0);
    node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_SET, .features = there, .n_features = 1, .has_features = true});
    node_active(node_of(&g, n), &n_active); /* without a word of those that are active: all */
    assert_int_equal(n_active, 1);
    config(&g, (struct rconf){0});
    assert_false(node_of(&g, n)->has_active);
    rig_fini(&g);
}

static void a_node_is_set_down_under_its_jobs(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 4, NULL, 0);
    submit(&g, 1);
    submit_spec(&g, 2, (struct job_spec){.no_requeue = true});
    for (uint32_t i = 1; i <= 2; i++) {
        start(&g, i, (struct job_node){.node_id = n, .cpus = 1});
        running(&g, i);
    }
    assert_int_equal(node_op(&g, n, (struct cmd_node_update){.op = NODE_OP_DOWN, .reason = "hot"}), 0);
    assert_true(saw(&g, EV_JOB_ENDING, 1) && saw(&g, EV_JOB_ENDING, 2));
    done(&g, 1, n, 15);
    done(&g, 2, n, 15);
    assert_int_equal(job_of(&g, 1)->state, JOB_PENDING);
    assert_int_equal(job_of(&g, 1)->restarts, 1);
    assert_int_equal(job_of(&g, 2)->state, JOB_NODE_FAIL);
    rig_fini(&g);
}

static void tokens_are_added_and_revoked(void **state) {
    struct rig g;
    struct view v;
    struct join_token t = {.id = "ab", .hash = "00"};
    rig_init(&g);
    assert_int_equal(act(&g, CMD_JOIN_TOKEN, &(struct cmd_join_token){.add = &t}), 0);
    assert_int_equal(act(&g, CMD_JOIN_TOKEN, &(struct cmd_join_token){.add = &t}), E_EXISTS);
    state_peek(g.s, &v);
    assert_int_equal(v.cluster->n_tokens, 1);
    assert_int_equal(act(&g, CMD_JOIN_TOKEN, &(struct cmd_join_token){.revoke = "zz"}), E_NOT_FOUND);
    assert_int_equal(act(&g, CMD_JOIN_TOKEN, &(struct cmd_join_token){.revoke = "ab"}), 0);
    state_peek(g.s, &v);
    assert_int_equal(v.cluster->n_tokens, 0);
    rig_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_queued_again), cmocka_unit_test(what_is_held_while_it_runs_stays_held),
        cmocka_unit_test(a_job_that_lost_a_node_is_queued_again),
        cmocka_unit_test(what_is_queued_again_may_have_to_wait),
        cmocka_unit_test(a_release_keeps_the_delay_of_a_requeue),
        cmocka_unit_test(clocks_stand_still), cmocka_unit_test(a_stop_by_a_signal_is_noted),
        cmocka_unit_test(fields_change_as_the_state_allows),
        cmocka_unit_test(steps_never_have_more_than_the_job),
        cmocka_unit_test(a_step_without_memory_is_the_jobs_end),
        cmocka_unit_test(old_steps_leave_and_the_next_start_counts_anew),
        cmocka_unit_test(nothing_is_sold_twice),
        cmocka_unit_test(nodes_are_shared_as_asked),
        cmocka_unit_test(licences_are_counted),
        cmocka_unit_test(a_client_ends_its_job),
        cmocka_unit_test(what_was_held_says_so_when_it_is_cancelled),
        cmocka_unit_test(a_deadline_ends_what_waits),
        cmocka_unit_test(drains_have_owners),
        cmocka_unit_test(features_are_active_apart_from_those_there_are),
        cmocka_unit_test(a_node_is_set_down_under_its_jobs),
        cmocka_unit_test(tokens_are_added_and_revoked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
