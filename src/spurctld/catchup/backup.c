/* SPDX-License-Identifier: Apache-2.0
 *
 * A backup of one log index, made while everything goes on:
 *
 *     hold the history and pin a view    one moment of the state loop
 *     the view, then a copy of the history, into the file    on a worker; from here on the history goes on
 *     the scripts and environments that the view names       one after the other, from the others where they are not here
 *
 * For a client the file has no name on disk once it is whole: it goes with its last reader.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/sql/sql.h"
#include "spurctld/acct/acct.h"
#include "spurctld/acct/schema.h"
#include "spurctld/catchup/archive.h"
#include "spurctld/catchup/inside.h"
#include "spurctld/catchup/named.h"
#include "spurctld/catchup/shelf.h"

#define HOLD_AGAIN_MS 100u
#define HOLD_TRIES 600u
#define BATCH_BYTES (1u << 20)

struct backups {
    struct catchup *c;
    struct backup *now;  /* under way */
    char *name;          /* of the one that clients ask for */
    uint64_t size;
    int code;            /* what came of it; E_BUSY: it is being made */
    struct err why;
    _Atomic bool is_stopping;
};

struct bulk_copy {
    struct blob_hash hash;
    uint8_t *p;
    size_t n;
};

struct backup {
    struct backups *all;
    char *path, *copy; /* of the history, for a moment */
    struct archive archive;
    struct view view;
    bool has_view;
    unsigned tries;
    struct host_timer *timer;
    struct named named;
    size_t at;
    VEC(struct bulk_copy) batch;
    size_t batch_bytes;
    int code;
    struct err why;
    catchup_backup_fn done;
    void *arg;
};

struct backups *backups_new(struct catchup *c) {
    struct backups *b = xnew(struct backups);
    b->c = c;
    return b;
}

void backups_free(struct backups *b) {
    free(b->name);
    free(b);
}

bool catchup_is_backing_up(const struct catchup *c) {
    return c->backups->now != NULL;
}

/* ---- the end ---- */

static void empty_batch(struct backup *b) {
    for (size_t i = 0; i < b->batch.n; i++)
        free(b->batch.p[i].p);
    b->batch.n = 0;
    b->batch_bytes = 0;
}

static void end(void *arg) {
    struct backup *b = arg;
    if (b->has_view)
        state_view_end(&b->view);
    if (b->archive.fd >= 0)
        close(b->archive.fd);
    if (b->code)
        unlink(b->path);
    b->all->now = NULL;
    b->done(b->arg, b->code, b->code ? &b->why : NULL, &b->archive.end, b->archive.size);
    archive_fini(&b->archive);
    empty_batch(b);
    vec_fini(&b->batch);
    named_fini(&b->named);
    free(b->path);
    free(b->copy);
    free(b);
}

static void finish(void *arg) {
    struct backup *b = arg;
    b->code = archive_end(&b->archive, &b->why);
}

/* ---- bulk ---- */

static void next_blob(struct backup *b);

static void write_batch(void *arg) {
    struct backup *b = arg;
    for (size_t i = 0; i < b->batch.n && !b->code; i++) {
        const struct bulk_copy *k = &b->batch.p[i];
        b->code = archive_add_blob(&b->archive, k->hash.b, k->p, k->n, &b->why);
    }
}

static void batch_written(void *arg) {
    struct backup *b = arg;
    struct host *h = b->all->c->room->host;
    empty_batch(b);
    if (b->all->is_stopping && !b->code)
        b->code = err_set(&b->why, E_STOPPING, NULL);
    if (b->code)
        end(b);
    else if (b->at < b->named.v.n)
        next_blob(b);
    else
        h->work(h->impl, finish, end, b);
}

static void on_blob(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct backup *b = arg;
    struct host *h = b->all->c->room->host;
    struct bulk_copy k = {b->named.v.p[b->at++], NULL, n};
    if (code == E_NOT_FOUND || code == E_CORRUPT) {
        b->archive.end.missing++;
    } else if (code) {
        b->code = code;
        b->why = *why;
    } else {
        k.p = xmalloc(n + 1);
        memcpy(k.p, p, n);
        vec_push(&b->batch, k);
        b->batch_bytes += n + 64;
    }
    if (!b->code && b->batch_bytes < BATCH_BYTES && b->at < b->named.v.n)
        next_blob(b);
    else
        h->work(h->impl, write_batch, batch_written, b);
}

static void next_blob(struct backup *b) {
    catchup_load(b->all->c, b->named.v.p[b->at].b, on_blob, b);
}

/* ---- state and history ---- */

static int write_state(void *arg, const void *p, size_t n, struct err *e) {
    return archive_add(&((struct backup *)arg)->archive, BACKUP_STATE, p, n, e);
}

static int keep_rate(void *arg, uint64_t bytes, struct err *e) {
    const struct backup *b = arg;
    archive_pace(&b->archive, bytes);
    return b->all->is_stopping ? err_set(e, E_STOPPING, NULL) : 0;
}

static void copy_history(void *arg) {
    struct backup *b = arg;
    clock_gettime(CLOCK_MONOTONIC, &b->archive.begun);
    b->code = sql_copy(acct_path(b->all->c->room->acct), b->copy, keep_rate, b, &b->why);
}

static void write_both(void *arg) {
    struct backup *b = arg;
    struct room *r = b->all->c->room;
    const char *cluster = b->view.cluster->conf ? b->view.cluster->conf->cluster_name : NULL;
    struct backup_head head = {.program = SPUR_VERSION, .cluster_name = cluster, .made_unix = time(NULL), .index = b->view.index,
                               .digest = b->view.digest, .state_version = STATE_SNAPSHOT_VERSION, .entry_version = COMMAND_VERSION,
                               .history_version = SCHEMA_VERSION, .member_id = r->member_id};
    b->code = archive_begin(&b->archive, &head, &b->why);
    if (!b->code)
        b->code = state_snapshot_write(&b->view, write_state, b, &b->why);
    if (!b->code)
        named_collect(&b->named, &b->view);
    if (!b->code)
        b->code = archive_add_file(&b->archive, BACKUP_HISTORY, b->copy, &b->why);
    unlink(b->copy);
}

static void on_history_copied(void *arg) {
    struct backup *b = arg;
    struct host *h = b->all->c->room->host;
    acct_release(b->all->c->room->acct);
    if (b->code)
        end(b);
    else
        h->work(h->impl, write_both, batch_written, b);
}

static void on_held(void *arg) {
    struct backup *b = arg;
    struct host *h = b->all->c->room->host;
    h->work(h->impl, copy_history, on_history_copied, b);
}

static void hold(void *arg) {
    struct backup *b = arg;
    struct room *r = b->all->c->room;
    b->timer = NULL;
    int rc = acct_hold(r->acct, on_held, b, &b->why);
    if (!rc) {
        state_view(r->state, &b->view);
        b->has_view = true;
    } else if (rc == E_BUSY && ++b->tries < HOLD_TRIES && !b->all->is_stopping) {
        b->timer = r->host->timer_start(r->host->impl, HOLD_AGAIN_MS, hold, b); /* another member copies it just now */
    } else {
        b->code = rc;
        end(b);
    }
}

void catchup_backup(struct catchup *c, const char *path, catchup_backup_fn done, void *arg) {
    struct backups *all = c->backups;
    struct err e;
    struct backup_end none = {0};
    int fd = all->now ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        int rc = all->now ? err_set(&e, E_BUSY, "a backup is being made already") : err_sys(&e, "make %s", path);
        done(arg, rc, &e, &none, 0);
        return;
    }
    struct backup *b = xnew(struct backup);
    *b = (struct backup){.all = all, .path = xstrdup(path), .done = done, .arg = arg};
    b->copy = xasprintf("%s/snapshots/backup-history.db", c->state_dir);
    b->archive = (struct archive){.fd = fd, .rate = c->conf.write_rate, .is_stopping = &all->is_stopping};
    all->now = b;
    hold(b);
}

void backups_stop(struct backups *b) {
    struct host *h = b->c->room->host;
    b->is_stopping = true;
    if (!b->now || !b->now->timer)
        return;
    h->timer_stop(h->impl, b->now->timer);
    b->now->timer = NULL;
    b->now->code = err_set(&b->now->why, E_STOPPING, NULL);
    end(b->now);
}

bool backups_are_out(const struct backups *b) {
    return b->now != NULL;
}

/* ---- for clients ---- */

static char *out_path(const struct catchup *c) {
    return xasprintf("%s/snapshots/backup-out", c->state_dir);
}

static void on_made(void *arg, int code, const struct err *why, const struct backup_end *what, uint64_t size) {
    struct backups *b = arg;
    autofree char *path = out_path(b->c);
    b->size = size;
    b->code = code;
    if (code)
        b->why = *why;
    else
        b->code = shelf_put(b->c->shelf, b->name, path, &b->why);
    unlink(path);
    if (b->code) {
        log_error("the backup was not made: %s", b->why.text);
        return;
    }
    shelf_let_go(b->c->shelf, b->name);
    log_info("a backup of %llu bytes was made", (unsigned long long)size);
    if (what->missing)
        log_warn("the backup lacks %llu scripts or environments that no controller has", (unsigned long long)what->missing);
}

static void begin_named(struct backups *b) {
    struct host *h = b->c->room->host;
    autofree char *path = out_path(b->c);
    free(b->name);
    b->name = xasprintf("backup-%016llx", (unsigned long long)h->random(h->impl));
    b->code = E_BUSY;
    b->size = 0;
    catchup_backup(b->c, path, on_made, b);
}

void catchup_backup_ask(struct catchup *c, const struct backup_request *rq, host_reply_fn fn, void *arg) {
    struct backups *b = c->backups;
    bool is_named = rq->name && *rq->name;
    auto_buf bytes = {0};
    struct err e = {0};
    int rc = 0;
    if (c->is_stopping)
        rc = err_set(&e, E_STOPPING, NULL);
    else if (!is_named && (b->now || catchup_is_open(c)))
        rc = err_set(&e, E_EXISTS, b->now ? "a backup is being made already" : "this controller is catching up itself");
    else if (!is_named)
        begin_named(b);
    else if (!b->name || strcmp(b->name, rq->name) != 0 || (!b->code && !shelf_has(c->shelf, b->name)))
        rc = err_set(&e, E_NOT_FOUND, "this controller has no such backup");
    if (!rc && b->code && b->code != E_BUSY) {
        rc = b->code;
        e = b->why;
    }
    struct backup_reply reply = {b->name, b->now ? b->now->archive.size : b->size, b->code == 0};
    if (!rc)
        rec_encode(backup_reply_rec(), &reply, &bytes);
    fn(arg, rc, &e, bytes.p, bytes.n);
}

void catchup_backup_piece(struct catchup *c, const struct piece_request *rq, host_reply_fn fn, void *arg) {
    struct err e;
    if (!c->backups->name || !rq->name || strcmp(rq->name, c->backups->name) != 0)
        fn(arg, err_set(&e, E_NOT_FOUND, "this controller has no such backup"), &e, NULL, 0);
    else
        shelf_read(c->shelf, rq, fn, arg);
}
