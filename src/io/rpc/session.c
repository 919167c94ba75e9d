/* SPDX-License-Identifier: Apache-2.0
 *
 * nghttp2's callbacks on the server's side: which call a frame belongs to, and what connections may not do.
 */
#include <string.h>

#include "io/rpc/server.h"

void session_flooded(struct server_conn *sc) {
    if (sc->is_flooding)
        return;
    sc->is_flooding = true;
    sc->s->stats.refused_floods++;
    nghttp2_session_terminate_session(sc->c.session, NGHTTP2_ENHANCE_YOUR_CALM);
    conn_dirty(&sc->c);
}

static void charge(struct server_conn *sc, uint32_t cost) {
    if (cost && !guard_take(&sc->guard, conn_now(&sc->c), cost))
        session_flooded(sc);
}

static struct rpc_call *call_of(nghttp2_session *session, int32_t stream) {
    return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user_data) {
    struct server_conn *sc = user_data;
    CONN_ALIVE(&sc->c);
    charge(sc, guard_cost(hd));
    return 0;
}

/* More calls than it may have, counting those that it reset and that still run; or it doesn't read its answers. */
static bool is_overloaded(const struct server_conn *sc) {
    return sc->n_calls + sc->n_orphans >= 2 * (size_t)sc->s->conf.max_streams || sc->c.out_bytes > SERVER_CONN_OUT;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data) {
    struct server_conn *sc = user_data;
    CONN_ALIVE(&sc->c);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (is_overloaded(sc))
        return nghttp2_submit_rst_stream(session, 0, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
    struct rpc_call *c = call_new(sc, frame->hd.stream_id);
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, c);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user_data) {
    struct server_conn *sc = user_data;
    CONN_ALIVE(&sc->c);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0; /* trailers of a client mean nothing to gRPC */
    struct rpc_call *c = call_of(session, frame->hd.stream_id);
    if (c)
        call_header(c, name, n_name, value, n_value);
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t n,
                         void *user_data) {
    struct server_conn *sc = user_data;
    CONN_ALIVE(&sc->c);
    struct rpc_call *c = call_of(session, stream);
    if (!c)
        return nghttp2_session_consume(session, stream, n) == NGHTTP2_ERR_NOMEM ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
    c->held++;
    call_data(c, data, n);
    call_unhold(c);
    CONN_ALIVE(&sc->c);
    return 0;
}

static void on_request(nghttp2_session *session, const nghttp2_frame *frame) {
    struct rpc_call *c = call_of(session, frame->hd.stream_id);
    if (!c)
        return;
    c->held++;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        call_headers_done(c);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        call_half_closed(c);
    call_unhold(c);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data) {
    struct server_conn *sc = user_data;
    CONN_ALIVE(&sc->c);
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        on_request(session, frame);
        break;
    case NGHTTP2_SETTINGS:
        sc->is_up = true;
        break;
    case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK)
            server_conn_pong(sc);
        break;
    default:
        break;
    }
    CONN_ALIVE(&sc->c);
    return 0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user_data) {
    struct server_conn *sc = user_data;
    CONN_ALIVE(&sc->c);
    charge(sc, 1);
    return 0;
}

/* A reset that we send because of what the peer did costs as much as one that it sends. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data) {
    struct server_conn *sc = user_data;
    CONN_ALIVE(&sc->c);
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
        charge(sc, 1);
    if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    struct rpc_call *c = call_of(session, frame->hd.stream_id);
    if (c)
        answer_trailers_sent(c);
    return 0;
}

static int on_stream_closed(nghttp2_session *session, int32_t stream, uint32_t error, void *user_data) {
    struct server_conn *sc = user_data;
    CONN_ALIVE(&sc->c);
    struct rpc_call *c = call_of(session, stream);
    if (c)
        call_closed(c);
    CONN_ALIVE(&sc->c);
    return 0;
}

void session_callbacks_set(nghttp2_session_callbacks *cb) {
    nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_closed);
    nghttp2_session_callbacks_set_send_data_callback(cb, conn_send_data);
}
