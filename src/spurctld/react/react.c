/* SPDX-License-Identifier: Apache-2.0
 *
 * Which efforts there are: one for each run that is to be launched or ended.
 */
#include "spurctld/react/react.h"

#include "base/log.h"
#include "base/mem.h"
#include "spurctld/react/call.h"
#include "spurctld/react/effort.h"
#include "wire/messages.h"

struct react *react_new(struct room *r) {
    struct react *re = xnew(struct react);
    re->room = r;
    return re;
}

void react_end(struct react *re) {
    size_t cursor = 0;
    void *ef;
    while (cursor = 0, map64_next(&re->efforts, &cursor, NULL, &ef))
        effort_drop(ef);
    map64_fini(&re->stopped);
}

void react_free(struct react *re) {
    if (!re)
        return;
    react_end(re);
    map64_fini(&re->efforts);
    free(re);
}

static void begin_effort(struct react *re, const struct job *j, enum effort_kind kind, uint32_t step_id,
                         bool is_inherited) {
    struct effort *old = map64_get(&re->efforts, effort_key(kind, j->id, step_id));
    if (old && old->start_no == j->start_no && old->kind == kind) {
        effort_round(old);
        return;
    }
    if (old)
        effort_drop(old);
    struct effort *ef = effort_new(re, j, kind, step_id);
    ef->may_run = is_inherited;
    ef->out++; /* it may come to its end while it begins */
    if (kind == EFFORT_LAUNCH)
        launch_load(ef, j);
    if (effort_back(ef))
        effort_round(ef);
}

static void derive(struct react *re, const struct job *j, bool is_inherited) {
    if (j->completing || job_rare_of(j)->n_leaving)
        begin_effort(re, j, EFFORT_ENDING, 0, is_inherited);
    else if (j->configuring)
        begin_effort(re, j, EFFORT_LAUNCH, 0, is_inherited);
}

/* Agents are told when a job stops, and when it goes on. An earlier leader may have had no time to say the latter. */
static void derive_stop(struct react *re, const struct job *j, bool is_inherited) {
    bool is_stopped = j->state == JOB_SUSPENDED && !j->completing;
    bool was_stopped = map64_get(&re->stopped, j->id) || (is_inherited && job_rare_of(j)->suspended_total_ms);
    if (is_stopped)
        map64_put(&re->stopped, j->id, (void *)(uintptr_t)j->id);
    else
        map64_del(&re->stopped, j->id);
    if (is_stopped != was_stopped && (is_stopped || (j->state == JOB_RUNNING && !j->completing)))
        begin_effort(re, j, EFFORT_SUSPEND, 0, is_inherited);
}

static void derive_step(struct react *re, const struct view *v, const struct step *st) {
    const struct job *j = st->kill_ms && !st->end_ms ? view_job(v, st->job_id) : NULL;
    if (j && j->start_no == st->start_no && !j->completing)
        begin_effort(re, j, EFFORT_STEP_ENDING, st->id, false);
}

void react_begin(struct react *re) {
    struct view v;
    const struct job *j;
    const struct step *st;
    state_peek(re->room->state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++) {
        derive(re, j, true);
        if (job_holds_nodes(j))
            derive_stop(re, j, true);
    }
    for (uint64_t k = 0; (st = view_next_step(&v, &k)); k++)
        derive_step(re, &v, st);
}

static void on_step_event(struct react *re, const struct view *v, const struct event *ev) {
    const struct step *st = view_step(v, ev->job_id, ev->step_id);
    struct effort *ef = map64_get(&re->efforts, effort_key(EFFORT_STEP_ENDING, ev->job_id, ev->step_id));
    if (st)
        derive_step(re, v, st);
    if (ef && (!st || st->end_ms))
        effort_drop(ef);
}

void react_on_event(struct react *re, const struct event *ev) {
    struct view v;
    state_peek(re->room->state, &v);
    if (!ev->job_id)
        return;
    if (ev->kind == EV_STEP_STARTED || ev->kind == EV_STEP_ENDING || ev->kind == EV_STEP_OVER) {
        on_step_event(re, &v, ev);
        return;
    }
    const struct job *j = view_job(&v, ev->job_id);
    struct effort *ef = map64_get(&re->efforts, effort_key(EFFORT_LAUNCH, ev->job_id, 0));
    bool gives_back = ev->kind == EV_JOB_CHANGED && j && job_rare_of(j)->n_leaving;
    if (ev->kind == EV_JOB_STARTED || ev->kind == EV_JOB_ENDING || gives_back) {
        if (j && j->start_no == ev->start_no)
            derive(re, j, false);
    } else if (ef && (!j || !job_holds_nodes(j))) {
        effort_drop(ef);
    }
    if (j && (j->state == JOB_SUSPENDED || re->stopped.n))
        derive_stop(re, j, false);
}

static void on_signalled(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    if (code)
        log_info("signal not delivered: %s", why ? why->text : err_sentence(code));
}

void react_signal(struct react *re, const struct job *j, const struct react_signal *what) {
    struct view v;
    state_peek(re->room->state, &v);
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        const struct node *node = view_node(&v, j->nodes[i].node_id);
        if (!node || j->nodes[i].is_done || (what->batch_only && i))
            continue;
        struct signal_request req = {.job_id = j->id,
                                     .start_no = j->start_no,
                                     .signal = what->signal,
                                     .batch_only = what->batch_only,
                                     .node_name = node->name,
                                     .uid = j->spec->uid,
                                     .step_id = what->step_id,
                                     .full = what->full,
                                     .nonce = re->room->host->random(re->room->host->impl)};
        react_call(re->room, node, WIRE_Agent_Signal, &req, j->id, j->start_no, j->spec->uid, on_signalled, NULL);
    }
}

struct react_stats react_stats(const struct react *re) {
    struct react_stats st = re->stats;
    st.in_flight = re->efforts.n;
    return st;
}
