/* SPDX-License-Identifier: Apache-2.0
 *
 * sbatch --wait, and what it has in common with Attend: a question that is answered later. An array is over with its last
 * task, and ended as badly as the worst of them.
 */
#include "base/mem.h"
#include "spurctld/query/waiters.h"

#define WAIT_MS 20000u

struct query *query_new(struct room *r) {
    struct query *q = xnew(struct query);
    q->room = r;
    return q;
}

/* ---- waiters ---- */

struct waiter *waiter_add(const struct waiter *w, uint64_t wait_ms, void (*on_time)(void *arg)) {
    struct query *q = w->q;
    struct host *h = q->room->host;
    if (q->n_waiters >= WAITERS_MAX) {
        waiter_refuse(w->done, w->arg, E_BUSY);
        return NULL;
    }
    struct waiter *kept = xmemdup(w, sizeof(*w));
    kept->seen = w->seen ? xstrdup(w->seen) : NULL;
    kept->next = map64_put(&q->waiters, w->job_id, kept);
    kept->prev = NULL;
    if (kept->next)
        kept->next->prev = kept;
    q->n_waiters++;
    kept->timer = h->timer_start(h->impl, wait_ms, on_time, kept);
    return kept;
}

void waiter_drop(struct waiter *w) {
    struct query *q = w->q;
    if (w->next)
        w->next->prev = w->prev;
    if (w->prev)
        w->prev->next = w->next;
    else if (w->next)
        map64_put(&q->waiters, w->job_id, w->next);
    else
        map64_del(&q->waiters, w->job_id);
    q->n_waiters--;
    q->room->host->timer_stop(q->room->host->impl, w->timer);
    free(w->seen);
    free(w);
}

void waiter_refuse(query_fn done, void *arg, int code) {
    struct err e;
    err_set(&e, code, NULL);
    done(arg, code, &e, NULL, 0);
}

void query_leave(struct query *q, uint32_t job_id, void *arg) {
    struct waiter *w = map64_get(&q->waiters, job_id);
    while (w && w->arg != arg)
        w = w->next;
    if (!w)
        return;
    waiter_refuse(w->done, w->arg, E_CANCELLED);
    waiter_drop(w);
}

void query_free(struct query *q) {
    if (!q)
        return;
    size_t cursor = 0;
    void *value;
    while (cursor = 0, map64_next(&q->waiters, &cursor, NULL, &value)) {
        struct waiter *w = value;
        waiter_refuse(w->done, w->arg, E_STOPPING);
        waiter_drop(w);
    }
    map64_fini(&q->waiters);
    free(q);
}

/* ---- the end of a job ---- */

static bool is_array(const struct job *j) {
    return j->array && j->array->job_id == j->id;
}

static bool is_over(const struct job *j) {
    return is_array(j) ? j->array->over >= j->array->n : job_is_over(j);
}

static void answer(const struct waiter *w, const struct job *j, uint32_t worst) {
    auto_arena a = {0};
    auto_buf bytes = {0};
    bool is_yours;
    struct wait_reply reply = {j && is_over(j), j ? query_visible(&w->who, j, &a, &is_yours) : NULL, worst};
    rec_encode(wait_reply_rec(), &reply, &bytes);
    w->done(w->arg, 0, NULL, bytes.p, bytes.n);
}

/* An array's answer is looked for among all jobs, on a worker. */
struct search {
    struct room *room;
    struct waiter w;
    struct view view;
    uint32_t worst;
};

static uint32_t code_of(uint32_t wait_status) {
    return wait_status & 0x7f ? 128 + (wait_status & 0x7f) : wait_status >> 8 & 0xff;
}

static void find_worst(void *arg) {
    struct search *s = arg;
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(&s->view, &k)); k++)
        if (j->array && j->array->job_id == s->w.job_id && job_is_over(j) && code_of(j->wait_status) > code_of(s->worst))
            s->worst = j->wait_status;
}

static void on_found(void *arg) {
    struct search *s = arg;
    answer(&s->w, view_job(&s->view, s->w.job_id), s->worst);
    state_view_end(&s->view);
    free(s);
}

static void answer_end(const struct waiter *w, struct room *r, const struct job *j) {
    if (!j || !is_array(j) || !is_over(j)) {
        answer(w, j, j ? j->wait_status : 0);
        return;
    }
    struct search *s = xnew(struct search);
    *s = (struct search){.room = r, .w = *w};
    state_view(r->state, &s->view);
    r->host->work(r->host->impl, find_worst, on_found, s);
}

static void on_time(void *arg) {
    struct waiter *w = arg;
    struct view v;
    w->timer = NULL;
    state_peek(w->q->room->state, &v);
    answer(w, view_job(&v, w->job_id), 0);
    waiter_drop(w);
}

void query_wait(struct query *q, const struct who *who, uint32_t job_id, query_fn done, void *arg) {
    struct view v;
    state_peek(q->room->state, &v);
    const struct job *j = view_job(&v, job_id);
    struct waiter w = {.q = q, .who = *who, .job_id = job_id, .done = done, .arg = arg};
    if (!j)
        waiter_refuse(done, arg, E_JOB_ID);
    else if (is_over(j))
        answer_end(&w, q->room, j);
    else
        waiter_add(&w, WAIT_MS, on_time);
}

static void look(struct query *q, uint32_t job_id, const struct job *j) {
    for (struct waiter *w = map64_get(&q->waiters, job_id), *next; w; w = next) {
        next = w->next;
        if (w->is_attending) {
            attend_look(w);
        } else if (!j || is_over(j)) {
            answer_end(w, q->room, j);
            waiter_drop(w);
        }
    }
}

void query_on_event(struct query *q, const struct event *ev) {
    struct view v;
    if (!ev->job_id || !q->n_waiters)
        return;
    state_peek(q->room->state, &v);
    const struct job *j = view_job(&v, ev->job_id);
    look(q, ev->job_id, j);
    if (j && j->array && j->array->job_id != j->id && ev->kind == EV_JOB_OVER)
        look(q, j->array->job_id, view_job(&v, j->array->job_id));
}
