/* SPDX-License-Identifier: Apache-2.0
 *
 * Which protocol a connection speaks, where two share a port: HTTP/2 goes to a session of the server's, with what was
 * read; the other one leaves this library as a descriptor. What a connection begins with is looked at as it comes, so
 * an HTTP/2 client waits for nothing; who says nothing is closed when his time for a preface is over.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/rpc/server.h"

enum { GREETINGS_MAX = 1024 }; /* at a time; one more takes the place of the oldest */

struct greeting {
    struct greeting *next, *prev; /* youngest first */
    struct rpc_server *s;
    struct sock *sock;
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
    uv_read_stop(&sock->stream);
    sock->handle.data = NULL;
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
        conf->on_other(conf->other_arg, fd, peer.address, rest, n);
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
    g->n += (size_t)n;
    size_t known = MIN(g->n, g->s->conf.n_other_magic);
    if (memcmp(g->first, g->s->conf.other_magic, known) != 0)
        to_http(g);
    else if (known == g->s->conf.n_other_magic)
        to_other(g);
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
    sock->handle.data = g;
    must(uv_read_start(&sock->stream, on_alloc, on_read) == 0);
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
