/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a request goes, once who asks is known.
 *
 *     LOCAL rows, and reads with --stale    here, at once
 *     CURRENT rows                          here, when this member has caught up with what was committed (member_read)
 *     LEADER rows, SHOWN rows               here where we lead; else to the leader, whose answer is ours
 *
 * What can't go yet waits for a leader, MEMBER_WAIT_MS at most: nobody leads, whoever was elected is not ready, the
 * connection broke, this member has only just begun. A member that is lost refuses what it holds: others may do better.
 * What is with a leader that is none any more is taken back and handed to the next one: every request may be repeated,
 * since those that change something carry a token. One that came without is given one here, where there are several
 * members.
 *
 * Who asks is found out by the member that was asked, and the leader believes it, as the connection between them is
 * proven on both sides. An agent's signature goes along and is checked where its node's key is known for certain.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/loop/loop.h"
#include "spurctld/api/request.h"
#include "spurctld/member/member.h"

#define LOOK_MS 30
#define CALL_MS 60000         /* where the client says no deadline */
#define CALL_MOST_MS 600000
#define LONG_MS 1000          /* an attempt that took so long was one: the wait for a leader begins anew */
#define HELD_MOST (256u << 20) /* bytes of requests that wait or are with the leader */
#define TOKEN_TAG 1

/* One attempt. */
struct forward {
    struct forwards *in;
    struct request *rq; /* NULL: it goes another way now */
    struct forward *next, *prev;
    uint32_t to;
    int64_t sent_ms;
};

struct forwards {
    struct loop *loop;
    struct room *room;
    struct request *first, *last; /* that wait */
    struct forward *out;          /* with rq set */
    struct loop_timer *timer;
    size_t held;                  /* bytes */
    bool is_serving, is_stopping;
    unsigned refs;                /* its owner's, and one for each attempt */
};

struct forwards *forwards_new(struct loop *l, struct room *r) {
    struct forwards *f = xnew(struct forwards);
    *f = (struct forwards){.loop = l, .room = r, .refs = 1};
    return f;
}

static void leave(struct forwards *f) {
    if (--f->refs == 0)
        free(f);
}

/* ---- those that wait ---- */

static void on_time(void *arg) {
    struct forwards *f = arg;
    f->timer = NULL;
    forwards_look(f);
}

static void look_later(struct forwards *f) {
    if (!f->timer)
        f->timer = loop_timer_start(f->loop, LOOK_MS, on_time, f);
}

static void park(struct forwards *f, struct request *rq) {
    struct way *w = &rq->way;
    if (!w->until_ms)
        w->until_ms = loop_now_ms(f->loop) + MEMBER_WAIT_MS;
    w->waits = true;
    w->next = NULL;
    w->prev = f->last;
    *(f->last ? &f->last->way.next : &f->first) = rq;
    f->last = rq;
    f->held += rq->n_raw;
    look_later(f);
}

static void unpark(struct forwards *f, struct request *rq) {
    struct way *w = &rq->way;
    w->waits = false;
    *(w->prev ? &w->prev->way.next : &f->first) = w->next;
    *(w->next ? &w->next->way.prev : &f->last) = w->prev;
    f->held -= rq->n_raw;
}

static void give_up(struct forwards *f, struct request *rq) {
    struct err e;
    const char *why = !member_leader(f->room) ? "no controller leads: a majority of them is not reached"
                      : f->is_serving         ? "the leading controller does not answer"
                                              : "this controller is not ready: it has not caught up with the others yet";
    err_set(&e, E_NOT_LEADER, "%s", why);
    rq->ran = false;
    api_fail(rq, E_NOT_LEADER, &e);
}

/* Waits, or is told at once why it can't. */
static void wait_for_leader(struct forwards *f, struct request *rq) {
    if (f->is_stopping)
        api_fail(rq, E_STOPPING, NULL);
    else if (rpc_is_cancelled(rq->call))
        api_fail(rq, E_CANCELLED, NULL);
    else if (rq->is_forwarded || member_is_lost(f->room) || (rq->way.until_ms && loop_now_ms(f->loop) >= rq->way.until_ms))
        give_up(f, rq);
    else if (f->held > HELD_MOST)
        api_fail(rq, E_BUSY, NULL);
    else
        park(f, rq);
}

/* ---- handing on ---- */

static void detach(struct forward *k) {
    struct forwards *f = k->in;
    *(k->prev ? &k->prev->next : &f->out) = k->next;
    if (k->next)
        k->next->prev = k->prev;
    f->held -= k->rq->n_raw;
    k->rq->way.out = NULL;
    k->rq = NULL;
}

/* Between us and the leader, or of who leads: not the answer to what was asked. */
static bool is_about_the_way(int code) {
    return code == E_UNREACHABLE || code == E_NOT_LEADER || code == E_STOPPING || code == E_CANCELLED;
}

static void answer(struct request *rq, int code, const struct err *why, const void *reply, size_t n) {
    struct forward_reply got = {0};
    struct err e;
    if (code == E_METHOD) { /* in the middle of an upgrade: who asks has the leader's address too */
        code = err_set(&e, E_NOT_LEADER, "the leading controller is of an earlier version and takes no requests from others");
        why = &e;
        rq->ran = false;
    }
    if (!code && (code = rec_decode(forward_reply_rec(), reply, n, &rq->arena, &got, &e)) != 0) {
        code = err_set(&e, E_PROTOCOL, "the leading controller's answer can't be read");
        why = &e;
    }
    if (code)
        api_fail(rq, code, why);
    else
        api_reply_bytes(rq, got.message, got.n_message);
}

static void on_forwarded(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct forward *k = arg;
    struct forwards *f = k->in;
    struct request *rq = k->rq;
    int64_t took_ms = loop_now_ms(f->loop) - k->sent_ms;
    if (rq) {
        struct log_about old = log_about_set(rq->about.id);
        detach(k);
        if (took_ms > LONG_MS)
            rq->way.until_ms = 0;
        if (is_about_the_way(code))
            wait_for_leader(f, rq);
        else
            answer(rq, code, why, reply, n);
        log_about_set(old.id);
    }
    free(k);
    leave(f);
}

static uint64_t left_ms(const struct forwards *f, const struct request *rq) {
    int64_t deadline = rpc_deadline_ms(rq->call), now = loop_now_ms(f->loop);
    if (deadline == INT64_MAX)
        return CALL_MS;
    return (uint64_t)MAX(MIN(deadline - now, (int64_t)CALL_MOST_MS), (int64_t)1);
}

static void hand_on(struct forwards *f, struct request *rq, uint32_t leader) {
    struct host *h = f->room->host;
    struct buf bytes = {0};
    struct forward_request req = {.method = wire_method(rq->row->method)->path, .id = rq->about.id, .message = rq->raw,
                                  .n_message = (uint32_t)rq->n_raw, .user = rq->who.user, .group = rq->who.group,
                                  .uid = rq->who.uid, .gid = rq->who.gid, .is_proven = rq->who.is_proven,
                                  .is_admin = rq->who.is_admin, .address = rpc_peer(rq->call)->address,
                                  .proof = rq->row->role == ROLE_NODE ? rq->proof : NULL};
    if (f->held > HELD_MOST) {
        api_fail(rq, E_BUSY, NULL);
        return;
    }
    struct forward *k = xnew(struct forward);
    *k = (struct forward){.in = f, .rq = rq, .next = f->out, .to = leader, .sent_ms = loop_now_ms(f->loop)};
    if (f->out)
        f->out->prev = k;
    f->out = k;
    f->refs++;
    f->held += rq->n_raw;
    rq->way.out = k;
    look_later(f); /* the leader may be missed before the connection is known to be dead */
    rec_encode(forward_request_rec(), &req, &bytes);
    h->member_send(h->impl, leader, wire_method(WIRE_Member_Forward)->path, bytes, left_ms(f, rq), on_forwarded, k);
}

/* ---- a token for those that have none ---- */

static const struct rec_field *token_field(const struct rec_desc *d) {
    for (size_t i = 0; i < d->n_fields; i++)
        if (d->field[i].tag == TOKEN_TAG && d->field[i].kind == REC_BYTES && str_eq(d->field[i].name, "token"))
            return &d->field[i];
    return NULL;
}

static bool has_token(const struct request *rq, const struct rec_field *field) {
    const uint8_t *p = rq->raw;
    if (rq->n_raw > 2 + TOKEN_SIZE && p[0] == (TOKEN_TAG << 3 | 2) && p[1] == TOKEN_SIZE)
        return true; /* as everybody writes it */
    auto_arena a = {0};
    const struct rec_desc *d = wire_method(rq->row->method)->request();
    void *record = arena_alloc(&a, d->size);
    uint32_t n = 0;
    if (rec_decode(d, rq->raw, rq->n_raw, &a, record, NULL))
        return true; /* will be refused */
    memcpy(&n, (const char *)record + field->off_n, sizeof(n));
    return n > 0;
}

static void make_repeatable(struct forwards *f, struct request *rq) {
    struct host *h = f->room->host;
    const struct rec_field *field = rq->message ? NULL : token_field(wire_method(rq->row->method)->request());
    if (!field || member_is_alone(f->room) || has_token(rq, field))
        return;
    uint8_t with[2 + TOKEN_SIZE] = {TOKEN_TAG << 3 | 2, TOKEN_SIZE};
    for (size_t i = 0; i < TOKEN_SIZE; i += sizeof(uint64_t)) {
        uint64_t word = h->random(h->impl);
        memcpy(with + 2 + i, &word, sizeof(word));
    }
    uint8_t *more = arena_alloc(&rq->arena, rq->n_raw + sizeof(with));
    memcpy(more, with, sizeof(with));
    memcpy(more + sizeof(with), rq->raw, rq->n_raw);
    rq->raw = more;
    rq->n_raw += sizeof(with);
}

/* ---- which way ---- */

/* Who reads may say that what this controller has applied will do: it is asked for nothing more then. */
static bool takes_stale(const struct request *rq) {
    const char *said = rpc_metadata(rq->call, "spur-stale");
    return (rq->row->leader == RULE_CURRENT || rq->row->leader == RULE_SHOWN) && said && str_eq(said, "1");
}

static void on_current(void *arg, int code, const struct err *why) {
    struct request *rq = arg;
    struct log_about old = log_about_set(rq->about.id);
    if (code)
        api_fail(rq, code, why);
    else
        api_run(rq);
    log_about_set(old.id);
}

static void run_as_leader(struct request *rq) {
    if (rq->row->role == ROLE_NODE && !rq->message)
        api_run_for_node(rq);
    else
        api_run(rq);
}

static void on_confirmed(void *arg, int code, const struct err *why) {
    struct request *rq = arg;
    struct log_about old = log_about_set(rq->about.id);
    if (code == E_NOT_LEADER)
        wait_for_leader(api_forwards(rq->api), rq);
    else if (code)
        api_fail(rq, code, why);
    else
        run_as_leader(rq);
    log_about_set(old.id);
}

/* Whoever was stopped, or cut off, believes that it leads for a moment longer, and would say of a job that it never heard of that it is
 * not there. So it asks first. A submit need not wait for that: its good answer comes out of the log. */
static void run_here(struct forwards *f, struct request *rq) {
    if (rq->row->leader != RULE_LEADER)
        member_read(f->room, on_current, rq);
    else if (rq->row->method == WIRE_Controller_Submit)
        run_as_leader(rq);
    else
        member_read(f->room, on_confirmed, rq);
}

static void to_the_leader(struct forwards *f, struct request *rq) {
    uint32_t leader = member_leader(f->room);
    if (!rq->way.until_ms)
        make_repeatable(f, rq);
    if (f->room->is_leader && f->is_serving)
        run_here(f, rq);
    else if (rq->is_forwarded || !leader || leader == f->room->member_id || !f->room->host->member_send)
        wait_for_leader(f, rq);
    else
        hand_on(f, rq, leader);
}

void forward_route(struct request *rq) {
    struct forwards *f = api_forwards(rq->api);
    bool is_here = rq->row->leader == RULE_LOCAL || takes_stale(rq);
    if (f->is_stopping && !is_here)
        api_fail(rq, E_STOPPING, NULL);
    else if (rq->row->role == ROLE_MEMBER && rq->row->leader == RULE_LEADER && !f->room->is_leader)
        api_fail(rq, E_NOT_LEADER, NULL);
    else if (!is_here && !f->is_serving && rq->row->role != ROLE_MEMBER)
        wait_for_leader(f, rq); /* nor is it known who administers the cluster */
    else if (!rq->is_known)
        api_identify(rq);
    else if (is_here || rq->row->role == ROLE_MEMBER)
        api_run(rq);
    else if (rq->row->leader == RULE_CURRENT)
        run_here(f, rq);
    else
        to_the_leader(f, rq);
}

bool forward_again(struct request *rq, int code) {
    struct forwards *f = api_forwards(rq->api);
    if (code != E_NOT_LEADER || !rq->ran || rq->row->leader != RULE_LEADER || rq->row->role == ROLE_MEMBER || rq->is_forwarded ||
        f->is_stopping || member_is_alone(f->room))
        return false;
    rq->ran = false;
    rq->way.until_ms = 0;
    wait_for_leader(f, rq);
    return true;
}

/* ---- what changes ---- */

static void take_back(struct forwards *f) {
    uint32_t leader = member_leader(f->room);
    bool is_passed = leader || member_is_lost(f->room);
    for (struct forward *k = f->out, *next; k && is_passed; k = next) {
        struct request *rq = k->rq;
        next = k->next;
        if (k->to == leader)
            continue;
        detach(k);
        rq->way.until_ms = 0;
        park(f, rq);
    }
}

void forwards_look(struct forwards *f) {
    if (f->is_stopping)
        return;
    take_back(f);
    struct request *last = f->last;
    for (bool more = f->first != NULL; more;) { /* those that come to wait meanwhile are behind the last one */
        struct request *rq = f->first;
        more = rq != last;
        unpark(f, rq);
        struct log_about old = log_about_set(rq->about.id);
        if (rpc_is_cancelled(rq->call))
            api_fail(rq, E_CANCELLED, NULL);
        else
            forward_route(rq);
        log_about_set(old.id);
    }
    if (f->first || f->out)
        look_later(f);
}

void forwards_set_serving(struct forwards *f, bool serving) {
    f->is_serving = serving;
    if (serving)
        forwards_look(f);
}

void forwards_stop(struct forwards *f) {
    f->is_stopping = true;
    loop_timer_stop(f->timer);
    f->timer = NULL;
    while (f->first) {
        struct request *rq = f->first;
        unpark(f, rq);
        api_fail(rq, E_STOPPING, NULL);
    }
}

void forwards_free(struct forwards *f) {
    if (!f)
        return;
    f->is_stopping = true;
    leave(f);
}

/* ---- the leader's side ---- */

static int take(struct request *rq, const struct forward_request *req, struct err *e) {
    const struct rpc_row *row = req->method ? api_row(req->method) : NULL;
    if (!row || (row->leader != RULE_LEADER && row->leader != RULE_SHOWN) || row->role == ROLE_MEMBER)
        return err_set(e, E_METHOD, "%s is no method that is handed on", req->method ? req->method : "?");
    if (!req->user || !req->group || strlen(req->user) >= sizeof(rq->who.user) || strlen(req->group) >= sizeof(rq->who.group))
        return err_set(e, E_PROTOCOL, "a request was handed on without a user");
    rq->who = (struct who){.uid = req->uid, .gid = req->gid, .is_proven = req->is_proven, .is_admin = req->is_admin};
    memcpy(rq->who.user, req->user, strlen(req->user));
    memcpy(rq->who.group, req->group, strlen(req->group));
    if (log_about_is_id(req->id))
        memcpy(rq->about.id, req->id, strlen(req->id) + 1);
    rq->row = row;
    rq->raw = req->message ? (const void *)req->message : "";
    rq->n_raw = req->n_message;
    rq->proof = req->proof;
    rq->message = NULL;
    rq->is_known = rq->is_forwarded = true;
    rq->ran = false;
    free(rq->held);
    rq->held = NULL;
    return 0;
}

void rpc_member_forward(struct request *rq) {
    struct err e;
    if (take(rq, rq->message, &e))
        api_fail(rq, e.code, &e);
    else
        api_enter_forwarded(rq);
}
