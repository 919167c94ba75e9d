/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop: turns, late functions, posted functions, timers, signals.
 *
 * libuv is run one turn at a time, so that `stop` and `done` are looked at between turns. A prepare handle, which runs
 * right before libuv waits, is where late functions run and where a turn's gap is measured: the time since the last
 * such moment without what libuv spent waiting.
 */
#include "io/loop/loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/loop/gap.h"

struct posted {
    void (*fn)(void *arg);
    void *arg;
};

struct loop_timer {
    uv_timer_t uv; /* first, so that libuv's pointer is ours */
    struct loop *loop;
    void (*fn)(void *arg);
    void *arg;
    struct loop_timer *next_free, *next_made;
    bool live;
};

struct watched {
    uv_signal_t uv;
    struct watched *next;
    void (*fn)(void *arg, int signo);
    void *arg;
    int signo;
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t prepare;
    const char *name;
    bool running;
    bool until; /* within loop_run_until, whose condition any callback may change */
    atomic_bool stop;
    struct loop_late late; /* head of a ring; ours has no function */
    pthread_mutex_t lock;  /* guards `posted` */
    VEC(struct posted) posted;
    VEC(struct posted) taken; /* kept for its memory */
    atomic_size_t posted_max;
    struct loop_timer *timers_free, *timers_made;
    struct watched *watched;
    struct buf scratch;
    struct gap gap;
};

static void late_run(struct loop *l) {
    while (l->late.next != &l->late) {
        struct loop_late *n = l->late.next;
        loop_late_cancel(n);
        n->fn(n);
    }
}

static void on_prepare(uv_prepare_t *h) {
    struct loop *l = h->data;
    late_run(l);
    gap_mark(&l->gap, uv_hrtime(), uv_metrics_idle_time(&l->uv));
}

/* Runs what was posted until now. What these functions post waits for the next turn, so that they can't starve it. */
static void on_wake(uv_async_t *h) {
    struct loop *l = h->data;
    pthread_mutex_lock(&l->lock);
    must(l->taken.n == 0);
    __auto_type t = l->taken;
    l->taken.p = l->posted.p, l->taken.n = l->posted.n, l->taken.cap = l->posted.cap;
    l->posted.p = t.p, l->posted.n = 0, l->posted.cap = t.cap;
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < l->taken.n; i++)
        l->taken.p[i].fn(l->taken.p[i].arg);
    l->taken.n = 0;
}

struct loop *loop_new(const char *name) {
    signal(SIGPIPE, SIG_IGN); /* a peer that dies must be an error of one write, not the end of the process */
    struct loop *l = xnew(struct loop);
    l->name = name;
    l->late.next = l->late.prev = &l->late;
    pthread_mutex_init(&l->lock, NULL);
    must(uv_loop_init(&l->uv) == 0);
    must(uv_loop_configure(&l->uv, UV_METRICS_IDLE_TIME) == 0);
    must(uv_async_init(&l->uv, &l->wake, on_wake) == 0);
    must(uv_prepare_init(&l->uv, &l->prepare) == 0);
    l->uv.data = l->wake.data = l->prepare.data = l;
    uv_prepare_start(&l->prepare, on_prepare);
    uv_unref((uv_handle_t *)&l->prepare);
    return l;
}

static void close_open(uv_handle_t *h, void *arg) {
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

void loop_free(struct loop *l) {
    if (!l)
        return;
    must(!l->running);
    do /* close callbacks may open or close others */
        uv_walk(&l->uv, close_open, NULL);
    while (uv_run(&l->uv, UV_RUN_DEFAULT) || uv_loop_close(&l->uv) == UV_EBUSY);
    for (struct loop_timer *t = l->timers_made, *next; t; t = next) {
        next = t->next_made;
        free(t);
    }
    for (struct watched *w = l->watched, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    vec_fini(&l->posted);
    vec_fini(&l->taken);
    buf_fini(&l->scratch);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

struct uv_loop_s *loop_uv(struct loop *l) {
    return &l->uv;
}

int64_t loop_now_ms(struct loop *l) {
    return (int64_t)(uv_hrtime() / 1000000);
}

static void turn(struct loop *l) {
    uv_run(&l->uv, UV_RUN_ONCE);
    late_run(l);
}

static void begin(struct loop *l) {
    must(!l->running);
    l->running = true;
    gap_begin(&l->gap, uv_hrtime(), uv_metrics_idle_time(&l->uv));
}

static void end(struct loop *l) {
    gap_mark(&l->gap, uv_hrtime(), uv_metrics_idle_time(&l->uv));
    l->running = false;
}

void loop_run(struct loop *l) {
    begin(l);
    while (!atomic_exchange(&l->stop, false))
        turn(l);
    end(l);
}

void loop_stop(struct loop *l) {
    atomic_store(&l->stop, true);
    uv_async_send(&l->wake);
}

static void on_until_timeout(void *arg) {
    *(bool *)arg = true;
}

bool loop_run_until(struct loop *l, bool (*done)(void *arg), void *arg, uint64_t timeout_ms) {
    bool late = false;
    struct loop_timer *t = loop_timer_start(l, timeout_ms, on_until_timeout, &late);
    begin(l);
    l->until = true;
    bool is_done;
    while (!(is_done = done(arg)) && !late && !atomic_exchange(&l->stop, false))
        turn(l);
    l->until = false;
    end(l);
    if (!late)
        loop_timer_stop(t);
    return is_done;
}

void loop_post(struct loop *l, void (*fn)(void *arg), void *arg) {
    pthread_mutex_lock(&l->lock);
    vec_push(&l->posted, (struct posted){fn, arg});
    size_t n = l->posted.n;
    if (n > atomic_load_explicit(&l->posted_max, memory_order_relaxed))
        atomic_store_explicit(&l->posted_max, n, memory_order_relaxed);
    if (n == 1) /* inside the lock: once it is released the loop may be gone */
        uv_async_send(&l->wake);
    pthread_mutex_unlock(&l->lock);
}

void loop_late(struct loop *l, struct loop_late *n) {
    if (n->next)
        return;
    n->next = &l->late;
    n->prev = l->late.prev;
    n->prev->next = n->next->prev = n;
}

void loop_late_cancel(struct loop_late *n) {
    if (!n->next)
        return;
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = NULL;
}

uint64_t loop_turn(const struct loop *l) {
    return gap_turns(&l->gap);
}

struct buf *loop_scratch(struct loop *l) {
    l->scratch.n = 0;
    return &l->scratch;
}

/* libuv's timers can be freed only a turn after they were closed; every call has one, so they are kept and used again. */
static struct loop_timer *timer_take(struct loop *l) {
    struct loop_timer *t = l->timers_free;
    if (t) {
        l->timers_free = t->next_free;
        return t;
    }
    t = xnew(struct loop_timer);
    must(uv_timer_init(&l->uv, &t->uv) == 0);
    t->loop = l;
    t->next_made = l->timers_made;
    l->timers_made = t;
    return t;
}

static void timer_give(struct loop_timer *t) {
    must(t->live);
    t->live = false;
    t->next_free = t->loop->timers_free;
    t->loop->timers_free = t;
}

static void on_timer(uv_timer_t *h) {
    struct loop_timer *t = (struct loop_timer *)h;
    void (*fn)(void *arg) = t->fn;
    void *arg = t->arg;
    struct loop *l = t->loop;
    timer_give(t);
    fn(arg);
    /* Timers run before the poll of the same turn, which would then wait for something else to happen. */
    if (l->until)
        uv_async_send(&l->wake);
}

struct loop_timer *loop_timer_start(struct loop *l, uint64_t delay_ms, void (*fn)(void *arg), void *arg) {
    struct loop_timer *t = timer_take(l);
    t->fn = fn;
    t->arg = arg;
    t->live = true;
    uv_update_time(&l->uv); /* else a long turn would make the timer fire early */
    uv_timer_start(&t->uv, on_timer, delay_ms, 0);
    return t;
}

void loop_timer_stop(struct loop_timer *t) {
    if (!t)
        return;
    uv_timer_stop(&t->uv);
    timer_give(t);
}

static void on_uv_signal(uv_signal_t *h, int signo) {
    struct watched *w = (struct watched *)h;
    w->fn(w->arg, signo);
}

static struct watched *watched_find(struct loop *l, int signo) {
    for (struct watched *w = l->watched; w; w = w->next)
        if (w->signo == signo)
            return w;
    struct watched *w = xnew(struct watched);
    must(uv_signal_init(&l->uv, &w->uv) == 0);
    w->signo = signo;
    w->next = l->watched;
    l->watched = w;
    return w;
}

void loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg) {
    struct watched *w = watched_find(l, signo);
    w->fn = fn;
    w->arg = arg;
    must(uv_signal_start(&w->uv, on_uv_signal, signo) == 0);
}

struct loop_stats loop_stats(struct loop *l) {
    return (struct loop_stats){
        .turns = gap_turns(&l->gap),
        .gap_max_us = gap_max_us(&l->gap),
        .gap_p99_us = gap_p99_us(&l->gap),
        .posted_max = atomic_load(&l->posted_max),
    };
}

void loop_stats_reset(struct loop *l) {
    gap_reset(&l->gap);
    atomic_store(&l->posted_max, 0);
}
