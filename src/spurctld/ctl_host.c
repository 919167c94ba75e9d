/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/ctl_host.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/blob/blob.h"
#include "io/host/host_loop.h"
#include "io/journal/journal.h"

struct ctl_host {
    struct host_loop *loop;
    struct blob_store *blobs;
    struct journal *journal;
};

/* ---- proposing ---- */

struct proposal {
    host_proposed_fn fn;
    void *arg;
};

void ctl_host_proposed(void *tag, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct proposal *p = tag;
    p->fn(p->arg, code, why, index, answer, n);
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
    *p = (struct proposal){fn, arg};
    journal_propose(h->journal, command, p);
}

/* ---- bulk ---- */

struct storing {
    host_stored_fn fn;
    void *arg;
};

static void on_stored(void *arg, int code, const struct err *why, const struct blob_hash *hash) {
    struct storing *s = arg;
    s->fn(s->arg, code, why, hash ? hash->b : NULL);
    free(s);
}

static void store(void *impl, struct buf bytes, host_stored_fn fn, void *arg) {
    struct ctl_host *h = host_loop_more(impl);
    struct storing *s = xnew(struct storing);
    *s = (struct storing){fn, arg};
    blob_put(h->blobs, bytes, on_stored, s);
}

static void load(void *impl, const uint8_t hash[32], host_reply_fn fn, void *arg) {
    struct ctl_host *h = host_loop_more(impl);
    struct blob_hash wanted;
    memcpy(wanted.b, hash, sizeof(wanted.b));
    blob_get(h->blobs, &wanted, fn, arg);
}

/* ---- life ---- */

struct ctl_host *ctl_host_new(struct loop *l, struct pool *p, const struct clock *c, struct blob_store *blobs) {
    struct ctl_host *h = xnew(struct ctl_host);
    h->loop = host_loop_new(l, p, c, h);
    h->blobs = blobs;
    struct host *host = host_loop_host(h->loop);
    host->propose = propose;
    host->store = store;
    host->load = load;
    return h;
}

void ctl_host_set_journal(struct ctl_host *h, struct journal *j) {
    h->journal = j;
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
