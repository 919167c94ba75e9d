/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "base/mem.h"
#include "io/loop/loop.h"

static int setup(void **state) {
    *state = loop_new("test");
    return 0;
}

static int teardown(void **state) {
    loop_free(*state);
    return 0;
}

static bool is_true(void *arg) {
    return *(bool *)arg;
}

static void set_true(void *arg) {
    *(bool *)arg = true;
}

static void stop_it(void *arg) {
    loop_stop(arg);
}

static void test_stop_before_run_ends_at_once(void **state) {
    loop_stop(*state);
    loop_run(*state);
    loop_timer_start(*state, 0, stop_it, *state);
    loop_run(*state); /* the first stop is used up */
}

static void test_run_until(void **state) {
    bool done = false;
    assert_false(loop_run_until(*state, is_true, &done, 5));
    loop_timer_start(*state, 1, set_true, &done);
    assert_true(loop_run_until(*state, is_true, &done, 10000));
    assert_true(loop_run_until(*state, is_true, &done, 0));
}

/* A condition that a timer makes true is seen at once, not when something else happens. */
static void test_run_until_sees_timers(void **state) {
    for (int i = 0; i < 200; i++) {
        bool done = false;
        int64_t before_ms = loop_now_ms(*state);
        loop_timer_start(*state, (uint64_t)(i % 3), set_true, &done);
        assert_true(loop_run_until(*state, is_true, &done, 20000));
        assert_true(loop_now_ms(*state) - before_ms < 10000);
    }
}

static void test_run_until_is_stopped(void **state) {
    bool done = false;
    loop_timer_start(*state, 1, stop_it, *state);
    assert_false(loop_run_until(*state, is_true, &done, 10000));
}

struct order {
    struct loop *l;
    int at[8], n;
};

static void note1(void *arg) {
    struct order *o = arg;
    o->at[o->n++] = 1;
}

static void note2(void *arg) {
    struct order *o = arg;
    o->at[o->n++] = 2;
}

static void note3(void *arg) {
    struct order *o = arg;
    o->at[o->n++] = 3;
    loop_stop(o->l);
}

static void test_timers_fire_in_order_and_not_early(void **state) {
    struct order o = {.l = *state};
    int64_t from = loop_now_ms(*state);
    loop_timer_start(*state, 30, note3, &o);
    loop_timer_start(*state, 20, note2, &o);
    struct loop_timer *never = loop_timer_start(*state, 15, note3, &o);
    loop_timer_start(*state, 10, note1, &o);
    loop_timer_stop(never);
    loop_timer_stop(NULL);
    loop_run(*state);
    assert_true(loop_now_ms(*state) - from >= 30);
    assert_int_equal(o.n, 3);
    assert_int_equal(o.at[0], 1);
    assert_int_equal(o.at[1], 2);
    assert_int_equal(o.at[2], 3);
}

static void start_again(void *arg) {
    struct order *o = arg;
    if (++o->n == 100)
        loop_stop(o->l);
    else
        loop_timer_start(o->l, 0, start_again, o);
}

static void test_a_timer_may_start_the_next(void **state) {
    struct order o = {.l = *state};
    loop_timer_start(*state, 0, start_again, &o);
    loop_run(*state);
    assert_int_equal(o.n, 100);
}

static void slow_then_timer(void *arg) {
    struct order *o = arg;
    usleep(30000); /* the loop's own clock now lags by this */
    o->at[0] = (int)(loop_now_ms(o->l) & 0x7fffffff);
    loop_timer_start(o->l, 20, note3, o);
}

static void test_a_timer_started_late_in_a_turn_is_not_early(void **state) {
    struct order o = {.l = *state, .n = 1};
    loop_post(*state, slow_then_timer, &o);
    loop_run(*state);
    assert_true((int)(loop_now_ms(*state) & 0x7fffffff) - o.at[0] >= 20);
}

enum { N_POSTERS = 4, N_POSTS = 5000 };
struct poster {
    struct loop *l;
    int next[N_POSTERS], total; /* the loop's thread only */
};
struct post {
    struct poster *p;
    int who, number;
};

static void on_post(void *arg) {
    struct post *post = arg;
    struct poster *p = post->p;
    assert_int_equal(post->number, p->next[post->who]);
    p->next[post->who]++;
    if (++p->total == N_POSTERS * N_POSTS)
        loop_stop(p->l);
    free(post);
}

struct poster_arg {
    struct poster *p;
    int who;
};

static void *poster_thread(void *arg) {
    struct poster_arg *a = arg;
    for (int i = 0; i < N_POSTS; i++) {
        struct post *post = xnew(struct post);
        *post = (struct post){a->p, a->who, i};
        loop_post(a->p->l, on_post, post);
    }
    return NULL;
}

static void test_posts_of_many_threads_arrive_in_order(void **state) {
    struct poster p = {.l = *state};
    struct poster_arg arg[N_POSTERS];
    pthread_t thread[N_POSTERS];
    for (int i = 0; i < N_POSTERS; i++) {
        arg[i] = (struct poster_arg){&p, i};
        assert_int_equal(pthread_create(&thread[i], NULL, poster_thread, &arg[i]), 0);
    }
    loop_run(*state);
    for (int i = 0; i < N_POSTERS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(p.total, N_POSTERS * N_POSTS);
    assert_true(loop_stats(*state).posted_max > 0);
    loop_stats_reset(*state);
    assert_int_equal(loop_stats(*state).posted_max, 0);
}

static void post_forever(void *arg) {
    loop_post(arg, post_forever, arg);
}

static void test_posting_from_a_posted_function_starves_nobody(void **state) {
    loop_post(*state, post_forever, *state);
    loop_timer_start(*state, 5, stop_it, *state);
    loop_run(*state);
}

static void *stop_from_elsewhere(void *arg) {
    loop_stop(arg);
    return NULL;
}

static void test_stop_from_another_thread(void **state) {
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, stop_from_elsewhere, *state), 0);
    loop_run(*state);
    pthread_join(t, NULL);
}

struct late {
    struct loop_late node; /* first */
    struct loop *l;
    struct late *then;
    int called;
};

static void on_late(struct loop_late *n) {
    struct late *late = (struct late *)n;
    late->called++;
    if (late->then)
        loop_late(late->l, &late->then->node);
}

static bool second_called(void *arg) {
    return ((struct late *)arg)->called > 0;
}

static void test_late_functions_run_once_before_waiting(void **state) {
    struct late b = {{.fn = on_late}, *state, NULL, 0};
    struct late a = {{.fn = on_late}, *state, &b, 0};
    struct late never = {{.fn = on_late}, *state, NULL, 0};
    loop_late(*state, &a.node);
    loop_late(*state, &a.node);
    loop_late(*state, &never.node);
    loop_late_cancel(&never.node);
    loop_late_cancel(&never.node);
    loop_timer_start(*state, 0, stop_it, *state); /* else nothing would end the first wait */
    assert_true(loop_run_until(*state, second_called, &b, 10000));
    assert_int_equal(a.called, 1);
    assert_int_equal(b.called, 1);
    assert_int_equal(never.called, 0);
}

struct stopper {
    struct loop *l;
    struct late *late;
};

static void queue_and_stop(void *arg) {
    struct stopper *s = arg;
    loop_late(s->l, &s->late->node);
    loop_stop(s->l);
}

static void test_late_functions_run_before_the_loop_returns(void **state) {
    struct late late = {{.fn = on_late}, *state, NULL, 0};
    struct stopper s = {*state, &late};
    loop_timer_start(*state, 0, queue_and_stop, &s);
    loop_run(*state);
    assert_int_equal(late.called, 1);
}

struct signals {
    struct loop *l;
    int first, second;
};

static void on_first(void *arg, int signo) {
    ((struct signals *)arg)->first = signo;
}

static void on_second(void *arg, int signo) {
    struct signals *s = arg;
    s->second = signo;
    loop_stop(s->l);
}

static void test_signals(void **state) {
    struct signals s = {.l = *state};
    loop_on_signal(*state, SIGUSR1, on_first, &s);
    loop_on_signal(*state, SIGUSR1, on_second, &s);
    raise(SIGUSR1);
    loop_run(*state);
    assert_int_equal(s.first, 0);
    assert_int_equal(s.second, SIGUSR1);
}

static void test_sigpipe_is_ignored(void **state) {
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    close(fd[0]);
    assert_int_equal(write(fd[1], "x", 1), -1);
    close(fd[1]);
}

static void sleep_60_ms(void *arg) {
    usleep(60000);
}

static void test_gaps_are_measured_and_waiting_is_none(void **state) {
    loop_timer_start(*state, 100, stop_it, *state);
    loop_run(*state);
    assert_true(loop_stats(*state).turns > 0);
    assert_true(loop_stats(*state).gap_max_us < 60000); /* it waited 100 ms, which is no gap */
    loop_post(*state, sleep_60_ms, NULL);
    loop_timer_start(*state, 1, stop_it, *state);
    loop_run(*state);
    assert_true(loop_stats(*state).gap_max_us >= 60000);
    assert_true(loop_stats(*state).gap_p99_us >= 60000);
    loop_stats_reset(*state);
    assert_int_equal(loop_stats(*state).gap_max_us, 0);
    assert_int_equal(loop_stats(*state).gap_p99_us, 0);
}

static void test_time_outside_of_the_loop_is_no_gap(void **state) {
    bool done = true;
    loop_run_until(*state, is_true, &done, 0);
    usleep(60000);
    loop_run_until(*state, is_true, &done, 0);
    loop_stop(*state);
    loop_run(*state);
    assert_true(loop_stats(*state).gap_max_us < 60000);
}

static void test_free_closes_what_is_open(void **state) {
    struct loop *l = loop_new("other");
    static uv_tcp_t tcp;
    static uv_idle_t idle;
    uv_tcp_init(loop_uv(l), &tcp);
    uv_idle_init(loop_uv(l), &idle);
    loop_timer_start(l, 1000000, stop_it, l);
    bool called = false;
    loop_post(l, set_true, &called);
    loop_free(l);
    assert_true(uv_is_closing((uv_handle_t *)&tcp));
    assert_false(called);
    loop_free(NULL);
}

int main(void) {
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_stop_before_run_ends_at_once),
        T(test_run_until),
        T(test_run_until_sees_timers),
        T(test_run_until_is_stopped),
        T(test_timers_fire_in_order_and_not_early),
        T(test_a_timer_may_start_the_next),
        T(test_a_timer_started_late_in_a_turn_is_not_early),
        T(test_posts_of_many_threads_arrive_in_order),
        T(test_posting_from_a_posted_function_starves_nobody),
        T(test_stop_from_another_thread),
        T(test_late_functions_run_once_before_waiting),
        T(test_late_functions_run_before_the_loop_returns),
        T(test_signals),
        T(test_sigpipe_is_ignored),
        T(test_gaps_are_measured_and_waiting_is_none),
        T(test_time_outside_of_the_loop_is_no_gap),
        T(test_free_closes_what_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
