/* SPDX-License-Identifier: Apache-2.0
 *
 * How the end of a run is learnt: from its daemon's connection, and when that breaks from the run's directory. The truth
 * is in the directory; a connection only says sooner what can be read there.
 */
#include "spurd/steps/inside.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define AGAIN_MS 200    /* between two attempts to reach a daemon that lives and does not answer */
#define BROKEN_MS 5000 /* after an error: a full disk, no memory */

static void settle(struct one *o);

struct one *steps_one_new(struct steps_local *s, uint64_t key) {
    struct one *o = xnew(struct one);
    o->owner = s;
    o->key = key;
    map64_put(&s->runs, key, o);
    return o;
}

void steps_one_free(struct one *o) {
    conn_free(o->conn);
    loop_timer_stop(o->timer);
    free(o->term_why);
    free(o);
}

/* ---- connected ---- */

static void drop_conn(void *conn) {
    conn_free(conn);
}

/* A connection can't be freed from within its own event. */
static void leave_conn(struct one *o) {
    loop_post(o->owner->loop, drop_conn, take_ptr(&o->conn));
}

/* Step daemons have the machine's clock; ours may be a test's. */
static int64_t on_our_clock(const struct steps_local *s, int64_t machine_ms) {
    struct clock machine = {.scale = 1};
    clock_init(&machine, 1);
    int64_t ago = clock_unix_ms(&machine) - machine_ms;
    return machine_ms ? clock_unix_ms(s->conf.clock) - ago * s->conf.clock->scale : 0;
}

static void tell_end(struct one *o, const struct step_result *result) {
    struct steps_local *s = o->owner;
    struct step_result told = *result;
    if (o->is_over || s->stopped)
        return;
    o->is_over = true;
    told.start_ms = on_our_clock(s, told.start_ms);
    told.end_ms = on_our_clock(s, told.end_ms);
    s->events.ended(s->events.arg, o->key, &told);
}

static void on_ended(void *arg, const struct step_result *result) {
    struct one *o = arg;
    if (!run_step(o->key))
        leave_conn(o);
    tell_end(o, result);
}

static void forget_posted(void *arg) {
    steps_forget_now(arg);
}

static void on_lost(void *arg, const char *why) {
    struct one *o = arg;
    log_debug("%s: %s", run_name(o->key).text, why);
    leave_conn(o);
    if (o->is_forgotten)
        loop_post(o->owner->loop, forget_posted, o);
    else
        settle(o);
}

void steps_attach(struct one *o) {
    static const struct conn_events events = {on_ended, on_lost};
    struct steps_local *s = o->owner;
    autofree char *dir = rundir_path(s->conf.state_dir, o->key);
    if (s->stopped)
        return;
    if (conn_new(s->loop, dir, run_step(o->key) != 0, &events, o, &o->conn, NULL))
        settle(o); /* most often: the run ended before we came */
    else if (o->has_term)
        conn_send(o->conn, STEP_TERMINATE, step_terminate_rec(), &o->term);
}

/* ---- what became of a run whose daemon can't be reached ---- */

struct settling {
    struct task task;
    uint64_t key;
    struct arena arena;
    bool has_result, lives;
    struct step_result result;
};

static bool find_result(struct steps_local *s, uint64_t key, struct arena *a, struct step_result *out) {
    struct step_history h;
    if (rundir_read_log(s->conf.state_dir, key, a, &h, NULL) || !h.has_result)
        return false;
    *out = h.result;
    return true;
}

/* Reads the result; makes one by a sweep where no daemon lives. */
static void settle_work(void *arg) {
    struct settling *t = arg;
    struct steps_local *s = t->task.s;
    struct err e;
    autofree char *dir = rundir_path(s->conf.state_dir, t->key);
    t->has_result = find_result(s, t->key, &t->arena, &t->result);
    if (t->has_result)
        return;
    int code = rundir_is_held(s->conf.state_dir, t->key) ? E_BUSY : program_sweep(s->program, dir, &e);
    t->has_result = find_result(s, t->key, &t->arena, &t->result);
    t->lives = !t->has_result && code == E_BUSY;
    if (!t->has_result && code && code != E_BUSY)
        log_error("%s: %s", run_name(t->key).text, e.text);
}

static void on_again(void *arg) {
    struct one *o = arg;
    o->timer = NULL;
    if (!o->conn)
        steps_attach(o);
}

static void settle_done(void *arg) {
    struct settling *t = arg;
    struct steps_local *s = t->task.s;
    struct one *o = map64_get(&s->runs, t->key);
    if (o && !s->stopped) {
        o->in_pool = false;
        if (t->has_result)
            tell_end(o, &t->result);
        else
            o->timer = loop_timer_start(s->loop, t->lives ? AGAIN_MS : BROKEN_MS, on_again, o);
    }
    steps_task_free(&t->task);
}

static void settling_free(struct task *task) {
    struct settling *t = (struct settling *)task;
    arena_fini(&t->arena);
    free(t);
}

static void settle(struct one *o) {
    if (o->in_pool || o->is_over || o->owner->stopped)
        return;
    struct settling *t = xnew(struct settling);
    t->task.free = settling_free;
    t->key = o->key;
    o->in_pool = true;
    steps_task_run(o->owner, &t->task, settle_work, settle_done);
}
