/* SPDX-License-Identifier: Apache-2.0 */
#include "io/rpc/dial.h"

#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/tls/tls.h"

struct attempt {
    union {
        uv_connect_t connect;
        uv_getaddrinfo_t lookup;
    };
    struct dial *d; /* NULL: nobody waits for it any more */
    struct attempt *next;
    struct sock *sock;     /* that connects */
    struct tls_wrap *wrap; /* that shakes hands; neither: a look-up */
    struct sockaddr_storage sa;
    size_t which;
    bool is_plain;
};

/* Where to connect to next: what look-ups found comes before further addresses of the list. */
struct found {
    struct sockaddr_storage sa;
    size_t which;
};

struct dial {
    struct loop *l;
    const struct address *addresses;
    struct tls *tls;
    size_t n, first, taken; /* `taken` of the list in this pass */
    bool is_second_pass;
    VEC(struct found) found;
    struct attempt *live;
    struct loop_timer *stagger, *whole;
    dial_fn fn;
    void *arg;
    struct err last;
};

static void step(struct dial *d);

static void attempts_forget(struct dial *d) {
    for (struct attempt *a = d->live, *next; a; a = next) {
        next = a->next;
        a->d = NULL;
        if (a->wrap) {
            tls_cancel(a->wrap);
            free(a);
        } else if (a->sock) {
            sock_close(a->sock); /* its callback comes with ECANCELED */
        } else {
            uv_cancel((uv_req_t *)&a->lookup);
        }
    }
    d->live = NULL;
}

void dial_cancel(struct dial *d) {
    if (!d)
        return;
    attempts_forget(d);
    loop_timer_stop(d->stagger);
    loop_timer_stop(d->whole);
    vec_fini(&d->found);
    free(d);
}

static void finish(struct dial *d, struct sock *sock, size_t which, bool is_tls, const struct err *why) {
    dial_fn fn = d->fn;
    void *arg = d->arg;
    struct err copy;
    if (why)
        copy = *why;
    dial_cancel(d);
    fn(arg, sock, which, is_tls, why ? &copy : NULL);
}

static void note_failure(struct dial *d, size_t which, const char *why) {
    err_set(&d->last, E_UNREACHABLE, "Unable to contact %s: %s", d->addresses[which].text, why);
}

static struct attempt *attempt_new(struct dial *d, size_t which) {
    struct attempt *a = xnew(struct attempt);
    a->d = d;
    a->which = which;
    a->next = d->live;
    d->live = a;
    return a;
}

static void attempt_unlink(struct attempt *a) {
    struct attempt **at = &a->d->live;
    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
}

/* ---- TLS ---- */

static void connect_to(struct dial *d, const struct sockaddr *sa, size_t which, bool is_plain);

static void on_wrapped(void *arg, int fd, const struct err *why) {
    struct attempt *a = arg;
    struct dial *d = a->d;
    attempt_unlink(a);
    if (fd >= 0) {
        struct sock *sock = sock_new(d->l, true);
        must(uv_pipe_open(&sock->pipe, fd) == 0);
        finish(d, sock, a->which, true, NULL);
    } else if ((why->code == E_TLS || why->code == E_UNREACHABLE) && tls_mode(d->tls) == TLS_ACCEPT) { /* or that breaks too */
        connect_to(d, (struct sockaddr *)&a->sa, a->which, true);
        if (!d->live)
            step(d);
    } else {
        note_failure(d, a->which, why->text);
        if (why->code == E_NO_PROOF || why->code == E_TLS)
            d->last.code = why->code; /* waiting doesn't help */
        step(d);
    }
    free(a);
}

/* The callback of its connecting is on the stack. */
static void shake_hands(struct attempt *a) {
    struct dial *d = a->d;
    uv_tcp_nodelay(&a->sock->tcp, 1);
    int fd = fcntl(sock_fd(a->sock), F_DUPFD_CLOEXEC, 0);
    sock_close(a->sock);
    a->sock = NULL;
    if (fd >= 0) {
        a->wrap = tls_connect(d->tls, d->l, fd, d->addresses[a->which].host, on_wrapped, a);
        return;
    }
    note_failure(d, a->which, "no descriptor is free");
    attempt_unlink(a);
    free(a);
    step(d);
}

/* ---- connecting ---- */

static void on_connected(uv_connect_t *req, int status) {
    struct attempt *a = (struct attempt *)req;
    struct dial *d = a->d;
    if (d && status == 0 && !a->is_plain) {
        shake_hands(a);
        return;
    }
    if (d) {
        attempt_unlink(a);
        if (status == 0) {
            finish(d, a->sock, a->which, false, NULL);
        } else {
            sock_close(a->sock);
            note_failure(d, a->which, uv_strerror(status));
            step(d);
        }
    }
    free(a);
}

static void connect_to(struct dial *d, const struct sockaddr *sa, size_t which, bool is_plain) {
    struct attempt *a = attempt_new(d, which);
    bool is_unix = sa->sa_family == AF_UNIX;
    a->is_plain = is_unix || is_plain || tls_mode(d->tls) == TLS_OFF;
    if (!is_unix)
        memcpy(&a->sa, sa, sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    a->sock = sock_new(d->l, is_unix);
    if (is_unix) {
        uv_pipe_connect(&a->connect, &a->sock->pipe, ((const struct sockaddr_un *)sa)->sun_path, on_connected);
        return;
    }
    int rc = uv_tcp_connect(&a->connect, &a->sock->tcp, sa, on_connected);
    if (rc == 0)
        return;
    note_failure(d, which, uv_strerror(rc));
    attempt_unlink(a);
    sock_close(a->sock);
    free(a);
}

static void on_looked_up(uv_getaddrinfo_t *req, int status, struct addrinfo *list) {
    struct attempt *a = (struct attempt *)req;
    struct dial *d = a->d;
    if (d) {
        attempt_unlink(a);
        for (struct addrinfo *i = list; i; i = i->ai_next) {
            struct found f = {.which = a->which};
            memcpy(&f.sa, i->ai_addr, MIN(i->ai_addrlen, sizeof(f.sa)));
            vec_push(&d->found, f);
        }
        if (status < 0)
            note_failure(d, a->which, uv_strerror(status));
        step(d);
    }
    uv_freeaddrinfo(list);
    free(a);
}

static void look_up(struct dial *d, size_t which) {
    const struct address *to = &d->addresses[which];
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM};
    char port[8];
    snprintf(port, sizeof(port), "%u", to->port);
    struct attempt *a = attempt_new(d, which);
    int rc = uv_getaddrinfo(loop_uv(d->l), &a->lookup, on_looked_up, to->host, port, &hint);
    if (rc == 0)
        return;
    note_failure(d, which, uv_strerror(rc));
    attempt_unlink(a);
    free(a);
}

/* What RFC 6761 says "localhost" is. */
static void found_localhost(struct dial *d, size_t which) {
    struct found f = {.which = which};
    struct sockaddr_in *in = (struct sockaddr_in *)&f.sa;
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address_set_port(&f.sa, d->addresses[which].port);
    vec_push(&d->found, f);
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&f.sa;
    f.sa = (struct sockaddr_storage){.ss_family = AF_INET6};
    in6->sin6_addr = in6addr_loopback;
    address_set_port(&f.sa, d->addresses[which].port);
    vec_push(&d->found, f);
}

static void take_next(struct dial *d) {
    size_t which = (d->first + d->taken++) % d->n;
    const struct address *a = &d->addresses[which];
    if (a->is_numeric)
        connect_to(d, (const struct sockaddr *)&a->sa, which, false);
    else if (strcasecmp(a->host, "localhost") == 0)
        found_localhost(d, which);
    else
        look_up(d, which);
}

static void on_stagger(void *arg) {
    struct dial *d = arg;
    d->stagger = NULL;
    step(d);
}

static void wait_then_step(struct dial *d, uint64_t ms) {
    loop_timer_stop(d->stagger);
    d->stagger = loop_timer_start(d->l, ms, on_stagger, d);
}

/* Begins one more attempt, or finds that there is none left to begin. */
static void step(struct dial *d) {
    struct attempt *before = d->live;
    while (d->live == before) {
        if (d->found.n) {
            struct found f = d->found.p[0];
            vec_remove(&d->found, 0);
            connect_to(d, (struct sockaddr *)&f.sa, f.which, false);
        } else if (d->taken < d->n) {
            take_next(d);
        } else {
            break;
        }
    }
    if (d->live != before) {
        wait_then_step(d, DIAL_STAGGER_MS);
    } else if (!d->live && !d->is_second_pass) {
        d->is_second_pass = true;
        d->taken = 0;
        wait_then_step(d, DIAL_AGAIN_MS);
    } else if (!d->live) {
        finish(d, NULL, (d->first + d->n - 1) % d->n, false, &d->last);
    }
}

static void on_whole(void *arg) {
    struct dial *d = arg;
    d->whole = NULL;
    size_t which = d->live ? d->live->which : d->first;
    note_failure(d, which, "no answer");
    finish(d, NULL, which, false, &d->last);
}

struct dial *dial_start(struct loop *l, const struct address *addresses, size_t n, size_t first, struct tls *tls,
                        uint64_t timeout_ms, dial_fn fn, void *arg) {
    struct dial *d = xnew(struct dial);
    d->l = l;
    d->addresses = addresses;
    d->n = n;
    d->first = first;
    d->tls = tls;
    d->fn = fn;
    d->arg = arg;
    d->whole = loop_timer_start(l, timeout_ms, on_whole, d);
    if (addresses[first].is_numeric)
        take_next(d);
    wait_then_step(d, d->live ? DIAL_STAGGER_MS : 0);
    return d;
}
