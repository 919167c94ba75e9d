/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/ctl_host.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/host/host_loop.h"
#include "io/journal/journal.h"
#include "spurctld/catchup/catchup.h"

struct ctl_host {
    struct host_loop *loop;
    struct catchup *catchup;
    struct journal *journal;
    struct ctl_links *links;
    void (*send)(void *impl, const char *address, const char *method, const char *metadata, struct buf message,
                 uint64_t timeout_ms, host_reply_fn fn, void *arg); /* the loop's */
};

/* ---- proposing ---- */

/* What was asked for the sake of a request (base/log.h) comes back as being for it. */
struct proposal {
    host_proposed_fn fn;
    void *arg;
    struct log_about about;
};

const char *ctl_host_about(const void *tag) {
    return tag ? ((const struct proposal *)tag)->about.id : NULL;
}

void ctl_host_proposed(void *tag, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct proposal *p = tag;
    struct log_about old = log_about_set(p->about.id);
    p->fn(p->arg, code, why, index, answer, n);
    log_about_set(old.id);
    free(p);
}

static void propose(void *impl, struct buf command, host_proposed_fn fn, void *arg) {
    struct ctl_host *h = host_loop_more(impl);
    struct err e;
    if (!h->journal) {
        buf_fini(&command);
        err_set(&e, E_STOPPING, NULL);
        fn(arg, E_STOPPING, &e, 0, NULL, 0);
        return;
    }
    struct proposal *p = xnew(struct proposal);
    *p = (struct proposal){fn, arg, log_about_now()};
    journal_propose(h->journal, command, p);
}

/* ---- bulk ---- */

struct storing {
    host_stored_fn fn;
    void *arg;
    struct log_about about;
};

static void on_stored(void *arg, int code, const struct err *why, const uint8_t hash[32]) {
    struct storing *s = arg;
    struct log_about old = log_about_set(s->about.id);
    s->fn(s->arg, code, why, hash);
    log_about_set(old.id);
    free(s);
}

static void store(void *impl, struct buf bytes, host_stored_fn fn, void *arg) {
    struct ctl_host *h = host_loop_more(impl);
    struct storing *s = xnew(struct storing);
    *s = (struct storing){fn, arg, log_about_now()};
    catchup_store(h->catchup, bytes, on_stored, s);
}

struct asking {
    host_reply_fn fn;
    void *arg;
    struct log_about about;
};

static struct asking *asking_new(host_reply_fn fn, void *arg) {
    struct asking *k = xnew(struct asking);
    *k = (struct asking){fn, arg, log_about_now()};
    return k;
}

static void on_answer(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct asking *k = arg;
    struct log_about old = log_about_set(k->about.id);
    k->fn(k->arg, code, why, reply, n);
    log_about_set(old.id);
    free(k);
}

static void load(void *impl, const uint8_t hash[32], host_reply_fn fn, void *arg) {
    struct ctl_host *h = host_loop_more(impl);
    catchup_load(h->catchup, hash, on_answer, asking_new(fn, arg));
}

static void send(void *impl, const char *address, const char *method, const char *metadata, struct buf message,
                 uint64_t timeout_ms, host_reply_fn fn, void *arg) {
    struct ctl_host *h = host_loop_more(impl);
    h->send(impl, address, method, metadata, message, timeout_ms, on_answer, asking_new(fn, arg));
}

/* ---- life ---- */

struct ctl_host *ctl_host_new(struct loop *l, struct pool *p, const struct clock *c, struct tls *tls) {
    struct ctl_host *h = xnew(struct ctl_host);
    h->loop = host_loop_new(l, p, c, tls, h);
    struct host *host = host_loop_host(h->loop);
    host->propose = propose;
    host->store = store;
    host->load = load;
    h->send = host->send;
    host->send = send;
    return h;
}

void ctl_host_set_journal(struct ctl_host *h, struct journal *j) {
    h->journal = j;
}

void ctl_host_set_catchup(struct ctl_host *h, struct catchup *c) {
    h->catchup = c;
}

void ctl_host_set_links(struct ctl_host *h, struct ctl_links *k) {
    h->links = k;
}

struct ctl_links *ctl_host_links(void *impl) {
    return ((struct ctl_host *)host_loop_more(impl))->links;
}

struct host *ctl_host_host(struct ctl_host *h) {
    return host_loop_host(h->loop);
}

void ctl_host_free(struct ctl_host *h) {
    if (!h)
        return;
    host_loop_free(h->loop);
    free(h);
}
