/* SPDX-License-Identifier: Apache-2.0
 *
 * Which protocol a connection speaks, where several share a port: TLS is taken off first, HTTP/2 goes to a session of the
 * server's, with what was read; the other one leaves this library as a descriptor. What a connection begins with is looked
 * at as it comes, so an HTTP/2 client waits for nothing; who says nothing is closed when his time for a preface is over, and
 * so is who doesn't come to the end of a TLS hand-shake.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/rpc/server.h"
#include "io/tls/tls.h"

enum { GREETINGS_MAX = 1024 }; /* at a time; one more takes the place of the oldest */

struct greeting {
    struct greeting *next, *prev; /* youngest first */
    struct rpc_server *s;
    struct sock *sock; /* NULL: TLS has the connection */
    struct tls_wrap *wrap;
    struct rpc_peer peer;
    uint64_t opened_ms;
    size_t n;
    char first[RPC_OTHER_REST];
};

/* The socket goes to whoever comes next. */
static struct sock *leave(struct greeting *g) {
    struct sock *sock = g->sock;
    if (g->prev)
        g->prev->next = g->next;
    else
        g->s->greetings = g->next;
    if (g->next)
        g->next->prev = g->prev;
    g->s->n_greetings--;
    if (g->wrap)
        tls_cancel(g->wrap);
    if (sock) {
        uv_read_stop(&sock->stream);
        sock->handle.data = NULL;
    }
    free(g);
    return sock;
}

static void to_http(struct greeting *g) {
    char first[RPC_OTHER_REST];
    size_t n = g->n;
    struct rpc_server *s = g->s;
    struct rpc_peer peer = g->peer;
    memcpy(first, g->first, n);
    struct server_conn *sc = server_conn_add(s, leave(g), &peer);
    conn_received(&sc->c, first, n);
}

static void to_other(struct greeting *g) {
    const struct rpc_server_conf *conf = &g->s->conf;
    char rest[RPC_OTHER_REST];
    size_t n = g->n - conf->n_other_magic;
    struct rpc_peer peer = g->peer;
    memcpy(rest, g->first + conf->n_other_magic, n);
    struct sock *sock = leave(g);
    int fd = fcntl(sock_fd(sock), F_DUPFD_CLOEXEC, 0);
    sock_close(sock);
    if (fd >= 0)
        conf->on_other(conf->other_arg, fd, &peer, rest, n);
}

static void begin(struct greeting *g);

static void on_wrapped(void *arg, int fd, const struct err *why) {
    struct greeting *g = arg;
    g->wrap = NULL;
    if (fd < 0) {
        leave(g);
        return;
    }
    g->sock = sock_new(g->s->l, true);
    must(uv_pipe_open(&g->sock->pipe, fd) == 0);
    g->peer.is_tls = true;
    g->n = 0;
    if (g->s->conf.on_other)
        begin(g);
    else
        to_http(g);
}

static void to_tls(struct greeting *g) {
    struct rpc_server *s = g->s;
    uv_tcp_nodelay(&g->sock->tcp, 1);
    int fd = fcntl(sock_fd(g->sock), F_DUPFD_CLOEXEC, 0);
    sock_close(g->sock);
    g->sock = NULL;
    if (fd < 0)
        leave(g);
    else
        g->wrap = tls_accept(s->conf.tls, s->l, fd, g->first, g->n, false, on_wrapped, g);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *out) {
    struct greeting *g = h->data;
    *out = uv_buf_init(g->first + g->n, (unsigned)(sizeof(g->first) - g->n));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b) {
    struct greeting *g = stream->data;
    if (n < 0) {
        sock_close(leave(g));
        return;
    }
    if (n == 0)
        return;
    const struct rpc_server_conf *conf = &g->s->conf;
    bool may_be_tls = !g->peer.is_tls && !g->peer.is_local && tls_mode(conf->tls) != TLS_OFF;
    g->n += (size_t)n;
    size_t known = MIN(g->n, conf->n_other_magic);
    if (may_be_tls && tls_is_hello(g->first, g->n)) {
        to_tls(g);
        return;
    }
    g->peer.is_refused = may_be_tls && tls_mode(conf->tls) == TLS_REQUIRE;
    if (!conf->on_other || memcmp(g->first, conf->other_magic, known) != 0)
        to_http(g);
    else if (known == conf->n_other_magic)
        to_other(g);
}

static void begin(struct greeting *g) {
    g->sock->handle.data = g;
    must(uv_read_start(&g->sock->stream, on_alloc, on_read) == 0);
}

void greet(struct rpc_server *s, struct sock *sock, const struct rpc_peer *peer) {
    struct greeting *oldest = s->greetings;
    while (s->n_greetings >= GREETINGS_MAX && oldest->next)
        oldest = oldest->next;
    if (s->n_greetings >= GREETINGS_MAX)
        sock_close(leave(oldest));
    struct greeting *g = xnew(struct greeting);
    g->s = s;
    g->sock = sock;
    g->peer = *peer;
    g->opened_ms = uv_now(loop_uv(s->l));
    g->next = s->greetings;
    if (g->next)
        g->next->prev = g;
    s->greetings = g;
    s->n_greetings++;
    begin(g);
    server_tick_start(s);
}

void greetings_tick(struct rpc_server *s, uint64_t now) {
    for (struct greeting *g = s->greetings, *next; g; g = next) {
        next = g->next;
        if (now >= g->opened_ms + s->conf.handshake_ms)
            sock_close(leave(g));
    }
}

void greetings_close(struct rpc_server *s) {
    while (s->greetings)
        sock_close(leave(s->greetings));
}
