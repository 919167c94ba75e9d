/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk is stored on a majority before the entry that names it: here by io/blob, on the others by Member.StoreBlobs. What
 * waits for one member goes out together, one message at a time, so that many share its fsync as they share ours.
 *
 * What a member misses for all that (it was away, its disk was full) it asks for itself, once it applies the entry.
 */
#include "spurctld/catchup/spread.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

enum {
    PUSH_MS = 5000,        /* a message */
    STORE_MS = 8000,       /* until whoever waits is told that it did not reach a majority */
    AGAIN_MS = 100,        /* after a push that failed */
    TICK_MS = 250,
    KNOWN_MS = 20000,      /* below BLOB_GRACE_MS: they have it for at least so long without a job that names it */
    KNOWN_MOST = 65536,
    LANE_MOST = 8192,      /* blobs that wait for one member */
    LANE_BYTES = 32 << 20,
};

struct bulk { /* the bytes, shared by the lanes */
    unsigned refs;
    struct blob_hash hash;
    struct buf bytes;
};

struct storing {
    struct spread *s;
    struct storing *prev, *next;
    struct bulk *bulk;
    unsigned acks, needed; /* with our own */
    unsigned in_lanes;
    bool is_answered;
    int64_t deadline_ms;
    host_stored_fn fn;
    void *arg;
};

struct lane { /* to one member */
    struct spread *s;
    uint32_t id;
    VEC(struct storing *) waiting;
    size_t bytes;
    VEC(struct storing *) sent;
    size_t offset; /* of the first that waits, when it goes in parts */
    bool is_out;
    int64_t not_before_ms;
};

struct known { /* on a majority, until then */
    struct blob_hash hash;
    int64_t until_ms;
};

struct spread {
    struct catchup *c;
    struct lane lanes[MEMBERS_MAX];
    size_t n_lanes;
    struct storing *first;
    struct map64 known;
    struct host_timer *timer;
    struct want *want;
    struct taking_in *taking;
};

static void pump(struct lane *l);

struct want *spread_want(const struct spread *s) {
    return s->want;
}

struct taking_in *spread_taking(const struct spread *s) {
    return s->taking;
}

/* ---- what a majority is known to have ---- */

static bool is_known(struct spread *s, const struct blob_hash *h) {
    struct known *k = map64_get(&s->known, bulk_key(h));
    return k && memcmp(&k->hash, h, sizeof(*h)) == 0 && k->until_ms > catchup_now_ms(s->c);
}

static void forget_all(struct spread *s) {
    size_t at = 0;
    uint64_t key;
    void *p;
    while (map64_next(&s->known, &at, &key, &p))
        free(p);
    map64_fini(&s->known);
    s->known = (struct map64){0};
}

static void note_known(struct spread *s, const struct blob_hash *h) {
    struct known *k = map64_get(&s->known, bulk_key(h));
    if (!k && s->known.n >= KNOWN_MOST)
        forget_all(s);
    if (!k) {
        k = xnew(struct known);
        map64_put(&s->known, bulk_key(h), k);
    }
    *k = (struct known){*h, catchup_now_ms(s->c) + KNOWN_MS};
}

/* ---- one that is being stored ---- */

static void bulk_drop(struct bulk *b) {
    if (--b->refs)
        return;
    buf_fini(&b->bytes);
    free(b);
}

static void let_go(struct spread *s, struct storing *st) {
    if (!st->is_answered || st->in_lanes)
        return;
    if (st->prev)
        st->prev->next = st->next;
    else
        s->first = st->next;
    if (st->next)
        st->next->prev = st->prev;
    bulk_drop(st->bulk);
    free(st);
}

static void answer(struct storing *st, int code, const struct err *why) {
    if (st->is_answered)
        return;
    st->is_answered = true;
    st->fn(st->arg, code, why, st->bulk->hash.b);
}

static void ack(struct spread *s, struct storing *st) {
    if (++st->acks < st->needed || st->is_answered)
        return;
    note_known(s, &st->bulk->hash);
    answer(st, 0, NULL);
}

/* ---- to one member ---- */

static void lane_drop(struct lane *l, size_t i) {
    struct storing *st = l->waiting.p[i];
    l->bytes -= st->bulk->bytes.n;
    vec_remove(&l->waiting, i);
    st->in_lanes--;
    let_go(l->s, st);
}

static void give_back(struct lane *l, struct storing *st, bool at_front) {
    vec_push(&l->waiting, st);
    l->bytes += st->bulk->bytes.n;
    for (size_t k = l->waiting.n - 1; k > 0 && at_front; k--)
        l->waiting.p[k] = l->waiting.p[k - 1];
    if (at_front)
        l->waiting.p[0] = st;
}

static void one_pushed(struct lane *l, struct storing *st, bool is_stored) {
    if (!is_stored) { /* its disk is full, say, or nobody is there: again, a little later */
        l->not_before_ms = catchup_now_ms(l->s->c) + AGAIN_MS;
        give_back(l, st, false);
        return;
    }
    l->s->c->stats.pushed_blobs++;
    st->in_lanes--;
    ack(l->s, st);
    let_go(l->s, st);
}

static void pushed(struct lane *l, const struct store_blobs_reply *r) {
    if (l->offset && r->n_codes && !r->codes[0] && l->offset < l->sent.p[0]->bulk->bytes.n) {
        give_back(l, l->sent.p[0], true); /* its next part */
    } else {
        l->offset = 0;
        for (size_t i = 0; i < l->sent.n; i++)
            one_pushed(l, l->sent.p[i], i < r->n_codes && r->codes[i] == 0);
    }
    l->sent.n = 0;
}

static void forget_sent(struct lane *l) {
    for (size_t i = 0; i < l->sent.n; i++) {
        l->sent.p[i]->in_lanes--;
        let_go(l->s, l->sent.p[i]);
    }
    l->sent.n = 0;
}

static void on_pushed(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct lane *l = arg;
    auto_arena a = {0};
    struct store_blobs_reply r = {0};
    struct err e;
    l->is_out = false;
    if (l->s->c->is_stopping) {
        forget_sent(l);
        return;
    }
    if (!code && rec_decode(store_blobs_reply_rec(), reply, n, &a, &r, &e))
        r = (struct store_blobs_reply){0};
    pushed(l, &r);
    pump(l);
}

static struct blob_part part_of(const struct bulk *b, size_t offset, size_t n) {
    return (struct blob_part){.hash = b->hash.b, .n_hash = sizeof(b->hash.b), .size = b->bytes.n, .offset = offset,
                              .data = (const uint8_t *)b->bytes.p + offset, .n_data = (uint32_t)n};
}

static void send_some(struct lane *l) {
    struct catchup *c = l->s->c;
    VEC(struct blob_part) parts = {0};
    size_t bytes = 0;
    const struct bulk *first = l->waiting.p[0]->bulk;
    l->sent.n = 0;
    if (first->bytes.n > BULK_PART_BYTES) { /* alone, a part at a time */
        size_t n = MIN((size_t)BULK_PART_BYTES, first->bytes.n - l->offset);
        vec_push(&parts, part_of(first, l->offset, n));
        vec_push(&l->sent, l->waiting.p[0]);
        l->offset += n;
        l->bytes -= first->bytes.n;
    }
    while (!l->offset && l->sent.n < l->waiting.n) {
        struct storing *st = l->waiting.p[l->sent.n];
        if (st->bulk->bytes.n > BULK_PART_BYTES || (bytes && bytes + st->bulk->bytes.n > BULK_PART_BYTES))
            break;
        bytes += st->bulk->bytes.n + 64;
        vec_push(&parts, part_of(st->bulk, 0, st->bulk->bytes.n));
        vec_push(&l->sent, st);
        l->bytes -= st->bulk->bytes.n;
    }
    memmove(l->waiting.p, l->waiting.p + l->sent.n, (l->waiting.n - l->sent.n) * sizeof(*l->waiting.p));
    l->waiting.n -= l->sent.n;
    struct store_blobs_request rq = {parts.p, (uint32_t)parts.n};
    l->is_out = true;
    catchup_send(c, l->id, "/spur.v1.Member/StoreBlobs", store_blobs_request_rec(), &rq, PUSH_MS, on_pushed, l);
    vec_fini(&parts);
}

static void pump(struct lane *l) {
    if (l->is_out || !l->waiting.n || l->s->c->is_stopping || l->not_before_ms > catchup_now_ms(l->s->c))
        return;
    send_some(l);
}

static struct lane *lane_of(struct spread *s, uint32_t id) {
    for (size_t i = 0; i < s->n_lanes; i++)
        if (s->lanes[i].id == id)
            return &s->lanes[i];
    if (s->n_lanes == MEMBERS_MAX) { /* members have come and gone: one that has nothing to do makes room */
        for (size_t i = 0; i < s->n_lanes; i++)
            if (!s->lanes[i].is_out && !s->lanes[i].waiting.n) {
                s->lanes[i].id = id;
                return &s->lanes[i];
            }
        return NULL;
    }
    struct lane *l = &s->lanes[s->n_lanes++];
    *l = (struct lane){.s = s, .id = id};
    return l;
}

/* ---- time ---- */

static void on_tick(void *arg) {
    struct spread *s = arg;
    struct host *h = s->c->room->host;
    int64_t now = catchup_now_ms(s->c);
    struct err e;
    s->timer = NULL;
    for (struct storing *st = s->first, *next; st; st = next) {
        next = st->next;
        if (st->deadline_ms <= now && !st->is_answered)
            answer(st, err_set(&e, E_UNREACHABLE, "script and environment could not be stored on a majority of the "
                                                  "controllers"), &e);
    }
    for (size_t i = 0; i < s->n_lanes; i++) {
        struct lane *l = &s->lanes[i];
        for (size_t k = l->waiting.n; k > 0; k--)
            if (l->waiting.p[k - 1]->deadline_ms <= now) {
                l->offset = k == 1 ? 0 : l->offset;
                lane_drop(l, k - 1);
            }
        pump(l);
    }
    if (s->first)
        s->timer = h->timer_start(h->impl, TICK_MS, on_tick, s);
}

/* ---- the door ---- */

static void on_local(void *arg, int code, const struct err *why, const struct blob_hash *hash) {
    struct storing *st = arg;
    struct spread *s = st->s;
    st->in_lanes--;
    if (code)
        answer(st, code, why);
    else
        ack(s, st);
    let_go(s, st);
}

struct direct {
    host_stored_fn fn;
    void *arg;
};

static void on_direct(void *arg, int code, const struct err *why, const struct blob_hash *hash) {
    struct direct *d = arg;
    d->fn(d->arg, code, why, hash ? hash->b : NULL);
    free(d);
}

static void store_here(struct spread *s, struct buf bytes, host_stored_fn fn, void *arg) {
    struct direct *d = xnew(struct direct);
    *d = (struct direct){fn, arg};
    blob_put(s->c->conf.blobs, bytes, on_direct, d);
}

static void to_lanes(struct spread *s, struct storing *st, const struct member_info *all, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (all[i].is_self || !all[i].is_voter)
            continue;
        struct lane *l = lane_of(s, all[i].id);
        if (!l || l->waiting.n >= LANE_MOST || l->bytes + st->bulk->bytes.n > LANE_BYTES + BULK_PART_BYTES)
            continue;
        vec_push(&l->waiting, st);
        l->bytes += st->bulk->bytes.n;
        st->in_lanes++;
        pump(l);
    }
}

void catchup_store(struct catchup *c, struct buf bytes, host_stored_fn fn, void *arg) {
    struct spread *s = c->spread;
    struct host *h = c->room->host;
    struct member_info all[MEMBERS_MAX];
    size_t n = c->room->member && !member_is_alone(c->room) ? member_list(c->room, all) : 0, voters = 0;
    struct blob_hash hash;
    for (size_t i = 0; i < n; i++)
        voters += all[i].is_voter;
    if (voters > 1)
        blob_hash_of(bytes.p, bytes.n, &hash);
    if (voters <= 1 || is_known(s, &hash)) {
        store_here(s, bytes, fn, arg);
        return;
    }
    struct storing *st = xnew(struct storing);
    st->s = s;
    st->bulk = xnew(struct bulk);
    *st->bulk = (struct bulk){.refs = 1, .hash = hash};
    buf_add(&st->bulk->bytes, bytes.p, bytes.n);
    st->needed = (unsigned)voters / 2 + 1;
    st->deadline_ms = catchup_now_ms(c) + STORE_MS;
    st->fn = fn;
    st->arg = arg;
    st->next = s->first;
    if (s->first)
        s->first->prev = st;
    s->first = st;
    st->in_lanes = 1; /* our own disk */
    to_lanes(s, st, all, n);
    if (!s->timer && !c->is_stopping)
        s->timer = h->timer_start(h->impl, TICK_MS, on_tick, s);
    blob_put(c->conf.blobs, bytes, on_local, st);
}

/* ---- life ---- */

struct spread *spread_new(struct catchup *c) {
    struct spread *s = xnew(struct spread);
    s->c = c;
    s->want = want_new(c);
    s->taking = taking_in_new(c);
    return s;
}

void spread_stop(struct spread *s) {
    struct host *h = s->c->room->host;
    struct err e;
    h->timer_stop(h->impl, s->timer);
    s->timer = NULL;
    for (struct storing *st = s->first; st; st = st->next)
        answer(st, err_set(&e, E_STOPPING, NULL), &e);
    want_stop(s->want);
}

void spread_free(struct spread *s) {
    for (struct storing *st = s->first, *next; st; st = next) {
        next = st->next;
        bulk_drop(st->bulk);
        free(st);
    }
    for (size_t i = 0; i < s->n_lanes; i++) {
        vec_fini(&s->lanes[i].waiting);
        vec_fini(&s->lanes[i].sent);
    }
    forget_all(s);
    want_free(s->want);
    taking_in_free(s->taking);
    free(s);
}
