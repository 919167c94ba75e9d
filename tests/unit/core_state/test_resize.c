/* SPDX-License-Identifier: Apache-2.0
 *
 * A run that is made smaller; a step that ended before its job's end met it; scripts on every node; nodes that are removed
 * and may not come back.
 */
#include "rig.h"

static void start_on(struct rig *g, uint32_t id, const uint32_t *nodes, uint32_t n, bool everywhere) {
    struct job_node list[4] = {0};
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct job_node){.node_id = nodes[i], .cpus = 2, .mem_mb = 100, .n_tasks = 1};
    struct job_start st = {.job_id = id, .start_no = job_of(g, id)->start_no + 1, .partition = "p", .nodes = list,
                           .n_nodes = n, .time_limit_min = 60, .everywhere = everywhere};
    assert_int_equal(act1(g, CMD_START, &(struct cmd_start){&st, 1}), 0);
}

static int resize(struct rig *g, uint32_t id, uint32_t n_nodes, const char *const *names, uint32_t n_names) {
    struct job_target t = {.job_id = id};
    struct job_spec spec = {.min_nodes = n_nodes, .req_nodes = names, .n_req_nodes = n_names};
    return act1(g, CMD_UPDATE, &(struct cmd_update){.targets = &t, .n_targets = 1, .spec = &spec, .shrinks = true,
                                                    .changes = n_nodes ? CHANGE_NODES : CHANGE_NODE_LISTS});
}

static int step_on(struct rig *g, uint32_t job, const uint32_t *nodes, uint32_t n) {
    struct step_spec spec = {.name = "s", .n_tasks = n};
    struct step_node list[4] = {0};
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct step_node){.node_id = nodes[i], .cpus = 1, .n_tasks = 1};
    return act(g, CMD_STEP_START, &(struct cmd_step_start){job, job_of(g, job)->start_no, &spec, list, n});
}

static int step_done(struct rig *g, uint32_t job, uint32_t id, uint32_t node, uint32_t status) {
    return act(g, CMD_STEP_DONE,
               &(struct cmd_step_done){.job_id = job, .start_no = job_of(g, job)->start_no, .step_id = id,
                                       .node_id = node, .wait_status = status});
}

struct three {
    struct rig g;
    uint32_t n[3];
};

static void three_init(struct three *t, struct job_spec spec) {
    static const char *const names[] = {"n1", "n2", "n3"};
    rig_init(&t->g);
    for (uint32_t i = 0; i < 3; i++)
        t->n[i] = add_node(&t->g, names[i], 4, NULL, 0);
    spec.min_nodes = 3;
    submit_spec(&t->g, 1, spec);
    start_on(&t->g, 1, t->n, 3, false);
}

static void a_run_gives_nodes_back(void **state) {
    struct three t;
    three_init(&t, (struct job_spec){0});
    struct rig *g = &t.g;
    assert_int_equal(resize(g, 1, 1, NULL, 0), E_JOB_STATE); /* not yet confirmed */
    running(g, 1);
    assert_int_equal(step_on(g, 1, t.n, 3), 0);
    assert_int_equal(resize(g, 1, 4, NULL, 0), E_UNSUPPORTED);
    assert_int_equal(resize(g, 1, 3, NULL, 0), 0); /* as it is */
    assert_int_equal(job_of(g, 1)->n_nodes, 3);
    assert_int_equal(resize(g, 1, 2, NULL, 0), 0);
    assert_true(saw(g, EV_JOB_CHANGED, 1));
    const struct job *j = job_of(g, 1);
    assert_int_equal(j->n_nodes, 2);
    assert_int_equal(j->n_cpus, 4);
    assert_int_equal(j->spec->min_nodes, 2);
    assert_int_equal(j->spec->n_tasks, 2);
    assert_int_equal(j->state, JOB_RUNNING);
    assert_false(j->completing);
    /* its share is taken until it is clean, and no step gets room there */
    assert_int_equal(node_of(g, t.n[2])->alloc_cpus, 2);
    assert_int_equal(node_of(g, t.n[2])->n_completing, 1);
    assert_int_equal(step_on(g, 1, &t.n[2], 1), E_NODES_UNAVAIL);
    submit(g, 2);
    assert_int_equal(start(g, 2, (struct job_node){.node_id = t.n[2], .cpus = 3}), E_NODES_UNAVAIL);
    /* how it went there is nobody's concern; the step goes on where the job is */
    assert_int_equal(done(g, 1, t.n[2], 9), 0);
    assert_int_equal(job_of(g, 1)->state, JOB_RUNNING);
    assert_int_equal(job_rare_of(job_of(g, 1))->n_leaving, 0);
    assert_int_equal(node_of(g, t.n[2])->alloc_cpus, 0);
    assert_int_equal(node_of(g, t.n[2])->n_completing, 0);
    assert_int_equal(step_of(g, 1, 0)->state, JOB_RUNNING);
    assert_int_equal(start(g, 2, (struct job_node){.node_id = t.n[2], .cpus = 3}), 0);
    step_done(g, 1, 0, t.n[0], 0);
    step_done(g, 1, 0, t.n[1], 0);
    assert_int_equal(step_of(g, 1, 0)->state, JOB_COMPLETED);
    done(g, 1, t.n[0], 0);
    done(g, 1, t.n[1], 0);
    assert_int_equal(job_of(g, 1)->state, JOB_COMPLETED);
    assert_true(job_is_over(job_of(g, 1)));
    rig_fini(g);
}

static void a_run_keeps_the_nodes_that_are_named(void **state) {
    static const char *const keep[] = {"n1", "n3"}, *const strange[] = {"n1", "nx"}, *const without_script[] = {"n3"};
    struct three t;
    three_init(&t, (struct job_spec){0});
    struct rig *g = &t.g;
    running(g, 1);
    assert_int_equal(resize(g, 1, 0, strange, 2), E_NODE_NAME);
    assert_int_equal(resize(g, 1, 0, without_script, 1), E_NODE_NAME);
    assert_int_equal(resize(g, 1, 0, keep, 2), 0);
    const struct job *j = job_of(g, 1);
    assert_int_equal(j->n_nodes, 2);
    assert_string_equal(j->nodes[1].name, "n3");
    assert_int_equal(j->spec->n_req_nodes, 0); /* it is no wish of the job */
    /* an end waits for what was given back as well; being put in the queue again, too */
    struct job_target target = {.job_id = 1};
    act1(g, CMD_REQUEUE, &(struct cmd_requeue){.targets = &target, .n_targets = 1});
    done(g, 1, t.n[0], 15);
    done(g, 1, t.n[2], 15);
    assert_true(job_of(g, 1)->completing);
    done(g, 1, t.n[1], 15);
    assert_int_equal(job_of(g, 1)->state, JOB_PENDING);
    assert_false(job_of(g, 1)->completing);
    assert_int_equal(job_rare_of(job_of(g, 1))->n_leaving, 0);
    rig_fini(g);
}

/* An allocation without a script may give back any of its nodes. A lost node that it has given back doesn't end it. */
static void a_node_is_lost_that_was_given_back(void **state) {
    static const char *const keep[] = {"n3"};
    struct job_more more = {.interactive = true};
    struct three t;
    three_init(&t, (struct job_spec){.more = &more});
    struct rig *g = &t.g;
    running(g, 1);
    assert_int_equal(resize(g, 1, 0, keep, 1), 0);
    assert_int_equal(act(g, CMD_NODE_UPDATE, &(struct cmd_node_update){.node_ids = t.n, .n_node_ids = 1, .op = NODE_OP_DOWN}), 0);
    assert_int_equal(job_of(g, 1)->state, JOB_RUNNING);
    act(g, CMD_NODE_DONE, &(struct cmd_node_done){.job_id = 1, .start_no = 1, .node_id = t.n[0], .node_failed = true});
    assert_int_equal(job_of(g, 1)->state, JOB_RUNNING);
    assert_int_equal(act(g, CMD_NODE_UPDATE, &(struct cmd_node_update){.node_ids = &t.n[1], .n_node_ids = 1, .force = true,
                                                                       .op = NODE_OP_DELETE}), 0);
    assert_int_equal(job_of(g, 1)->state, JOB_RUNNING);
    assert_int_equal(job_rare_of(job_of(g, 1))->n_leaving, 0);
    /* without `shrinks`, as in logs of before: refused */
    struct job_target target = {.job_id = 1};
    struct job_spec spec = {.min_nodes = 1};
    assert_int_equal(act1(g, CMD_UPDATE, &(struct cmd_update){.targets = &target, .n_targets = 1, .spec = &spec, .changes = CHANGE_NODES}),
                     E_UNSUPPORTED);
    rig_fini(g);
}

/* ---- steps that ended by themselves ---- */

static void a_step_keeps_the_end_that_it_had(void **state) {
    static const struct {
        uint32_t status, job_status, state;
        bool killed;
    } cases[] = {
        {0, 0, JOB_COMPLETED, false},       /* told after its job's end: nobody cancelled it */
        {3 << 8, 0, JOB_FAILED, false},
        {0, 1 << 8, JOB_COMPLETED, false},
        {9, 0, JOB_CANCELLED, false},       /* the end of its job is what ended it */
        {0, 0, JOB_CANCELLED, true},        /* it was cancelled */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rig g;
        rig_init(&g);
        uint32_t n[] = {add_node(&g, "n1", 4, NULL, 0), add_node(&g, "n2", 4, NULL, 0)};
        submit(&g, 1);
        start_on(&g, 1, n, 2, false);
        running(&g, 1);
        assert_int_equal(step_on(&g, 1, &n[1], 1), 0);
        if (cases[i].killed)
            act(&g, CMD_STEP_CANCEL, &(struct cmd_step_cancel){.job_id = 1});
        done(&g, 1, n[0], cases[i].job_status);
        assert_true(job_of(&g, 1)->completing);
        step_done(&g, 1, 0, n[1], cases[i].status);
        assert_int_equal(step_of(&g, 1, 0)->state, cases[i].state);
        assert_int_equal(step_of(&g, 1, 0)->wait_status, cases[i].status);
        done(&g, 1, n[1], 0);
        assert_true(job_is_over(job_of(&g, 1)));
        rig_fini(&g);
    }
}

/* ---- a script on every node ---- */

static int script_done(struct rig *g, uint32_t node, uint32_t status, bool stays) {
    return act(g, CMD_NODE_DONE, &(struct cmd_node_done){.job_id = 1, .start_no = 1, .node_id = node, .wait_status = status,
                                                         .stays = stays});
}

static void a_node_whose_script_is_over_stays_the_jobs(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n[] = {add_node(&g, "n1", 4, NULL, 0), add_node(&g, "n2", 4, NULL, 0)};
    submit(&g, 1);
    start_on(&g, 1, n, 2, true);
    running(&g, 1);
    script_done(&g, n[0], 0, true);
    assert_int_equal(job_of(&g, 1)->state, JOB_RUNNING);
    assert_true(job_of(&g, 1)->nodes[0].script_over);
    assert_int_equal(node_of(&g, n[0])->alloc_cpus, 2);
    assert_int_equal(step_on(&g, 1, &n[0], 1), 0); /* of the other's script */
    script_done(&g, n[0], 0, true); /* again: nothing */
    assert_int_equal(job_of(&g, 1)->state, JOB_RUNNING);
    script_done(&g, n[1], 7 << 8, false); /* one fails: all is over */
    assert_int_equal(job_of(&g, 1)->state, JOB_FAILED);
    assert_true(job_of(&g, 1)->completing);
    script_done(&g, n[0], 0, true); /* too late: what ends it is under way */
    assert_true(job_of(&g, 1)->completing);
    script_done(&g, n[0], 0, false);
    assert_true(job_is_over(job_of(&g, 1)));
    rig_fini(&g);
}

/* ---- nodes that were removed ---- */

static int join(struct rig *g, const char *boot_id, int64_t agent_start_unix) {
    struct node n = {.name = "n1", .cpus = 4, .mem_mb = 1000, .boot_id = boot_id, .agent_start_unix = agent_start_unix};
    return act(g, CMD_NODE_REGISTER, &(struct cmd_node_register){.node = &n});
}

static void the_agent_of_a_removed_node_stays_out_until_it_is_another(void **state) {
    struct rig g;
    struct view v;
    rig_init(&g);
    assert_int_equal(join(&g, "b", 100), 0);
    uint32_t id = g.answer.node_id;
    struct cmd_node_update gone = {.node_ids = &id, .n_node_ids = 1, .op = NODE_OP_DELETE, .bar = true};
    assert_int_equal(act(&g, CMD_NODE_UPDATE, &gone), 0);
    assert_int_equal(join(&g, "b", 100), E_ADMISSION);
    state_peek(g.s, &v);
    assert_non_null(cluster_removed(v.cluster, "n1"));
    assert_int_equal(join(&g, "b", 200), 0); /* started anew: another */
    state_peek(g.s, &v);
    assert_null(cluster_removed(v.cluster, "n1"));
    /* with jobs: refused, or by force they fail */
    id = g.answer.node_id;
    gone.node_ids = &id;
    submit(&g, 1);
    start_on(&g, 1, &id, 1, false);
    running(&g, 1);
    assert_int_equal(act(&g, CMD_NODE_UPDATE, &gone), E_NODES_BUSY);
    gone.force = true;
    gone.bar = false;
    assert_int_equal(act(&g, CMD_NODE_UPDATE, &gone), 0);
    assert_int_equal(job_of(&g, 1)->state, JOB_NODE_FAIL);
    assert_true(job_is_over(job_of(&g, 1)));
    assert_int_equal(join(&g, "b", 200), 0); /* not barred */
    rig_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_gives_nodes_back),
        cmocka_unit_test(a_run_keeps_the_nodes_that_are_named),
        cmocka_unit_test(a_node_is_lost_that_was_given_back),
        cmocka_unit_test(a_step_keeps_the_end_that_it_had),
        cmocka_unit_test(a_node_whose_script_is_over_stays_the_jobs),
        cmocka_unit_test(the_agent_of_a_removed_node_stays_out_until_it_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
