/* SPDX-License-Identifier: Apache-2.0 */
#include "libspur/link_tls.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/loop/loop.h"
#include "libspur/secure.h"

#define LAST_MS 2000 /* for what is unsent at the end */
#define LOOK_MS 2

struct link_tls {
    struct tls *tls;
    struct loop *loop;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the list and what is in it */
    struct link_shake *shakes;
    int64_t ends_ms; /* the thread's */
};

/* Both threads have it until it is done or dropped: who comes second frees it. */
struct link_shake {
    struct link_tls *t;
    struct link_shake *next;
    char *host;
    int fd;    /* what stands; then the outcome */
    int event; /* -1: dropped */
    bool is_done;
    struct err why;
};

static void shake_free(struct link_shake *k) {
    if (k->fd >= 0)
        close(k->fd);
    if (k->event >= 0)
        close(k->event);
    free(k->host);
    free(k);
}

/* Under the lock. */
static void unlink_shake(struct link_shake *k) {
    struct link_shake **at = &k->t->shakes;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
}

/* ---- its thread ---- */

static void on_wrapped(void *arg, int fd, const struct err *why) {
    struct link_shake *k = arg;
    struct link_tls *t = k->t;
    uint64_t one = 1;
    pthread_mutex_lock(&t->lock);
    k->fd = fd;
    k->is_done = true;
    if (fd < 0)
        k->why = *why;
    bool is_dropped = k->event < 0;
    if (is_dropped)
        unlink_shake(k);
    else
        (void)!write(k->event, &one, sizeof(one));
    pthread_mutex_unlock(&t->lock);
    if (is_dropped)
        shake_free(k);
}

static void on_begin(void *arg) {
    struct link_shake *k = arg;
    pthread_mutex_lock(&k->t->lock);
    int fd = k->fd;
    k->fd = -1;
    pthread_mutex_unlock(&k->t->lock);
    tls_connect(k->t->tls, k->t->loop, fd, k->host, on_wrapped, k);
}

static void *thread_main(void *arg) {
    struct link_tls *t = arg;
    pthread_setname_np(pthread_self(), "tls");
    loop_run(t->loop);
    return NULL;
}

static void on_look(void *arg) {
    struct link_tls *t = arg;
    int64_t now = loop_now_ms(t->loop);
    if (!t->ends_ms)
        t->ends_ms = now + LAST_MS;
    if (now >= t->ends_ms || !tls_has_unsent(t->tls))
        loop_stop(t->loop);
    else
        loop_timer_start(t->loop, LOOK_MS, on_look, t);
}

/* ---- the links' thread ---- */

int link_tls_new(struct link_tls **out, struct err *e) {
    struct tls *tls;
    sigset_t all, before;
    *out = NULL;
    int rc = secure_client(&tls, e);
    if (rc || !tls)
        return rc;
    struct link_tls *t = xnew(struct link_tls);
    t->tls = tls;
    t->loop = loop_new("tls");
    pthread_mutex_init(&t->lock, NULL);
    sigfillset(&all); /* signals are for who started us */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    must(pthread_create(&t->thread, NULL, thread_main, t) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    *out = t;
    return 0;
}

bool link_tls_may_be_plain(const struct link_tls *t) {
    return tls_mode(t->tls) == TLS_ACCEPT;
}

void link_tls_free(struct link_tls *t) {
    if (!t)
        return;
    loop_post(t->loop, on_look, t);
    pthread_join(t->thread, NULL);
    loop_free(t->loop);
    tls_free(t->tls);
    while (t->shakes) {
        struct link_shake *k = t->shakes;
        t->shakes = k->next;
        shake_free(k);
    }
    pthread_mutex_destroy(&t->lock);
    free(t);
}

struct link_shake *link_tls_begin(struct link_tls *t, int fd, const char *host, int *out_fd) {
    struct link_shake *k = xnew(struct link_shake);
    *k = (struct link_shake){.t = t, .host = xstrdup(host), .fd = fd, .event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    must(k->event >= 0);
    *out_fd = k->event;
    pthread_mutex_lock(&t->lock);
    k->next = t->shakes;
    t->shakes = k;
    pthread_mutex_unlock(&t->lock);
    loop_post(t->loop, on_begin, k);
    return k;
}

int link_tls_end(struct link_shake *k, struct err *why) {
    struct link_tls *t = k->t;
    pthread_mutex_lock(&t->lock);
    must(k->is_done);
    unlink_shake(k);
    pthread_mutex_unlock(&t->lock);
    int fd = k->fd;
    k->fd = -1;
    *why = k->why;
    shake_free(k);
    return fd;
}

void link_tls_drop(struct link_shake *k) {
    struct link_tls *t = k->t;
    pthread_mutex_lock(&t->lock);
    bool is_done = k->is_done;
    if (is_done)
        unlink_shake(k);
    else
        close(k->event);
    if (!is_done)
        k->event = -1;
    pthread_mutex_unlock(&t->lock);
    if (is_done)
        shake_free(k);
}
