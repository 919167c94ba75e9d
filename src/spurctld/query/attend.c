/* SPDX-License-Identifier: Apache-2.0
 *
 * Attend: the client of an interactive job, or of a step, says that it is there, and is told what changed.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/sched/sched.h"
#include "spurctld/lead/lead.h"
#include "spurctld/query/waiters.h"

#define ATTEND_MS 10000u
#define ATTEND_PARTS 3 /* a client is heard of so often while it may be silent: a call may be lost */

static const char *shown(const struct waiter *w, const struct job *j, const struct step *st) {
    return w->step_id ? job_state_name(st->state) : job_shown_state(j);
}

static void add_places(const struct view *v, const struct job *j, struct arena *a, struct attend_reply *out) {
    struct node_place *places = arena_calloc(a, j->n_nodes + 1, sizeof(*places));
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        const struct node *n = view_node(v, j->nodes[i].node_id);
        places[i].name = j->nodes[i].name;
        if (n)
            places[i] = (struct node_place){n->name, n->address, n->port};
    }
    out->places = places;
    out->n_places = j->n_nodes;
}

static void answer(const struct waiter *w, const struct view *v, const struct job *j, const struct step *st) {
    auto_arena a = {0};
    auto_buf bytes = {0};
    struct job_info info = {.reason = j->reason, .limit_min = j->time_limit_min ? 0 : sched_time_limit(v, j)};
    struct attend_reply reply = {.job = &info, .step = st};
    info.job = query_visible(&w->who, j, &a, &info.is_yours);
    add_places(v, j, &a, &reply);
    rec_encode(attend_reply_rec(), &reply, &bytes);
    w->done(w->arg, 0, NULL, bytes.p, bytes.n);
}

static int find(const struct waiter *w, const struct view *v, const struct job **j, const struct step **st) {
    *j = view_job(v, w->job_id);
    *st = *j && w->step_id ? view_step(v, w->job_id, w->step_id - 1) : NULL;
    return !*j ? E_JOB_ID : w->step_id && !*st ? E_STEP_ID : 0;
}

static void on_time(void *arg) {
    struct waiter *w = arg;
    struct view v;
    const struct job *j;
    const struct step *st;
    w->timer = NULL;
    state_peek(w->q->room->state, &v);
    int code = find(w, &v, &j, &st);
    if (code)
        waiter_refuse(w->done, w->arg, code);
    else
        answer(w, &v, j, st);
    waiter_drop(w);
}

void attend_look(struct waiter *w) {
    struct view v;
    const struct job *j;
    const struct step *st;
    state_peek(w->q->room->state, &v);
    int code = find(w, &v, &j, &st);
    if (!code && str_eq(w->seen, shown(w, j, st)) && (!st || step_is_over(st) == w->is_ended))
        return;
    if (code)
        waiter_refuse(w->done, w->arg, code);
    else
        answer(w, &v, j, st);
    waiter_drop(w);
}

static bool may_attend(const struct who *who, const struct job *j) {
    return who->is_admin || (who->uid == j->spec->uid && (who->uid != 0 || who->is_proven));
}

void query_attend(struct query *q, const struct who *who, const struct attend_request *req, query_fn done, void *arg) {
    struct view v;
    const struct job *j;
    const struct step *st;
    struct waiter w = {.q = q,
                       .who = *who,
                       .job_id = req->job_id,
                       .step_id = req->step_id,
                       .is_attending = true,
                       .done = done,
                       .arg = arg};
    state_peek(q->room->state, &v);
    int code = find(&w, &v, &j, &st);
    if (!code && !may_attend(who, j))
        code = E_DENIED;
    if (code) {
        waiter_refuse(done, arg, code);
        return;
    }
    lead_attended(q->room->lead, req->job_id, req->step_id, req->leaving);
    w.is_ended = st && step_is_over(st);
    if (req->leaving || !req->seen_state || !str_eq(req->seen_state, shown(&w, j, st))) {
        answer(&w, &v, j, st);
        return;
    }
    w.seen = (char *)(uintptr_t)req->seen_state; /* copied */
    waiter_add(&w, MIN(ATTEND_MS, lead_attend_ms(q->room->lead) / ATTEND_PARTS), on_time);
}
