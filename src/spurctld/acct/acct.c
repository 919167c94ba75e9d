/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer. Ends are collected while a batch is being written and become the next one, so that a burst costs few
 * transactions. One batch is out at a time: order without a lock. A batch never begins within an entry: one entry may end
 * many jobs, and the mark that is written with the first of them would tell the next start that it has them all.
 */
#include "spurctld/acct/acct.h"

#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/sql/sql.h"
#include "spurctld/acct/schema.h"

#define RETRY_MS 1000u
#define REPLACE_WAIT_MS 20u

struct row {
    uint64_t index;
    void *record; /* packed: a job, or */
    bool is_step;
};

struct waiter {
    uint64_t index;
    void (*fn)(void *arg);
    void *arg;
};

typedef VEC(struct row) rows;

struct acct {
    struct room *room;
    char *path;
    struct sql *db;         /* the worker's while a batch is out */
    struct sql_stmt *insert, *insert_step, *mark;
    rows next, out;         /* collected; being written */
    rows later;             /* collected while the file is held */
    bool is_out, is_held;
    struct host_timer *timer; /* of the next batch */
    uint64_t flushed;
    VEC(struct waiter) waiters;
    int failed; /* of the batch that came back */
    struct err why;
    struct acct_stats stats;
};

static int open_db(struct acct *a, struct err *e) {
    struct sql_stmt *st = NULL;
    int rc = sql_open(a->path, SQL_WRITE, &a->db, e);
    if (!rc)
        rc = schema_prepare(a->db, e);
    if (!rc)
        rc = sql_prepare(a->db, SCHEMA_INSERT_JOB, &a->insert, e);
    if (!rc)
        rc = sql_prepare(a->db, SCHEMA_INSERT_STEP, &a->insert_step, e);
    if (!rc)
        rc = sql_prepare(a->db, SCHEMA_SET_INDEX, &a->mark, e);
    if (!rc)
        rc = sql_prepare(a->db, SCHEMA_GET_INDEX, &st, e);
    if (rc)
        return rc;
    rc = sql_step(st, e);
    if (rc == 1)
        a->flushed = (uint64_t)sql_i64(st, 0);
    sql_stmt_free(st);
    return rc < 0 ? rc : 0;
}

static void close_db(struct acct *a) {
    sql_stmt_free(a->insert);
    sql_stmt_free(a->insert_step);
    sql_stmt_free(a->mark);
    sql_close(a->db);
    a->insert = a->insert_step = a->mark = NULL;
    a->db = NULL;
}

int acct_open(struct room *r, const char *path, struct acct **out, struct err *e) {
    struct acct *a = xnew(struct acct);
    a->room = r;
    a->path = xstrdup(path);
    int rc = open_db(a, e);
    if (rc) {
        acct_close(a);
        return rc;
    }
    *out = a;
    return 0;
}

static int write_row(struct acct *a, const struct row *row) {
    auto_buf record = {0};
    struct sql_stmt *st = row->is_step ? a->insert_step : a->insert;
    rec_encode(row->is_step ? step_rec() : job_rec(), row->record, &record);
    if (row->is_step)
        schema_bind_step(st, row->record, record.p, record.n);
    else
        schema_bind_job(st, row->record, record.p, record.n);
    return MIN(sql_step(st, &a->why), 0);
}

static int write_batch(struct acct *a) {
    if (!a->out.n)
        return 0;
    int rc = a->db ? 0 : open_db(a, &a->why); /* an other file was put in its place and could not be opened */
    if (!rc)
        rc = sql_exec(a->db, "BEGIN IMMEDIATE", &a->why);
    for (size_t i = 0; !rc && i < a->out.n; i++)
        rc = write_row(a, &a->out.p[i]);
    if (!rc) {
        sql_bind_i64(a->mark, 1, (int64_t)a->out.p[a->out.n - 1].index);
        rc = MIN(sql_step(a->mark, &a->why), 0);
    }
    if (!rc)
        rc = sql_exec(a->db, "COMMIT", &a->why);
    if (rc && a->mark) {
        sql_reset(a->insert);
        sql_reset(a->insert_step);
        sql_reset(a->mark);
        sql_exec(a->db, "ROLLBACK", NULL);
    }
    return rc;
}

static void work(void *arg) {
    struct acct *a = arg;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    a->failed = write_batch(a);
    clock_gettime(CLOCK_MONOTONIC, &to);
    uint64_t us = (uint64_t)((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
    a->stats.max_us = MAX(a->stats.max_us, us);
}

static void begin_batch(struct acct *a);

static void wake(struct acct *a) {
    for (size_t i = 0; i < a->waiters.n;) {
        struct waiter w = a->waiters.p[i];
        if (w.index > acct_flushed_index(a)) {
            i++;
            continue;
        }
        vec_remove(&a->waiters, i);
        w.fn(w.arg);
        i = 0;
    }
}

static void drop_rows(rows *r) {
    for (size_t i = 0; i < r->n; i++)
        rec_free(r->p[i].record);
    r->n = 0;
}

static void on_timer(void *arg) {
    struct acct *a = arg;
    a->timer = NULL;
    begin_batch(a);
}

static void begin_in(struct acct *a, uint64_t delay_ms) {
    struct host *h = a->room->host;
    if (!a->timer)
        a->timer = h->timer_start(h->impl, delay_ms, on_timer, a);
}

static void batch_done(void *arg) {
    struct acct *a = arg;
    a->is_out = false;
    if (a->failed) { /* a full disk: the rows stay, the jobs stay in the state, and we try again */
        if (!a->stats.failures++ || a->stats.failures % 60 == 0)
            log_error("history can't be written, will be tried again: %s", a->why.text);
        begin_in(a, RETRY_MS);
        return;
    }
    a->stats.batches++;
    a->stats.rows += a->out.n;
    if (a->out.n)
        a->flushed = a->out.p[a->out.n - 1].index;
    drop_rows(&a->out);
    wake(a);
    begin_batch(a);
}

static void begin_batch(struct acct *a) {
    struct host *h = a->room->host;
    if (a->is_out || (!a->out.n && !a->next.n))
        return;
    if (!a->out.n) {
        rows empty = a->out;
        a->out = a->next;
        a->next = empty;
    }
    a->is_out = true;
    h->work(h->impl, work, batch_done, a);
}

static void add(struct acct *a, uint64_t index, const void *record, bool is_step) {
    struct row row = {index, rec_pack(is_step ? step_rec() : job_rec(), record), is_step};
    if (a->is_held) {
        vec_push(&a->later, row);
        return;
    }
    vec_push(&a->next, row);
    if (!a->is_out)
        begin_in(a, 0);
}

void acct_on_event(struct acct *a, uint64_t index, const struct event *ev) {
    struct view v;
    if ((ev->kind != EV_JOB_OVER && ev->kind != EV_STEP_OVER) || index <= a->flushed)
        return;
    state_peek(a->room->state, &v);
    bool is_step = ev->kind == EV_STEP_OVER;
    const void *record = is_step ? (const void *)view_step(&v, ev->job_id, ev->step_id) : view_job(&v, ev->job_id);
    if (record)
        add(a, index, record, is_step);
}

void acct_on_life(struct acct *a, uint64_t index, const struct job *life) {
    if (index > a->flushed)
        add(a, index, life, false);
}

/* Rows must go in by ascending index, since the mark is that of the last one. */
struct missing {
    uint64_t index;
    const void *record;
    bool is_step;
};

static int by_index(const void *x, const void *y) {
    const struct missing *a = x, *b = y;
    return a->index < b->index ? -1 : a->index > b->index;
}

void acct_restored(struct acct *a) {
    struct view v;
    const struct job *j;
    const struct step *s;
    VEC(struct missing) missing = {0};
    state_peek(a->room->state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++) {
        struct missing m = {j->ended_index, j, false};
        if (job_is_over(j) && j->ended_index > a->flushed)
            vec_push(&missing, m);
    }
    for (uint64_t k = 0; (s = view_next_step(&v, &k)); k++) {
        struct missing m = {s->ended_index, s, true};
        if (s->end_ms && s->ended_index > a->flushed)
            vec_push(&missing, m);
    }
    if (missing.n)
        qsort(missing.p, missing.n, sizeof(*missing.p), by_index);
    for (size_t i = 0; i < missing.n; i++)
        add(a, missing.p[i].index, missing.p[i].record, missing.p[i].is_step);
    vec_fini(&missing);
}

uint64_t acct_flushed_index(const struct acct *a) {
    if (a->next.n || a->out.n)
        return a->flushed;
    return a->later.n ? a->later.p[0].index - 1 : UINT64_MAX;
}

/* ---- the file as a whole ---- */

int acct_hold(struct acct *a, void (*fn)(void *arg), void *arg, struct err *e) {
    if (a->is_held)
        return err_set(e, E_BUSY, "the history is being copied");
    a->is_held = true;
    acct_when_flushed(a, state_index(a->room->state), fn, arg);
    return 0;
}

void acct_release(struct acct *a) {
    a->is_held = false;
    for (size_t i = 0; i < a->later.n; i++)
        vec_push(&a->next, a->later.p[i]);
    a->later.n = 0;
    if (a->next.n && !a->is_out)
        begin_in(a, 0);
}

struct replacing {
    struct acct *a;
    char *from;
    int code;
    struct err why;
    void (*done)(void *arg, int code, const struct err *why);
    void *arg;
};

static void replace_work(void *arg) {
    struct replacing *r = arg;
    struct err e;
    close_db(r->a);
    r->code = sql_replace(r->from, r->a->path, &r->why);
    int rc = open_db(r->a, &e);
    if (rc)
        close_db(r->a);
    if (rc && !r->code) {
        r->code = rc;
        r->why = e;
    }
}

static void replaced(void *arg) {
    struct replacing *r = arg;
    r->a->is_out = false;
    if (!r->code)
        wake(r->a);
    r->done(r->arg, r->code, r->code ? &r->why : NULL);
    free(r->from);
    free(r);
}

static void replace_now(void *arg) {
    struct replacing *r = arg;
    struct acct *a = r->a;
    struct host *h = a->room->host;
    if (a->is_out) { /* its batch comes back first */
        h->timer_start(h->impl, REPLACE_WAIT_MS, replace_now, r);
        return;
    }
    drop_rows(&a->next); /* of entries that the other file has */
    drop_rows(&a->out);
    drop_rows(&a->later);
    a->is_out = true;
    h->work(h->impl, replace_work, replaced, r);
}

void acct_replace(struct acct *a, const char *from, void (*done)(void *arg, int code, const struct err *why),
                  void *arg) {
    struct replacing *r = xnew(struct replacing);
    *r = (struct replacing){.a = a, .from = xstrdup(from), .done = done, .arg = arg};
    replace_now(r);
}

void acct_when_flushed(struct acct *a, uint64_t index, void (*fn)(void *arg), void *arg) {
    struct waiter w = {index, fn, arg};
    vec_push(&a->waiters, w);
    wake(a);
}

bool acct_is_out(const struct acct *a) {
    return a->is_out;
}

const char *acct_path(const struct acct *a) {
    return a->path;
}

struct acct_stats acct_stats(const struct acct *a) {
    struct acct_stats st = a->stats;
    st.waiting = a->next.n + a->out.n;
    return st;
}

void acct_close(struct acct *a) {
    if (!a)
        return;
    struct host *h = a->room->host;
    must(!a->is_out);
    acct_release(a);
    h->timer_stop(h->impl, a->timer);
    while (a->db && (a->out.n || a->next.n)) {
        if (!a->out.n) {
            rows empty = a->out;
            a->out = a->next;
            a->next = empty;
        }
        if (write_batch(a))
            break; /* the state still has them, and the next start writes them */
        drop_rows(&a->out);
    }
    drop_rows(&a->out);
    drop_rows(&a->next);
    vec_fini(&a->out);
    vec_fini(&a->next);
    vec_fini(&a->waiters);
    vec_fini(&a->later);
    close_db(a);
    free(a->path);
    free(a);
}
