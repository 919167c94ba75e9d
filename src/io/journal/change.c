/* SPDX-License-Identifier: Apache-2.0
 *
 * Who the members are, and what the owner is told of it.
 *
 * libraft takes one change at a time. Its callback may come when the leadership is over, or with the instance's end; the
 * owner gets its answer when either is seen.
 */
#include <stdio.h>
#include <string.h>

#include "io/journal/inside.h"

/* Several elections: who leads next is known by then, or there is no majority. */
#define TRANSFER_MS 1000

/* ---- changes ---- */

static int code_of(int rv) {
    switch (rv) {
    case 0: return 0;
    case RAFT_NOTLEADER:
    case RAFT_LEADERSHIPLOST: return E_NOT_LEADER;
    case RAFT_CANTCHANGE: return E_BUSY;
    case RAFT_DUPLICATEID:
    case RAFT_DUPLICATEADDRESS:
    case RAFT_BADROLE: return E_EXISTS;
    case RAFT_BADID:
    case RAFT_NOTFOUND: return E_NOT_FOUND;
    case RAFT_NOCONNECTION: return E_UNREACHABLE;
    case RAFT_SHUTDOWN: return E_STOPPING;
    case RAFT_NOSPACE: return E_FULL;
    default: return E_SYS;
    }
}

static void answer(struct journal *j, struct change *c, int code, const char *why) {
    if (c->answered)
        return;
    c->answered = true;
    out_changed(j->out, c->ask.fn, c->ask.arg, code, why);
    turn_soon(j);
}

static void change_ended(struct journal *j, int rv) {
    struct change *c = j->change;
    int code = code_of(rv);
    answer(j, c, code, code == E_SYS || code == E_UNREACHABLE ? raft_strerror(rv) : NULL);
    j->change = NULL;
    free(c);
}

static void on_change(struct raft_change *req, int status) {
    change_ended(req->data, status);
}

static void on_transfer(struct raft_transfer *req) {
    struct journal *j = req->data;
    raft_id leader = 0;
    const char *address;
    if (j->inst && !j->inst->closing)
        raft_leader(&j->inst->raft, &leader, &address);
    bool moved = leader != j->id;
    if (j->change->ask.id && leader != j->change->ask.id)
        moved = false;
    if (moved) {
        change_ended(j, 0);
        return;
    }
    answer(j, j->change, E_DEADLINE, "that controller did not take the lead in time");
    change_ended(j, 0);
}

static int begin(struct instance *in, struct change *c) {
    const struct ask *k = &c->ask;
    struct raft *r = &in->raft;
    switch (k->kind) {
    case ASK_ADD: return raft_add(r, &c->req, k->id, k->address, on_change);
    case ASK_PROMOTE: return raft_assign(r, &c->req, k->id, RAFT_VOTER, on_change);
    case ASK_REMOVE: return raft_remove(r, &c->req, k->id, on_change);
    case ASK_TRANSFER: return raft_transfer(r, &c->transfer, k->id, on_transfer);
    }
    return RAFT_INVALID;
}

/* libraft keeps a request that it refuses. */
static void forget(struct instance *in, struct change *c) {
    if (in->raft.legacy.change == &c->req)
        in->raft.legacy.change = NULL;
}

static void take_one(struct journal *j, const struct ask *k) {
    struct instance *in = j->inst;
    int code = j->stopping                          ? E_STOPPING
               : !in || in->broken || !in->ready    ? E_NOT_LEADER
               : j->change                          ? E_BUSY
                                                    : 0;
    if (code) {
        out_changed(j->out, k->fn, k->arg, code, NULL);
        return;
    }
    struct change *c = xnew(struct change);
    c->ask = *k;
    c->begun_ms = (uint64_t)loop_now_ms(j->loop);
    c->req.data = c->transfer.data = j;
    j->change = c; /* the callback may come before this returns */
    int rv = begin(in, c);
    if (rv != 0) {
        forget(in, c);
        change_ended(j, rv);
    }
}

/* libraft has it, and does nothing about it any more: the leadership is over, and with it the catching up; or the member had caught
 * up, and the entry that lets it vote was refused. 0: none of these. */
static int dropped(const struct instance *in, const struct change *c) {
    const struct raft *r = &in->raft;
    if (in->closing || r->legacy.change != &c->req)
        return 0;
    if (r->state != RAFT_LEADER)
        return r->legacy.prev_state == RAFT_LEADER ? 0 : RAFT_LEADERSHIPLOST;
    if (c->req.catch_up_id)
        return r->leader_state.promotee_id ? 0 : RAFT_LEADERSHIPLOST;
    return r->configuration_uncommitted_index ? 0 : RAFT_NOSPACE;
}

void change_yield(struct journal *j, journal_changed_fn fn) {
    const struct ask k = {.kind = ASK_TRANSFER, .fn = fn};
    take_one(j, &k);
}

/* libraft answers a transfer once it knows who leads; where the others are gone that may be never. */
static void answer_in_vain(struct journal *j) {
    struct change *c = j->change;
    struct instance *in = j->inst;
    if (!c || c->answered)
        return;
    bool leads = in && !in->broken && raft_state(&in->raft) == RAFT_LEADER;
    if (c->ask.kind != ASK_TRANSFER) {
        if (!leads)
            answer(j, c, E_NOT_LEADER, NULL);
    } else if ((uint64_t)loop_now_ms(j->loop) - c->begun_ms > TRANSFER_MS) {
        answer(j, c, E_DEADLINE, "no controller took the lead in time");
    }
}

void change_turn(struct journal *j) {
    answer_in_vain(j);
    int rv = j->change && j->inst ? dropped(j->inst, j->change) : 0;
    if (rv) {
        forget(j->inst, j->change);
        change_ended(j, rv);
    }
    for (;;) {
        struct ask k = {0};
        pthread_mutex_lock(&j->in_lock);
        bool some = j->asks.n > 0;
        if (some) {
            k = j->asks.p[0];
            vec_remove(&j->asks, 0);
        }
        pthread_mutex_unlock(&j->in_lock);
        if (!some)
            return;
        take_one(j, &k);
    }
}

void change_instance_gone(struct journal *j) {
    if (j->change)
        change_ended(j, RAFT_SHUTDOWN);
}

static void ask(struct journal *j, enum ask_kind kind, uint64_t id, const char *address, journal_changed_fn fn, void *arg) {
    struct ask k = {.kind = kind, .id = id, .fn = fn, .arg = arg};
    snprintf(k.address, sizeof(k.address), "%s", address ? address : "");
    pthread_mutex_lock(&j->in_lock);
    vec_push(&j->asks, k);
    pthread_mutex_unlock(&j->in_lock);
    loop_post(j->loop, turn_wake, j);
}

void journal_add(struct journal *j, uint64_t id, const char *address, journal_changed_fn fn, void *arg) {
    ask(j, ASK_ADD, id, address, fn, arg);
}

void journal_promote(struct journal *j, uint64_t id, journal_changed_fn fn, void *arg) {
    ask(j, ASK_PROMOTE, id, NULL, fn, arg);
}

void journal_remove(struct journal *j, uint64_t id, journal_changed_fn fn, void *arg) {
    ask(j, ASK_REMOVE, id, NULL, fn, arg);
}

void journal_transfer(struct journal *j, uint64_t id, journal_changed_fn fn, void *arg) {
    ask(j, ASK_TRANSFER, id, NULL, fn, arg);
}

/* ---- what is told ---- */

static void add_members(struct instance *in, struct journal_status *s) {
    const struct raft_configuration *c = &in->raft.configuration;
    for (unsigned i = 0; i < c->n && s->n_members < JOURNAL_PEERS_MAX; i++) {
        struct journal_member *m = &s->members[s->n_members++];
        raft_index match = 0;
        m->id = c->servers[i].id;
        m->is_voter = c->servers[i].role == RAFT_VOTER;
        const char *address = c->servers[i].address;
        for (size_t k = 0; k < in->j->n_peers; k++)
            if (in->j->peers[k].id == m->id)
                address = in->j->peers[k].address;
        snprintf(m->address, sizeof(m->address), "%s", address);
        if (s->role == JOURNAL_LEADER && raft_match_index(&in->raft, m->id, &match) == 0)
            m->match = match;
    }
}

static bool is_same(struct journal_status a, const struct journal_status *b) {
    for (size_t i = 0; i < a.n_members; i++)
        a.members[i].match = b->members[i].match;
    return memcmp(&a, b, sizeof(a)) == 0;
}

void status_turn(struct journal *j) {
    struct instance *in = j->inst;
    struct journal_status s;
    memset(&s, 0, sizeof(s));
    s.role = stats_role(in);
    s.term = j->told.term;
    s.is_changing = j->change != NULL;
    if (in && in->started && !in->closing) {
        const char *address;
        raft_id id = 0;
        raft_leader(&in->raft, &id, &address);
        s.leader_id = in->broken ? 0 : id;
        s.term = raft_current_term(&in->raft);
        add_members(in, &s);
        uint64_t applied = raft_last_applied(&in->raft);
        if (applied > j->delivered && applied > j->reached) {
            j->reached = applied;
            out_reached(j->out, applied);
        }
    } else {
        memcpy(s.members, j->told.members, sizeof(s.members));
        s.n_members = j->told.n_members;
    }
    if (is_same(s, &j->told))
        return;
    j->told = s;
    out_status(j->out, &s);
}
