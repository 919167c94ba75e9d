/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk that is not here: asked for by name, one blob at once for whoever waits (catchup_load), many a message for what the
 * state names (want_blob).
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "core/model/job.h"
#include "spurctld/catchup/named.h"
#include "spurctld/catchup/spread.h"

#define METHOD "/spur.v1.Member/Blobs"

enum {
    ASK_MS = 5000,
    BATCH = 256,
    AGAIN_MS = 500,
    TRIES_MOST = 20,  /* rounds in which no member had it: the job is gone, most likely */
    SLICE = 20000,    /* looked up in one turn */
    WANTED_MOST = 4 << 20,
};

/* ---- one, for whoever waits ---- */

struct asking {
    struct catchup *c;
    struct blob_hash hash;
    struct sources from;
    struct buf bytes;
    host_reply_fn fn;
    void *arg;
};

static void ask(struct asking *k);

static void asked(struct asking *k, int code, const struct err *why) {
    k->fn(k->arg, code, why, code ? NULL : k->bytes.p, code ? 0 : k->bytes.n);
    buf_fini(&k->bytes);
    free(k);
}

static void ignore(void *arg, int code, const struct err *why, const struct blob_hash *hash) {
}

static void store_copy(struct catchup *c, const void *p, size_t n) {
    struct buf copy = {0};
    buf_add(&copy, p, n);
    c->stats.fetched_blobs++;
    blob_put(c->conf.blobs, copy, ignore, NULL);
}

static void next_source(struct asking *k) {
    k->bytes.n = 0;
    k->from.at++;
    ask(k);
}

static void on_part(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct asking *k = arg;
    auto_arena a = {0};
    struct blobs_reply r;
    struct err e;
    if (k->c->is_stopping) {
        asked(k, err_set(&e, E_STOPPING, NULL), &e);
        return;
    }
    if (code || rec_decode(blobs_reply_rec(), reply, n, &a, &r, &e) || !r.n_parts || r.parts[0].missing ||
        r.parts[0].offset != k->bytes.n || r.parts[0].size > BLOB_MAX_SIZE) {
        next_source(k);
        return;
    }
    buf_add(&k->bytes, r.parts[0].data, r.parts[0].n_data);
    if (k->bytes.n < r.parts[0].size && r.parts[0].n_data) {
        ask(k);
        return;
    }
    struct blob_hash h;
    blob_hash_of(k->bytes.p, k->bytes.n, &h);
    if (memcmp(&h, &k->hash, sizeof(h)) != 0) {
        next_source(k);
        return;
    }
    store_copy(k->c, k->bytes.p, k->bytes.n);
    asked(k, 0, NULL);
}

static void ask(struct asking *k) {
    struct blobs_request rq = {k->hash.b, BLOB_HASH_SIZE, k->bytes.n};
    struct err e;
    if (k->from.at >= k->from.n) {
        asked(k, err_set(&e, E_NOT_FOUND, "no controller has this script or environment"), &e);
        return;
    }
    catchup_send(k->c, k->from.id[k->from.at], METHOD, blobs_request_rec(), &rq, ASK_MS, on_part, k);
}

static void on_here(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct asking *k = arg;
    if (code == E_NOT_FOUND || code == E_CORRUPT)
        sources_look(&k->from, k->c->room);
    if (k->from.n && !k->c->is_stopping) {
        ask(k);
        return;
    }
    k->fn(k->arg, code, why, p, n);
    free(k);
}

void catchup_load(struct catchup *c, const uint8_t hash[32], host_reply_fn fn, void *arg) {
    struct asking *k = xnew(struct asking);
    *k = (struct asking){.c = c, .fn = fn, .arg = arg};
    memcpy(k->hash.b, hash, BLOB_HASH_SIZE);
    blob_get(c->conf.blobs, &k->hash, on_here, k);
}

/* ---- many, in the background ---- */

struct wanted {
    struct blob_hash hash;
    unsigned tries;
};

struct want {
    struct catchup *c;
    struct map64 by_key;           /* of the hash → struct wanted */
    VEC(struct wanted *) waiting;  /* from `at` on */
    size_t at;
    VEC(struct wanted *) asked;
    VEC(struct wanted *) missing;  /* for the next round */
    struct sources from;
    bool is_out;
    struct host_timer *timer;
    uint64_t n_given_up;
    struct naming *naming;
};

struct naming { /* all that the state names, from a worker */
    struct want *w;
    struct view view;
    struct named named;
    size_t at;
    struct host_timer *timer;
    bool is_out;
};

static void pump(struct want *w);

struct want *want_new(struct catchup *c) {
    struct want *w = xnew(struct want);
    w->c = c;
    return w;
}

static void naming_free(struct naming *na) {
    struct host *h = na->w->c->room->host;
    h->timer_stop(h->impl, na->timer);
    na->w->naming = NULL;
    named_fini(&na->named);
    free(na);
}

void want_stop(struct want *w) {
    struct host *h = w->c->room->host;
    h->timer_stop(h->impl, w->timer);
    w->timer = NULL;
    if (w->naming && !w->naming->is_out)
        naming_free(w->naming);
}

void want_free(struct want *w) {
    size_t at = 0;
    uint64_t key;
    void *p;
    while (map64_next(&w->by_key, &at, &key, &p))
        free(p);
    map64_fini(&w->by_key);
    vec_fini(&w->waiting);
    vec_fini(&w->asked);
    vec_fini(&w->missing);
    free(w);
}

static void forget(struct want *w, struct wanted *x) {
    map64_del(&w->by_key, bulk_key(&x->hash));
    free(x);
    w->c->stats.wanted_blobs = w->by_key.n;
}

static void on_timer(void *arg) {
    struct want *w = arg;
    w->timer = NULL;
    for (size_t i = 0; i < w->missing.n; i++)
        vec_push(&w->waiting, w->missing.p[i]);
    w->missing.n = 0;
    w->from.at = 0;
    pump(w);
}

static void again_later(struct want *w) {
    struct host *h = w->c->room->host;
    if (!w->timer && !w->c->is_stopping)
        w->timer = h->timer_start(h->impl, AGAIN_MS, on_timer, w);
}

static void not_there(struct want *w, struct wanted *x) {
    if (++x->tries < TRIES_MOST) {
        vec_push(&w->missing, x);
        return;
    }
    if (w->n_given_up++ == 0)
        log_warn("a script or an environment that a job names is on no controller that answers");
    forget(w, x);
}

static void on_large(void *arg, int code, const struct err *why, const void *p, size_t n) {
}

/* Parts come in the order in which they were asked for, as many as fit. */
static size_t take_parts(struct want *w, const struct blobs_reply *r) {
    size_t n = MIN((size_t)r->n_parts, w->asked.n);
    for (size_t i = 0; i < n; i++) {
        const struct blob_part *part = &r->parts[i];
        struct wanted *x = w->asked.p[i];
        if (part->n_hash != BLOB_HASH_SIZE || memcmp(part->hash, x->hash.b, BLOB_HASH_SIZE) != 0)
            return i;
        if (part->missing) {
            not_there(w, x);
            continue;
        }
        if (part->n_data == part->size)
            store_copy(w->c, part->data, part->n_data);
        else
            catchup_load(w->c, x->hash.b, on_large, NULL);
        forget(w, x);
    }
    return n;
}

static void on_parts(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct want *w = arg;
    auto_arena a = {0};
    struct blobs_reply r = {0};
    struct err e;
    w->is_out = false;
    if (w->c->is_stopping)
        return;
    size_t taken = 0;
    if (!code && !rec_decode(blobs_reply_rec(), reply, n, &a, &r, &e))
        taken = take_parts(w, &r);
    for (size_t i = taken; i < w->asked.n; i++)
        vec_push(&w->waiting, w->asked.p[i]);
    w->asked.n = 0;
    if (!taken) {
        w->from.at++;
        again_later(w);
        return;
    }
    if (w->missing.n) {
        w->from.at++;
        again_later(w);
    }
    pump(w);
}

static void pump(struct want *w) {
    VEC(uint8_t) hashes = {0};
    if (w->is_out || w->timer || w->c->is_stopping || w->at == w->waiting.n)
        return;
    if (w->from.at >= w->from.n)
        sources_look(&w->from, w->c->room);
    if (!w->from.n) {
        again_later(w);
        return;
    }
    for (; w->asked.n < BATCH && w->at < w->waiting.n; w->at++) {
        struct wanted *x = w->waiting.p[w->at];
        if (blob_has(w->c->conf.blobs, &x->hash)) {
            forget(w, x);
            continue;
        }
        vec_push(&w->asked, x);
        for (size_t k = 0; k < BLOB_HASH_SIZE; k++)
            vec_push(&hashes, x->hash.b[k]);
    }
    if (w->at == w->waiting.n)
        w->at = w->waiting.n = 0;
    if (w->asked.n) {
        struct blobs_request rq = {hashes.p, (uint32_t)hashes.n, 0};
        w->is_out = true;
        catchup_send(w->c, w->from.id[w->from.at], METHOD, blobs_request_rec(), &rq, ASK_MS, on_parts, w);
    }
    vec_fini(&hashes);
}

void want_blob(struct want *w, const struct blob_hash *h) {
    if (blob_has(w->c->conf.blobs, h) || map64_get(&w->by_key, bulk_key(h)) || w->by_key.n >= WANTED_MOST)
        return;
    struct wanted *x = xnew(struct wanted);
    x->hash = *h;
    map64_put(&w->by_key, bulk_key(h), x);
    vec_push(&w->waiting, x);
    w->c->stats.wanted_blobs = w->by_key.n;
    pump(w);
}

static void want_named(struct want *w, const uint8_t *hash, uint32_t n) {
    struct blob_hash h;
    if (n != BLOB_HASH_SIZE)
        return;
    memcpy(h.b, hash, BLOB_HASH_SIZE);
    want_blob(w, &h);
}

void catchup_on_event(struct catchup *c, const struct event *ev) {
    struct view v;
    if (ev->kind != EV_JOB_PENDING || !c->room->member || member_is_alone(c->room))
        return;
    state_peek(c->room->state, &v);
    const struct job *j = view_job(&v, ev->job_id);
    if (!j)
        return;
    want_named(spread_want(c->spread), j->spec->script_hash, j->spec->n_script_hash);
    want_named(spread_want(c->spread), j->spec->env_hash, j->spec->n_env_hash);
}

/* ---- all that the state names ---- */

static void collect(void *arg) {
    struct naming *na = arg;
    named_collect(&na->named, &na->view);
}

static void look_some(void *arg) {
    struct naming *na = arg;
    struct host *h = na->w->c->room->host;
    size_t end = MIN(na->named.v.n, na->at + SLICE);
    na->timer = NULL;
    for (; na->at < end && !na->w->c->is_stopping; na->at++)
        want_blob(na->w, &na->named.v.p[na->at]);
    if (na->at < na->named.v.n && !na->w->c->is_stopping) {
        na->timer = h->timer_start(h->impl, 1, look_some, na);
        return;
    }
    naming_free(na);
}

static void collected(void *arg) {
    struct naming *na = arg;
    state_view_end(&na->view);
    na->is_out = false;
    look_some(na);
}

void catchup_on_state(struct catchup *c) {
    struct host *h = c->room->host;
    struct want *w = spread_want(c->spread);
    if (w->naming && w->naming->is_out)
        return; /* at the start, once, and after a catch-up: not at the same moment */
    if (w->naming)
        naming_free(w->naming);
    struct naming *na = xnew(struct naming);
    na->w = w;
    na->is_out = true;
    w->naming = na;
    state_view(c->room->state, &na->view);
    h->work(h->impl, collect, collected, na);
}
