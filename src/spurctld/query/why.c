/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a job waits: a pass of the planner over a view, on a worker, with a look at that job.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/sched/sched.h"
#include "spurctld/query/query.h"

struct asking {
    struct room *room;
    struct view view;
    struct arena arena;
    struct why_request req;
    int64_t now_unix;
    int code;
    struct err err;
    struct buf reply;
    query_fn done;
    void *arg;
};

/* The task's own record, or that of the array in which it waits. */
static const struct job *find(const struct asking *q) {
    const struct job *j = view_job(&q->view, q->req.job_id), *head = j;
    if (!q->req.task)
        return j;
    if (j && j->array && !j->array->task && array_has(j->array->pending, j->array->n_pending, q->req.task - 1))
        return j;
    for (uint64_t k = 0; (j = view_next_job(&q->view, &k)); k++)
        if (j->array && j->array->job_id == q->req.job_id && j->array->task == q->req.task)
            return j;
    return head && head->array && head->array->task == q->req.task ? head : NULL;
}

static void work(void *arg) {
    struct asking *q = arg;
    const struct job *j = find(q);
    struct why why;
    auto_str id = {0};
    if (!j) {
        q->code = err_set(&q->err, E_JOB_ID, NULL);
        return;
    }
    job_print_id(j, &id);
    struct why_reply reply = {.id = str_text(&id), .name = j->spec->name, .state = j->state, .state_text = job_shown_state(j),
                              .partition = j->partition ? j->partition : j->spec->partition, .now_unix = q->now_unix};
    if (j->state == JOB_PENDING) {
        q->code = sched_explain(&q->view, j->id, q->now_unix, &q->arena, &why, &q->err);
        reply.why = &why;
    }
    if (!q->code)
        rec_encode(why_reply_rec(), &reply, &q->reply);
}

static void done(void *arg) {
    struct asking *q = arg;
    q->done(q->arg, q->code, &q->err, q->reply.p, q->reply.n);
    state_view_end(&q->view);
    arena_fini(&q->arena);
    buf_fini(&q->reply);
    free(q);
}

void query_why(struct room *r, const struct why_request *req, query_fn fn, void *arg) {
    struct asking *q = xnew(struct asking);
    *q = (struct asking){.room = r, .req = *req, .done = fn, .arg = arg, .now_unix = room_now_unix(r)};
    state_view(r->state, &q->view);
    r->host->work(r->host->impl, work, done, q);
}
