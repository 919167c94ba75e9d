/* SPDX-License-Identifier: Apache-2.0
 *
 * Who attends to what: an interactive job and a step have a client that asks for them again and again while it lives
 * (Controller.Attend). When nobody did for attend_secs, the job or step is ended in its owner's name. Soft: a new leader
 * begins to count anew.
 */
#include "base/log.h"
#include "base/mem.h"
#include "spurctld/lead/inside.h"

#define DEFAULT_ATTEND_SECS 30

/* Steps by step_key, a job by the key of a step that no job has. */
static uint64_t attend_key(uint32_t job_id, uint32_t step_plus_1) {
    return step_key(job_id, step_plus_1 ? step_plus_1 - 1 : UINT32_MAX);
}

static int64_t now_of(const struct lead *l) {
    return l->room->host->now_ms(l->room->host->impl);
}

static void begin(struct lead *l, uint32_t job_id, uint32_t step_plus_1) {
    uint64_t key = attend_key(job_id, step_plus_1);
    if (map64_get(&l->attended, key))
        return;
    struct attended *at = xnew(struct attended);
    *at = (struct attended){job_id, step_plus_1, now_of(l)};
    map64_put(&l->attended, key, at);
}

static void end(struct lead *l, uint32_t job_id, uint32_t step_plus_1) {
    if (l->attended.n)
        free(map64_del(&l->attended, attend_key(job_id, step_plus_1)));
}

static bool is_attended(const struct job *j) {
    const struct job_more *more = job_spec_more(j->spec);
    return more->interactive && !more->no_shell && j->state < JOB_COMPLETED;
}

void lead_attended(struct lead *l, uint32_t job_id, uint32_t step_plus_1, bool leaving) {
    struct attended *at = map64_get(&l->attended, attend_key(job_id, step_plus_1));
    if (at)
        at->seen_ms = leaving ? INT64_MAX : now_of(l);
}

void attend_begin(struct lead *l, const struct view *v) {
    const struct job *j;
    const struct step *st;
    for (uint64_t k = 0; (j = view_next_job(v, &k)); k++)
        if (is_attended(j))
            begin(l, j->id, 0);
    for (uint64_t k = 0; (st = view_next_step(v, &k)); k++)
        if (!step_is_over(st))
            begin(l, st->job_id, st->id + 1);
}

void attend_on_event(struct lead *l, const struct view *v, const struct event *ev) {
    if (ev->kind == EV_STEP_STARTED)
        begin(l, ev->job_id, ev->step_id + 1);
    else if (ev->kind == EV_STEP_OVER)
        end(l, ev->job_id, ev->step_id + 1);
    if (ev->kind != EV_JOB_PENDING && ev->kind != EV_JOB_OVER && ev->kind != EV_JOB_ENDING)
        return;
    const struct job *j = view_job(v, ev->job_id);
    if (j && is_attended(j))
        begin(l, j->id, 0);
    else
        end(l, ev->job_id, 0);
}

void attend_end(struct lead *l) {
    size_t cursor = 0;
    void *at;
    while (map64_next(&l->attended, &cursor, NULL, &at))
        free(at);
    map64_fini(&l->attended);
}

static void give_up(struct lead *l, const struct view *v, struct attended *at) {
    const struct job *j = view_job(v, at->job_id);
    if (!j)
        return;
    if (at->step_id) {
        const struct step *st = view_step(v, at->job_id, at->step_id - 1);
        struct cmd_step_cancel cmd = {.job_id = at->job_id, .step_id = at->step_id - 1};
        if (!st || st->kill_ms || j->completing)
            return;
        log_info("step %u.%u: its client is gone, it is ended", at->job_id, at->step_id - 1);
        room_propose(l->room, CMD_STEP_CANCEL, &cmd, j->spec->uid, NULL, room_ignore,
                     (void *)(uintptr_t)CMD_STEP_CANCEL);
        return;
    }
    struct cmd_cancel cmd = {.job_ids = &at->job_id, .n_job_ids = 1, .keep_reason = true};
    log_info("job %u: its client is gone, it is ended", at->job_id);
    room_propose(l->room, CMD_CANCEL, &cmd, j->spec->uid, NULL, room_ignore, (void *)(uintptr_t)CMD_CANCEL);
}

uint64_t lead_attend_ms(const struct lead *l) {
    const struct rconf *conf = room_rconf(l->room);
    return 1000 * (uint64_t)(conf->attend_secs ? conf->attend_secs : DEFAULT_ATTEND_SECS);
}

void attend_tick(struct lead *l, const struct view *v) {
    int64_t most_ms = (int64_t)lead_attend_ms(l);
    int64_t now_ms = now_of(l);
    VEC(struct attended *) gone = {0};
    size_t cursor = 0;
    void *value;
    while (map64_next(&l->attended, &cursor, NULL, &value)) {
        struct attended *at = value;
        if (at->seen_ms != INT64_MAX && now_ms - at->seen_ms > most_ms)
            vec_push(&gone, at);
    }
    for (size_t i = 0; i < gone.n; i++) {
        gone.p[i]->seen_ms = now_ms; /* again, if the proposal is lost */
        give_up(l, v, gone.p[i]);
    }
    vec_fini(&gone);
}
