/* SPDX-License-Identifier: Apache-2.0
 *
 *   start:  pool: look up the user, plan, write the directory, start the daemon   loop: connect, answer
 *   lost:   pool: result in the log? daemon alive? else sweep                      loop: end told, or connect again
 *
 * The truth about a run is in its directory; a connection only says sooner what can be read there.
 */
#include "spurd/steps/local.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "io/loop/loop.h"
#include "spurd/launch/user.h"
#include "spurd/steps/conn.h"
#include "spurd/steps/program.h"
#include "spurd/steps/rundir.h"

#define AGAIN_MS 200    /* between two attempts to reach a daemon that lives and does not answer */
#define BROKEN_MS 5000 /* after an error: a full disk, no memory */

struct one {
    struct steps_local *owner;
    uint64_t key;
    struct conn *conn;         /* NULL: not connected */
    struct loop_timer *timer;
    bool has_term;             /* its end was asked for: said again to each new connection */
    struct step_terminate term;
    char *term_why;
    bool in_pool;              /* a task of it is under way */
    bool is_over;              /* the end was told */
};

/* What is in the pool, or on its way back. When the loop is stopped nothing comes back: then it is freed from here. */
struct task {
    struct steps_local *s;
    struct task *next, **at;
    void (*free)(struct task *t);
};

struct steps_local {
    struct loop *loop;
    struct pool *pool;
    struct steps_local_conf conf;
    struct steps_events events;
    struct steps steps;
    struct program *program;
    struct map64 runs; /* struct one */
    struct task *tasks;
    bool stopped;
};

static void task_run(struct steps_local *s, struct task *t, void (*fn)(void *arg), void (*done)(void *arg)) {
    t->s = s;
    t->next = s->tasks;
    t->at = &s->tasks;
    if (t->next)
        t->next->at = &t->next;
    s->tasks = t;
    pool_run(s->pool, s->loop, fn, done, t);
}

static void task_free(struct task *t) {
    *t->at = t->next;
    if (t->next)
        t->next->at = t->at;
    t->free(t);
}

static void settle(struct one *o);

static struct one *one_new(struct steps_local *s, uint64_t key) {
    struct one *o = xnew(struct one);
    o->owner = s;
    o->key = key;
    map64_put(&s->runs, key, o);
    return o;
}

static void one_free(struct one *o) {
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
    leave_conn(o);
    tell_end(o, result);
}

static void on_lost(void *arg, const char *why) {
    struct one *o = arg;
    log_debug("run %u.%u: %s", run_job(o->key), run_start_no(o->key), why);
    leave_conn(o);
    settle(o);
}

static void attach(struct one *o) {
    static const struct conn_events events = {on_ended, on_lost};
    struct steps_local *s = o->owner;
    autofree char *dir = rundir_path(s->conf.state_dir, o->key);
    if (s->stopped)
        return;
    if (conn_new(s->loop, dir, &events, o, &o->conn, NULL))
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
        log_error("run %u.%u: %s", run_job(t->key), run_start_no(t->key), e.text);
}

static void on_again(void *arg) {
    struct one *o = arg;
    o->timer = NULL;
    if (!o->conn)
        attach(o);
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
    task_free(&t->task);
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
    task_run(o->owner, &t->task, settle_work, settle_done);
}

/* ---- start ---- */

struct starting {
    struct task task;
    uint64_t key;
    struct buf request;
    steps_started_fn fn;
    void *arg;
    int code;
    struct err why;
    uint32_t pid, kill_wait_ms;
};

static int plan_and_write(struct starting *t, const struct launch_request *q, const char *dir, struct arena *a) {
    struct launch_facts facts = t->task.s->conf.facts;
    struct step_plan plan;
    struct user_facts user;
    int code = user_find(q->spec ? q->spec->uid : 0, q->spec ? q->spec->gid : 0, a, &user, &t->why);
    if (code)
        return code;
    facts.run_dir = dir;
    facts.cgroup = arena_printf(a, "%s-%u.%u", t->task.s->conf.cgroup_prefix, q->job_id, q->start_no);
    facts.home = user.home;
    facts.shell = user.shell;
    facts.groups = user.groups;
    facts.n_groups = user.n_groups;
    code = launch_plan(q, &facts, a, &plan, &t->why);
    t->kill_wait_ms = code ? 0 : plan.kill_wait_ms;
    return code ? code
                : rundir_create(t->task.s->conf.state_dir, t->key, &plan, q->script, q->n_script, &t->why);
}

/* The daemon did not say that it is ready. Either it can be kept from ever starting (the sweep writes a result, and
 * then the directory goes), or it runs after all. */
static void undo_or_accept(struct starting *t, const char *dir) {
    struct err e;
    auto_arena a = {0};
    struct step_history h;
    int code = program_sweep(t->task.s->program, dir, &e);
    if (code == 0) {
        rundir_remove(t->task.s->conf.state_dir, t->key);
        return;
    }
    if (!rundir_read_log(t->task.s->conf.state_dir, t->key, &a, &h, NULL) && h.has_daemon) {
        t->code = 0;
        t->pid = h.daemon.pid;
    }
}

static void start_work(void *arg) {
    struct starting *t = arg;
    auto_arena a = {0};
    struct launch_request q;
    autofree char *dir = rundir_path(t->task.s->conf.state_dir, t->key);
    t->code = rec_decode(launch_request_rec(), t->request.p, t->request.n, &a, &q, &t->why);
    if (!t->code)
        t->code = plan_and_write(t, &q, dir, &a);
    if (t->code)
        return;
    t->code = program_run(t->task.s->program, dir, &t->pid, &t->why);
    if (t->code)
        undo_or_accept(t, dir);
}

static void start_done(void *arg) {
    struct starting *t = arg;
    struct steps_local *s = t->task.s;
    if (!s->stopped) {
        if (!t->code)
            attach(one_new(s, t->key));
        t->fn(t->arg, t->code, &t->why, t->pid, t->kill_wait_ms);
    }
    task_free(&t->task);
}

static void starting_free(struct task *task) {
    struct starting *t = (struct starting *)task;
    buf_fini(&t->request);
    free(t);
}

static void local_start(void *impl, uint64_t key, struct buf request, steps_started_fn fn, void *arg) {
    struct steps_local *s = impl;
    struct starting *t = xnew(struct starting);
    *t = (struct starting){.task.free = starting_free, .key = key, .request = request, .fn = fn, .arg = arg};
    task_run(s, &t->task, start_work, start_done);
}

/* ---- the rest of struct steps ---- */

static struct one *reachable(struct steps_local *s, uint64_t key) {
    struct one *o = map64_get(&s->runs, key);
    return o && o->conn && !o->is_over ? o : NULL;
}

static int local_signal(void *impl, uint64_t key, const struct step_signal *sig) {
    struct one *o = reachable(impl, key);
    if (!o)
        return E_NOT_FOUND;
    conn_send(o->conn, STEP_SIGNAL, step_signal_rec(), sig);
    return 0;
}

static int local_terminate(void *impl, uint64_t key, const struct step_terminate *term) {
    struct one *o = map64_get(&((struct steps_local *)impl)->runs, key);
    if (!o || o->is_over)
        return E_NOT_FOUND;
    free(o->term_why);
    o->term_why = xstrdup(term->why);
    o->term = (struct step_terminate){term->kill_wait_ms, o->term_why};
    o->has_term = true;
    if (o->conn)
        conn_send(o->conn, STEP_TERMINATE, step_terminate_rec(), &o->term);
    return 0;
}

struct forgetting {
    struct steps_local *s;
    uint64_t key;
    bool purge;
};

static void forget_work(void *arg) {
    struct forgetting *f = arg;
    (f->purge ? rundir_purge : rundir_forget)(f->s->conf.state_dir, f->key);
    free(f);
}

static void forget_later(struct steps_local *s, uint64_t key, bool purge) {
    struct forgetting *f = xnew(struct forgetting);
    *f = (struct forgetting){s, key, purge};
    pool_run(s->pool, s->loop, forget_work, NULL, f);
}

static void local_forget(void *impl, uint64_t key) {
    struct steps_local *s = impl;
    struct one *o = map64_del(&s->runs, key);
    if (o)
        one_free(o);
    forget_later(s, key, false);
}

static void local_purge(void *impl, uint64_t key) {
    forget_later(impl, key, true);
}

/* ---- what an earlier life left ---- */

struct finding {
    struct steps_local *s;
    void (*fn)(void *arg, const struct steps_found *found);
    void *arg;
};

static void found_one(void *arg, uint64_t key, int64_t forgotten_unix) {
    struct finding *f = arg;
    auto_arena a = {0};
    struct step_plan plan;
    struct step_history h = {0};
    struct steps_found found = {.key = key, .forgotten_unix = forgotten_unix};
    if (!forgotten_unix) {
        if (rundir_read_plan(f->s->conf.state_dir, key, &a, &plan, NULL) || plan.job_id != run_job(key)) {
            /* A plan is on disk before its launch is answered: this one never was. */
            rundir_remove(f->s->conf.state_dir, key);
            return;
        }
        (void)rundir_read_log(f->s->conf.state_dir, key, &a, &h, NULL);
        found.uid = plan.uid;
        found.pid = h.daemon.pid;
        found.kill_wait_ms = plan.kill_wait_ms;
        one_new(f->s, key);
    }
    f->fn(f->arg, &found);
}

static void local_find(void *impl, void (*fn)(void *arg, const struct steps_found *found), void *arg) {
    struct steps_local *s = impl;
    struct finding f = {s, fn, arg};
    rundir_each(s->conf.state_dir, found_one, &f);
    size_t cursor = 0;
    void *o;
    while (map64_next(&s->runs, &cursor, NULL, &o))
        attach(o);
}

/* ---- life ---- */

int steps_local_new(struct loop *l, struct pool *p, const struct steps_local_conf *conf,
                    const struct steps_events *events, struct steps_local **out, struct err *e) {
    struct program *program;
    int code = rundir_init(conf->state_dir, e);
    if (!code)
        code = program_new(conf->state_dir, &program, e);
    if (code)
        return code;
    struct steps_local *s = xnew(struct steps_local);
    *s = (struct steps_local){.loop = l, .pool = p, .conf = *conf, .events = *events, .program = program};
    s->steps = (struct steps){s, local_find, local_start, local_signal, local_terminate, local_forget, local_purge};
    *out = s;
    return 0;
}

struct steps *steps_local_steps(struct steps_local *s) {
    return &s->steps;
}

void steps_local_stop(struct steps_local *s) {
    size_t cursor = 0;
    void *o;
    s->stopped = true;
    program_stop(s->program);
    while (map64_next(&s->runs, &cursor, NULL, &o))
        one_free(o);
    map64_fini(&s->runs);
}

void steps_local_free(struct steps_local *s) {
    while (s->tasks)
        task_free(s->tasks);
    program_free(s->program);
    free(s);
}
