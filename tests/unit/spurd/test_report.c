/* SPDX-License-Identifier: Apache-2.0
 *
 * The reporter and the table, with a world of the test's own: what is told of ends, and in which order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/vec.h"
#include "spurd/report/report.h"
#include "wire/methods.h"

struct call {
    enum wire_method method;
    uint64_t key; /* of what was reported; 0: something else */
    host_reply_fn fn;
    void *arg;
};

struct world {
    struct host host;
    struct steps steps;
    struct steps_events events;
    struct table *table;
    struct report *report;
    struct cred_key key;
    struct node node;
    void (*timer)(void *arg);
    void *timer_arg;
    VEC(struct call) calls; /* that wait for an answer */
    VEC(uint64_t) found;
    uint64_t n_random;
};

/* ---- the world ---- */

static int64_t now_ms(void *impl) {
    return 1000000;
}

static uint64_t next_random(void *impl) {
    return ++((struct world *)impl)->n_random;
}

static struct host_timer *timer_start(void *impl, uint64_t delay_ms, void (*fn)(void *arg), void *arg) {
    struct world *w = impl;
    w->timer = fn;
    w->timer_arg = arg;
    return (struct host_timer *)w;
}

static void timer_stop(void *impl, struct host_timer *t) {
}

static void send_call(void *impl, const char *address, const char *method, const char *metadata, struct buf message,
                      uint64_t timeout_ms, host_reply_fn fn, void *arg) {
    struct world *w = impl;
    struct call c = {.method = WIRE_Registry_Heartbeat, .fn = fn, .arg = arg};
    auto_arena a = {0};
    if (strcmp(method, wire_method(WIRE_Registry_Report)->path) == 0) {
        struct run_report q;
        c.method = WIRE_Registry_Report;
        assert_int_equal(rec_decode(run_report_rec(), message.p, message.n, &a, &q, NULL), 0);
        c.key = run_key(q.job_id, q.start_no);
    } else if (strcmp(method, wire_method(WIRE_Registry_StepReport)->path) == 0) {
        struct step_report q;
        c.method = WIRE_Registry_StepReport;
        assert_int_equal(rec_decode(step_report_rec(), message.p, message.n, &a, &q, NULL), 0);
        c.key = step_run_key(q.job_id, q.start_no, q.step_id);
    }
    buf_fini(&message);
    vec_push(&w->calls, c);
}

static void find_runs(void *impl, void (*fn)(void *arg, const struct steps_found *found), void *arg) {
    struct world *w = impl;
    for (size_t i = 0; i < w->found.n; i++)
        fn(arg, &(struct steps_found){.key = w->found.p[i], .uid = 1, .pid = 100});
}

static int do_terminate(void *impl, uint64_t key, const struct step_terminate *t) {
    return 0;
}

static void do_nothing(void *impl, uint64_t key) {
}

static void sample(void *arg, uint32_t *out_load, uint64_t *out_free_mb) {
    *out_load = 0;
    *out_free_mb = 0;
}

static int take_key(void *arg, const uint8_t *key, uint32_t n, struct err *e) {
    return 0;
}

static void on_registered(void *arg, const struct register_reply *reply) {
}

static void on_changed(void *arg) {
    struct world *w = arg;
    if (w->report)
        report_changed(w->report);
}

static int set_up(void **state) {
    struct world *w = xnew(struct world);
    w->host = (struct host){.impl = w, .now_ms = now_ms, .unix_ms = now_ms, .random = next_random,
                            .timer_start = timer_start, .timer_stop = timer_stop, .send = send_call};
    w->steps = (struct steps){.impl = w, .find = find_runs, .terminate = do_terminate, .forget = do_nothing, .purge = do_nothing};
    cred_key_new(&w->key);
    w->node.name = "n1";
    w->table = table_new(&w->host, &(struct table_conf){.clock_scale = 1, .changed = on_changed, .arg = w});
    w->events = table_events(w->table);
    struct report_conf conf = {.controllers = "c", .node = &w->node, .key = &w->key, .sample = sample, .on_key = take_key,
                               .on_registered = on_registered};
    w->report = report_new(&w->host, w->table, &conf);
    *state = w;
    return 0;
}

static int tear_down(void **state) {
    struct world *w = *state;
    report_stop(w->report);
    table_stop(w->table);
    for (size_t i = 0; i < w->calls.n; i++)
        w->calls.p[i].fn(w->calls.p[i].arg, E_CANCELLED, &(struct err){.code = E_CANCELLED}, NULL, 0);
    table_free(w->table);
    report_free(w->report);
    cred_key_fini(&w->key);
    vec_fini(&w->calls);
    vec_fini(&w->found);
    free(w);
    return 0;
}

/* ---- what happens ---- */

static void ended(struct world *w, uint64_t key) {
    struct step_result r = {.wait_status = 0x300, .start_ms = 1, .end_ms = 2};
    w->events.ended(w->events.arg, key, &r);
}

/* The oldest call of the method that waits for an answer, of this key. */
static bool answer(struct world *w, enum wire_method m, uint64_t key, int code, const struct buf *reply) {
    for (size_t i = 0; i < w->calls.n; i++) {
        struct call c = w->calls.p[i];
        if (c.method != m || c.key != key)
            continue;
        vec_remove(&w->calls, i);
        struct err e = {0};
        if (code)
            err_set(&e, code, NULL);
        c.fn(c.arg, code, code ? &e : NULL, reply ? reply->p : NULL, reply ? reply->n : 0);
        return true;
    }
    return false;
}

static void controller_comes_back(struct world *w) {
    auto_buf bytes = {0};
    struct register_reply reply = {.node_id = 1, .heartbeat_ms = 1000};
    rec_encode(register_reply_rec(), &reply, &bytes);
    report_start(w->report);
    w->timer(w->timer_arg);
    assert_true(answer(w, WIRE_Registry_Heartbeat, 0, 0, &bytes));
}

static bool is_told(const struct world *w, enum wire_method m, uint64_t key) {
    for (size_t i = 0; i < w->calls.n; i++)
        if (w->calls.p[i].method == m && w->calls.p[i].key == key)
            return true;
    return false;
}

/* ---- tests ---- */

static void the_end_of_a_job_is_told_behind_those_of_its_steps(void **state) {
    struct world *w = *state;
    const uint64_t job = run_key(7, 1), one = step_run_key(7, 1, 0), two = step_run_key(7, 1, 1), other = run_key(8, 1);
    for (size_t i = 0; i < 4; i++)
        vec_push(&w->found, ((uint64_t[]){job, one, two, other})[i]);
    table_adopt(w->table, &w->steps);
    ended(w, one); /* while the controller is away */
    ended(w, two);
    ended(w, job);
    ended(w, other);
    controller_comes_back(w);
    assert_true(is_told(w, WIRE_Registry_StepReport, one));
    assert_true(is_told(w, WIRE_Registry_StepReport, two));
    assert_true(is_told(w, WIRE_Registry_Report, other)); /* it has no steps to wait for */
    assert_false(is_told(w, WIRE_Registry_Report, job));
    assert_true(answer(w, WIRE_Registry_StepReport, two, 0, NULL));
    assert_false(is_told(w, WIRE_Registry_Report, job));
    assert_true(answer(w, WIRE_Registry_StepReport, one, E_UNREACHABLE, NULL)); /* lost: it is told again, and before */
    assert_false(is_told(w, WIRE_Registry_Report, job));
    w->timer(w->timer_arg);
    assert_true(is_told(w, WIRE_Registry_StepReport, one));
    assert_false(is_told(w, WIRE_Registry_Report, job));
    assert_true(answer(w, WIRE_Registry_StepReport, one, 0, NULL));
    assert_true(is_told(w, WIRE_Registry_Report, job));
    assert_true(answer(w, WIRE_Registry_Report, job, 0, NULL));
    assert_true(answer(w, WIRE_Registry_Report, other, 0, NULL));
    assert_int_equal(table_count(w->table), 0);
}

static void a_step_that_the_controller_does_not_know_holds_nothing_up(void **state) {
    struct world *w = *state;
    const uint64_t job = run_key(7, 1), one = step_run_key(7, 1, 0);
    vec_push(&w->found, job);
    vec_push(&w->found, one);
    table_adopt(w->table, &w->steps);
    controller_comes_back(w);
    ended(w, one);
    ended(w, job);
    assert_false(is_told(w, WIRE_Registry_Report, job));
    assert_true(answer(w, WIRE_Registry_StepReport, one, E_STEP_ID, NULL));
    assert_true(is_told(w, WIRE_Registry_Report, job));
    assert_false(is_told(w, WIRE_Registry_StepReport, one));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_end_of_a_job_is_told_behind_those_of_its_steps),
        TEST(a_step_that_the_controller_does_not_know_holds_nothing_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
