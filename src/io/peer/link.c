/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection in its hand-shake. Each message has a fixed length, and never more is read than the message that is
 * due: what comes behind the last one belongs to whoever gets the connection.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/loop/address.h"
#include "io/peer/inside.h"
#include "io/tls/tls.h"

#define USER_TIMEOUT_MS 2000u /* what was sent and is not acknowledged by the other machine: the connection is lost */

static void on_gone(void *arg) {
    struct link *k = arg;
    struct peer *p = k->p;
    free(k);
    p->busy--;
    peer_settle(p);
}

static void on_closed(uv_handle_t *h) {
    on_gone(h->data);
    free(h);
}

void link_close(struct link *k) {
    if (k->is_closing)
        return;
    k->is_closing = true;
    loop_timer_stop(k->limit);
    k->limit = NULL;
    if (k->wrap)
        tls_cancel(k->wrap);
    if (k->dial) {
        k->dial->link = NULL;
    } else {
        *(k->prev ? &k->prev->next : &k->p->links) = k->next;
        if (k->next)
            k->next->prev = k->prev;
        k->p->n_links--;
    }
    if (k->tcp) {
        uv_close((uv_handle_t *)k->tcp, on_closed);
    } else { /* TLS had it; whoever called looks at it yet */
        loop_post(k->p->loop, on_gone, k);
    }
}

void links_close(struct peer *p) {
    while (p->links)
        link_close(p->links);
}

static void failed(struct link *k, const struct err *why) {
    struct peer_dial *d = k->dial;
    struct peer *p = k->p;
    if (k->is_closing)
        return;
    if (d) {
        link_close(k);
        err_set(&d->why, why->code, "controller %u at %s: %s", d->id, d->address, why->text);
        dial_next(d);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->stats.refused++;
    pthread_mutex_unlock(&p->lock);
    if (why->code != E_STOPPING && why->code != E_UNREACHABLE)
        peer_notice(p, 0, "a connection from %s was refused: %s", k->address, why->text);
    link_close(k);
}

static void on_limit(void *arg) {
    struct link *k = arg;
    struct err e;
    k->limit = NULL;
    err_set(&e, E_UNREACHABLE, k->stage == LINK_CONNECTING ? "no answer" : "no answer to the hand-shake");
    failed(k, &e);
}

static bool send_all(struct link *k, const uint8_t *p, size_t n) {
    uv_buf_t b = uv_buf_init((char *)p, (unsigned)n);
    return uv_try_write((uv_stream_t *)k->tcp, &b, 1) == (int)n; /* smaller than any socket's buffer */
}

static void lost(struct link *k, const char *text) {
    struct err e;
    err_set(&e, E_UNREACHABLE, "%s", text);
    failed(k, &e);
}

static void tune(int fd) {
    int one = 1;
    unsigned ms = USER_TIMEOUT_MS;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

/* Forgets those that are gone: other sockets have their numbers, or nothing. */
void link_note_plain(struct peer *p, int fd) {
    struct stat st;
    for (size_t i = p->plain.n; i-- > 0;)
        if (fstat(p->plain.p[i].fd, &st) != 0 || st.st_ino != p->plain.p[i].inode || p->plain.p[i].fd == fd)
            vec_remove(&p->plain, i);
    if (fstat(fd, &st) == 0)
        vec_push(&p->plain, ((struct handed){fd, st.st_ino}));
}

/* The hand-shake is over: the descriptor leaves. */
static void done(struct link *k) {
    struct peer *p = k->p;
    struct peer_dial *d = k->dial;
    uv_os_fd_t fd = -1;
    uv_fileno((uv_handle_t *)k->tcp, &fd);
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        lost(k, "no descriptor is free");
        return;
    }
    if (!k->shake.is_tls) {
        tune(own);
        link_note_plain(p, own);
    }
    pthread_mutex_lock(&p->lock);
    *(d ? &p->stats.dialled : &p->stats.accepted) += 1;
    pthread_mutex_unlock(&p->lock);
    enum peer_use use = k->shake.use;
    uint32_t id = k->shake.from;
    char address[sizeof(k->address)];
    memcpy(address, k->address, sizeof(address));
    link_close(k);
    if (d)
        dial_end(d, own);
    else
        doors_give(p->doors, use, own, id, address);
}

/* ---- messages ---- */

/* Sends ours, which is the last where rc says why it ends here. Whether it goes on. */
static bool say(struct link *k, const uint8_t *p, size_t n, int rc, const struct err *why) {
    bool sent = send_all(k, p, n);
    if (rc)
        failed(k, why);
    else if (!sent)
        lost(k, "connection lost");
    return !rc && sent;
}

static void expect(struct link *k, enum link_stage stage, size_t n) {
    k->stage = stage;
    k->n = 0;
    k->want = n;
}

static void got_ask(struct link *k) {
    uint8_t out[SHAKE_REPLY_BYTES];
    struct err e = {0};
    k->shake.to = k->p->conf.id;
    k->shake.knows_tls = tls_mode(k->p->conf.tls) != TLS_OFF;
    k->shake.requires_tls = tls_mode(k->p->conf.tls) == TLS_REQUIRE;
    int rc = shake_reply(&k->shake, &k->keys, k->in, out, &e);
    if (rc == E_PROTOCOL) { /* it is somebody else; nothing is said to it */
        failed(k, &e);
        return;
    }
    if (say(k, out, sizeof(out), rc, &e))
        expect(k, LINK_WAITS_PROOFS, SHAKE_PROOFS_BYTES);
}

static void got_reply(struct link *k) {
    uint8_t out[SHAKE_PROOFS_BYTES];
    struct err e = {0};
    if (shake_prove(&k->shake, &k->keys, k->in, out, &e))
        failed(k, &e);
    else if (say(k, out, sizeof(out), 0, NULL))
        expect(k, LINK_WAITS_VERDICT, SHAKE_VERDICT_BYTES);
}

static void got_proofs(struct link *k) {
    uint8_t out[SHAKE_VERDICT_BYTES];
    struct err e = {0};
    int rc = shake_judge(&k->shake, &k->keys, k->in, out, &e);
    if (!rc && !doors_is_open(k->p->doors, k->shake.use)) {
        rc = err_set(&e, E_STOPPING, "not ready");
        memset(out, 0, sizeof(out));
        out[0] = (uint8_t)-E_STOPPING;
    }
    if (say(k, out, sizeof(out), rc, &e))
        done(k);
}

static void got_verdict(struct link *k) {
    struct err e = {0};
    if (shake_end(&k->shake, &k->keys, k->in, &e))
        failed(k, &e);
    else
        done(k);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *out) {
    struct link *k = h->data;
    *out = uv_buf_init((char *)k->in + k->n, (unsigned)(k->want - k->n));
}

/* ---- TLS ---- */

static void link_begin(struct link *k);
static void ask(struct link *k);

static void on_raw_closed(uv_handle_t *h) {
    struct peer *p = h->data;
    free(h);
    p->busy--;
    peer_settle(p);
}

static void not_secured(struct link *k, const struct err *why) {
    struct peer_dial *d = k->dial;
    if (!d || tls_mode(k->p->conf.tls) != TLS_ACCEPT || (why->code != E_TLS && why->code != E_UNREACHABLE)) {
        failed(k, why);
        return;
    }
    link_close(k); /* once more, in plain */
    d->is_plain = true;
    d->next_found--;
    dial_next(d);
}

static void on_wrapped(void *arg, int fd, const struct err *why) {
    struct link *k = arg;
    struct tls_wrap *w = k->wrap;
    k->wrap = NULL;
    if (fd < 0) {
        not_secured(k, why);
        return;
    }
    k->shake.is_tls = true;
    tls_binding(w, k->shake.binding);
    k->tcp = xnew(uv_tcp_t);
    must(uv_tcp_init(loop_uv(k->p->loop), k->tcp) == 0);
    k->tcp->data = k;
    must(uv_tcp_open(k->tcp, fd) == 0);
    if (k->dial) {
        ask(k);
    } else {
        expect(k, LINK_WAITS_ASK, SHAKE_ASK_BYTES);
        link_begin(k);
    }
}

/* The socket becomes TLS's; ours is closed. */
static void secure(struct link *k) {
    struct tls *t = k->p->conf.tls;
    int fd = -1, raw = -1;
    uv_fileno((uv_handle_t *)k->tcp, &raw);
    fd = fcntl(raw, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        lost(k, "no descriptor is free");
        return;
    }
    tune(fd);
    uv_read_stop((uv_stream_t *)k->tcp);
    k->p->busy++;
    k->tcp->data = k->p;
    uv_close((uv_handle_t *)k->tcp, on_raw_closed);
    k->tcp = NULL;
    k->stage = LINK_SECURING;
    k->wrap = k->dial ? tls_connect(t, k->p->loop, fd, k->dial->host, on_wrapped, k)
                      : tls_accept(t, k->p->loop, fd, k->in, k->n, true, on_wrapped, k);
}

/* ---- reading ---- */

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b) {
    struct link *k = stream->data;
    if (k->is_closing || n == 0)
        return;
    if (n < 0) {
        lost(k, n == UV_EOF ? "it closed the connection" : uv_strerror((int)n));
        return;
    }
    k->n += (size_t)n;
    if (k->stage == LINK_WAITS_ASK && !k->shake.is_tls && tls_mode(k->p->conf.tls) != TLS_OFF && tls_is_hello(k->in, k->n)) {
        secure(k);
        return;
    }
    if (k->stage == LINK_WAITS_ASK && memcmp(k->in, "SPURPEER", MIN(k->n, (size_t)8)) != 0) {
        struct err e;
        err_set(&e, E_PROTOCOL, "it is no controller");
        failed(k, &e);
        return;
    }
    if (k->n < k->want)
        return;
    switch (k->stage) {
    case LINK_WAITS_ASK: got_ask(k); break;
    case LINK_WAITS_REPLY: got_reply(k); break;
    case LINK_WAITS_PROOFS: got_proofs(k); break;
    case LINK_WAITS_VERDICT: got_verdict(k); break;
    case LINK_CONNECTING:
    case LINK_SECURING: break;
    }
}

/* ---- how one begins ---- */

static struct link *link_new(struct peer *p, struct peer_dial *d, uint64_t limit_ms) {
    struct link *k = xnew(struct link);
    k->p = p;
    k->dial = d;
    p->busy++;
    k->tcp = xnew(uv_tcp_t);
    must(uv_tcp_init(loop_uv(p->loop), k->tcp) == 0);
    k->tcp->data = k;
    k->limit = loop_timer_start(p->loop, limit_ms, on_limit, k);
    pthread_mutex_lock(&p->lock);
    k->keys = p->keys;
    pthread_mutex_unlock(&p->lock);
    return k;
}

static void link_begin(struct link *k) {
    uv_tcp_nodelay(k->tcp, 1);
    if (uv_read_start((uv_stream_t *)k->tcp, on_alloc, on_read) < 0)
        lost(k, "connection lost");
}

static void ask(struct link *k) {
    uint8_t out[SHAKE_ASK_BYTES];
    k->shake.knows_tls = tls_mode(k->p->conf.tls) != TLS_OFF;
    shake_ask(&k->shake, &k->keys, out);
    expect(k, LINK_WAITS_REPLY, SHAKE_REPLY_BYTES);
    if (say(k, out, sizeof(out), 0, NULL))
        link_begin(k);
}

static void on_connected(uv_connect_t *req, int status) {
    struct link *k = req->data;
    if (k->is_closing)
        return;
    if (status < 0) {
        lost(k, uv_strerror(status));
        return;
    }
    loop_timer_stop(k->limit);
    k->limit = loop_timer_start(k->p->loop, PEER_HANDSHAKE_MS, on_limit, k);
    bool is_plain = k->dial->is_plain || tls_mode(k->p->conf.tls) == TLS_OFF;
    k->dial->is_plain = false;
    if (is_plain)
        ask(k);
    else
        secure(k);
}

void link_connect(struct peer_dial *d, const struct sockaddr_storage *to) {
    struct link *k = link_new(d->p, d, PEER_CONNECT_MS);
    d->link = k;
    k->shake = (struct shake){.use = d->use, .from = d->p->conf.id, .to = d->id};
    k->connect.data = k;
    int rc = uv_tcp_connect(&k->connect, k->tcp, (const struct sockaddr *)to, on_connected);
    if (rc < 0)
        lost(k, uv_strerror(rc));
}

static void name_of(struct link *k) {
    struct sockaddr_storage sa = {0};
    int n = sizeof(sa);
    uv_tcp_getpeername(k->tcp, (struct sockaddr *)&sa, &n);
    address_print((const struct sockaddr *)&sa, k->address, sizeof(k->address));
}

void link_accept(struct peer *p) {
    struct link *oldest = p->links;
    while (p->n_links >= PEER_WAITING_MAX && oldest->next)
        oldest = oldest->next;
    if (p->n_links >= PEER_WAITING_MAX)
        link_close(oldest);
    struct link *k = link_new(p, NULL, PEER_HANDSHAKE_MS);
    k->next = p->links;
    if (k->next)
        k->next->prev = k;
    p->links = k;
    p->n_links++;
    expect(k, LINK_WAITS_ASK, SHAKE_ASK_BYTES);
    if (uv_accept((uv_stream_t *)&p->listener, (uv_stream_t *)k->tcp) < 0) {
        link_close(k);
        return;
    }
    name_of(k);
    link_begin(k);
}
