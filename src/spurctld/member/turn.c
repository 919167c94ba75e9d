/* SPDX-License-Identifier: Apache-2.0
 *
 * One snapshot at a time among all members: while one of them writes its state, its disk is slow, and a majority must
 * not be.
 *
 * Who wants the turn marks that it asks, then asks all others; each says whether it has the turn or asks for it
 * itself. Of two that ask at the same time the one that marked itself later hears of the other, so never both get it;
 * perhaps neither does, and they ask again after pauses that differ. Nobody's clock is looked at. A member that does
 * not answer counts as one without the turn: it is not among those that a majority waits for.
 */
#include <stdlib.h>

#include "spurctld/member/inside.h"

struct turn_ask {
    struct members *m; /* NULL: this member is closing */
    unsigned open;     /* replies that are not there yet, and one while they are sent */
    bool is_refused;
    member_fn fn;
    void *arg;
};

static void ask_end(struct turn_ask *k) {
    struct turn_ask copy = *k;
    struct err e = {0};
    free(k);
    if (!copy.m)
        return;
    copy.m->turn_ask = NULL;
    if (copy.m->turn != TURN_ASKS) /* one was begun for another reason meanwhile */
        copy.is_refused = true;
    else
        copy.m->turn = copy.is_refused ? TURN_NONE : TURN_HAS;
    int code = copy.is_refused ? err_set(&e, E_BUSY, "another controller makes a snapshot") : 0;
    copy.fn(copy.arg, code, code ? &e : NULL);
}

static void on_said(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct turn_ask *k = arg;
    auto_arena a = {0};
    struct confirm_reply r = {0};
    if (!code && !rec_decode(confirm_reply_rec(), reply, n, &a, &r, NULL))
        k->is_refused |= r.has_turn;
    if (--k->open == 0)
        ask_end(k);
}

void member_turn_ask(struct room *r, member_fn fn, void *arg) {
    struct members *m = r->member;
    struct err e;
    if (!m) {
        fn(arg, 0, NULL);
        return;
    }
    if (m->turn != TURN_NONE || m->turn_ask || m->is_closing) {
        fn(arg, err_set(&e, E_BUSY, "this controller makes a snapshot already"), &e);
        return;
    }
    struct confirm_request req = {.term = m->st.term};
    struct turn_ask *k = xnew(struct turn_ask);
    *k = (struct turn_ask){.m = m, .open = 1, .fn = fn, .arg = arg};
    m->turn = TURN_ASKS;
    m->turn_ask = k;
    for (size_t i = 0; m->log && i < m->st.n; i++) {
        if (m->st.members[i].is_self)
            continue;
        k->open++;
        member_call(m, m->st.members[i].id, WIRE_Member_Confirm, &req, ASK_MS, on_said, k);
    }
    if (--k->open == 0)
        ask_end(k);
}

void member_turn_take(struct room *r) {
    if (r->member)
        r->member->turn = TURN_HAS;
}

void member_turn_end(struct room *r) {
    if (r->member && r->member->turn == TURN_HAS)
        r->member->turn = TURN_NONE;
}

void turn_end_all(struct members *m) {
    if (m->turn_ask)
        m->turn_ask->m = NULL;
    m->turn_ask = NULL;
}
