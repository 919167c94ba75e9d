/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancel, hold and release: which jobs, and may they. Jobs that the asker may not touch are answered E_DENIED each;
 * the others become one command.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "spurctld/admit/admit.h"
#include "spurctld/react/react.h"

#define IDS_MAX 100000u

struct steering {
    struct room *room;
    struct arena arena;
    struct job_result *results; /* of the jobs that were refused here */
    uint32_t n_results;
    VEC(uint32_t) ids; /* those that go into the command */
    admit_fn done;
    void *arg;
};

static struct steering *steering_new(struct room *r, size_t n, admit_fn done, void *arg) {
    struct steering *st = xnew(struct steering);
    st->room = r;
    st->done = done;
    st->arg = arg;
    st->results = arena_calloc(&st->arena, n + 1, sizeof(*st->results));
    return st;
}

static void finish(struct steering *st, int code, const struct err *why, const struct results *reply) {
    st->done(st->arg, code, why, reply);
    vec_fini(&st->ids);
    arena_fini(&st->arena);
    free(st);
}

static void refuse(struct steering *st, uint32_t id, int code) {
    st->results[st->n_results++] = (struct job_result){id, (uint32_t)-code, err_sentence(code)};
}

static bool may_steer(const struct who *who, const struct job *j) {
    return who->is_admin || (who->uid == j->spec->uid && (who->uid != 0 || who->is_proven));
}

/* Sorts one job into the command or among the refused; `denied` is what Slurm says to others than its owner. */
static void take(struct steering *st, const struct who *who, const struct job *j, uint32_t id, int denied) {
    if (!j)
        refuse(st, id, E_JOB_ID);
    else if (!may_steer(who, j))
        refuse(st, id, denied);
    else
        vec_push(&st->ids, id);
}

static void on_proposed(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct steering *st = arg;
    struct answer a = {0};
    struct results reply = {0};
    struct err e;
    if (!code)
        code = rec_decode(answer_rec(), answer, n, &st->arena, &a, &e);
    struct job_result *all = arena_calloc(&st->arena, st->n_results + a.n_items + 1, sizeof(*all));
    memcpy(all, st->results, st->n_results * sizeof(*all));
    for (uint32_t i = 0; i < a.n_items; i++)
        all[st->n_results + i] = (struct job_result){a.items[i].job_id, a.items[i].error, a.items[i].text};
    reply.results = all;
    reply.n_results = st->n_results + a.n_items;
    finish(st, code, why, &reply);
}

static void propose_or_finish(struct steering *st, enum command c, const void *cmd, uint32_t uid,
                              const uint8_t *token) {
    if (st->ids.n) {
        room_propose(st->room, c, cmd, uid, token, on_proposed, st);
        return;
    }
    struct results reply = {st->results, st->n_results};
    finish(st, 0, NULL, &reply);
}

static const uint8_t *token_of(const uint8_t *token, uint32_t n) {
    return n == TOKEN_SIZE ? token : NULL;
}

static void select_for_cancel(struct steering *st, const struct who *who, const struct cancel_request *req) {
    struct view v;
    state_peek(st->room->state, &v);
    for (uint32_t i = 0; i < req->n_job_ids; i++) {
        const struct job *j = view_job(&v, req->job_ids[i]);
        if (j && req->user && !str_eq(j->spec->user, req->user))
            continue;
        take(st, who, j, req->job_ids[i], E_DENIED);
    }
    const struct job *j;
    if (req->n_job_ids || !req->user)
        return;
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        if (j->state < JOB_COMPLETED && str_eq(j->spec->user, req->user) && may_steer(who, j))
            vec_push(&st->ids, j->id);
}

/* A signal changes no state: it goes to the agents at once. */
static void signal_jobs(struct steering *st, const struct cancel_request *req) {
    struct view v;
    state_peek(st->room->state, &v);
    struct job_result *all = arena_calloc(&st->arena, st->n_results + st->ids.n + 1, sizeof(*all));
    memcpy(all, st->results, st->n_results * sizeof(*all));
    for (size_t i = 0; i < st->ids.n; i++) {
        const struct job *j = view_job(&v, st->ids.p[i]);
        int code = !j || job_is_over(j) ? E_JOB_DONE : j->state == JOB_PENDING ? E_JOB_STATE : 0;
        if (!code)
            react_signal(st->room->react, j, req->signal, req->batch_only);
        all[st->n_results + i] =
            (struct job_result){st->ids.p[i], (uint32_t)-code, code ? err_sentence(code) : NULL};
    }
    struct results reply = {all, st->n_results + (uint32_t)st->ids.n};
    finish(st, 0, NULL, &reply);
}

void admit_cancel(struct room *r, const struct who *who, const struct cancel_request *req, admit_fn done, void *arg) {
    struct err e;
    if (!req->n_job_ids && !req->user) {
        err_set(&e, E_USAGE, "No job identification provided");
        done(arg, E_USAGE, &e, NULL);
        return;
    }
    if (req->n_job_ids > IDS_MAX) {
        err_set(&e, E_TOO_BIG, "more than %u jobs in one request", IDS_MAX);
        done(arg, E_TOO_BIG, &e, NULL);
        return;
    }
    if (req->signal > 64) {
        err_set(&e, E_SYNTAX, "%u is no signal", req->signal);
        done(arg, E_SYNTAX, &e, NULL);
        return;
    }
    struct steering *st = steering_new(r, req->n_job_ids, done, arg);
    select_for_cancel(st, who, req);
    if (req->signal) {
        signal_jobs(st, req);
        return;
    }
    struct cmd_cancel cmd = {st->ids.p, (uint32_t)st->ids.n};
    propose_or_finish(st, CMD_CANCEL, &cmd, who->uid, token_of(req->token, req->n_token));
}

void admit_hold(struct room *r, const struct who *who, const struct hold_request *req, admit_fn done, void *arg) {
    struct err e;
    if (req->n_job_ids > IDS_MAX) {
        err_set(&e, E_TOO_BIG, "more than %u jobs in one request", IDS_MAX);
        done(arg, E_TOO_BIG, &e, NULL);
        return;
    }
    if (req->op < HOLD_OP_HOLD || req->op > HOLD_OP_RELEASE) {
        err_set(&e, E_USAGE, "hold operation %u is not known", req->op);
        done(arg, E_USAGE, &e, NULL);
        return;
    }
    struct steering *st = steering_new(r, req->n_job_ids, done, arg);
    struct view v;
    state_peek(r->state, &v);
    for (uint32_t i = 0; i < req->n_job_ids; i++)
        take(st, who, view_job(&v, req->job_ids[i]), req->job_ids[i], E_USER);
    /* As Slurm: an administrator's `hold` is one that the owner can't lift, `uhold` is the owner's kind. */
    uint32_t hold = req->op == HOLD_OP_RELEASE                   ? HOLD_NONE
                    : req->op == HOLD_OP_HOLD && who->is_admin ? HOLD_ADMIN
                                                                 : HOLD_USER;
    struct cmd_hold cmd = {st->ids.p, (uint32_t)st->ids.n, hold, who->is_admin};
    propose_or_finish(st, CMD_HOLD, &cmd, who->uid, token_of(req->token, req->n_token));
}
