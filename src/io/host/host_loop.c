/* SPDX-License-Identifier: Apache-2.0 */
#include "io/host/host_loop.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "io/cred/cred.h"
#include "io/loop/loop.h"
#include "io/rpc/rpc.h"

#define CHANNELS_MOST 20000u

struct host_loop {
    struct host host;
    struct loop *loop;
    struct pool *pool;
    struct clock clock;
    struct tls *tls;
    void *more;
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

/* Which request the work is for goes along, so that what is logged for its sake says so. */
struct carried {
    struct log_about about;
    void (*fn)(void *arg), (*done)(void *arg);
    void *arg;
};

static void carried_work(void *p) {
    struct carried *c = p;
    struct log_about old = log_about_set(c->about.id);
    c->fn(c->arg);
    log_about_set(old.id);
}

static void carried_done(void *p) {
    struct carried *c = p;
    struct log_about old = log_about_set(c->about.id);
    if (c->done)
        c->done(c->arg);
    log_about_set(old.id);
    free(c);
}

static void work(void *impl, void (*fn)(void *arg), void (*done)(void *arg), void *arg) {
    struct host_loop *hl = impl;
    struct carried *c = xnew(struct carried);
    *c = (struct carried){log_about_now(), fn, done, arg};
    pool_run(hl->pool, hl->loop, carried_work, carried_done, c);
}

/* ---- sending ---- */

static struct rpc_channel *channel_to(struct host_loop *hl, const char *address, struct err *e) {
    struct link *link = maps_get(&hl->channels, address);
    if (link)
        return link->ch;
    struct rpc_channel_conf conf = {.targets = address, .tls = hl->tls};
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

struct host_loop *host_loop_new(struct loop *l, struct pool *p, const struct clock *c, struct tls *tls, void *more) {
    struct host_loop *hl = xnew(struct host_loop);
    *hl = (struct host_loop){.loop = l, .pool = p, .clock = *c, .tls = tls, .more = more};
    hl->host = (struct host){
        .impl = hl,
        .now_ms = now_ms,
        .unix_ms = unix_ms,
        .random = random_number,
        .timer_start = timer_start,
        .timer_stop = timer_stop,
        .work = work,
        .send = send_call,
    };
    return hl;
}

void *host_loop_more(void *impl) {
    return ((struct host_loop *)impl)->more;
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
