/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection of a channel. Requests are sent at once, without waiting for the server's settings: a command that asks
 * one thing is done in one round trip.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "io/rpc/client.h"

static struct rpc_request *request_of(nghttp2_session *session, int32_t stream) {
    return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data) {
    struct client_conn *cc = user_data;
    CONN_ALIVE(&cc->c);
    struct rpc_request *r = request_of(session, frame->hd.stream_id);
    if (r)
        response_begin(r);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user_data) {
    struct client_conn *cc = user_data;
    CONN_ALIVE(&cc->c);
    struct rpc_request *r = request_of(session, frame->hd.stream_id);
    if (r)
        response_header(r, name, n_name, value, n_value);
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t n,
                         void *user_data) {
    struct client_conn *cc = user_data;
    CONN_ALIVE(&cc->c);
    struct rpc_request *r = request_of(session, stream);
    if (r)
        response_data(r, data, n);
    else
        nghttp2_session_consume(session, stream, n);
    CONN_ALIVE(&cc->c);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data) {
    struct client_conn *cc = user_data;
    CONN_ALIVE(&cc->c);
    if (frame->hd.type == NGHTTP2_SETTINGS)
        cc->is_up = true;
    if (frame->hd.type == NGHTTP2_HEADERS) /* it does not only hear, it answers */
        cc->ch->silences = 0;
    if (frame->hd.type == NGHTTP2_GOAWAY) { /* what it never saw, nghttp2 closes as refused */
        channel_conn_lost(cc->ch, cc);
        channel_kick(cc->ch);
    }
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        struct rpc_request *r = request_of(session, frame->hd.stream_id);
        if (r)
            response_end(r);
    }
    CONN_ALIVE(&cc->c);
    return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data) {
    struct client_conn *cc = user_data;
    CONN_ALIVE(&cc->c);
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    struct rpc_request *r = request_of(session, frame->hd.stream_id);
    if (r)
        r->is_sent = true;
    return 0;
}

static int on_stream_closed(nghttp2_session *session, int32_t stream, uint32_t error, void *user_data) {
    struct client_conn *cc = user_data;
    CONN_ALIVE(&cc->c);
    struct rpc_request *r = request_of(session, stream);
    if (!r)
        return 0;
    r->stream = 0;
    if (r->is_ended)
        return 0; /* its owner has messages to take yet */
    if (error == NGHTTP2_REFUSED_STREAM)
        request_unprocessed(r, "the server refused the call");
    else
        request_fail(r, header_code_of_reset(error), "%s: the call was reset: %s",
                     cc->ch->addresses[cc->which].text, nghttp2_http2_strerror(error));
    CONN_ALIVE(&cc->c);
    return 0;
}

void client_callbacks_set(nghttp2_session_callbacks *cb) {
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_closed);
    nghttp2_session_callbacks_set_send_data_callback(cb, conn_send_data);
}

static void on_watch(void *arg);

static void watch_in(struct client_conn *cc, uint64_t due_ms) {
    uint64_t now = conn_now(&cc->c);
    cc->watch = loop_timer_start(cc->c.loop, due_ms > now ? due_ms - now : 1, on_watch, cc);
}

/* A bound of the configuration: longer where all addresses were silent before. */
static uint64_t patient(const struct rpc_channel *ch, uint64_t ms) {
    uint64_t rounds = MIN(ch->silences / ch->n, (uint64_t)5);
    return ch->n > 1 ? MIN(ms << rounds, MAX(ms, (uint64_t)10000)) : ms;
}

/* Looks whether the server is alive: its settings have come, and something does while requests are open. Any byte
 * counts as an answer to a ping. */
static void on_watch(void *arg) {
    struct client_conn *cc = arg;
    struct rpc_channel *ch = cc->ch;
    const char *who = ch->addresses[cc->which].text;
    uint64_t now = conn_now(&cc->c), greet_ms = patient(ch, ch->conf.greet_ms), ping_ms = patient(ch, ch->conf.ping_ms),
             pong_ms = patient(ch, ch->conf.ping_timeout_ms);
    cc->watch = NULL;
    if (!cc->is_up && now >= cc->c.opened_ms + greet_ms) {
        ch->silences++;
        conn_close(&cc->c, E_UNREACHABLE, "Unable to contact %s: it doesn't speak", who);
        return;
    }
    if (!cc->requests)
        return;
    if (cc->is_pinging && cc->c.received_ms >= cc->pinged_ms)
        cc->is_pinging = false;
    if (cc->is_pinging && now >= cc->pinged_ms + pong_ms) {
        ch->silences++;
        conn_close(&cc->c, E_UNREACHABLE, "Unable to contact %s: no answer to a ping", who);
        return;
    }
    if (!cc->is_pinging && now >= cc->c.received_ms + ping_ms) {
        cc->is_pinging = true;
        cc->pinged_ms = now;
        nghttp2_submit_ping(cc->c.session, 0, NULL);
        conn_dirty(&cc->c);
    }
    uint64_t due = cc->is_pinging ? cc->pinged_ms + pong_ms : cc->c.received_ms + ping_ms;
    watch_in(cc, cc->is_up ? due : MIN(due, cc->c.opened_ms + greet_ms));
}

void client_conn_add(struct client_conn *cc, struct rpc_request *r) {
    r->conn = cc;
    r->prev = NULL;
    r->next = cc->requests;
    if (r->next)
        r->next->prev = r;
    cc->requests = r;
    if (!cc->watch) { /* how long it was silent before doesn't matter */
        uint64_t now = conn_now(&cc->c);
        cc->c.received_ms = MAX(cc->c.received_ms, now);
        cc->is_pinging = false;
        watch_in(cc, now + patient(cc->ch, MIN(cc->ch->conf.ping_ms, cc->is_up ? UINT64_MAX : cc->ch->conf.greet_ms)));
    }
}

void client_conn_remove(struct client_conn *cc, struct rpc_request *r) {
    if (r->prev)
        r->prev->next = r->next;
    else
        cc->requests = r->next;
    if (r->next)
        r->next->prev = r->prev;
    r->next = r->prev = NULL;
    r->conn = NULL;
}

static void conn_down(struct conn *c, const struct err *why) {
    struct client_conn *cc = (struct client_conn *)c;
    struct rpc_channel *ch = cc->ch;
    if (cc->prev)
        cc->prev->next = cc->next;
    else
        ch->conns = cc->next;
    if (cc->next)
        cc->next->prev = cc->prev;
    loop_timer_stop(cc->watch);
    cc->watch = NULL;
    channel_conn_lost(ch, cc);
    for (struct rpc_request *r; (r = cc->requests);) {
        r->stream = 0;
        if (r->is_ended) { /* all of it is there, its owner just doesn't take it */
            client_conn_remove(cc, r);
            channel_enqueue(ch, r);
        } else if (!r->is_sent) {
            request_unprocessed(r, why->text);
        } else {
            request_fail(r, why->code == E_PROTOCOL ? E_PROTOCOL : E_UNREACHABLE, "%s: %s",
                         ch->addresses[cc->which].text, why->text);
        }
    }
}

static void conn_release(struct conn *c) {
    struct client_conn *cc = (struct client_conn *)c;
    channel_unref(cc->ch);
    free(cc);
}

struct client_conn *client_conn_new(struct rpc_channel *ch, struct sock *sock, size_t which) {
    static const struct conn_ops ops = {.down = conn_down, .release = conn_release};
    struct client_conn *cc = xnew(struct client_conn);
    nghttp2_session *session;
    cc->ch = ch;
    cc->which = which;
    cc->next = ch->conns;
    if (cc->next)
        cc->next->prev = cc;
    ch->conns = cc;
    ch->refs++;
    must(nghttp2_session_client_new2(&session, ch->callbacks, cc, ch->option) == 0);
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, CLIENT_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_MAX},
    };
    must(nghttp2_submit_settings(session, 0, settings, ARRAY_LEN(settings)) == 0);
    must(nghttp2_session_set_local_window_size(session, 0, 0, CLIENT_CONN_WINDOW) == 0);
    conn_open(&cc->c, ch->l, sock, session, &ops);
    return cc;
}

/* The loop may not have run since the server went: a library's user who asks once an hour. */
bool client_conn_is_stale(const struct client_conn *cc) {
    char byte;
    if (cc->requests)
        return false;
    ssize_t n = recv(sock_fd(cc->c.sock), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}
