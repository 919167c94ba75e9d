/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/room.h"

#include "base/log.h"
#include "base/mem.h"
#include "spurctld/acct/acct.h"
#include "spurctld/admit/admit.h"
#include "spurctld/lead/lead.h"
#include "spurctld/plan/plan.h"
#include "spurctld/query/query.h"
#include "spurctld/react/react.h"

#define COMPLAIN_MS 10000

void room_propose(struct room *r, enum command c, const void *record, uint32_t uid, const uint8_t *token,
                  host_proposed_fn fn, void *arg) {
    struct command_head h = {
        .command = c, .uid = uid, .now_ms = r->host->unix_ms(r->host->impl), .token = token};
    struct buf entry = {0};
    command_encode(&h, record, &entry);
    r->host->propose(r->host->impl, entry, fn, arg);
}

void room_ignore(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    if (code && code != E_STALE && code != E_NOT_LEADER && code != E_STOPPING)
        log_warn("%s refused: %s", command_name((enum command)(uintptr_t)arg), why ? why->text : err_sentence(code));
}

void room_propose_quietly(struct room *r, enum command c, const void *record) {
    room_propose(r, c, record, 0, NULL, room_ignore, (void *)(uintptr_t)c);
}

void room_warn_job(struct room *r, const struct job *j) {
    const struct job_more *more = job_spec_more(j->spec);
    struct react_signal what = {.signal = more->signal, .batch_only = more->signal_batch};
    react_signal(r->react, j, &what);
}

void room_complain(struct room *r, const char *fmt, ...) {
    int64_t now_ms = r->host->now_ms(r->host->impl);
    if (r->complained_ms && now_ms - r->complained_ms < COMPLAIN_MS)
        return;
    r->complained_ms = now_ms;
    va_list ap;
    va_start(ap, fmt);
    autofree char *text = xvasprintf(fmt, ap);
    va_end(ap);
    log_error("%s", text);
}

const struct rconf *room_rconf(const struct room *r) {
    static const struct rconf none;
    struct view v;
    state_peek(r->state, &v);
    return v.cluster->conf ? v.cluster->conf : &none;
}

void room_lead(struct room *r) {
    must(!r->is_leader);
    r->is_leader = true;
    lead_begin(r->lead);
    react_begin(r->react);
    plan_begin(r->plan);
}

void room_follow(struct room *r) {
    if (!r->is_leader)
        return;
    r->is_leader = false;
    plan_end(r->plan);
    react_end(r->react);
    lead_end(r->lead);
    admit_end(r->admit, E_NOT_LEADER);
}

void room_tell(struct room *r, uint64_t index, const struct applied *what) {
    for (size_t i = 0; i < what->lives.n; i++)
        acct_on_life(r->acct, index, what->lives.p[i]);
    for (size_t i = 0; i < what->events.n; i++) {
        const struct event *ev = &what->events.p[i];
        acct_on_event(r->acct, index, ev);
        query_on_event(r->query, ev);
        tally_event(&r->tally, r->state, ev);
        if (!r->is_leader)
            continue;
        lead_on_event(r->lead, ev);
        react_on_event(r->react, ev);
        admit_on_event(r->admit, ev);
        plan_on_event(r->plan, ev);
    }
}
