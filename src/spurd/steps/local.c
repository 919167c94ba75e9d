/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/steps/inside.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

/* ---- tasks in the pool ---- */

void steps_task_run(struct steps_local *s, struct task *t, void (*fn)(void *arg), void (*done)(void *arg)) {
    t->s = s;
    t->next = s->tasks;
    t->at = &s->tasks;
    if (t->next)
        t->next->at = &t->next;
    s->tasks = t;
    pool_run(s->pool, s->loop, fn, done, t);
}

void steps_task_free(struct task *t) {
    *t->at = t->next;
    if (t->next)
        t->next->at = t->at;
    t->free(t);
}

/* ---- requests ---- */

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

static int local_suspend(void *impl, uint64_t key, bool resume) {
    struct one *o = reachable(impl, key);
    struct step_suspend q = {resume};
    if (!o)
        return E_NOT_FOUND;
    conn_send(o->conn, STEP_SUSPEND, step_suspend_rec(), &q);
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

void steps_forget_now(struct one *o) {
    struct steps_local *s = o->owner;
    uint64_t key = o->key;
    if (s->stopped)
        return;
    map64_del(&s->runs, key);
    steps_one_free(o);
    forget_later(s, key, false);
}

static void local_forget(void *impl, uint64_t key) {
    struct steps_local *s = impl;
    struct one *o = map64_get(&s->runs, key);
    struct step_empty none = {0};
    if (!o) {
        forget_later(s, key, false);
    } else if (run_step(key) && o->conn) {
        o->is_forgotten = true; /* its client may not have all yet, and may lose its connection */
        conn_send(o->conn, STEP_ACK, step_empty_rec(), &none);
    } else {
        steps_forget_now(o);
    }
}

/* ---- connections of clients ---- */

struct passing {
    struct task task;
    uint64_t key;
    int fd;
    struct step_stream what; /* of the two below */
    struct buf open, rest;
    steps_passed_fn fn;
    void *arg;
    int code;
    struct err why;
};

static void pass_work(void *arg) {
    struct passing *p = arg;
    autofree char *dir = rundir_path(p->task.s->conf.state_dir, p->key);
    p->code = conn_pass(dir, p->fd, &p->what, &p->why);
}

static void pass_done(void *arg) {
    struct passing *p = arg;
    if (!p->task.s->stopped)
        p->fn(p->arg, p->code, &p->why, p->code ? take_fd(&p->fd) : -1);
    steps_task_free(&p->task);
}

static void passing_free(struct task *task) {
    struct passing *p = (struct passing *)task;
    if (p->fd >= 0)
        close(p->fd);
    buf_fini(&p->open);
    buf_fini(&p->rest);
    free(p);
}

void steps_local_pass(struct steps_local *s, uint64_t key, int fd, const struct step_stream *what, steps_passed_fn fn,
                      void *arg) {
    struct passing *p = xnew(struct passing);
    *p = (struct passing){.task.free = passing_free, .key = key, .fd = fd, .fn = fn, .arg = arg};
    buf_add(&p->open, what->open, what->n_open);
    buf_add(&p->rest, what->rest, what->n_rest);
    p->what = (struct step_stream){.open = p->open.p, .n_open = (uint32_t)p->open.n, .rest = p->rest.p,
                                   .n_rest = (uint32_t)p->rest.n, .is_owner = what->is_owner};
    steps_task_run(s, &p->task, pass_work, pass_done);
}

bool steps_local_has(const struct steps_local *s, uint64_t key) {
    return map64_get(&s->runs, key) != NULL;
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
        if (rundir_read_plan(f->s->conf.state_dir, key, &a, &plan, NULL) || plan.job_id != run_job(key) ||
            plan.step_id != run_step(key)) {
            /* A plan is on disk before its launch is answered: this one never was. */
            rundir_remove(f->s->conf.state_dir, key);
            return;
        }
        (void)rundir_read_log(f->s->conf.state_dir, key, &a, &h, NULL);
        found.uid = plan.uid;
        found.pid = h.daemon.pid;
        found.kill_wait_ms = plan.kill_wait_ms;
        found.everywhere = plan.everywhere;
        steps_one_new(f->s, key);
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
        steps_attach(o);
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
    s->steps = (struct steps){s, local_find, steps_start, local_signal, local_terminate, local_suspend,
                              local_forget, local_purge};
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
        steps_one_free(o);
    map64_fini(&s->runs);
}

void steps_local_free(struct steps_local *s) {
    while (s->tasks)
        steps_task_free(s->tasks);
    program_free(s->program);
    free(s);
}
