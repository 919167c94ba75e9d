/* SPDX-License-Identifier: Apache-2.0
 *
 * A channel: requests wait here while there is no connection, and one is looked for.
 */
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/rpc/client.h"
#include "io/tls/tls.h"

void channel_unref(struct rpc_channel *ch) {
    if (--ch->refs)
        return;
    while (ch->free_requests) {
        struct rpc_request *r = ch->free_requests;
        ch->free_requests = r->next;
        request_destroy(r);
    }
    nghttp2_session_callbacks_del(ch->callbacks);
    nghttp2_option_del(ch->option);
    free(ch->addresses);
    free(ch);
}

static uint64_t or_default(uint64_t value, uint64_t otherwise) {
    return value ? value : otherwise;
}

int rpc_channel_new(struct loop *l, const struct rpc_channel_conf *conf, struct rpc_channel **out, struct err *e) {
    struct address *addresses;
    size_t n;
    int rc = address_parse_list(conf->targets, 0, &addresses, &n, e);
    if (rc)
        return rc;
    struct rpc_channel *ch = xnew(struct rpc_channel);
    ch->refs = 1;
    ch->l = l;
    ch->addresses = addresses;
    ch->n = n;
    if (conf->connector)
        ch->connector = *conf->connector;
    ch->conf.connect_ms = or_default(conf->connect_ms, 10000);
    ch->conf.greet_ms = or_default(conf->greet_ms, n > 1 ? 500 : ch->conf.connect_ms);
    ch->conf.ping_ms = or_default(conf->ping_ms, n > 1 ? 1000 : 10000);
    ch->conf.ping_timeout_ms = or_default(conf->ping_timeout_ms, n > 1 ? 1000 : 5000);
    ch->tls = conf->tls;
    ch->conf.max_message = conf->max_message ? conf->max_message : 64 << 20;
    must(nghttp2_session_callbacks_new(&ch->callbacks) == 0);
    client_callbacks_set(ch->callbacks);
    must(nghttp2_option_new(&ch->option) == 0);
    nghttp2_option_set_no_auto_window_update(ch->option, 1);
    nghttp2_option_set_no_closed_streams(ch->option, 1);
    *out = ch;
    return 0;
}

void channel_enqueue(struct rpc_channel *ch, struct rpc_request *r) {
    r->dials = ch->dials;
    r->next = NULL;
    r->prev = ch->waiting_last;
    if (r->prev)
        r->prev->next = r;
    else
        ch->waiting = r;
    ch->waiting_last = r;
}

void channel_dequeue(struct rpc_channel *ch, struct rpc_request *r) {
    if (r->prev)
        r->prev->next = r->next;
    else
        ch->waiting = r->next;
    if (r->next)
        r->next->prev = r->prev;
    else
        ch->waiting_last = r->prev;
    r->next = r->prev = NULL;
}

/* Whether it waits for a connection. Others wait for the end of the turn to fail, or for their owner to take messages. */
static bool is_sendable(const struct rpc_request *r) {
    return !r->early && !r->is_ended;
}

static struct rpc_request *waited_for_last_dial(const struct rpc_channel *ch) {
    for (struct rpc_request *r = ch->waiting; r; r = r->next)
        if (is_sendable(r) && r->dials < ch->dials)
            return r;
    return NULL;
}

static void on_dialled(void *arg, struct sock *sock, size_t which, bool is_tls, const struct err *why) {
    struct rpc_channel *ch = arg;
    ch->dial = NULL;
    ch->dials++;
    ch->at = which;
    if (sock) {
        ch->next = which;
        ch->current = client_conn_new(ch, sock, which);
        ch->current->is_plain = !is_tls && !ch->connector.begin && !ch->addresses[which].is_unix;
        ch->current->generation = tls_generation(ch->tls);
        channel_kick(ch);
    } else {
        ch->next = (which + 1) % ch->n;
        ch->refs++;
        for (struct rpc_request *r; (r = waited_for_last_dial(ch));)
            request_finish(r, why->code, why, NULL, 0); /* what its owner sends now goes to a new dial */
        channel_unref(ch);
    }
}

static void on_connected(void *arg, int fd, const struct err *why) {
    struct rpc_channel *ch = arg;
    struct err e;
    struct sock *sock = NULL;
    ch->connecting = NULL;
    if (fd >= 0) {
        sock = sock_new(ch->l, false);
        int rc = uv_tcp_open(&sock->tcp, fd);
        if (rc < 0) {
            close(fd);
            sock_close(sock);
            sock = NULL;
            err_set(&e, E_SYS, "%s", uv_strerror(rc));
            why = &e;
        }
    }
    on_dialled(ch, sock, 0, false, sock ? NULL : why);
}

static void connect_somewhere(struct rpc_channel *ch) {
    if (!ch->connector.begin)
        ch->dial = dial_start(ch->l, ch->addresses, ch->n, ch->next, ch->tls, ch->conf.connect_ms, on_dialled, ch);
    else if (!ch->connecting)
        ch->connecting = ch->connector.begin(ch->connector.impl, ch->conf.connect_ms, on_connected, ch);
}

/* Gets no new calls, and is closed behind the last one. */
static void leave(struct rpc_channel *ch, struct client_conn *cc) {
    channel_conn_lost(ch, cc);
    cc->is_left = true;
    if (!cc->requests)
        conn_close(&cc->c, E_UNREACHABLE, "connection closed");
}

void channel_kick(struct rpc_channel *ch) {
    if (ch->freed)
        return;
    if (ch->current && client_conn_is_stale(ch->current))
        channel_conn_lost(ch, ch->current);
    if (ch->current && ch->current->is_plain && tls_mode(ch->tls) != TLS_OFF && ch->current->generation != tls_generation(ch->tls))
        leave(ch, ch->current); /* [tls] mode has changed since */
    bool is_needed = false;
    for (struct rpc_request *r = ch->waiting, *next; r; r = next) {
        next = r->next;
        if (!is_sendable(r))
            continue;
        is_needed = true;
        if (ch->current)
            request_submit(r, ch->current);
    }
    if (is_needed && !ch->current && !ch->dial)
        connect_somewhere(ch);
}

void channel_conn_lost(struct rpc_channel *ch, struct client_conn *cc) {
    if (ch->current != cc)
        return;
    ch->current = NULL;
    ch->next = (cc->which + 1) % ch->n;
}

void channel_ended(struct rpc_channel *ch, struct client_conn *cc, int code) {
    if (ch->n > 1 && ch->current == cc && (code == E_NOT_LEADER || code == E_STOPPING || code == E_DEADLINE)) {
        channel_conn_lost(ch, cc);
        cc->is_left = true;
    }
}

const char *rpc_channel_address(const struct rpc_channel *ch) {
    return ch->addresses[ch->at].text;
}

static struct rpc_request *any_request(struct rpc_channel *ch) {
    if (ch->waiting)
        return ch->waiting;
    for (struct client_conn *cc = ch->conns; cc; cc = cc->next)
        if (cc->requests)
            return cc->requests;
    return NULL;
}

void rpc_channel_free(struct rpc_channel *ch) {
    if (!ch)
        return;
    must(!ch->freed);
    ch->freed = true;
    for (struct rpc_request *r; (r = any_request(ch));)
        rpc_cancel(r);
    dial_cancel(ch->dial);
    ch->dial = NULL;
    if (ch->connecting)
        ch->connector.cancel(ch->connector.impl, ch->connecting);
    ch->connecting = NULL;
    while (ch->conns)
        conn_close(&ch->conns->c, E_CANCELLED, "channel closed");
    channel_unref(ch);
}
