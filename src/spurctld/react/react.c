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
}

void react_free(struct react *re) {
    if (!re)
        return;
    react_end(re);
    map64_fini(&re->efforts);
    free(re);
}

static void begin_effort(struct react *re, const struct job *j, bool is_ending, bool is_inherited) {
    struct effort *old = map64_get(&re->efforts, j->id);
    if (old && old->start_no == j->start_no && old->is_ending == is_ending) {
        effort_round(old);
        return;
    }
    if (old)
        effort_drop(old);
    struct effort *ef = effort_new(re, j, is_ending);
    ef->may_run = is_inherited;
    ef->out++; /* it may come to its end while it begins */
    if (!is_ending)
        launch_load(ef, j);
    if (effort_back(ef))
        effort_round(ef);
}

static void derive(struct react *re, const struct job *j, bool is_inherited) {
    if (j->completing)
        begin_effort(re, j, true, is_inherited);
    else if (j->configuring)
        begin_effort(re, j, false, is_inherited);
}

void react_begin(struct react *re) {
    struct view v;
    const struct job *j;
    state_peek(re->room->state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        derive(re, j, true);
}

void react_on_event(struct react *re, const struct event *ev) {
    struct view v;
    state_peek(re->room->state, &v);
    const struct job *j = ev->job_id ? view_job(&v, ev->job_id) : NULL;
    struct effort *ef = ev->job_id ? map64_get(&re->efforts, ev->job_id) : NULL;
    if (ev->kind == EV_JOB_STARTED || ev->kind == EV_JOB_ENDING) {
        if (j && j->start_no == ev->start_no)
            derive(re, j, false);
    } else if (ef && (!j || !job_holds_nodes(j))) {
        effort_drop(ef);
    }
}

static void on_signalled(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    if (code)
        log_info("signal not delivered: %s", why ? why->text : err_sentence(code));
}

void react_signal(struct react *re, const struct job *j, uint32_t signal, bool batch_only) {
    struct view v;
    state_peek(re->room->state, &v);
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        const struct node *node = view_node(&v, j->nodes[i].node_id);
        if (!node || j->nodes[i].is_done || (batch_only && i))
            continue;
        struct signal_request req = {j->id, j->start_no, signal, batch_only, node->name, j->spec->uid};
        react_call(re->room, node, WIRE_Agent_Signal, &req, j->id, j->start_no, j->spec->uid, on_signalled, NULL);
    }
}

struct react_stats react_stats(const struct react *re) {
    struct react_stats st = re->stats;
    st.in_flight = re->efforts.n;
    return st;
}
