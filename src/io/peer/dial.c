/* SPDX-License-Identifier: Apache-2.0
 *
 * Connecting to a member: its name is looked up now (a StatefulSet's pods come back with new addresses behind the same
 * names), and each address that was found is tried in turn.
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/loop/address.h"
#include "io/peer/inside.h"

static void dial_free(struct peer_dial *d) {
    vec_fini(&d->found);
    free(d->address);
    free(d->host);
    free(d);
}

/* The asker's thread. */
static void on_told(void *arg) {
    struct peer_dial *d = arg;
    if (!d->is_gone)
        d->fn(d->arg, d->fd, d->fd < 0 ? &d->why : NULL);
    else if (d->fd >= 0)
        close(d->fd);
    dial_free(d);
}

void dial_end(struct peer_dial *d, int fd) {
    struct peer *p = d->p;
    struct peer_dial **at = &p->dials;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    d->fd = fd;
    if (fd < 0 && (d->why.code == E_BAD_PROOF || d->why.code == E_CONFIG || d->why.code == E_NO_PROOF || d->why.code == E_TLS || d->why.code == E_VERSION))
        peer_notice(p, 1, "%s", d->why.text);
    pthread_mutex_lock(&p->lock);
    p->stats.failed += fd < 0;
    bool is_wanted = d->state == DIAL_WAITING;
    if (is_wanted) {
        d->state = DIAL_TOLD;
        loop_post(d->loop, on_told, d); /* under the lock: who cancels from now on meets it there */
    }
    pthread_mutex_unlock(&p->lock);
    p->busy--;
    if (!is_wanted) {
        if (fd >= 0)
            close(fd);
        dial_free(d);
    }
    peer_settle(p);
}

void dial_next(struct peer_dial *d) {
    pthread_mutex_lock(&d->p->lock);
    bool is_wanted = d->state == DIAL_WAITING && !d->p->is_stopping;
    pthread_mutex_unlock(&d->p->lock);
    /* One that answers, but not as a member, is not asked again under another of its addresses. */
    if (is_wanted && d->next_found < d->found.n && (!d->why.code || d->why.code == E_UNREACHABLE)) {
        link_connect(d, &d->found.p[d->next_found++]);
        return;
    }
    if (!d->why.code)
        err_set(&d->why, E_UNREACHABLE, "controller %u at %s: no address", d->id, d->address);
    dial_end(d, -1);
}

static void take_list(struct peer_dial *d, const struct addrinfo *list) {
    for (const struct addrinfo *i = list; i; i = i->ai_next) {
        struct sockaddr_storage sa = {0};
        memcpy(&sa, i->ai_addr, MIN((size_t)i->ai_addrlen, sizeof(sa)));
        vec_push(&d->found, sa);
    }
}

void dial_found(struct peer_dial *d, int code, const struct addrinfo *list) {
    if (code)
        err_set(&d->why, E_UNREACHABLE, "controller %u at %s: %s", d->id, d->address, gai_strerror(code));
    else
        take_list(d, list);
    dial_next(d);
}

void dial_begin(void *dial) {
    struct peer_dial *d = dial;
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    d->p->busy++;
    d->next = d->p->dials;
    d->p->dials = d;
    struct address to;
    if (d->p->is_stopping || address_parse(d->address, strlen(d->address), 0, false, &to, NULL)) {
        err_set(&d->why, d->p->is_stopping ? E_STOPPING : E_UNREACHABLE, "controller %u: '%s' is no host:port", d->id, d->address);
        dial_end(d, -1);
        return;
    }
    d->host = xstrdup(to.host);
    autofree char *port = xasprintf("%u", to.port);
    struct addrinfo *list = NULL;
    if (getaddrinfo(to.host, port, &hint, &list) == 0) { /* a number: nothing is asked */
        dial_found(d, 0, list);
        freeaddrinfo(list);
    } else {
        names_look_up(d, to.host, port);
    }
}

struct peer_dial *peer_dial(struct peer *p, enum peer_use use, uint32_t id, const char *address, struct loop *l,
                            peer_dialled_fn fn, void *arg) {
    struct peer_dial *d = xnew(struct peer_dial);
    d->p = p;
    d->use = use;
    d->id = id;
    d->address = xstrdup(address);
    d->loop = l;
    d->fn = fn;
    d->arg = arg;
    d->fd = -1;
    loop_post(p->loop, dial_begin, d);
    return d;
}

void peer_dial_cancel(struct peer_dial *d) {
    if (!d)
        return;
    struct peer *p = d->p;
    pthread_mutex_lock(&p->lock);
    if (d->state == DIAL_TOLD)
        d->is_gone = true; /* its word is on the way to this thread */
    else
        d->state = DIAL_CANCELLED;
    pthread_mutex_unlock(&p->lock);
}
