/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/vec.h"
#include "spurctld/query/query.h"

#define WAIT_MS 20000u
#define WAITERS_MAX 20000u

struct waiter {
    struct query *q;
    struct who who;
    uint32_t job_id;
    struct host_timer *timer;
    query_fn done;
    void *arg;
};

struct query {
    struct room *room;
    VEC(struct waiter *) waiters;
};

struct query *query_new(struct room *r) {
    struct query *q = xnew(struct query);
    q->room = r;
    return q;
}

static void drop(struct waiter *w) {
    struct query *q = w->q;
    for (size_t i = 0; i < q->waiters.n; i++) {
        if (q->waiters.p[i] == w) {
            q->waiters.p[i] = q->waiters.p[--q->waiters.n];
            break;
        }
    }
    q->room->host->timer_stop(q->room->host->impl, w->timer);
    free(w);
}

static void answer(struct waiter *w, const struct job *j) {
    auto_arena a = {0};
    auto_buf bytes = {0};
    bool is_yours;
    struct wait_reply reply = {j && job_is_over(j), j ? query_visible(&w->who, j, &a, &is_yours) : NULL};
    rec_encode(wait_reply_rec(), &reply, &bytes);
    w->done(w->arg, 0, NULL, bytes.p, bytes.n);
}

static void refuse(query_fn done, void *arg, int code) {
    struct err e;
    err_set(&e, code, NULL);
    done(arg, code, &e, NULL, 0);
}

void query_free(struct query *q) {
    if (!q)
        return;
    while (q->waiters.n) {
        struct waiter *w = q->waiters.p[0];
        refuse(w->done, w->arg, E_STOPPING);
        drop(w);
    }
    vec_fini(&q->waiters);
    free(q);
}

static void on_time(void *arg) {
    struct waiter *w = arg;
    struct view v;
    w->timer = NULL;
    state_peek(w->q->room->state, &v);
    answer(w, view_job(&v, w->job_id));
    drop(w);
}

void query_wait(struct query *q, const struct who *who, uint32_t job_id, query_fn done, void *arg) {
    struct view v;
    state_peek(q->room->state, &v);
    const struct job *j = view_job(&v, job_id);
    if (!j) {
        refuse(done, arg, E_JOB_ID);
        return;
    }
    struct waiter w = {q, *who, job_id, NULL, done, arg};
    if (job_is_over(j)) {
        answer(&w, j);
        return;
    }
    if (q->waiters.n >= WAITERS_MAX) {
        refuse(done, arg, E_BUSY);
        return;
    }
    struct waiter *kept = xmemdup(&w, sizeof(w));
    vec_push(&q->waiters, kept);
    kept->timer = q->room->host->timer_start(q->room->host->impl, WAIT_MS, on_time, kept);
}

void query_on_event(struct query *q, const struct event *ev) {
    struct view v;
    if (ev->kind != EV_JOB_OVER)
        return;
    state_peek(q->room->state, &v);
    const struct job *j = view_job(&v, ev->job_id);
    for (size_t i = 0; i < q->waiters.n;) {
        struct waiter *w = q->waiters.p[i];
        if (w->job_id != ev->job_id) {
            i++;
            continue;
        }
        answer(w, j);
        drop(w);
    }
}
