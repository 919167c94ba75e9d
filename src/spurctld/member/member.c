/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/member/member.h"

#include <stdio.h>
#include <string.h>

#include "spurctld/member/inside.h"

struct member_info *member_find(struct members *m, uint32_t id) {
    for (size_t i = 0; i < m->st.n; i++)
        if (m->st.members[i].id == id)
            return &m->st.members[i];
    return NULL;
}

static struct host *host_of(struct members *m) {
    return m->room->host;
}

struct host_timer *member_timer(struct members *m, uint64_t ms, void (*fn)(void *arg), void *arg) {
    uint32_t scale = m->log_copy.time_scale ? m->log_copy.time_scale : 1;
    return host_of(m)->timer_start(host_of(m)->impl, ms * scale, fn, arg);
}

void member_timer_stop(struct members *m, struct host_timer **t) {
    host_of(m)->timer_stop(host_of(m)->impl, *t);
    *t = NULL;
}

void member_call(struct members *m, uint32_t id, enum wire_method method, const void *record, uint64_t timeout_ms,
                 host_reply_fn fn, void *arg) {
    struct buf bytes = {0};
    rec_encode(wire_method(method)->request(), record, &bytes);
    host_of(m)->member_send(host_of(m)->impl, id, wire_method(method)->path, bytes, timeout_ms, fn, arg);
}

/* ---- who is heard of ---- */

void member_heard(struct members *m, uint32_t id, const struct confirm_reply *r) {
    struct member_info *i = member_find(m, id);
    if (!i)
        return;
    i->heard_ms = host_of(m)->now_ms(host_of(m)->impl);
    i->term = r->term;
    i->index = r->index;
    snprintf(i->version, sizeof(i->version), "%s", r->version ? r->version : "");
}

/* The entry that removes a member doesn't reach it: the leader sends it nothing any more. Where it knows who leads, only that one's word
 * counts, and not of an earlier term: that may be from before we were taken in again. Who was removed while it was away may know none of
 * those that lead since, and be a candidate in term after term; it believes any that has a leader, where nobody says otherwise. */
static void hear_of_oneself(struct members *m, uint32_t from, const struct confirm_reply *r) {
    bool counts = m->st.leader_id ? from == m->st.leader_id && r->term >= m->st.term : r->term > 0;
    m->says_removed |= counts && r->is_removed;
    m->says_member |= counts && !r->is_removed;
}

static void look_at_oneself(struct members *m) {
    m->removed_said = m->says_removed && !m->says_member ? m->removed_said + 1 : 0;
    m->says_removed = m->says_member = false;
    if (m->removed_said == REMOVED_TIMES && m->log && m->log->removed)
        m->log->removed(m->log->impl);
}

/* Nobody listens there: it is gone at once, and not when it was not heard of for so long. */
static void member_lost(struct members *m, uint32_t id) {
    struct member_info *i = member_find(m, id);
    if (i)
        i->heard_ms = 0;
}

struct beat {
    struct members *m;
    uint32_t id;
};

static void on_beat_answer(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct beat *b = arg;
    auto_arena a = {0};
    struct confirm_reply r;
    if (!code && !b->m->is_closing && !rec_decode(confirm_reply_rec(), reply, n, &a, &r, NULL)) {
        member_heard(b->m, b->id, &r);
        hear_of_oneself(b->m, b->id, &r);
    } else if (code == E_UNREACHABLE && !b->m->is_closing) {
        member_lost(b->m, b->id);
    }
    free(b);
}

static void on_beat(void *arg) {
    struct members *m = arg;
    struct confirm_request req = {.term = m->st.term};
    m->beat = member_timer(m, BEAT_MS, on_beat, m);
    look_at_oneself(m);
    for (size_t i = 0; i < m->st.n; i++) {
        if (m->st.members[i].is_self)
            continue;
        struct beat *b = xnew(struct beat);
        *b = (struct beat){m, m->st.members[i].id};
        member_call(m, b->id, WIRE_Member_Confirm, &req, ASK_MS, on_beat_answer, b);
    }
    change_beat(m);
}

static void beat_if_needed(struct members *m) {
    bool others = m->st.n > 1 && m->log;
    if (others && !m->beat)
        m->beat = member_timer(m, 0, on_beat, m);
    else if (!others)
        member_timer_stop(m, &m->beat);
}

/* ---- a leader that is missed ---- */

static void on_lost(void *arg) {
    struct members *m = arg;
    m->losing = NULL;
    m->is_lost = true;
    read_look(m);
}

static void lose_if_needed(struct members *m) {
    bool misses = m->log && m->st.n > 1 && !m->st.leader_id;
    if (!misses) {
        member_timer_stop(m, &m->losing);
        m->is_lost = false;
    } else if (!m->losing && !m->is_lost) {
        m->losing = member_timer(m, MEMBER_LOST_MS, on_lost, m);
    }
}

/* ---- what the journal says ---- */

struct members *member_new(struct room *r) {
    struct members *m = xnew(struct members);
    m->room = r;
    return m;
}

void member_free(struct members *m) {
    if (!m)
        return;
    m->is_closing = true;
    m->log = NULL;
    member_timer_stop(m, &m->beat);
    member_timer_stop(m, &m->losing);
    read_end_all(m, E_STOPPING);
    turn_end_all(m);
    m->room->member = NULL;
    free(m);
}

void member_set_log(struct members *m, const struct member_log *log) {
    m->log_copy = log ? *log : (struct member_log){0};
    m->log = log ? &m->log_copy : NULL;
    beat_if_needed(m);
    lose_if_needed(m);
    read_look(m);
}

void member_on_status(struct members *m, const struct member_status *s) {
    struct member_status old = m->st;
    m->st = *s;
    for (size_t i = 0; i < m->st.n; i++) {
        struct member_info *now = &m->st.members[i];
        now->is_self = now->id == m->room->member_id;
        now->role = !now->is_voter ? MEMBER_SPARE : now->id == s->leader_id ? MEMBER_LEADER : MEMBER_FOLLOWER;
        for (size_t k = 0; k < old.n; k++)
            if (old.members[k].id == now->id) {
                now->index = old.members[k].index;
                now->term = old.members[k].term;
                now->heard_ms = old.members[k].heard_ms;
                memcpy(now->version, old.members[k].version, sizeof(now->version));
            }
    }
    beat_if_needed(m);
    lose_if_needed(m);
    read_look(m);
}

void member_on_reached(struct members *m, uint64_t index) {
    m->reached = MAX(m->reached, index);
    if (m->applying.first)
        read_look(m);
}

/* ---- what others want to know ---- */

uint32_t member_leader(const struct room *r) {
    const struct members *m = r->member;
    if (!m)
        return r->is_leader ? r->member_id : 0;
    return m->st.leader_id == r->member_id && !m->st.is_leader ? 0 : m->st.leader_id;
}

bool member_is_lost(const struct room *r) {
    return r->member && r->member->is_lost;
}

uint64_t member_term(const struct room *r) {
    return r->member ? r->member->st.term : 0;
}

uint64_t member_reached(const struct room *r) {
    return r->member ? r->member->reached : 0;
}

bool member_is_alone(const struct room *r) {
    return !r->member || (r->member->st.n == 1 && r->member->st.members[0].is_self);
}

size_t member_list(const struct room *r, struct member_info out[MEMBERS_MAX]) {
    const struct members *m = r->member;
    if (!m)
        return 0;
    for (size_t i = 0; i < m->st.n; i++) {
        out[i] = m->st.members[i];
        if (!out[i].is_self)
            continue;
        out[i].index = m->reached;
        out[i].term = m->st.term;
        out[i].heard_ms = r->host->now_ms(r->host->impl);
        snprintf(out[i].version, sizeof(out[i].version), "%s", SPUR_VERSION);
    }
    return m->st.n;
}

void member_confirm(struct room *r, uint32_t from, const struct confirm_request *req, struct confirm_reply *out) {
    struct members *m = r->member;
    *out = (struct confirm_reply){.version = SPUR_VERSION, .has_turn = m && m->turn != TURN_NONE};
    if (!m || !m->log)
        return; /* no log yet: term 0 is nobody's */
    out->term = m->log->term(m->log->impl);
    out->index = m->reached;
    out->is_removed = (m->st.is_leader || m->st.leader_id) && !m->is_changing && !member_find(m, from);
}
