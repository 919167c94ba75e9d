/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/host_loop.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "io/blob/blob.h"
#include "io/cred/cred.h"
#include "io/journal/journal.h"
#include "io/loop/loop.h"
#include "io/rpc/rpc.h"

#define CHANNELS_MOST 20000u

struct host_loop {
    struct host host;
    struct loop *loop;
    struct pool *pool;
    struct clock clock;
    struct blob_store *blobs;
    struct journal *journal;
    struct maps channels; /* address → struct link */
};

struct link {
    char *address;
    struct rpc_channel *ch;
};

static int64_t now_ms(void *impl) {
    return clock_mono_ms(&((struct host_loop *)impl)->clock);
}

static int64_t unix_ms(void *impl) {
    return clock_unix_ms(&((struct host_loop *)impl)->clock);
}

static uint64_t random_number(void *impl) {
    uint64_t x;
    cred_random(&x, sizeof(x));
    return x;
}

static struct host_timer *timer_start(void *impl, uint64_t delay_ms, void (*fn)(void *arg), void *arg) {
    struct host_loop *hl = impl;
    return (struct host_timer *)loop_timer_start(hl->loop, clock_real_ms(&hl->clock, delay_ms), fn, arg);
}

static void timer_stop(void *impl, struct host_timer *t) {
    loop_timer_stop((struct loop_timer *)t);
}

static void work(void *impl, void (*fn)(void *arg), void (*done)(void *arg), void *arg) {
    struct host_loop *hl = impl;
    pool_run(hl->pool, hl->loop, fn, done, arg);
}

/* ---- proposing ---- */

struct proposal {
    host_proposed_fn fn;
    void *arg;
};

void host_loop_proposed(void *tag, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct proposal *p = tag;
    p->fn(p->arg, code, why, index, answer, n);
    free(p);
}

static void propose(void *impl, struct buf command, host_proposed_fn fn, void *arg) {
    struct host_loop *hl = impl;
    struct err e;
    if (!hl->journal) {
        buf_fini(&command);
        err_set(&e, E_STOPPING, NULL);
        fn(arg, E_STOPPING, &e, 0, NULL, 0);
        return;
    }
    struct proposal *p = xnew(struct proposal);
    *p = (struct proposal){fn, arg};
    journal_propose(hl->journal, command, p);
}

/* ---- bulk ---- */

struct storing {
    host_stored_fn fn;
    void *arg;
};

static void on_stored(void *arg, int code, const struct err *why, const struct blob_hash *hash) {
    struct storing *s = arg;
    s->fn(s->arg, code, why, hash ? hash->b : NULL);
    free(s);
}

static void store(void *impl, struct buf bytes, host_stored_fn fn, void *arg) {
    struct host_loop *hl = impl;
    struct storing *s = xnew(struct storing);
    *s = (struct storing){fn, arg};
    blob_put(hl->blobs, bytes, on_stored, s);
}

static void load(void *impl, const uint8_t hash[32], host_reply_fn fn, void *arg) {
    struct host_loop *hl = impl;
    struct blob_hash h;
    memcpy(h.b, hash, sizeof(h.b));
    blob_get(hl->blobs, &h, fn, arg);
}

/* ---- sending ---- */

static struct rpc_channel *channel_to(struct host_loop *hl, const char *address, struct err *e) {
    struct link *link = maps_get(&hl->channels, address);
    if (link)
        return link->ch;
    struct rpc_channel_conf conf = {.targets = address};
    struct rpc_channel *ch = NULL;
    if (hl->channels.n >= CHANNELS_MOST) {
        err_set(e, E_BUSY, "more than %u agents' addresses", CHANNELS_MOST);
        return NULL;
    }
    if (rpc_channel_new(hl->loop, &conf, &ch, e))
        return NULL;
    link = xnew(struct link);
    link->address = xstrdup(address);
    link->ch = ch;
    maps_put(&hl->channels, link->address, link);
    return ch;
}

struct failed_send {
    struct err e;
    host_reply_fn fn;
    void *arg;
};

static void on_failed(void *arg) {
    struct failed_send *f = arg;
    f->fn(f->arg, f->e.code, &f->e, NULL, 0);
    free(f);
}

static void send_call(void *impl, const char *address, const char *method, const char *metadata, struct buf message,
                      uint64_t timeout_ms, host_reply_fn fn, void *arg) {
    struct host_loop *hl = impl;
    struct failed_send *f = xnew(struct failed_send);
    struct rpc_channel *ch = channel_to(hl, address, &f->e);
    if (ch) {
        free(f);
        rpc_send(ch, method, metadata, message.p, message.n, timeout_ms, fn, arg);
    } else { /* a callback never comes before its call returns */
        f->fn = fn;
        f->arg = arg;
        loop_post(hl->loop, on_failed, f);
    }
    buf_fini(&message);
}

struct host_loop *host_loop_new(struct loop *l, struct pool *p, const struct clock *c, struct blob_store *blobs) {
    struct host_loop *hl = xnew(struct host_loop);
    *hl = (struct host_loop){.loop = l, .pool = p, .clock = *c, .blobs = blobs};
    hl->host = (struct host){
        .impl = hl,
        .now_ms = now_ms,
        .unix_ms = unix_ms,
        .random = random_number,
        .timer_start = timer_start,
        .timer_stop = timer_stop,
        .work = work,
        .propose = propose,
        .store = store,
        .load = load,
        .send = send_call,
    };
    return hl;
}

void host_loop_set_journal(struct host_loop *hl, struct journal *j) {
    hl->journal = j;
}

struct host *host_loop_host(struct host_loop *hl) {
    return &hl->host;
}

void host_loop_free(struct host_loop *hl) {
    size_t cursor = 0;
    void *v;
    if (!hl)
        return;
    while (maps_next(&hl->channels, &cursor, NULL, &v)) {
        struct link *link = v;
        rpc_channel_free(link->ch);
        free(link->address);
        free(link);
    }
    maps_fini(&hl->channels);
    free(hl);
}
