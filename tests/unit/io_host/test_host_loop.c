/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host hands to a worker: done in order of work and answer, and for the sake of the request that asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "io/host/host_loop.h"
#include "io/loop/loop.h"

struct job {
    struct log_about in_work, in_done;
    bool is_done;
};

static void fn(void *arg) {
    ((struct job *)arg)->in_work = log_about_now();
}

static void done(void *arg) {
    struct job *j = arg;
    j->in_done = log_about_now();
    j->is_done = true;
}

static bool both_done(void *arg) {
    struct job *j = arg;
    return j[0].is_done && j[1].is_done;
}

static void work_is_for_the_request_that_asked(void **state) {
    struct loop *l = loop_new("test");
    struct pool *p = pool_new("test", 1);
    struct clock clock = {0};
    struct host_loop *hl = host_loop_new(l, p, &clock, NULL, NULL);
    struct host *h = host_loop_host(hl);
    struct job job[2] = {0};
    struct log_about old = log_about_set("asked-1");
    h->work(h->impl, fn, done, &job[0]);
    log_about_set(old.id);
    h->work(h->impl, fn, done, &job[1]);
    assert_true(loop_run_until(l, both_done, job, 10000));
    assert_string_equal(job[0].in_work.id, "asked-1");
    assert_string_equal(job[0].in_done.id, "asked-1");
    assert_string_equal(job[1].in_work.id, "");
    assert_string_equal(job[1].in_done.id, "");
    assert_string_equal(log_about_now().id, "");
    host_loop_free(hl);
    pool_free(p);
    loop_free(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(work_is_for_the_request_that_asked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
