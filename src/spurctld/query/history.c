/* SPDX-License-Identifier: Apache-2.0
 *
 * History and state, merged: what the state has of a job is newer than any row, so it wins. Ascending by id, jobs of one
 * id (ids come round, and a requeued job has several lives) by their submission, or the last one alone; one page, which never ends among the jobs of one id.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/sched/sched.h"
#include "spurctld/acct/acct.h"
#include "spurctld/query/query.h"

#define LIMIT_MOST 10000u
#define ROWS_BEYOND 64u /* rows that are read beyond the page: of those of one id only one may be shown */

typedef VEC(struct job_info) infos;

struct asking {
    struct room *room;
    struct who who;
    struct view view;
    struct arena arena;
    struct history_request req;
    const char *path;
    infos list;
    uint64_t next_key; /* of the state, not yet merged */
    int64_t now_unix;
    uint32_t limit;
    uint32_t n_rows, row_id; /* read so far, and the last one's */
    bool is_cut;
    uint32_t cut_id; /* of the first that found no room */
    int code;
    struct err why;
    struct buf reply;
    query_fn done;
    void *arg;
};

static bool wants_user(const struct asking *q, const char *user) {
    for (uint32_t i = 0; i < q->req.n_users; i++)
        if (str_eq(q->req.users[i], user))
            return true;
    return q->req.n_users == 0;
}

static int compare_ids(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static bool wants_id(const struct asking *q, uint32_t id) {
    return q->req.n_job_ids == 0 || bsearch(&id, q->req.job_ids, q->req.n_job_ids, sizeof(id), compare_ids);
}

static bool is_named(const struct asking *q, const struct job *j) {
    return wants_id(q, j->id) || (j->array && wants_id(q, j->array->job_id));
}

static bool wants_sluid(const struct asking *q, const struct job *j) {
    for (uint32_t i = 0; i < q->req.n_sluids; i++)
        if (str_eq(q->req.sluids[i], j->sluid))
            return true;
    return q->req.n_sluids == 0;
}

static bool fits(const struct asking *q, const struct job *j) {
    if (!wants_sluid(q, j) || j->id <= q->req.after_id || !is_named(q, j) || !wants_user(q, j->spec->user))
        return false;
    if (q->req.until_unix && j->submit_ms / 1000 > q->req.until_unix)
        return false;
    return !q->req.since_unix || !job_is_over(j) || j->end_ms / 1000 >= q->req.since_unix;
}

/* Of several that an id has had only the last one is shown where not all are asked for. */
static bool is_newer(const struct asking *q, const struct job *j) {
    return !q->req.duplicates && q->list.n && q->list.p[q->list.n - 1].job->id == j->id;
}

static bool add(struct asking *q, const struct job *j, const struct step *steps, uint32_t n_steps) {
    if (is_newer(q, j)) {
        q->list.n--;
    } else if (q->list.n >= q->limit) {
        q->is_cut = true;
        q->cut_id = j->id;
        return false;
    }
    struct job_info info = {.reason = j->reason, .steps = steps, .n_steps = n_steps};
    info.job = query_in_parts(&q->view, query_visible(&q->who, j, &q->arena, &info.is_yours), &q->arena);
    info.limit_min = j->time_limit_min ? 0 : sched_time_limit(&q->view, j);
    vec_push(&q->list, info);
    return true;
}

/* A copy of a row's record that lives as long as the answer. */
static void keep(struct asking *q, const struct rec_desc *d, const void *record, void *copy) {
    auto_buf bytes = {0};
    rec_encode(d, record, &bytes);
    must(rec_decode(d, bytes.p, bytes.n, &q->arena, copy, NULL) == 0);
}

struct old_steps {
    struct asking *q;
    VEC(struct step) list;
};

static void on_old_step(void *arg, const struct step *s) {
    struct old_steps *o = arg;
    struct step copy;
    if (view_step(&o->q->view, s->job_id, s->id))
        return;
    keep(o->q, step_rec(), s, &copy);
    vec_push(&o->list, copy);
}

/* Of a job with very many steps the state keeps the newest; the others are rows already. */
static bool add_live(struct asking *q, const struct job *j) {
    uint32_t n = 0;
    const struct step *steps = query_steps(&q->view, j, true, &q->arena, &n);
    struct old_steps o = {.q = q};
    if (n >= job_rare_of(j)->next_step_id || acct_read_steps(q->path, j->id, j->sluid, on_old_step, &o, NULL) || !o.list.n) {
        vec_fini(&o.list);
        return add(q, j, steps, n);
    }
    for (uint32_t i = 0; i < n; i++)
        vec_push(&o.list, steps[i]);
    steps = arena_memdup(&q->arena, o.list.p, o.list.n * sizeof(*o.list.p));
    n = (uint32_t)o.list.n;
    vec_fini(&o.list);
    return add(q, j, steps, n);
}

/* All of the state's jobs up to `id`. */
static bool add_state_until(struct asking *q, uint64_t id) {
    const struct job *j;
    for (; q->next_key <= id && (j = view_next_job(&q->view, &q->next_key)); q->next_key++) {
        if (q->next_key > id)
            return true;
        if (fits(q, j) && !add_live(q, j))
            return false;
    }
    return true;
}

static bool on_row(void *arg, const struct job *j, const struct step *steps, uint32_t n_steps) {
    struct asking *q = arg;
    q->n_rows++;
    q->row_id = j->id;
    if (!add_state_until(q, j->id - 1))
        return false;
    const struct job *live = view_job(&q->view, j->id);
    if (live && str_eq(live->sluid, j->sluid)) /* the state will show it */
        return true;
    struct job *job = arena_alloc(&q->arena, sizeof(*job));
    struct step *kept = arena_calloc(&q->arena, n_steps + 1, sizeof(*kept));
    keep(q, job_rec(), j, job);
    for (uint32_t i = 0; i < n_steps; i++)
        keep(q, step_rec(), &steps[i], &kept[i]);
    return add(q, job, kept, n_steps);
}

/* The next page begins behind the last id, so all jobs of that id must be on this one. */
static void end_page(struct asking *q) {
    size_t n = q->list.n;
    while (n && q->list.p[n - 1].job->id == q->cut_id)
        n--;
    if (n)
        q->list.n = n;
}

static void work(void *arg) {
    struct asking *q = arg;
    struct acct_filter f = {
        .job_ids = q->req.job_ids,
        .n_job_ids = q->req.n_job_ids,
        .users = q->req.users,
        .n_users = q->req.n_users,
        .sluids = q->req.sluids,
        .n_sluids = q->req.n_sluids,
        .since_unix = q->req.since_unix,
        .until_unix = q->req.until_unix,
        .after_id = q->req.after_id,
        .limit = q->limit + ROWS_BEYOND,
    };
    q->code = acct_read(q->path, &f, on_row, q, &q->why);
    if (!q->is_cut && q->n_rows == f.limit) { /* there may be more of the last one's id */
        q->is_cut = true;
        q->cut_id = q->row_id;
    }
    if (!q->code && !q->is_cut)
        add_state_until(q, UINT32_MAX);
    if (q->is_cut)
        end_page(q);
    const struct rconf *conf = q->view.cluster->conf;
    struct history_reply reply = {q->list.p, (uint32_t)q->list.n, q->is_cut, q->now_unix,
                                  conf ? conf->cluster_name : NULL};
    if (!q->code)
        rec_encode(history_reply_rec(), &reply, &q->reply);
}

static void done(void *arg) {
    struct asking *q = arg;
    q->done(q->arg, q->code, &q->why, q->reply.p, q->reply.n);
    state_view_end(&q->view);
    vec_fini(&q->list);
    arena_fini(&q->arena);
    buf_fini(&q->reply);
    free(q);
}

static void copy_request(struct asking *q, const struct history_request *req) {
    q->req = *req;
    uint32_t *ids = arena_memdup(&q->arena, req->job_ids, req->n_job_ids * sizeof(*ids));
    if (req->n_job_ids)
        qsort(ids, req->n_job_ids, sizeof(*ids), compare_ids);
    q->req.job_ids = ids;
    q->req.sluids = query_words(&q->arena, req->sluids, req->n_sluids);
    const char **users = arena_calloc(&q->arena, req->n_users + 1, sizeof(*users));
    for (uint32_t i = 0; i < req->n_users; i++)
        users[i] = arena_strdup(&q->arena, req->users[i]);
    if (!req->n_users && !req->n_job_ids && !req->all_users) {
        users[0] = arena_strdup(&q->arena, q->who.user);
        q->req.n_users = 1;
    }
    q->req.users = users;
}

void query_history(struct room *r, const struct who *who, const struct history_request *req, query_fn fn, void *arg) {
    struct err e;
    if (req->n_job_ids > LIMIT_MOST || req->n_users > 500 || req->n_sluids > 500) {
        err_set(&e, E_TOO_BIG, "too many ids or users in one question");
        fn(arg, E_TOO_BIG, &e, NULL, 0);
        return;
    }
    struct asking *q = xnew(struct asking);
    *q = (struct asking){.room = r, .who = *who, .done = fn, .arg = arg, .now_unix = room_now_unix(r)};
    copy_request(q, req);
    q->limit = req->limit && req->limit < LIMIT_MOST ? req->limit : LIMIT_MOST;
    q->path = acct_path(r->acct);
    q->next_key = req->after_id;
    state_view(r->state, &q->view);
    r->host->work(r->host->impl, work, done, q);
}
