/* SPDX-License-Identifier: Apache-2.0 */
#include "io/peer/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/loop/address.h"
#include "io/peer/inside.h"

#define BACKLOG 256
#define NOTICE_MS 1000

void peer_notice(struct peer *p, int kind, const char *fmt, ...) {
    int64_t now = loop_now_ms(p->loop);
    if (!p->conf.on_notice || (p->noticed_ms[kind] && now - p->noticed_ms[kind] < NOTICE_MS))
        return;
    p->noticed_ms[kind] = now;
    va_list ap;
    va_start(ap, fmt);
    autofree char *text = xvasprintf(fmt, ap);
    va_end(ap);
    p->conf.on_notice(p->conf.arg, true, text);
}

/* ---- doors ---- */

void doors_unref(struct doors *d) {
    pthread_mutex_lock(&d->lock);
    bool last = --d->refs == 0;
    pthread_mutex_unlock(&d->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&d->lock);
    free(d);
}

bool doors_is_open(struct doors *d, enum peer_use use) {
    pthread_mutex_lock(&d->lock);
    bool is_open = d->door[use].fn != NULL;
    pthread_mutex_unlock(&d->lock);
    return is_open;
}

struct arrival {
    struct doors *doors;
    enum peer_use use;
    uint64_t generation;
    int fd;
    uint32_t id;
    char address[80];
};

static void on_arrival(void *arg) {
    struct arrival *a = arg;
    pthread_mutex_lock(&a->doors->lock);
    struct door door = a->doors->door[a->use];
    pthread_mutex_unlock(&a->doors->lock);
    if (door.fn && door.generation == a->generation)
        door.fn(door.arg, a->fd, a->id, a->address);
    else
        close(a->fd);
    doors_unref(a->doors);
    free(a);
}

void doors_give(struct doors *d, enum peer_use use, int fd, uint32_t id, const char *address) {
    struct arrival *a = xnew(struct arrival);
    *a = (struct arrival){.doors = d, .use = use, .fd = fd, .id = id};
    snprintf(a->address, sizeof(a->address), "%s", address);
    pthread_mutex_lock(&d->lock);
    struct door door = d->door[use];
    a->generation = door.generation;
    d->refs += door.fn != NULL;
    if (door.fn)
        loop_post(door.loop, on_arrival, a);
    pthread_mutex_unlock(&d->lock);
    if (door.fn)
        return;
    close(fd);
    free(a);
}

void peer_on_accept(struct peer *p, enum peer_use use, struct loop *l, peer_accept_fn fn, void *arg) {
    pthread_mutex_lock(&p->doors->lock);
    struct door *door = &p->doors->door[use];
    *door = (struct door){l, fn, arg, door->generation + 1};
    pthread_mutex_unlock(&p->doors->lock);
}

/* ---- the thread ---- */

static void on_connection(uv_stream_t *h, int status) {
    struct peer *p = h->data;
    if (status == 0 && !p->is_stopping)
        link_accept(p);
}

static void listen_here(void *arg) {
    struct peer *p = arg;
    must(uv_tcp_init(loop_uv(p->loop), &p->listener) == 0);
    p->listener.data = p;
    p->listens = true;
    p->busy++;
    must(uv_tcp_open(&p->listener, p->listen_fd) == 0);
    must(uv_listen((uv_stream_t *)&p->listener, BACKLOG, on_connection) == 0);
}

static void *thread_main(void *arg) {
    struct peer *p = arg;
    pthread_setname_np(pthread_self(), "peer");
    loop_run(p->loop);
    return NULL;
}

void peer_settle(struct peer *p) {
    if (p->is_stopping && p->busy == 0)
        loop_stop(p->loop);
}

static void on_listener_closed(uv_handle_t *h) {
    struct peer *p = h->data;
    p->busy--;
    peer_settle(p);
}

static void stop_here(void *arg) {
    struct peer *p = arg;
    pthread_mutex_lock(&p->lock);
    p->is_stopping = true;
    pthread_mutex_unlock(&p->lock);
    if (p->listens)
        uv_close((uv_handle_t *)&p->listener, on_listener_closed);
    links_close(p);
    names_stop(p);
    for (struct peer_dial *d = p->dials, *next; d; d = next) {
        next = d->next;
        if (d->link)
            link_close(d->link);
        d->lookup = NULL;
        err_set(&d->why, E_STOPPING, NULL);
        dial_end(d, -1);
    }
    peer_settle(p);
}

/* ---- life ---- */

static int bind_to(const struct addrinfo *ai, int *out_fd) {
    int one = 1, zero = 0;
    autoclose int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (ai->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return errno;
    *out_fd = take_fd(&fd);
    return 0;
}

static int listen_on(struct peer *p, const char *address, struct err *e) {
    const char *colon = strrchr(address, ':');
    if (!colon)
        return err_set(e, E_CONFIG, "%s: is no host:port to listen on", address);
    const char *host = address, *end = colon;
    if (*host == '[' && end[-1] == ']') {
        host++;
        end--;
    }
    autofree char *name = xstrndup(host, (size_t)(end - host));
    struct addrinfo hint = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *list;
    int rc = getaddrinfo(*name ? name : NULL, colon + 1, &hint, &list);
    if (rc)
        return err_set(e, E_CONFIG, "%s: can't listen there: %s", address, gai_strerror(rc));
    int failed = bind_to(list, &p->listen_fd);
    freeaddrinfo(list);
    if (failed == EAFNOSUPPORT && strcmp(name, "::") == 0) { /* no IPv6 on this machine */
        hint.ai_family = AF_INET;
        must(getaddrinfo(NULL, colon + 1, &hint, &list) == 0);
        failed = bind_to(list, &p->listen_fd);
        freeaddrinfo(list);
    }
    errno = failed;
    if (failed)
        return err_sys(e, "listen on %s", address);
    struct sockaddr_storage sa = {0};
    socklen_t n = sizeof(sa);
    getsockname(p->listen_fd, (struct sockaddr *)&sa, &n);
    p->port = address_port(&sa);
    return 0;
}

static void peer_destroy(struct peer *p) {
    loop_free(p->loop);
    names_free(p);
    doors_unref(p->doors);
    pthread_mutex_destroy(&p->lock);
    vec_fini(&p->plain);
    memset(&p->keys, 0, sizeof(p->keys));
    free(p->cluster);
    free(p);
}

int peer_new(const struct peer_conf *conf, struct peer **out, struct err *e) {
    struct peer *p = xnew(struct peer);
    p->conf = *conf;
    p->cluster = xstrdup(conf->cluster);
    p->doors = xnew(struct doors);
    p->doors->refs = 1;
    pthread_mutex_init(&p->doors->lock, NULL);
    pthread_mutex_init(&p->lock, NULL);
    p->loop = loop_new("peer");
    shake_keys_make(&p->keys, p->cluster, conf->keys, conf->n_keys);
    int rc = listen_on(p, conf->listen, e);
    if (rc) {
        peer_destroy(p);
        return rc;
    }
    p->names = names_new(p);
    loop_post(p->loop, listen_here, p);
    must(pthread_create(&p->thread, NULL, thread_main, p) == 0);
    *out = p;
    return 0;
}

void peer_free(struct peer *p) {
    if (!p)
        return;
    pthread_mutex_lock(&p->doors->lock);
    for (int i = 0; i < PEER_N_USES; i++)
        p->doors->door[i].fn = NULL;
    pthread_mutex_unlock(&p->doors->lock);
    loop_post(p->loop, stop_here, p);
    pthread_join(p->thread, NULL);
    peer_destroy(p);
}

uint16_t peer_port(const struct peer *p) {
    return p->port;
}

void peer_set_keys(struct peer *p, const struct secret *keys, size_t n_keys) {
    struct shake_keys k;
    shake_keys_make(&k, p->cluster, keys, n_keys);
    pthread_mutex_lock(&p->lock);
    p->keys = k;
    pthread_mutex_unlock(&p->lock);
}

static void retire_plain(void *arg) {
    struct peer *p = arg;
    for (size_t i = 0; i < p->plain.n; i++) {
        struct stat st;
        autoclose int fd = fcntl(p->plain.p[i].fd, F_DUPFD_CLOEXEC, 0); /* a hold on whatever has the number */
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == p->plain.p[i].inode)
            shutdown(fd, SHUT_RDWR);
    }
    p->plain.n = 0;
}

void peer_retire_plain(struct peer *p) {
    loop_post(p->loop, retire_plain, p);
}

struct peer_stats peer_stats(struct peer *p) {
    pthread_mutex_lock(&p->lock);
    struct peer_stats s = p->stats;
    pthread_mutex_unlock(&p->lock);
    return s;
}
