/* SPDX-License-Identifier: Apache-2.0
 *
 * Hold and release, requeue, suspend and resume.
 */
#include "base/mem.h"
#include "spurctld/admit/steering.h"
#include "spurctld/lead/lead.h"

static bool is_bad(int rc, const struct err *e, admit_fn done, void *arg) {
    if (rc)
        done(arg, rc, e, NULL);
    return rc != 0;
}

/* As Slurm: an administrator's `hold` is one that the owner can't lift, `uhold` is the owner's kind. */
void admit_hold(struct room *r, const struct who *who, const struct hold_request *req, admit_fn done, void *arg) {
    struct err e = {0};
    int rc = steering_check(req->n_job_ids, req->targets, req->n_targets, &e);
    if (!rc && (req->op < HOLD_OP_HOLD || req->op > HOLD_OP_RELEASE))
        rc = err_set(&e, E_USAGE, "hold operation %u is not known", req->op);
    if (is_bad(rc, &e, done, arg))
        return;
    struct steering *st = steering_new(r, who, done, arg);
    steering_take_all(st, req->job_ids, req->n_job_ids, req->targets, req->n_targets, E_USER);
    struct cmd_hold cmd = {.job_ids = st->ids.p,
                           .n_job_ids = (uint32_t)st->ids.n,
                           .hold = req->op == HOLD_OP_RELEASE                   ? HOLD_NONE
                                   : req->op == HOLD_OP_HOLD && who->is_admin ? HOLD_ADMIN
                                                                                : HOLD_USER,
                           .as_admin = who->is_admin,
                           .targets = st->targets.p,
                           .n_targets = (uint32_t)st->targets.n,
                           .runs_too = true,
                           .keeps = true,
                           .keeps_delay = true};
    steering_propose(st, CMD_HOLD, &cmd, req->token, req->n_token);
}

/* Commands that know targets alone. */
static void all_are_targets(struct steering *st) {
    for (size_t i = 0; i < st->ids.n; i++) {
        struct job_target t = {.job_id = st->ids.p[i]};
        vec_push(&st->targets, t);
    }
    st->ids.n = 0;
}

/* How many jobs the command may put back: each needs an id of the second kind. */
static uint32_t count_jobs(const struct steering *st) {
    uint64_t n = 0;
    struct view v;
    state_peek(st->room->state, &v);
    for (size_t i = 0; i < st->targets.n; i++) {
        const struct job_target *t = &st->targets.p[i];
        const struct job *j = view_job(&v, t->job_id);
        bool is_array = j && j->array && j->array->job_id == j->id;
        n += t->n_tasks ? array_count(t->tasks, t->n_tasks) : is_array ? j->array->n : 1;
    }
    return (uint32_t)MIN(n, (uint64_t)STEER_IDS_MAX);
}

void admit_requeue(struct room *r, const struct who *who, const struct requeue_request *req, admit_fn done, void *arg) {
    struct err e = {0};
    if (is_bad(steering_check(0, req->targets, req->n_targets, &e), &e, done, arg))
        return;
    struct steering *st = steering_new(r, who, done, arg);
    steering_take_all(st, NULL, 0, req->targets, req->n_targets, E_DENIED);
    all_are_targets(st);
    uint32_t n = count_jobs(st);
    const char **sluids = arena_calloc(&st->arena, n + 1, sizeof(*sluids));
    for (uint32_t i = 0; i < n; i++) {
        char sluid[SLUID_SIZE];
        lead_new_sluid(r, sluid);
        sluids[i] = arena_strdup(&st->arena, sluid);
    }
    struct cmd_requeue cmd = {.targets = st->targets.p,
                              .n_targets = (uint32_t)st->targets.n,
                              .hold = !req->hold ? HOLD_NONE : who->is_admin ? HOLD_ADMIN : HOLD_USER,
                              .sluids = sluids,
                              .n_sluids = n,
                              .special_exit = req->special_exit && req->hold};
    steering_propose(st, CMD_REQUEUE, &cmd, req->token, req->n_token);
}

void admit_suspend(struct room *r, const struct who *who, const struct suspend_request *req, admit_fn done, void *arg) {
    struct err e = {0};
    if (is_bad(steering_check(0, req->targets, req->n_targets, &e), &e, done, arg))
        return;
    struct steering *st = steering_new(r, who, done, arg);
    steering_take_all(st, NULL, 0, req->targets, req->n_targets, E_DENIED);
    all_are_targets(st);
    struct cmd_suspend cmd = {
        .targets = st->targets.p, .n_targets = (uint32_t)st->targets.n, .resume = req->resume};
    steering_propose(st, CMD_SUSPEND, &cmd, req->token, req->n_token);
}
