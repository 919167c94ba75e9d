/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/loop.h"

#include "base/mem.h"
#include "base/vec.h"

struct posted {
    void (*fn)(void *arg);
    void *arg;
};

struct loop_timer {
    struct loop *loop;
    struct loop_timer *next, *prev;
    struct vevent *event;
    int64_t at_ms;
    void (*fn)(void *arg);
    void *arg;
};

struct loop {
    struct vworld *world;
    VEC(struct posted) posted;
    struct vevent *post_event;
    struct loop_late late; /* the head of those that are queued */
    struct loop_timer *timers;
    void (*each_turn)(void *arg);
    void *each_turn_arg;
    unsigned lag_most_ms;
    uint64_t turn;
    bool is_stopped;
};

static struct vworld *the_world;

void simloop_world(struct vworld *w) {
    the_world = w;
}

struct loop *loop_new(const char *name) {
    struct loop *l = xnew(struct loop);
    l->world = the_world;
    l->late.next = l->late.prev = &l->late;
    return l;
}

void loop_free(struct loop *l) {
    if (!l)
        return;
    vworld_unset(l->post_event);
    while (l->timers)
        loop_timer_stop(l->timers);
    vec_fini(&l->posted);
    free(l);
}

/* What libraft's disk side is given in the product; in the simulator it leads back to the loop. */
struct uv_loop_s *loop_uv(struct loop *l) {
    return (struct uv_loop_s *)l;
}

int64_t loop_now_ms(struct loop *l) {
    return vworld_now_ms(l->world);
}

uint64_t loop_turn(const struct loop *l) {
    return l->turn;
}

void loop_stop(struct loop *l) {
    l->is_stopped = true;
}

/* ---- turns ---- */

static void run_late(struct loop *l) {
    while (l->late.next != &l->late) {
        struct loop_late *n = l->late.next;
        loop_late_cancel(n);
        n->fn(n);
    }
}

static void end_turn(struct loop *l) {
    l->turn++;
    if (l->each_turn)
        l->each_turn(l->each_turn_arg);
    while (l->late.next != &l->late) {
        run_late(l);
        if (l->each_turn)
            l->each_turn(l->each_turn_arg);
    }
}

void simloop_each_turn(struct loop *l, void (*fn)(void *arg), void *arg) {
    l->each_turn = fn;
    l->each_turn_arg = arg;
}

void simloop_enter(struct loop *l, void (*fn)(void *arg), void *arg) {
    fn(arg);
    end_turn(l);
}

void loop_late(struct loop *l, struct loop_late *n) {
    if (n->next)
        return;
    n->next = &l->late;
    n->prev = l->late.prev;
    n->prev->next = l->late.prev = n;
}

void loop_late_cancel(struct loop_late *n) {
    if (!n->next)
        return;
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = NULL;
}

/* ---- what is posted ---- */

static void run_posted(void *arg) {
    struct loop *l = arg;
    l->post_event = NULL;
    size_t n = l->posted.n; /* what they post themselves comes in the next turn */
    for (size_t i = 0; i < n && !l->is_stopped; i++) {
        struct posted p = l->posted.p[0];
        vec_remove(&l->posted, 0);
        p.fn(p.arg);
    }
    if (l->posted.n && !l->post_event && !l->is_stopped)
        l->post_event = vworld_set(l->world, 0, run_posted, l);
    end_turn(l);
}

void simloop_lag(struct loop *l, unsigned most_ms) {
    l->lag_most_ms = most_ms;
}

void loop_post(struct loop *l, void (*fn)(void *arg), void *arg) {
    struct posted p = {fn, arg};
    vec_push(&l->posted, p);
    if (!l->post_event && !l->is_stopped)
        l->post_event = vworld_set(l->world, vworld_below(l->world, l->lag_most_ms + 1u), run_posted, l);
}

/* ---- timers ---- */

static void on_timer(void *arg) {
    struct loop_timer *t = arg;
    struct loop *l = t->loop;
    void (*fn)(void *) = t->fn;
    void *fn_arg = t->arg;
    t->event = NULL;
    loop_timer_stop(t);
    simloop_enter(l, fn, fn_arg);
}

struct loop_timer *loop_timer_start(struct loop *l, uint64_t delay_ms, void (*fn)(void *arg), void *arg) {
    struct loop_timer *t = xnew(struct loop_timer);
    *t = (struct loop_timer){.loop = l, .next = l->timers, .fn = fn, .arg = arg,
                             .at_ms = vworld_now_ms(l->world) + (int64_t)delay_ms};
    if (l->timers)
        l->timers->prev = t;
    l->timers = t;
    t->event = vworld_set(l->world, delay_ms, on_timer, t);
    return t;
}

void loop_timer_stop(struct loop_timer *t) {
    if (!t)
        return;
    vworld_unset(t->event);
    *(t->prev ? &t->prev->next : &t->loop->timers) = t->next;
    if (t->next)
        t->next->prev = t->prev;
    free(t);
}

bool simloop_drain(struct loop *l) {
    while (!l->is_stopped) {
        struct loop_timer *first = l->timers;
        if (l->posted.n) {
            vworld_unset(l->post_event);
            run_posted(l);
            continue;
        }
        for (struct loop_timer *t = l->timers; t; t = t->next)
            if (t->at_ms < first->at_ms)
                first = t;
        if (!first)
            return false;
        vworld_unset(first->event);
        on_timer(first);
    }
    return true;
}

/* ---- figures ---- */

struct loop_stats loop_stats(struct loop *l) {
    return (struct loop_stats){.turns = l->turn};
}

void loop_stats_reset(struct loop *l) {
}
