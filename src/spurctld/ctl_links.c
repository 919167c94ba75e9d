/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/ctl_links.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/loop/loop.h"
#include "io/peer/peer.h"
#include "io/rpc/rpc.h"
#include "spurctld/member/member.h"

#define CONNECT_MS 1500
#define PING_MS 1000
#define PING_ANSWER_MS 2000
#define ANSWER_MAX (1u << 30) /* as of a client: a list of all jobs is one answer, which another member may hand on */

struct ctl_link {
    struct ctl_links *in;
    uint32_t id;
    char *address; /* NULL: not known */
    struct rpc_channel *ch;
};

struct ctl_links {
    struct loop *loop;
    struct peer *peer;
    struct ctl_link link[MEMBERS_MAX + 1]; /* by id */
};

/* ---- connecting: io/peer's dial, as io/rpc wants it ---- */

struct dialling {
    struct peer_dial *dial;
    rpc_connected_fn fn;
    void *arg;
};

static void on_dialled(void *arg, int fd, const struct err *why) {
    struct dialling d = *(struct dialling *)arg;
    free(arg);
    d.fn(d.arg, fd, why);
}

static void *connect_begin(void *impl, uint64_t timeout_ms, rpc_connected_fn fn, void *arg) {
    struct ctl_link *k = impl;
    struct dialling *d = xnew(struct dialling);
    d->fn = fn;
    d->arg = arg;
    d->dial = peer_dial(k->in->peer, PEER_CALLS, k->id, k->address, k->in->loop, on_dialled, d);
    return d;
}

static void connect_cancel(void *impl, void *handle) {
    struct dialling *d = handle;
    peer_dial_cancel(d->dial);
    free(d);
}

/* ---- */

struct ctl_links *ctl_links_new(struct loop *l, struct peer *p) {
    struct ctl_links *k = xnew(struct ctl_links);
    k->loop = l;
    k->peer = p;
    for (uint32_t id = 1; id <= MEMBERS_MAX; id++)
        k->link[id] = (struct ctl_link){.in = k, .id = id};
    return k;
}

void ctl_links_free(struct ctl_links *k) {
    if (!k)
        return;
    for (uint32_t id = 1; id <= MEMBERS_MAX; id++) {
        rpc_channel_free(k->link[id].ch);
        free(k->link[id].address);
    }
    free(k);
}

void ctl_links_set(struct ctl_links *k, uint32_t id, const char *address) {
    if (id == 0 || id > MEMBERS_MAX || (k->link[id].address && str_eq(k->link[id].address, address)))
        return;
    free(k->link[id].address);
    k->link[id].address = xstrdup(address);
}

static struct rpc_channel *channel_to(struct ctl_links *k, uint64_t id) {
    if (id == 0 || id > MEMBERS_MAX || !k->link[id].address)
        return NULL;
    struct ctl_link *to = &k->link[id];
    if (to->ch)
        return to->ch;
    struct rpc_connector connector = {connect_begin, connect_cancel, to};
    struct rpc_channel_conf conf = {.connector = &connector, .targets = "127.0.0.1:1", /* never dialled */
                                    .connect_ms = CONNECT_MS, .ping_ms = PING_MS, .ping_timeout_ms = PING_ANSWER_MS,
                                    .max_message = ANSWER_MAX};
    must(rpc_channel_new(k->loop, &conf, &to->ch, NULL) == 0);
    return to->ch;
}

struct failed_send {
    host_reply_fn fn;
    void *arg;
};

static void on_failed(void *arg) {
    struct failed_send f = *(struct failed_send *)arg;
    struct err e;
    free(arg);
    err_set(&e, E_UNREACHABLE, "the address of that controller is not known");
    f.fn(f.arg, e.code, &e, NULL, 0);
}

void ctl_links_send(struct ctl_links *k, uint64_t id, const char *method, struct buf message, uint64_t timeout_ms,
                    host_reply_fn fn, void *arg) {
    struct rpc_channel *ch = channel_to(k, id);
    if (ch) {
        rpc_send(ch, method, NULL, message.p, message.n, timeout_ms, fn, arg);
    } else {
        struct failed_send *f = xnew(struct failed_send);
        *f = (struct failed_send){fn, arg};
        loop_post(k->loop, on_failed, f);
    }
    buf_fini(&message);
}
