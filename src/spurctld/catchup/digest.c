/* SPDX-License-Identifier: Apache-2.0
 *
 * Is my state theirs? The leader says once a second what its state was at an entry; the others remember theirs for a while
 * and say what they had there. Where a majority has one digest and a member another, that member is wrong, the leader
 * not excepted. It stops, and gets its state anew.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "spurctld/catchup/inside.h"

#define METHOD "/spur.v1.Member/Digest"

enum { TICK_MS = 1000, ASK_MS = 3000, REMEMBERED = 8192 };

struct digests {
    struct catchup *c;
    struct {
        uint64_t index, digest;
    } seen[REMEMBERED]; /* by index modulo their number */
    struct host_timer *timer;
    uint64_t last; /* entry that was compared last */
};

struct round {
    struct digests *d;
    uint64_t index, digest;
    size_t n, n_back, n_voters; /* asked; answered; of all */
    struct {
        uint32_t id;
        bool is_known;
        uint64_t digest;
    } other[MEMBERS_MAX];
};

struct question {
    struct round *r;
    size_t i;
};

static void on_tick(void *arg);

struct digests *digests_new(struct catchup *c) {
    struct digests *d = xnew(struct digests);
    d->c = c;
    d->timer = c->room->host->timer_start(c->room->host->impl, TICK_MS, on_tick, d);
    return d;
}

void digests_stop(struct digests *d) {
    struct host *h = d->c->room->host;
    h->timer_stop(h->impl, d->timer);
    d->timer = NULL;
}

void digests_free(struct digests *d) {
    free(d);
}

void catchup_on_applied(struct catchup *c, uint64_t index) {
    struct digests *d = c->digests;
    d->seen[index % REMEMBERED].index = index;
    d->seen[index % REMEMBERED].digest = state_digest(c->room->state);
}

static bool was(const struct digests *d, uint64_t index, uint64_t *out) {
    if (!index || d->seen[index % REMEMBERED].index != index)
        return false;
    *out = d->seen[index % REMEMBERED].digest;
    return true;
}

static void stop_us(struct digests *d, uint64_t index, uint64_t ours, uint64_t theirs) {
    autofree char *text = xasprintf("the state of this member at entry %llu is not that of the others (%016llx, theirs "
                                    "%016llx)", (unsigned long long)index, (unsigned long long)ours,
                                    (unsigned long long)theirs);
    d->c->conf.differs(d->c->conf.ctx, index, text);
}

/* ---- the leader's side ---- */

static void ignore(void *arg, int code, const struct err *why, const void *reply, size_t n) {
}

static void tell_wrong(struct round *r, uint32_t id) {
    struct digest_request rq = {r->index, r->digest, true};
    log_error("the state of member %u at entry %llu is not that of the others; it is told to stop", id,
              (unsigned long long)r->index);
    catchup_send(r->d->c, id, METHOD, digest_request_rec(), &rq, ASK_MS, ignore, NULL);
}

static size_t count(const struct round *r, uint64_t digest) {
    size_t n = digest == r->digest;
    for (size_t i = 0; i < r->n; i++)
        n += r->other[i].is_known && r->other[i].digest == digest;
    return n;
}

static void judge(struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (!r->other[i].is_known && r->d->last == r->index)
            r->d->last = 0; /* it was not that far yet: it is asked again */
    bool ours_counts = 2 * count(r, r->digest) > r->n_voters;
    for (size_t i = 0; i < r->n; i++) {
        if (!r->other[i].is_known || r->other[i].digest == r->digest)
            continue;
        if (ours_counts) {
            tell_wrong(r, r->other[i].id);
        } else if (2 * count(r, r->other[i].digest) > r->n_voters) {
            stop_us(r->d, r->index, r->digest, r->other[i].digest);
            return;
        } else {
            room_complain(r->d->c->room, "the states of this member and of member %u differ at entry %llu, and no "
                          "majority says which one is right", r->other[i].id, (unsigned long long)r->index);
        }
    }
}

static void on_reply(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct question *q = arg;
    struct round *r = q->r;
    auto_arena a = {0};
    struct digest_reply rep = {0};
    struct err e;
    if (!code && !rec_decode(digest_reply_rec(), reply, n, &a, &rep, &e) && rep.is_known) {
        r->other[q->i].is_known = true;
        r->other[q->i].digest = rep.digest;
    }
    free(q);
    if (++r->n_back < r->n)
        return;
    if (!r->d->c->is_stopping)
        judge(r);
    free(r);
}

static void ask_all(struct digests *d, uint64_t index, uint64_t digest) {
    struct member_info all[MEMBERS_MAX];
    struct digest_request rq = {index, digest, false};
    size_t n = member_list(d->c->room, all);
    struct round *r = xnew(struct round);
    *r = (struct round){.d = d, .index = index, .digest = digest};
    for (size_t i = 0; i < n; i++) {
        r->n_voters += all[i].is_voter;
        if (!all[i].is_self)
            r->other[r->n++].id = all[i].id;
    }
    if (!r->n) {
        free(r);
        return;
    }
    for (size_t i = 0, m = r->n; i < m; i++) { /* a callback never comes before its call returns */
        struct question *q = xnew(struct question);
        *q = (struct question){r, i};
        catchup_send(d->c, r->other[i].id, METHOD, digest_request_rec(), &rq, ASK_MS, on_reply, q);
    }
}

static void on_tick(void *arg) {
    struct digests *d = arg;
    struct room *room = d->c->room;
    uint64_t index = state_index(room->state), digest;
    d->timer = room->host->timer_start(room->host->impl, TICK_MS, on_tick, d);
    if (!room->is_leader || !room->member || member_is_alone(room) || index == d->last || !was(d, index, &digest))
        return;
    d->last = index;
    ask_all(d, index, digest);
}

/* ---- the others' side ---- */

void catchup_compare(struct catchup *c, const struct digest_request *rq, struct digest_reply *out) {
    uint64_t ours;
    *out = (struct digest_reply){0};
    if (!was(c->digests, rq->index, &ours))
        return;
    out->is_known = true;
    out->digest = ours;
    if (rq->is_wrong && ours != rq->digest)
        stop_us(c->digests, rq->index, ours, rq->digest);
}
