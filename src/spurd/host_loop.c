/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/host_loop.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "io/cred/cred.h"
#include "io/loop/loop.h"
#include "io/rpc/rpc.h"

#define CONNECT_MS 10000

struct host_loop {
    struct host host;
    struct loop *loop;
    struct pool *pool;
    struct clock clock;
    struct maps channels; /* struct link by its address */
};

struct link {
    char *address;
    struct rpc_channel *channel;
};

static int64_t now_ms(void *impl) {
    return clock_mono_ms(&((struct host_loop *)impl)->clock);
}

static int64_t unix_ms(void *impl) {
    return clock_unix_ms(&((struct host_loop *)impl)->clock);
}

static uint64_t random_number(void *impl) {
    uint64_t v;
    (void)impl;
    cred_random(&v, sizeof(v));
    return v;
}

static struct host_timer *timer_start(void *impl, uint64_t delay_ms, void (*fn)(void *arg), void *arg) {
    struct host_loop *hl = impl;
    return (struct host_timer *)loop_timer_start(hl->loop, clock_real_ms(&hl->clock, delay_ms), fn, arg);
}

static void timer_stop(void *impl, struct host_timer *t) {
    (void)impl;
    loop_timer_stop((struct loop_timer *)t);
}

static void work(void *impl, void (*fn)(void *arg), void (*done)(void *arg), void *arg) {
    struct host_loop *hl = impl;
    pool_run(hl->pool, hl->loop, fn, done, arg);
}

/* ---- sending ---- */

static struct rpc_channel *channel_to(struct host_loop *hl, const char *address, struct err *e) {
    struct link *link = maps_get(&hl->channels, address);
    struct rpc_channel_conf conf = {.targets = address, .connect_ms = CONNECT_MS};
    struct rpc_channel *channel = NULL;
    if (link)
        return link->channel;
    if (rpc_channel_new(hl->loop, &conf, &channel, e))
        return NULL;
    link = xnew(struct link);
    link->address = xstrdup(address);
    link->channel = channel;
    maps_put(&hl->channels, link->address, link);
    return channel;
}

struct failure {
    struct err why;
    host_reply_fn fn;
    void *arg;
};

static void tell_failure(void *arg) {
    struct failure *f = arg;
    f->fn(f->arg, f->why.code, &f->why, NULL, 0);
    free(f);
}

static void send_call(void *impl, const char *address, const char *method, const char *metadata, struct buf message,
                      uint64_t timeout_ms, host_reply_fn fn, void *arg) {
    struct host_loop *hl = impl;
    struct err e;
    struct rpc_channel *channel = channel_to(hl, address, &e);
    if (channel) {
        rpc_send(channel, method, metadata, message.p, message.n, timeout_ms, fn, arg);
    } else { /* never before this returns */
        struct failure *f = xnew(struct failure);
        *f = (struct failure){e, fn, arg};
        loop_post(hl->loop, tell_failure, f);
    }
    buf_fini(&message);
}

/* ---- life ---- */

struct host_loop *host_loop_new(struct loop *l, struct pool *p, const struct clock *c) {
    struct host_loop *hl = xnew(struct host_loop);
    *hl = (struct host_loop){.loop = l, .pool = p, .clock = *c};
    hl->host = (struct host){.impl = hl,
                             .now_ms = now_ms,
                             .unix_ms = unix_ms,
                             .random = random_number,
                             .timer_start = timer_start,
                             .timer_stop = timer_stop,
                             .work = work,
                             .send = send_call};
    return hl;
}

struct host *host_loop_host(struct host_loop *hl) {
    return &hl->host;
}

void host_loop_free(struct host_loop *hl) {
    size_t cursor = 0;
    void *value;
    while (maps_next(&hl->channels, &cursor, NULL, &value)) {
        struct link *link = value;
        rpc_channel_free(link->channel);
        free(link->address);
        free(link);
    }
    maps_fini(&hl->channels);
    free(hl);
}
