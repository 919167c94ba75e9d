/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays and dependencies, in the state machine.
 */
#include "rig.h"

static void tasks_leave_the_array_as_they_start(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 8, NULL, 0);
    assert_int_equal(submit_array(&g, 10, 0, 3, 2), 0);
    assert_int_equal(job_of(&g, 10)->array->n, 4);
    assert_int_equal(start_task(&g, 10, 7, n), 0); /* no such task */
    uint32_t one = start_task(&g, 10, 1, n);
    assert_int_equal(one, 11);
    assert_int_equal(job_of(&g, one)->array->task, 2);
    assert_string_equal(job_of(&g, one)->sluid, "s2");
    assert_int_equal(start_task(&g, 10, 1, n), 0); /* it waits no more */
    auto_str name = {0};
    job_print_id(job_of(&g, 10), &name);
    assert_string_equal(name.p, "10_[0,2-3%2]");
    uint32_t two = start_task(&g, 10, 0, n);
    assert_int_equal(two, 12);
    assert_int_equal(start_task(&g, 10, 2, n), 0); /* %2 */
    struct job_more more = {.array_max_running = 0};
    struct job_spec spec = {.more = &more};
    struct job_target all = {.job_id = 10};
    struct cmd_update up = {.targets = &all, .n_targets = 1, .changes = CHANGE_ARRAY_LIMIT, .spec = &spec};
    assert_int_equal(act1(&g, CMD_UPDATE, &up), 0);
    uint32_t three = start_task(&g, 10, 2, n);
    assert_int_equal(three, 13);
    assert_int_equal(start_task(&g, 10, 3, n), 10); /* the last one keeps the record */
    assert_int_equal(job_of(&g, 10)->array->task, 4);
    running(&g, one);
    assert_int_equal(job_of(&g, 10)->array->begun, 1);
    done(&g, one, n, 0);
    done(&g, 10, n, 256);
    assert_int_equal(job_of(&g, 10)->array->over, 2);
    assert_int_equal(job_of(&g, 10)->array->bad, 1);
    uint32_t ids[] = {10, one};
    act(&g, CMD_PURGE, &(struct cmd_purge){ids, 2});
    assert_non_null(job_of(&g, 10)); /* it is over, its tasks are not */
    assert_null(job_of(&g, one));
    done(&g, two, n, 0);
    done(&g, three, n, 0);
    uint32_t rest[] = {10, two, three};
    act(&g, CMD_PURGE, &(struct cmd_purge){rest, 3});
    assert_null(job_of(&g, 10));
    rig_fini(&g);
}

static void some_tasks_are_cancelled_held_and_released(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 8, NULL, 0);
    submit_array(&g, 1, 0, 9, 0);
    assert_int_equal(cancel_tasks(&g, 1, 20, 30), E_JOB_ID);
    assert_int_equal(cancel_tasks(&g, 1, 2, 4), 0);
    assert_int_equal(job_of(&g, 2)->state, JOB_CANCELLED); /* one record for all three */
    assert_int_equal(job_of(&g, 1)->array->over, 3);
    assert_int_equal(job_of(&g, 1)->array->bad, 3);
    assert_int_equal(cancel_tasks(&g, 1, 2, 2), E_JOB_DONE);
    struct array_range seven = {7, 7};
    struct job_target t = {1, &seven, 1};
    struct cmd_hold hold = {.targets = &t, .n_targets = 1, .hold = HOLD_USER};
    assert_int_equal(act1(&g, CMD_HOLD, &hold), 0);
    assert_int_equal(job_of(&g, 3)->array->task, 8);
    assert_int_equal(job_of(&g, 3)->hold, HOLD_USER);
    assert_int_equal(job_of(&g, 1)->hold, HOLD_NONE);
    hold.hold = HOLD_NONE;
    assert_int_equal(act1(&g, CMD_HOLD, &hold), 0);
    finish(&g, 3, n, 0);
    assert_int_equal(start_task(&g, 1, 7, n), 0);
    assert_int_equal(cancel(&g, 1), 0); /* the whole of it */
    assert_int_equal(job_of(&g, 1)->array->over, 10);
    assert_int_equal(job_of(&g, 1)->array->bad, 9);
    assert_int_equal(cancel(&g, 1), E_JOB_DONE);
    rig_fini(&g);
}

static int cancel_without_trace(struct rig *g, uint32_t id, uint32_t first, uint32_t last) {
    struct array_range r = {first, last};
    struct job_target t = {id, &r, 1};
    return act1(g, CMD_CANCEL, &(struct cmd_cancel){.targets = &t, .n_targets = 1, .no_trace = true});
}

static void waiting_tasks_that_are_cancelled_leave_nothing(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 8, NULL, 0);
    submit_array(&g, 1, 0, 9, 0);
    assert_int_equal(cancel_without_trace(&g, 1, 2, 4), 0);
    assert_true(saw(&g, EV_JOB_OVER, 2)); /* one record for all three, */
    assert_null(job_of(&g, 2));           /* that is gone at once, as Slurm's */
    assert_int_equal(job_of(&g, 1)->array->over, 3);
    assert_int_equal(job_of(&g, 1)->array->bad, 3);
    assert_int_equal(cancel_without_trace(&g, 1, 2, 2), E_JOB_ID);
    uint32_t five = start_task(&g, 1, 5, n);
    assert_int_not_equal(five, 0);
    assert_int_equal(cancel_without_trace(&g, 1, 5, 6), 0);
    assert_int_equal(job_of(&g, five)->state, JOB_CANCELLED); /* ran: it is a job */
    assert_int_equal(cancel_without_trace(&g, 1, 0, 9), 0);   /* the rest: the array's own record stays */
    assert_int_equal(job_of(&g, 1)->state, JOB_CANCELLED);
    assert_int_equal(job_of(&g, 1)->array->over, 9);
    assert_int_equal(cancel_without_trace(&g, 1, 7, 7), E_JOB_DONE);
    uint32_t plain = 20;
    submit(&g, plain);
    struct array_range seven = {7, 7};
    struct job_target both[] = {{1, &seven, 1}, {plain, NULL, 0}}; /* a refused part says nothing of what follows */
    act(&g, CMD_CANCEL, &(struct cmd_cancel){.targets = both, .n_targets = 2, .no_trace = true});
    assert_int_equal(job_of(&g, plain)->state, JOB_CANCELLED);
    rig_fini(&g);
}

static void a_whole_array_is_waited_for(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 8, NULL, 0);
    submit_array(&g, 1, 0, 1, 0);
    submit_dep(&g, 2, (struct dep){.kind = DEP_AFTEROK, .job_id = 1}, NULL);
    submit_dep(&g, 3, (struct dep){.kind = DEP_AFTER, .job_id = 1, .minutes = 5}, NULL);
    submit_dep(&g, 4, (struct dep){.kind = DEP_AFTERANY, .job_id = 1, .task = 2}, NULL);
    assert_int_equal(submit_dep(&g, 5, (struct dep){.kind = DEP_AFTEROK, .job_id = 1, .task = 9}, NULL), E_DEPENDENCY);
    uint32_t a = start_task(&g, 1, 1, n);
    running(&g, a);
    assert_int_equal(job_of(&g, 3)->deps[0].state, DEP_WAITING);
    done(&g, a, n, 0);
    assert_int_equal(job_of(&g, 4)->deps[0].state, DEP_DONE);
    assert_int_equal(job_of(&g, 2)->deps[0].state, DEP_WAITING);
    start_task(&g, 1, 0, n);
    running(&g, 1);
    assert_int_equal(job_of(&g, 3)->deps[0].state, DEP_DONE);
    assert_int_equal(job_of(&g, 3)->deps[0].from_unix, g.now_ms / 1000 + 300);
    done(&g, 1, n, 256);
    assert_int_equal(job_of(&g, 2)->deps[0].state, DEP_NEVER);
    /* the task that failed is queued again: there is hope */
    struct array_range r = {0, 0};
    struct job_target t = {1, &r, 1};
    assert_int_equal(act1(&g, CMD_REQUEUE, &(struct cmd_requeue){.targets = &t, .n_targets = 1}), 0);
    assert_int_equal(job_of(&g, 2)->deps[0].state, DEP_WAITING);
    finish(&g, 1, n, 0);
    assert_int_equal(job_of(&g, 2)->deps[0].state, DEP_DONE);
    uint32_t ids[] = {1, a};
    act(&g, CMD_PURGE, &(struct cmd_purge){ids, 2});
    assert_null(job_of(&g, 1));
    assert_true(job_of(&g, 2)->deps[0].is_final);
    rig_fini(&g);
}

static void tasks_wait_for_tasks(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 8, NULL, 0);
    struct array_range r = {0, 3};
    struct job_more more = {.array_ranges = &r, .n_array_ranges = 1};
    submit_array(&g, 1, 0, 2, 0);
    uint32_t a = start_task(&g, 1, 0, n);
    running(&g, a);
    done(&g, a, n, 0);
    /* what is over already counts; 3 has no partner */
    assert_int_equal(submit_dep(&g, 20, (struct dep){.kind = DEP_AFTERCORR, .job_id = 1}, &more), 0);
    assert_int_equal(job_of(&g, 20)->deps[0].state, DEP_WAITING);
    assert_int_equal(job_of(&g, 21)->array->task, 1);
    assert_int_equal(job_of(&g, 21)->deps[0].state, DEP_DONE);
    uint32_t b = start_task(&g, 1, 1, n);
    running(&g, b);
    done(&g, b, n, 256);
    uint32_t its = next_id(&g) - 1;
    assert_int_equal(job_of(&g, its)->array->task, 2);
    assert_int_equal(job_of(&g, its)->deps[0].state, DEP_NEVER);
    start_task(&g, 1, 2, n);
    running(&g, 1);
    done(&g, 1, n, 0);
    its = next_id(&g) - 1;
    assert_int_equal(job_of(&g, its)->array->task, 3);
    assert_int_equal(job_of(&g, its)->deps[0].state, DEP_DONE);
    assert_int_equal(job_of(&g, 20)->deps[0].state, DEP_DONE); /* 3 waits for nobody */
    assert_int_equal(job_of(&g, 20)->array->pending[0].first, 3);
    rig_fini(&g);
}

static void tasks_that_have_left_are_not_waited_for(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t n = add_node(&g, "n", 8, NULL, 0);
    struct array_range r = {0, 3};
    struct job_more more = {.array_ranges = &r, .n_array_ranges = 1};
    submit_array(&g, 1, 0, 3, 0);
    uint32_t gone[3];
    for (uint32_t t = 0; t < 3; t++) {
        gone[t] = start_task(&g, 1, t, n);
        running(&g, gone[t]);
        done(&g, gone[t], n, t == 1 ? 256 : 0);
    }
    act(&g, CMD_PURGE, &(struct cmd_purge){gone, 3, true});
    assert_null(job_of(&g, gone[1]));
    /* 0 and 2 ended well, 1 did not, 3 waits still */
    assert_int_equal(submit_dep(&g, 20, (struct dep){.kind = DEP_AFTERCORR, .job_id = 1}, &more), 0);
    assert_int_equal(job_of(&g, 20)->deps[0].state, DEP_WAITING);
    assert_int_equal(job_of(&g, 21)->array->task, 2);
    assert_int_equal(job_of(&g, 21)->deps[0].state, DEP_NEVER);
    struct array_range early = {0, 2};
    struct job_more first = {.array_ranges = &early, .n_array_ranges = 1};
    assert_int_equal(submit_dep(&g, 30, (struct dep){.kind = DEP_AFTERCORR, .job_id = 1}, &first), 0);
    assert_int_equal(job_of(&g, 30)->deps[0].state, DEP_DONE);
    assert_int_equal(job_of(&g, 30)->array->n_pending, 2);
    submit_dep(&g, 40, (struct dep){.kind = DEP_AFTERANY, .job_id = 1}, NULL);
    start_task(&g, 1, 3, n);
    running(&g, 1);
    done(&g, 1, n, 0);
    assert_int_equal(job_of(&g, 20)->deps[0].state, DEP_DONE);
    assert_int_equal(job_of(&g, 40)->deps[0].state, DEP_DONE);
    rig_fini(&g);
}

static void a_circle_is_refused(void **state) {
    struct rig g;
    rig_init(&g);
    submit(&g, 1);
    submit_dep(&g, 2, (struct dep){.kind = DEP_AFTEROK, .job_id = 1}, NULL);
    submit_dep(&g, 3, (struct dep){.kind = DEP_AFTEROK, .job_id = 2}, NULL);
    struct dep dep = {.kind = DEP_AFTERANY, .job_id = 3};
    struct job_spec spec = {.deps = &dep, .n_deps = 1};
    struct job_target t = {.job_id = 1};
    struct cmd_update up = {.targets = &t, .n_targets = 1, .changes = CHANGE_DEPENDENCY, .spec = &spec};
    assert_int_equal(act1(&g, CMD_UPDATE, &up), E_DEPENDENCY);
    dep.job_id = 1;
    assert_int_equal(act1(&g, CMD_UPDATE, &up), E_DEPENDENCY);
    spec.n_deps = 0;
    t.job_id = 2;
    assert_int_equal(act1(&g, CMD_UPDATE, &up), 0);
    spec.n_deps = 1;
    dep.job_id = 3;
    t.job_id = 1;
    assert_int_equal(act1(&g, CMD_UPDATE, &up), 0); /* 3 waits for 2, which waits for nobody now */
    assert_int_equal(job_of(&g, 1)->deps[0].job_id, 3);
    cancel(&g, 3);
    assert_int_equal(job_of(&g, 1)->deps[0].state, DEP_DONE);
    rig_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_leave_the_array_as_they_start),
        cmocka_unit_test(some_tasks_are_cancelled_held_and_released),
        cmocka_unit_test(waiting_tasks_that_are_cancelled_leave_nothing),
        cmocka_unit_test(a_whole_array_is_waited_for),
        cmocka_unit_test(tasks_wait_for_tasks),
        cmocka_unit_test(tasks_that_have_left_are_not_waited_for),
        cmocka_unit_test(a_circle_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
