/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking names up. A name server that is cut off holds a look-up for half a minute, so each has a thread of its own: the names of
 * the other members do not wait for it, and neither does a stop. Of one name there is one look-up at a time, which all who ask
 * meanwhile share: the threads are never more than the members.
 */
#include <netdb.h>
#include <signal.h>
#include <string.h>

#include "io/peer/inside.h"

struct names {
    pthread_mutex_t lock;
    atomic_uint refs; /* the peer, and each thread */
    struct peer *p; /* NULL: it has stopped, nobody waits any more */
};

struct lookup {
    struct lookup *next; /* of the peer's, unless it has stopped before the end */
    struct names *names;
    struct peer *p; /* the peer's thread's */
    char *host, *port;
    struct addrinfo *list;
    int code;
    bool is_over; /* and its word is on the way to the peer's thread; under the lock */
};

static void names_unref(struct names *n) {
    if (atomic_fetch_sub(&n->refs, 1) > 1)
        return;
    pthread_mutex_destroy(&n->lock);
    free(n);
}

static void lookup_free(struct lookup *l) {
    if (l->list)
        freeaddrinfo(l->list);
    free(l->host);
    free(l->port);
    free(l);
}

struct names *names_new(struct peer *p) {
    struct names *n = xnew(struct names);
    n->refs = 1;
    n->p = p;
    pthread_mutex_init(&n->lock, NULL);
    return n;
}

static struct peer_dial *next_waiting(struct peer *p, const struct lookup *l) {
    struct peer_dial *d = p->dials;
    while (d && d->lookup != l)
        d = d->next;
    return d;
}

static void on_looked_up(void *arg) {
    struct lookup *l = arg, **at = &l->p->lookups;
    struct peer *p = l->p;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    for (struct peer_dial *d; (d = next_waiting(p, l));) {
        d->lookup = NULL;
        dial_found(d, l->code, l->list);
    }
    lookup_free(l);
}

static void *look_up(void *arg) {
    struct lookup *l = arg;
    struct names *n = l->names;
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    pthread_setname_np(pthread_self(), "name");
    l->code = getaddrinfo(l->host, l->port, &hint, &l->list);
    pthread_mutex_lock(&n->lock);
    bool is_wanted = n->p != NULL;
    l->is_over = true;
    if (is_wanted)
        loop_post(n->p->loop, on_looked_up, l);
    pthread_mutex_unlock(&n->lock);
    if (!is_wanted)
        lookup_free(l);
    names_unref(n);
    return NULL;
}

/* Detached; signals are for the loops. */
static int thread_begin(struct lookup *l) {
    pthread_t thread;
    pthread_attr_t detached;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, &detached, look_up, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    return rc;
}

void names_look_up(struct peer_dial *d, const char *host, const char *port) {
    struct peer *p = d->p;
    struct lookup *l = p->lookups;
    while (l && (strcmp(l->host, host) != 0 || strcmp(l->port, port) != 0))
        l = l->next;
    if (l) {
        d->lookup = l;
        return;
    }
    l = xnew(struct lookup);
    l->names = p->names;
    l->p = p;
    l->host = xstrdup(host);
    l->port = xstrdup(port);
    atomic_fetch_add(&p->names->refs, 1);
    if (thread_begin(l)) {
        names_unref(p->names);
        lookup_free(l);
        dial_found(d, EAI_MEMORY, NULL);
        return;
    }
    l->next = p->lookups;
    p->lookups = l;
    d->lookup = l;
}

void names_stop(struct peer *p) {
    struct lookup **at = &p->lookups;
    pthread_mutex_lock(&p->names->lock);
    p->names->p = NULL;
    while (*at)
        if ((*at)->is_over)
            at = &(*at)->next;
        else
            *at = (*at)->next; /* its thread's from now on */
    pthread_mutex_unlock(&p->names->lock);
}

void names_free(struct peer *p) {
    if (!p->names)
        return;
    for (struct lookup *l = p->lookups, *next; l; l = next) { /* their words did not arrive */
        next = l->next;
        lookup_free(l);
    }
    names_unref(p->names);
}
