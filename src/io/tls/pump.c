/* SPDX-License-Identifier: Apache-2.0
 *
 * One wrapped connection: bytes between the real socket (`net`) and our end of the pair (`app`).
 *
 *     net ─► rbio ─ SSL_read ──► app.out ─► app        each side has one write in flight and at most OUT_HIGH bytes that
 *     net ◄─ net.out ◄─ wbio ◄─ SSL_write ◄─ app        wait; beyond that the other side is not read
 *
 * An end that closes its half is passed on as such: a close_notify, or a shutdown of the pair. What breaks one side closes
 * both at once. A wrap that nobody cancels frees itself when both are closed.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/mem.h"
#include "io/loop/loop.h"
#include "io/tls/inside.h"

#define HANDSHAKE_MS 10000
#define LINGER_MS 30000 /* how long a peer that we have nothing more to say to may take to close */
#define OUT_HIGH (256u << 10)
#define CHUNK (64u << 10)

struct side {
    struct tls_wrap *w;
    uv_pipe_t pipe;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct buf out, inflight;
    bool is_open, is_reading, is_writing;
    bool ends;    /* once `out` is written nothing more comes: shut down */
    bool ended;   /* that was done */
    bool is_over; /* the peer's half is closed */
};

struct tls_wrap {
    struct tls *t;
    struct tls_wrap *next, *prev;
    struct loop *l;
    SSL *ssl;
    struct side net, app;
    tls_fn fn; /* NULL: was called */
    void *arg;
    struct loop_timer *timer;
    unsigned n_open; /* handles that are not closed yet */
    bool is_closing, is_up;
};

static void pump(struct tls_wrap *w);

/* ---- life ---- */

static void link_in(struct tls_wrap *w) {
    struct tls *t = w->t;
    pthread_mutex_lock(&t->lock);
    w->next = t->wraps;
    if (w->next)
        w->next->prev = w;
    t->wraps = w;
    pthread_mutex_unlock(&t->lock);
}

static void link_out(struct tls_wrap *w) {
    struct tls *t = w->t;
    pthread_mutex_lock(&t->lock);
    if (w->prev)
        w->prev->next = w->next;
    else
        t->wraps = w->next;
    if (w->next)
        w->next->prev = w->prev;
    pthread_mutex_unlock(&t->lock);
}

void wrap_free(struct tls_wrap *w) {
    link_out(w);
    if (w->ssl)
        C(SSL_free)(w->ssl);
    for (int i = 0; i < 2; i++) {
        struct side *s = i ? &w->app : &w->net;
        buf_fini(&s->out);
        buf_fini(&s->inflight);
    }
    free(w);
}

static void on_closed(uv_handle_t *h) {
    struct side *s = h->data;
    if (--s->w->n_open == 0)
        wrap_free(s->w);
}

static void close_all(struct tls_wrap *w) {
    if (w->is_closing)
        return;
    w->is_closing = true;
    loop_timer_stop(w->timer);
    w->timer = NULL;
    uv_close((uv_handle_t *)&w->net.pipe, on_closed);
    if (w->app.is_open)
        uv_close((uv_handle_t *)&w->app.pipe, on_closed);
}

/* Before it is up: tells its owner. Afterwards he sees that the connection is gone. */
static void fail(struct tls_wrap *w, const struct err *why) {
    tls_fn fn = w->fn;
    w->fn = NULL;
    close_all(w);
    if (fn)
        fn(w->arg, -1, why);
}

void tls_cancel(struct tls_wrap *w) {
    w->fn = NULL;
    close_all(w);
}

/* ---- writing ---- */

static void side_flush(struct side *s);

static void on_written(uv_write_t *req, int status) {
    struct side *s = req->data;
    struct tls_wrap *w = s->w;
    buf_fini(&s->inflight);
    s->is_writing = false;
    if (w->is_closing)
        return;
    if (status < 0)
        fail(w, &(struct err){E_UNREACHABLE, "connection lost"});
    else
        pump(w);
}

static void on_shut_down(uv_shutdown_t *req, int status) {
    struct side *s = req->data;
    struct tls_wrap *w = s->w;
    if (!w->is_closing && w->net.ended && w->app.ended)
        close_all(w);
}

static void on_lingered(void *arg) {
    struct tls_wrap *w = arg;
    w->timer = NULL;
    close_all(w);
}

static void side_end(struct side *s) {
    struct tls_wrap *w = s->w;
    s->ended = true;
    s->shutdown.data = s;
    if (uv_shutdown(&s->shutdown, (uv_stream_t *)&s->pipe, on_shut_down) < 0)
        fail(w, &(struct err){E_UNREACHABLE, "connection lost"});
    else if (s == &w->net)
        w->timer = loop_timer_start(w->l, LINGER_MS, on_lingered, w);
}

static void side_flush(struct side *s) {
    struct tls_wrap *w = s->w;
    if (w->is_closing || s->is_writing || s->ended)
        return;
    uv_stream_t *stream = (uv_stream_t *)&s->pipe;
    uv_buf_t all = uv_buf_init((char *)s->out.p, (unsigned)s->out.n);
    int n = s->out.n ? uv_try_write(stream, &all, 1) : 0;
    if (n < 0 && n != UV_EAGAIN) {
        fail(w, &(struct err){E_UNREACHABLE, "connection lost"});
        return;
    }
    size_t done = n > 0 ? (size_t)n : 0;
    if (done == s->out.n) {
        buf_clear(&s->out);
        if (s->ends)
            side_end(s);
        return;
    }
    s->inflight = buf_take(&s->out);
    uv_buf_t rest = uv_buf_init((char *)s->inflight.p + done, (unsigned)(s->inflight.n - done));
    s->write.data = s;
    s->is_writing = uv_write(&s->write, stream, &rest, 1, on_written) == 0;
    if (!s->is_writing)
        fail(w, &(struct err){E_UNREACHABLE, "connection lost"});
}

static size_t side_waiting(const struct side *s) {
    return s->out.n + s->inflight.n;
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *out) {
    struct side *s = h->data;
    *out = uv_buf_init((char *)buf_reserve(loop_scratch(s->w->l), CHUNK), CHUNK);
}

static void net_said(struct tls_wrap *w, const void *p, size_t n) {
    must(C(BIO_write)(C(SSL_get_rbio)(w->ssl), p, (int)n) == (int)n);
}

/* A memory BIO takes all there is. */
static void app_said(struct tls_wrap *w, const void *p, size_t n) {
    for (size_t at = 0; at < n && !w->is_closing;) {
        int done = C(SSL_write)(w->ssl, (const uint8_t *)p + at, (int)(n - at));
        if (done <= 0) {
            struct err e;
            tls_err(&e, E_PROTOCOL, "TLS");
            fail(w, &e);
            return;
        }
        at += (size_t)done;
    }
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b) {
    struct side *s = stream->data;
    struct tls_wrap *w = s->w;
    if (n == 0)
        return;
    if (n > 0 && s == &w->net) {
        net_said(w, b->base, (size_t)n);
    } else if (n > 0) {
        app_said(w, b->base, (size_t)n);
    } else if (n == UV_EOF && w->is_up) {
        s->is_over = true;
        uv_read_stop(stream);
        s->is_reading = false;
        if (s == &w->app)
            C(SSL_shutdown)(w->ssl); /* a close_notify, into the wbio */
    } else {
        fail(w, &(struct err){E_UNREACHABLE, "the connection was closed during the TLS handshake"});
        return;
    }
    pump(w);
}

static void side_read(struct side *s, const struct side *to) {
    struct tls_wrap *w = s->w;
    bool wants = s->is_open && !s->is_over && side_waiting(to) < OUT_HIGH;
    if (w->is_closing || wants == s->is_reading)
        return;
    s->is_reading = wants;
    if (wants)
        must(uv_read_start((uv_stream_t *)&s->pipe, on_alloc, on_read) == 0);
    else
        uv_read_stop((uv_stream_t *)&s->pipe);
}

/* ---- the session ---- */

static int side_open(struct side *s, int fd) {
    struct tls_wrap *w = s->w;
    must(uv_pipe_init(loop_uv(w->l), &s->pipe, 0) == 0);
    s->pipe.data = s;
    s->is_open = true;
    w->n_open++;
    return uv_pipe_open(&s->pipe, fd);
}

static void up(struct tls_wrap *w) {
    int pair[2];
    struct err e;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        err_sys(&e, "TLS");
        fail(w, &e);
        return;
    }
    must(side_open(&w->app, pair[0]) == 0);
    w->is_up = true;
    loop_timer_stop(w->timer);
    w->timer = NULL;
    tls_fn fn = w->fn;
    w->fn = NULL;
    fn(w->arg, pair[1], NULL);
}

static void handshake_failed(struct tls_wrap *w) {
    struct err e;
    long verdict = C(SSL_get_verify_result)(w->ssl);
    if (verdict != X509_V_OK) {
        err_set(&e, E_NO_PROOF, "the certificate is not believed: %s", C(X509_verify_cert_error_string)(verdict));
        C(ERR_clear_error)();
    } else {
        tls_err(&e, E_TLS, "what is there speaks no TLS");
    }
    fail(w, &e);
}

static void shake_hands(struct tls_wrap *w) {
    C(ERR_clear_error)();
    int rc = C(SSL_do_handshake)(w->ssl);
    if (rc == 1)
        up(w);
    else if (C(SSL_get_error)(w->ssl, rc) != SSL_ERROR_WANT_READ)
        handshake_failed(w);
}

/* What came in goes to the app, as far as it takes it. */
static void take_in(struct tls_wrap *w) {
    C(ERR_clear_error)();
    while (!w->is_closing && !w->app.ends && side_waiting(&w->app) < OUT_HIGH) {
        int n = C(SSL_read)(w->ssl, buf_reserve(&w->app.out, 16384), 16384);
        if (n > 0) {
            w->app.out.n += (size_t)n;
            continue;
        }
        int why = C(SSL_get_error)(w->ssl, n);
        if (why == SSL_ERROR_ZERO_RETURN || (why == SSL_ERROR_WANT_READ && w->net.is_over))
            w->app.ends = true;
        else if (why != SSL_ERROR_WANT_READ) {
            struct err e;
            tls_err(&e, E_PROTOCOL, "TLS");
            fail(w, &e);
        }
        return;
    }
}

static void take_out(struct tls_wrap *w) {
    BIO *bio = C(SSL_get_wbio)(w->ssl);
    size_t n;
    while ((n = (size_t)C(BIO_ctrl)(bio, BIO_CTRL_PENDING, 0, NULL)) > 0) {
        int got = C(BIO_read)(bio, buf_reserve(&w->net.out, n), (int)n);
        must(got > 0);
        w->net.out.n += (size_t)got;
    }
    w->net.ends = w->app.is_over;
}

static void pump(struct tls_wrap *w) {
    if (!w->is_closing && !w->is_up)
        shake_hands(w);
    if (!w->is_closing && w->is_up)
        take_in(w);
    if (w->is_closing)
        return;
    take_out(w);
    side_flush(&w->net);
    if (w->is_up)
        side_flush(&w->app);
    side_read(&w->net, &w->app);
    side_read(&w->app, &w->net);
}

/* ---- the beginning ---- */

static void on_late(void *arg) {
    struct tls_wrap *w = arg;
    w->timer = NULL;
    fail(w, &(struct err){E_DEADLINE, "the TLS handshake took too long"});
}

static void on_begin(void *arg) {
    struct tls_wrap *w = arg;
    w->timer = loop_timer_start(w->l, HANDSHAKE_MS, on_late, w);
    if (!w->ssl)
        fail(w, &(struct err){E_CONFIG, "TLS is asked for, and no certificate is set here ([tls] mode, cert_file)"});
    else
        pump(w);
}

static struct tls_wrap *begin(struct tls *t, struct loop *l, int fd, SSL *ssl, tls_fn fn, void *arg) {
    struct tls_wrap *w = xnew(struct tls_wrap);
    w->t = t;
    w->l = l;
    w->ssl = ssl;
    w->fn = fn;
    w->arg = arg;
    w->net.w = w->app.w = w;
    must(side_open(&w->net, fd) == 0);
    link_in(w);
    w->timer = loop_timer_start(l, 0, on_begin, w);
    return w;
}

struct tls_wrap *tls_accept(struct tls *t, struct loop *l, int fd, const void *first, size_t n_first, bool is_mutual, tls_fn fn,
                            void *arg) {
    struct tls_wrap *w = begin(t, l, fd, tls_session(t, true, is_mutual, NULL), fn, arg);
    if (w->ssl && n_first)
        net_said(w, first, n_first);
    return w;
}

struct tls_wrap *tls_connect(struct tls *t, struct loop *l, int fd, const char *host, tls_fn fn, void *arg) {
    return begin(t, l, fd, tls_session(t, false, false, host), fn, arg);
}

void tls_binding(const struct tls_wrap *w, uint8_t out[TLS_BINDING_BYTES]) {
    static const char label[] = "EXPORTER-spur-peer-1";
    must(C(SSL_export_keying_material)(w->ssl, out, TLS_BINDING_BYTES, label, sizeof(label) - 1, NULL, 0, 0) == 1);
}

/* What our side of the pair holds and was not read is unsent too: it is, until its end was read and passed on. */
bool tls_has_unsent(struct tls *t) {
    bool has = false;
    pthread_mutex_lock(&t->lock);
    for (struct tls_wrap *w = t->wraps; w && !has; w = w->next)
        has = w->is_up && !w->is_closing && !w->net.ended;
    pthread_mutex_unlock(&t->lock);
    return has;
}
