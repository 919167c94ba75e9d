/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "io/loop/loop.h"

struct job {
    struct fixture *f;
    int number;
    pthread_t worker;
};
struct fixture {
    struct loop *l;
    pthread_t loop_thread;
    atomic_int worked;
    int done, last; /* the loop's thread only */
    int want;
    sem_t gate;
};

static int setup(void **state) {
    struct fixture *f = xnew(struct fixture);
    f->l = loop_new("test");
    f->loop_thread = pthread_self();
    f->last = -1;
    sem_init(&f->gate, 0, 0);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    loop_free(f->l);
    sem_destroy(&f->gate);
    free(f);
    return 0;
}

static void work(void *arg) {
    struct job *j = arg;
    j->worker = pthread_self();
    atomic_fetch_add(&j->f->worked, 1);
}

static void done(void *arg) {
    struct job *j = arg;
    struct fixture *f = j->f;
    assert_true(pthread_equal(pthread_self(), f->loop_thread));
    assert_false(pthread_equal(j->worker, f->loop_thread));
    f->done++;
    f->last = j->number;
    free(j);
}

static void done_in_order(void *arg) {
    struct job *j = arg;
    assert_int_equal(j->number, j->f->last + 1);
    done(arg);
}

static bool all_done(void *arg) {
    struct fixture *f = arg;
    return f->done == f->want;
}

static struct job *job(struct fixture *f, int number) {
    struct job *j = xnew(struct job);
    j->f = f;
    j->number = number;
    return j;
}

static void test_one_thread_runs_in_order(void **state) {
    struct fixture *f = *state;
    struct pool *p = pool_new("one", 1);
    f->want = 2000;
    for (int i = 0; i < f->want; i++)
        pool_run(p, f->l, work, done_in_order, job(f, i));
    assert_true(loop_run_until(f->l, all_done, f, 30000));
    assert_int_equal(pool_waiting(p), 0);
    pool_free(p);
}

static void test_many_threads(void **state) {
    struct fixture *f = *state;
    struct pool *p = pool_new("a name longer than the kernel takes", 4);
    f->want = 5000;
    for (int i = 0; i < f->want; i++)
        pool_run(p, f->l, work, done, job(f, i));
    assert_true(loop_run_until(f->l, all_done, f, 30000));
    assert_int_equal(atomic_load(&f->worked), f->want);
    pool_free(p);
}

static void wait_at_gate(void *arg) {
    struct job *j = arg;
    sem_wait(&j->f->gate);
    work(arg);
}

static void test_free_waits_for_all_work(void **state) {
    struct fixture *f = *state;
    struct pool *p = pool_new("gate", 1);
    f->want = 3;
    for (int i = 0; i < 3; i++)
        pool_run(p, f->l, wait_at_gate, done, job(f, i));
    assert_true(pool_waiting(p) >= 2);
    for (int i = 0; i < 3; i++)
        sem_post(&f->gate);
    pool_free(p);
    assert_int_equal(atomic_load(&f->worked), 3);
    assert_int_equal(f->done, 0);
    assert_true(loop_run_until(f->l, all_done, f, 30000));
}

static void work_alone(void *arg) {
    atomic_fetch_add(&((struct fixture *)arg)->worked, 1);
}

static void test_done_may_be_null(void **state) {
    struct fixture *f = *state;
    struct pool *p = pool_new("null", 2);
    for (int i = 0; i < 10; i++)
        pool_run(p, f->l, work_alone, NULL, f);
    pool_free(p);
    pool_free(NULL);
    assert_int_equal(atomic_load(&f->worked), 10);
}

static void look_at_mask(void *arg) {
    struct fixture *f = arg;
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    atomic_store(&f->worked, sigismember(&now, SIGTERM) + 1);
}

static void test_workers_take_no_signals(void **state) {
    struct fixture *f = *state;
    struct pool *p = pool_new("mask", 1);
    pool_run(p, f->l, look_at_mask, NULL, f);
    pool_free(p);
    assert_int_equal(atomic_load(&f->worked), 2);
}

int main(void) {
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_one_thread_runs_in_order), T(test_many_threads),            T(test_free_waits_for_all_work),
        T(test_done_may_be_null),         T(test_workers_take_no_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
