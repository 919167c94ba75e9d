/* SPDX-License-Identifier: Apache-2.0
 *
 * The sockets on which a server accepts.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/loop/address.h"
#include "io/rpc/server.h"
#include "io/tls/tls.h"

enum { BACKLOG = 1024 };

struct listener {
    struct listener *next;
    struct rpc_server *s;
    struct sock *sock;
    char *path; /* unix: removed at the end, if it is still ours */
    dev_t dev;
    ino_t ino;
};

static void peer_fill(struct rpc_peer *p, const struct sock *sock) {
    struct sockaddr_storage sa = {0};
    int n = sizeof(sa);
    if (sock->handle.type == UV_TCP) {
        uv_tcp_getpeername(&sock->tcp, (struct sockaddr *)&sa, &n);
        address_print((struct sockaddr *)&sa, p->address, sizeof(p->address));
        return;
    }
    struct ucred who;
    socklen_t n_who = sizeof(who);
    snprintf(p->address, sizeof(p->address), "unix");
    p->uid = (uid_t)-1;
    p->gid = (gid_t)-1;
    if (getsockopt(sock_fd(sock), SOL_SOCKET, SO_PEERCRED, &who, &n_who) == 0) {
        p->is_local = true;
        p->uid = who.uid;
        p->gid = who.gid;
        p->pid = who.pid;
    }
}

static void on_connection(uv_stream_t *h, int status) {
    struct listener *ls = h->data;
    struct rpc_server *s = ls->s;
    if (status < 0)
        return;
    struct sock *sock = sock_new(s->l, ls->path != NULL);
    if (uv_accept(h, &sock->stream) < 0 || !server_make_room(s)) {
        sock_close(sock);
        return;
    }
    struct rpc_peer peer = {0};
    peer_fill(&peer, sock);
    if (!ls->path)
        uv_tcp_keepalive(&sock->tcp, 1, 60);
    if (s->conf.on_other || (!ls->path && tls_mode(s->conf.tls) != TLS_OFF))
        greet(s, sock, &peer);
    else
        server_conn_add(s, sock, &peer);
}

void rpc_server_adopt(struct rpc_server *s, int fd, uint32_t member_id, const char *address) {
    struct rpc_peer peer = {.member_id = member_id};
    snprintf(peer.address, sizeof(peer.address), "%s", address);
    struct sock *sock = sock_new(s->l, false);
    if (uv_tcp_open(&sock->tcp, fd) < 0) {
        close(fd);
        sock_close(sock);
    } else if (s->draining || !server_make_room(s)) {
        sock_close(sock);
    } else {
        server_conn_add(s, sock, &peer);
    }
}

static void add(struct rpc_server *s, struct sock *sock, struct listener *ls) {
    ls->s = s;
    ls->sock = sock;
    ls->next = s->listeners;
    s->listeners = ls;
    sock->handle.data = ls;
}

/* Whether somebody answers there. */
static bool is_live(const struct address *a) {
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && (connect(fd, (const struct sockaddr *)&a->sa, a->n_sa) == 0 || errno == EAGAIN);
}

static int unix_bind(const struct address *a, struct err *e) {
    struct stat st;
    if (lstat(a->host, &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return err_set(e, E_EXISTS, "%s exists and is no socket", a->host);
        if (is_live(a))
            return err_set(e, E_EXISTS, "Another process listens on %s", a->host);
        if (unlink(a->host) != 0 && errno != ENOENT)
            return err_sys(e, "%s", a->host);
    }
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&a->sa, a->n_sa) != 0 || chmod(a->host, 0666) != 0)
        return err_sys(e, "%s", a->host);
    return take_fd(&fd);
}

static int unix_listen(struct rpc_server *s, const struct address *a, struct err *e) {
    int fd = unix_bind(a, e);
    if (fd < 0)
        return fd;
    struct sock *sock = sock_new(s->l, true);
    must(uv_pipe_open(&sock->pipe, fd) == 0);
    int rc = uv_listen(&sock->stream, BACKLOG, on_connection);
    struct stat st;
    if (rc < 0 || lstat(a->host, &st) != 0) {
        sock_close(sock);
        return err_set(e, E_SYS, "%s: %s", a->host, uv_strerror(rc));
    }
    struct listener *ls = xnew(struct listener);
    ls->path = xstrdup(a->host);
    ls->dev = st.st_dev;
    ls->ino = st.st_ino;
    add(s, sock, ls);
    return 0;
}

static int tcp_try(struct rpc_server *s, const struct sockaddr_storage *sa, uint16_t *out_port) {
    struct sock *sock = sock_new(s->l, false);
    int rc = uv_tcp_bind(&sock->tcp, (const struct sockaddr *)sa, 0); /* :: takes IPv4 too */
    if (rc == 0)
        rc = uv_listen(&sock->stream, BACKLOG, on_connection);
    struct sockaddr_storage is;
    int n = sizeof(is);
    if (rc == 0)
        rc = uv_tcp_getsockname(&sock->tcp, (struct sockaddr *)&is, &n);
    if (rc < 0) {
        sock_close(sock);
        return rc;
    }
    if (out_port)
        *out_port = address_port(&is);
    add(s, sock, xnew(struct listener));
    return 0;
}

static bool is_any_v6(const struct sockaddr_storage *sa) {
    return sa->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

static int tcp_listen(struct rpc_server *s, const struct address *a, uint16_t *out_port, struct err *e) {
    int rc = tcp_try(s, &a->sa, out_port);
    if ((rc == UV_EAFNOSUPPORT || rc == UV_EADDRNOTAVAIL) && is_any_v6(&a->sa)) {
        struct sockaddr_storage any = {.ss_family = AF_INET};
        address_set_port(&any, a->port);
        rc = tcp_try(s, &any, out_port);
    }
    if (rc == UV_EADDRINUSE)
        return err_set(e, E_EXISTS, "Cannot listen on %s: %s", a->text, uv_strerror(rc));
    return rc < 0 ? err_set(e, E_SYS, "Cannot listen on %s: %s", a->text, uv_strerror(rc)) : 0;
}

/* Blocks; servers start before they do anything else. */
static int resolve(struct address *a, struct err *e) {
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
    int rc = getaddrinfo(a->host, NULL, &hint, &list);
    if (rc)
        return err_set(e, E_NOT_FOUND, "%s: %s", a->host, gai_strerror(rc));
    memcpy(&a->sa, list->ai_addr, list->ai_addrlen);
    a->n_sa = list->ai_addrlen;
    freeaddrinfo(list);
    address_set_port(&a->sa, a->port);
    return 0;
}

int rpc_server_listen(struct rpc_server *s, const char *address, uint16_t *out_port, struct err *e) {
    struct address a;
    int rc = address_parse(address, strlen(address), 0, true, &a, e);
    if (rc == 0 && !a.is_numeric)
        rc = resolve(&a, e);
    if (rc)
        return rc;
    return a.is_unix ? unix_listen(s, &a, e) : tcp_listen(s, &a, out_port, e);
}

void listeners_close(struct rpc_server *s) {
    while (s->listeners) {
        struct listener *ls = s->listeners;
        struct stat st;
        s->listeners = ls->next;
        if (ls->path && lstat(ls->path, &st) == 0 && st.st_dev == ls->dev && st.st_ino == ls->ino)
            unlink(ls->path);
        sock_close(ls->sock);
        free(ls->path);
        free(ls);
    }
}
