/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of the history for other members: of one moment between two entries, held ready for a while. The file has no name
 * any more once it is on the shelf: it goes with its last reader.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/sql/sql.h"
#include "spurctld/acct/acct.h"
#include "spurctld/catchup/inside.h"
#include "spurctld/catchup/pieces.h"
#include "spurctld/catchup/shelf.h"

#define LONGEST_SLEEP_NS 20000000l

struct copies {
    struct catchup *c;
    struct file_info *last; /* packed */
    bool is_out;
    _Atomic bool stopping;
};

struct copying {
    struct copies *h;
    uint64_t index;
    char *path;
    const char *from;
    struct timespec begun;
    struct pieces pieces;
    int code;
    struct err why;
};

struct copies *copies_new(struct catchup *c) {
    struct copies *h = xnew(struct copies);
    h->c = c;
    return h;
}

void copies_free(struct copies *h) {
    rec_free(h->last);
    free(h);
}

static uint64_t ns_since(const struct timespec *t) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)(now.tv_sec - t->tv_sec) * 1000000000ull + (uint64_t)now.tv_nsec - (uint64_t)t->tv_nsec;
}

static int on_progress(void *arg, uint64_t bytes, struct err *e) {
    struct copying *k = arg;
    uint64_t rate = k->h->c->conf.rate, due_ns = rate ? (uint64_t)((double)bytes * 1e9 / (double)rate) : 0;
    while (due_ns > ns_since(&k->begun) && !k->h->stopping) {
        struct timespec ts = {0, MIN((long)(due_ns - ns_since(&k->begun)), LONGEST_SLEEP_NS)};
        if (ts.tv_nsec > 0)
            nanosleep(&ts, NULL);
    }
    return k->h->stopping ? err_set(e, E_STOPPING, NULL) : 0;
}

static void work(void *arg) {
    struct copying *k = arg;
    clock_gettime(CLOCK_MONOTONIC, &k->begun);
    k->code = sql_copy(k->from, k->path, on_progress, k, &k->why);
    if (!k->code)
        k->code = pieces_read(&k->pieces, k->path, &k->why);
}

static void done(void *arg) {
    struct copying *k = arg;
    struct copies *h = k->h;
    struct catchup *c = h->c;
    char name[64];
    h->is_out = false;
    acct_release(c->room->acct);
    snprintf(name, sizeof(name), "history-%020llu-%016llx", (unsigned long long)k->index,
             (unsigned long long)c->room->host->random(c->room->host->impl));
    if (!k->code)
        k->code = shelf_put(c->shelf, name, k->path, &k->why);
    unlink(k->path);
    if (k->code) {
        log_error("the history can't be copied for another member: %s", k->why.text);
    } else {
        struct file_info info = pieces_info(&k->pieces, name);
        info.index = k->index;
        shelf_let_go(c->shelf, name);
        rec_free(h->last);
        h->last = rec_pack(file_info_rec(), &info);
    }
    pieces_fini(&k->pieces);
    free(k->path);
    free(k);
}

static void on_held(void *arg) {
    struct copying *k = arg;
    struct host *h = k->h->c->room->host;
    h->work(h->impl, work, done, k);
}

static int begin(struct copies *h, struct err *e) {
    struct catchup *c = h->c;
    struct copying *k = xnew(struct copying);
    k->h = h;
    k->index = state_index(c->room->state);
    k->path = xasprintf("%s/snapshots/history-out.db", c->state_dir);
    k->from = acct_path(c->room->acct);
    int rc = acct_hold(c->room->acct, on_held, k, e);
    if (rc) {
        free(k->path);
        free(k);
        return rc;
    }
    h->is_out = true;
    return 0;
}

void catchup_history(struct catchup *c, const struct history_copy_request *rq, host_reply_fn fn, void *arg) {
    struct copies *h = c->copies;
    auto_buf bytes = {0};
    struct err e;
    int rc = 0;
    if (h->last && h->last->index >= rq->at_least && shelf_has(c->shelf, h->last->name)) {
        rec_encode(file_info_rec(), h->last, &bytes);
        fn(arg, 0, NULL, bytes.p, bytes.n);
        return;
    }
    if (c->is_stopping)
        rc = err_set(&e, E_STOPPING, NULL);
    else if (catchup_is_open(c) || state_index(c->room->state) < rq->at_least)
        rc = err_set(&e, E_STALE, "this member is behind itself");
    else if (h->is_out || (rc = begin(h, &e)) == 0)
        rc = err_set(&e, E_BUSY, "the copy is being made");
    fn(arg, rc, &e, NULL, 0);
}

void copies_stop(struct copies *h) {
    h->stopping = true;
}

bool copies_are_out(const struct copies *h) {
    return h->is_out;
}
