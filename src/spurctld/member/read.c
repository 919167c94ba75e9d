/* SPDX-License-Identifier: Apache-2.0
 *
 * The question of a read. Who asks waits in one of three lines:
 *
 *     queued       for the next round: the one in flight began before it asked, and proves nothing to it
 *     flying       for the round that is in flight
 *     applying     has its index, and waits until this member has applied that far
 *
 * A round that comes to nothing puts those who flew back into the queue; their time limit goes on.
 */
#include <string.h>

#include "spurctld/member/inside.h"

#define NO_LEADER "no controller leads: a majority of them is not reached"

/* ---- lines ---- */

static void line_add(struct waiters *l, struct waiter *w) {
    w->in = l;
    w->next = NULL;
    w->prev = l->last;
    *(l->last ? &l->last->next : &l->first) = w;
    l->last = w;
}

static void line_leave(struct waiter *w) {
    struct waiters *l = w->in;
    *(w->prev ? &w->prev->next : &l->first) = w->next;
    *(w->next ? &w->next->prev : &l->last) = w->prev;
}

static void line_move(struct waiters *from, struct waiters *to) {
    struct waiter *w;
    while ((w = from->first)) {
        line_leave(w);
        line_add(to, w);
    }
}

static void answer(struct waiter *w, int code, const char *text) {
    struct err e = {0};
    struct waiter copy = *w;
    line_leave(w);
    member_timer_stop(w->m, &w->limit);
    free(w);
    if (code)
        err_set(&e, code, "%s", text ? text : err_sentence(code));
    if (copy.index_fn)
        copy.index_fn(copy.arg, code, code ? &e : NULL, copy.index, copy.term);
    else
        copy.fn(copy.arg, code, code ? &e : NULL);
}

static void on_limit(void *arg) {
    struct waiter *w = arg;
    w->limit = NULL;
    const struct member_status *st = &w->m->st;
    const char *why = w->has_index           ? "this controller has fallen behind; ask another one, or with --stale"
                      : st->leader_id == 0   ? NO_LEADER
                                             : "the leading controller does not answer, or can't reach a majority";
    answer(w, E_NOT_LEADER, why);
}

static struct waiter *waiter_new(struct room *r, struct waiters *l, void *arg) {
    struct waiter *w = xnew(struct waiter);
    w->m = r->member;
    w->arg = arg;
    line_add(l, w);
    w->limit = member_timer(w->m, MEMBER_WAIT_MS, on_limit, w);
    return w;
}

void read_end_all(struct members *m, int code) {
    struct waiters *const all[] = {&m->queued, &m->flying, &m->applying};
    if (m->round)
        m->round->m = NULL;
    m->round = NULL;
    member_timer_stop(m, &m->again);
    member_timer_stop(m, &m->limit);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        while (all[i]->first)
            answer(all[i]->first, code, NULL);
}

/* ---- a round ---- */

static void round_leave(struct round *rd) {
    if (--rd->refs == 0)
        free(rd);
}

static void on_again(void *arg) {
    struct members *m = arg;
    m->again = NULL;
    read_look(m);
}

static void round_end(struct members *m, bool worked) {
    struct round *rd = m->round;
    m->round = NULL;
    rd->m = NULL;
    member_timer_stop(m, &m->limit);
    if (worked) {
        for (struct waiter *w = m->flying.first; w; w = w->next) {
            w->has_index = true;
            w->index = rd->index;
            w->term = rd->term;
        }
        line_move(&m->flying, &m->applying);
    } else {
        /* They were first, and go first again. */
        line_move(&m->queued, &m->flying);
        line_move(&m->flying, &m->queued);
        if (!m->again)
            m->again = member_timer(m, AGAIN_MS, on_again, m);
    }
    round_leave(rd);
}

static void on_round_limit(void *arg) {
    struct members *m = arg;
    m->limit = NULL;
    round_end(m, false);
    read_look(m);
}

static bool is_still_leader(const struct members *m, uint64_t term) {
    return m->log && m->st.is_leader && m->st.term == term && m->log->term(m->log->impl) == term;
}

struct asked {
    struct round *rd;
    struct members *m; /* while rd->m is set */
    uint32_t id;
};

static void on_confirmed(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct asked *k = arg;
    struct round *rd = k->rd;
    struct members *m = rd->m;
    auto_arena a = {0};
    struct confirm_reply r = {0};
    bool heard = !code && !rec_decode(confirm_reply_rec(), reply, n, &a, &r, NULL);
    rd->open--;
    if (m && heard)
        member_heard(m, k->id, &r);
    if (m) {
        rd->yes += heard && r.term == rd->term;
        bool enough = rd->yes >= rd->need;
        if (enough || rd->open == 0) {
            round_end(m, enough && is_still_leader(m, rd->term));
            read_look(m);
        }
    }
    free(k);
    round_leave(rd);
}

static void on_index(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct round *rd = arg;
    struct members *m = rd->m;
    auto_arena a = {0};
    struct read_index_reply r = {0};
    bool heard = !code && !rec_decode(read_index_reply_rec(), reply, n, &a, &r, NULL);
    rd->open--;
    if (m) {
        rd->index = r.index;
        rd->term = r.term;
        round_end(m, heard);
        read_look(m);
    }
    round_leave(rd);
}

static struct round *round_new(struct members *m) {
    struct round *rd = xnew(struct round);
    *rd = (struct round){.m = m, .refs = 1, .term = m->st.term};
    m->round = rd;
    line_move(&m->queued, &m->flying);
    return rd;
}

static void ask_all(struct members *m) {
    struct round *rd = round_new(m);
    struct confirm_request req = {.term = rd->term};
    size_t voters = 0;
    rd->index = m->log->commit_index(m->log->impl);
    for (size_t i = 0; i < m->st.n; i++) {
        voters += m->st.members[i].is_voter;
        rd->yes += m->st.members[i].is_voter && m->st.members[i].is_self;
    }
    rd->need = (unsigned)(voters / 2 + 1);
    if (rd->yes >= rd->need) {
        round_end(m, is_still_leader(m, rd->term));
        return;
    }
    rd->refs++;
    for (size_t i = 0; i < m->st.n; i++) {
        if (m->st.members[i].is_self || !m->st.members[i].is_voter)
            continue;
        struct asked *k = xnew(struct asked);
        *k = (struct asked){.rd = rd, .id = m->st.members[i].id};
        rd->refs++;
        rd->open++;
        member_call(m, k->id, WIRE_Member_Confirm, &req, ASK_MS, on_confirmed, k);
    }
    if (rd->m && !m->limit)
        m->limit = member_timer(m, CONFIRM_MS, on_round_limit, m);
    round_leave(rd);
}

static void ask_leader(struct members *m) {
    struct round *rd = round_new(m);
    struct nothing req = {0};
    rd->refs++;
    rd->open = 1;
    rd->asked = m->st.leader_id;
    m->limit = member_timer(m, ASK_MS, on_round_limit, m);
    member_call(m, m->st.leader_id, WIRE_Member_ReadIndex, &req, ASK_MS, on_index, rd);
}

static void begin_round(struct members *m) {
    if (m->round || !m->queued.first || !m->log || m->again)
        return;
    if (m->st.is_leader)
        ask_all(m);
    else if (m->st.leader_id && m->st.leader_id != m->room->member_id)
        ask_leader(m);
}

/* ---- who can be answered ---- */

static bool is_there(const struct waiter *w) {
    return w->index_fn || w->m->reached >= w->index;
}

void read_look(struct members *m) {
    if (m->is_closing)
        return;
    /* A follower's round to a leader that is none any more, and a leader's of an earlier term, are given up. */
    bool is_mine = m->round && m->round->asked == 0;
    if (m->round && (!m->log || (is_mine ? !is_still_leader(m, m->round->term) : m->round->asked != m->st.leader_id)))
        round_end(m, false);
    while (m->is_lost && m->queued.first)
        answer(m->queued.first, E_NOT_LEADER, NO_LEADER);
    begin_round(m);
    for (struct waiter *w = m->applying.first, *next; w; w = next) {
        next = w->next;
        if (is_there(w)) {
            answer(w, 0, NULL);
            next = m->applying.first; /* whoever was answered may have asked again */
        }
    }
}

void member_read(struct room *r, member_fn fn, void *arg) {
    struct members *m = r->member;
    if (!m || (m->st.is_leader && member_is_alone(r))) {
        fn(arg, 0, NULL);
        return;
    }
    waiter_new(r, &m->queued, arg)->fn = fn;
    read_look(m);
}

void member_read_index(struct room *r, member_index_fn fn, void *arg) {
    struct members *m = r->member;
    struct err e;
    if (!m || !m->log || !m->st.is_leader) {
        err_set(&e, E_NOT_LEADER, NULL);
        fn(arg, E_NOT_LEADER, &e, 0, 0);
        return;
    }
    waiter_new(r, &m->queued, arg)->index_fn = fn;
    read_look(m);
}
