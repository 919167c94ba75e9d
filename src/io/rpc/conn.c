/* SPDX-License-Identifier: Apache-2.0 */
#include "io/rpc/conn.h"

#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"

struct sock *sock_new(struct loop *l, bool is_unix) {
    struct sock *s = xnew(struct sock);
    if (is_unix)
        must(uv_pipe_init(loop_uv(l), &s->pipe, 0) == 0);
    else
        must(uv_tcp_init(loop_uv(l), &s->tcp) == 0);
    return s;
}

static void on_sock_closed(uv_handle_t *h) {
    free(h);
}

void sock_close(struct sock *s) {
    if (s)
        uv_close(&s->handle, on_sock_closed);
}

int sock_fd(const struct sock *s) {
    int fd = -1;
    uv_fileno(&s->handle, &fd);
    return fd;
}

uint64_t conn_now(const struct conn *c) {
    return uv_now(loop_uv(c->loop));
}

static void on_closed(uv_handle_t *h) {
    struct conn *c = h->data;
    free(h);
    buf_fini(&c->inflight);
    c->ops->release(c);
}

/* The second half of conn_close, once nghttp2 is off the stack. */
static void teardown(struct conn *c) {
    if (c->busy || c->freed)
        return;
    c->freed = true;
    loop_late_cancel(&c->late);
    nghttp2_session_del(c->session);
    c->session = NULL;
    uv_close(&c->sock->handle, on_closed);
}

static void close_with(struct conn *c, const struct err *why) {
    if (c->dead)
        return;
    c->dead = true;
    c->ops->down(c, why);
    teardown(c);
}

void conn_close(struct conn *c, int code, const char *fmt, ...) {
    struct err e;
    va_list ap;
    va_start(ap, fmt);
    err_vset(&e, code, fmt, ap);
    va_end(ap);
    close_with(c, &e);
}

void conn_dirty(struct conn *c) {
    if (!c->dead)
        loop_late(c->loop, &c->late);
}

/* A socket that is closed while bytes of the peer are unread sends a reset, which may overtake our last frames. So we
 * end our half, and read what comes until the peer ends its own, or the owner's patience does. */
static void linger(struct conn *c) {
    c->lingering = true;
    c->lingering_ms = conn_now(c);
    if (shutdown(sock_fd(c->sock), SHUT_WR) != 0)
        conn_close(c, E_UNREACHABLE, "connection closed");
}

static void failed(struct conn *c, int nghttp2_error) {
    if (!c->dead && c->ops->broken)
        c->ops->broken(c, nghttp2_error);
    conn_close(c, E_PROTOCOL, "broken HTTP/2: %s", nghttp2_strerror(nghttp2_error));
    teardown(c);
}

static void on_written(uv_write_t *w, int status) {
    struct conn *c = w->data;
    c->writing = false;
    buf_fini(&c->inflight);
    if (c->dead)
        return;
    if (status < 0)
        conn_close(c, E_UNREACHABLE, "connection lost: %s", uv_strerror(status));
    else
        conn_dirty(c);
}

/* Serializes frames until CONN_GATHER bytes are there. */
static bool gather(struct conn *c, struct buf *b) {
    c->busy = true;
    c->gather = b;
    ssize_t n = 0;
    while (b->n < CONN_GATHER && !c->dead) {
        const uint8_t *p;
        n = nghttp2_session_mem_send(c->session, &p);
        if (n <= 0)
            break;
        buf_add(b, p, (size_t)n);
    }
    c->gather = NULL;
    c->busy = false;
    if (n < 0 || c->dead) {
        failed(c, (int)n);
        return false;
    }
    return true;
}

/* Gives the rest to libuv, with the buffer that it is in; the callback comes in a later turn, so that a fast reader of a
 * long answer can't keep the loop. */
static void write_later(struct conn *c, struct buf *whole, size_t done) {
    c->inflight = buf_take(whole);
    uv_buf_t b = uv_buf_init((char *)c->inflight.p + done, (unsigned)(c->inflight.n - done));
    c->write.data = c;
    int rc = uv_write(&c->write, &c->sock->stream, &b, 1, on_written);
    if (rc < 0)
        conn_close(c, E_UNREACHABLE, "connection lost: %s", uv_strerror(rc));
    else
        c->writing = true;
}

/* Once a turn the bytes are written here and now. What comes after that goes through libuv's queue: else a call that
 * sends more whenever its queue drains would never let the loop go, as long as its reader keeps up. */
static void flush(struct conn *c) {
    struct buf *b = loop_scratch(c->loop);
    bool is_first = c->flushed_turn != loop_turn(c->loop) + 1;
    c->flushed_turn = loop_turn(c->loop) + 1;
    for (; !c->writing && !c->lingering; is_first = false) {
        b->n = 0;
        if (!gather(c, b))
            return;
        if (b->n == 0)
            break;
        uv_buf_t whole = uv_buf_init((char *)b->p, (unsigned)b->n);
        int n = is_first ? uv_try_write(&c->sock->stream, &whole, 1) : 0;
        if (n < 0 && n != UV_EAGAIN) {
            conn_close(c, E_UNREACHABLE, "connection lost: %s", uv_strerror(n));
            return;
        }
        size_t done = n > 0 ? (size_t)n : 0;
        if (done < b->n)
            write_later(c, b, done);
        if (c->dead)
            return;
    }
}

static void on_late(struct loop_late *late) {
    struct conn *c = (struct conn *)((char *)late - offsetof(struct conn, late));
    flush(c);
    if (!c->dead && c->drained) {
        c->drained = false;
        if (c->ops->drained)
            c->ops->drained(c);
    }
    if (c->dead || c->writing || c->lingering || nghttp2_session_want_read(c->session) ||
        nghttp2_session_want_write(c->session))
        return;
    if (c->ops->lingers)
        linger(c);
    else
        conn_close(c, E_UNREACHABLE, "connection closed");
}

int conn_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t length,
                   nghttp2_data_source *source, void *user_data) {
    struct conn *c = user_data;
    struct outq *q = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    CONN_ALIVE(c);
    if (!q || outq_pending(q) < length)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    must(frame->data.padlen == 0); /* there is no callback that asks for padding */
    buf_add(c->gather, head, 9);
    outq_copy(q, buf_reserve(c->gather, length), length);
    c->gather->n += length;
    c->out_bytes -= length;
    c->drained |= q->drained;
    return 0;
}

bool conn_received(struct conn *c, const void *data, size_t n) {
    c->received_ms = conn_now(c);
    if (c->lingering)
        return true;
    c->busy = true;
    ssize_t taken = nghttp2_session_mem_recv(c->session, data, n);
    c->busy = false;
    if (c->dead) {
        teardown(c);
        return false;
    }
    if (taken < 0) {
        failed(c, (int)taken);
        return false;
    }
    conn_dirty(c);
    return true;
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *out) {
    struct conn *c = h->data;
    *out = uv_buf_init((char *)buf_reserve(loop_scratch(c->loop), CONN_READ), CONN_READ);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b) {
    struct conn *c = s->data;
    if (n > 0)
        conn_received(c, b->base, (size_t)n);
    else if (n == UV_EOF)
        conn_close(c, E_UNREACHABLE, "connection closed by the peer");
    else if (n < 0)
        conn_close(c, E_UNREACHABLE, "connection lost: %s", uv_strerror((int)n));
}

void conn_open(struct conn *c, struct loop *l, struct sock *sock, nghttp2_session *session, const struct conn_ops *ops) {
    c->sock = sock;
    c->loop = l;
    c->session = session;
    c->ops = ops;
    c->late.fn = on_late;
    c->opened_ms = c->received_ms = conn_now(c);
    sock->handle.data = c;
    if (sock->handle.type == UV_TCP)
        uv_tcp_nodelay(&sock->tcp, 1);
    must(uv_read_start(&sock->stream, on_alloc, on_read) == 0);
    conn_dirty(c);
}
