/* SPDX-License-Identifier: Apache-2.0
 *
 * A member that lacks too much for the log gets what another one has.
 *
 *     who has a snapshot with everything up to N?   Member.Manifest, the leader first
 *     its file, by pieces                           fetch.c; on disk under its name, then its manifest beside it
 *     the state, read on a worker
 *     a copy of the history up to there             Member.History, fetch.c, then in the place of ours
 *
 * Any failure leads back to the question: another member may have become the leader, the disk may have room again, the
 * snapshot may have made place for a newer one. What is on disk already is not fetched again. A mark is on the disk
 * meanwhile, so that a start in the middle goes on with it instead of trusting what it finds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "spurctld/acct/acct.h"
#include "spurctld/catchup/fetch.h"
#include "spurctld/catchup/inside.h"
#include "spurctld/catchup/pieces.h"
#include "spurctld/snapshot.h"

#define AGAIN_MS 300u
#define FAILED_MS 1000u
#define ASK_MS 3000u
#define COPY_POLL_MS 100u
#define COMPLAIN_EVERY 30u /* tries */
#define TAKE_AFTER 3u      /* rounds in which nobody had a snapshot, then one is asked for */

struct install {
    struct catchup *c;
    char *mark;
    bool is_open; /* begun, in this life or an earlier one */
    bool is_marked;
    uint64_t at_least;
    catchup_done_fn done;
    void *arg;

    struct sources from;
    uint32_t source; /* whose snapshot it is */
    unsigned rounds, failures;
    struct host_timer *timer;
    void (*next)(struct install *in); /* what the timer does */
    struct fetch *fetch;
    bool is_out;     /* a worker, a call or the history's room has it */

    struct arena arena; /* of the manifest */
    struct snapshot_manifest manifest;
    struct buf manifest_bytes;
    char *path;
    struct state *fresh;
    char *history;
    int64_t begun_ms;
    int code;
    struct err why;
};

static void ask_manifest(struct install *in);
static void ask_history(struct install *in);

/* ---- the mark ---- */

static bool mark_is_there(const struct install *in) {
    return access(in->mark, F_OK) == 0;
}

static int mark_set(struct install *in, struct err *e) {
    autoclose int fd = open(in->mark, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    autoclose int dir = open(in->c->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || dprintf(fd, "%llu\n", (unsigned long long)in->at_least) < 0 || fsync(fd) < 0 || dir < 0 ||
        fsync(dir) < 0)
        return err_sys(e, "make %s", in->mark);
    return 0;
}

struct install *install_new(struct catchup *c) {
    struct install *in = xnew(struct install);
    in->c = c;
    in->mark = xasprintf("%s/catching-up", c->state_dir);
    in->history = xasprintf("%s/snapshots/history-in.db", c->state_dir);
    in->is_open = in->is_marked = mark_is_there(in);
    return in;
}

bool catchup_is_open(const struct catchup *c) {
    return c->install->is_open;
}

bool install_is_out(const struct install *in) {
    return in->is_out;
}

void install_stop(struct install *in) {
    struct host *h = in->c->room->host;
    h->timer_stop(h->impl, in->timer);
    in->timer = NULL;
    if (in->fetch)
        fetch_stop(in->fetch);
}

void install_free(struct install *in) {
    state_free(in->fresh);
    arena_fini(&in->arena);
    buf_fini(&in->manifest_bytes);
    free(in->path);
    free(in->mark);
    free(in->history);
    free(in);
}

/* ---- from step to step ---- */

static void on_timer(void *arg) {
    struct install *in = arg;
    in->timer = NULL;
    in->next(in);
}

static void later(struct install *in, uint64_t ms, void (*next)(struct install *in)) {
    struct host *h = in->c->room->host;
    if (in->c->is_stopping)
        return;
    in->next = next;
    h->timer_stop(h->impl, in->timer);
    in->timer = h->timer_start(h->impl, ms, on_timer, in);
}

static void failed(struct install *in, const char *what, int code, const struct err *why,
                   void (*next)(struct install *in)) {
    if (in->c->is_stopping)
        return;
    if (in->failures++ % COMPLAIN_EVERY == 0)
        log_error("catching up: %s: %s; will be tried again", what, why ? why->text : err_sentence(code));
    later(in, FAILED_MS, next);
}

/* ---- the history ---- */

static void finish(struct install *in) {
    struct state *fresh = in->fresh;
    struct catchup *c = in->c;
    if (unlink(in->mark) < 0 && errno != ENOENT)
        log_warn("%s can't be removed: %s", in->mark, strerror(errno));
    in->is_open = in->is_marked = false;
    in->fresh = NULL;
    log_info("caught up with member %u at entry %llu in %lld ms", in->source,
             (unsigned long long)state_index(fresh), (long long)(catchup_now_ms(c) - in->begun_ms));
    in->done(in->arg, fresh);
}

static void put_history(struct install *in);

static void on_replaced(void *arg, int code, const struct err *why) {
    struct install *in = arg;
    in->is_out = false;
    if (in->c->is_stopping)
        return;
    if (code)
        failed(in, "the history can't take its place", code, why, put_history);
    else
        finish(in);
}

static void put_history(struct install *in) {
    in->is_out = true;
    acct_replace(in->c->room->acct, in->history, on_replaced, in);
}

static void on_history(void *arg, int code, const struct err *why) {
    struct install *in = arg;
    in->fetch = NULL;
    in->is_out = false;
    if (in->c->is_stopping)
        return;
    if (code)
        failed(in, "fetching the history", code, why, ask_history);
    else
        put_history(in);
}

static void on_copy(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct install *in = arg;
    auto_arena a = {0};
    struct file_info f;
    struct err e;
    in->is_out = false;
    if (in->c->is_stopping)
        return;
    if (!code) {
        code = rec_decode(file_info_rec(), reply, n, &a, &f, &e);
        code = code ? code : file_info_check(&f, &e);
        why = &e;
    }
    if (code == E_BUSY) {
        later(in, COPY_POLL_MS, ask_history);
    } else if (code) {
        in->from.at++;
        failed(in, "asking for a copy of the history", code, why, ask_history);
    } else {
        in->is_out = true;
        in->c->stats.fetched_bytes += f.size;
        log_info("catching up: member %u has a copy of its history, of %llu bytes", in->from.id[in->from.at],
                 (unsigned long long)f.size);
        in->fetch = fetch_start(in->c->room, in->from.id[in->from.at], &f, in->history, in->c->conf.rate, on_history, in);
    }
}

static void ask_history(struct install *in) {
    struct history_copy_request rq = {in->manifest.index};
    if (in->from.at >= in->from.n)
        sources_look(&in->from, in->c->room);
    if (!in->from.n) {
        later(in, AGAIN_MS, ask_history);
        return;
    }
    in->is_out = true;
    catchup_send(in->c, in->from.id[in->from.at], "/spur.v1.Member/History", history_copy_request_rec(), &rq, ASK_MS,
                 on_copy, in);
}

/* ---- the state ---- */

static void load(void *arg) {
    struct install *in = arg;
    in->code = snapshots_load(in->path, &in->manifest, in->fresh, &in->why);
}

static void on_loaded(void *arg) {
    struct install *in = arg;
    in->is_out = false;
    if (in->c->is_stopping)
        return;
    if (!in->code) {
        ask_history(in);
        return;
    }
    state_free(in->fresh);
    in->fresh = NULL;
    if (in->code == E_CORRUPT)
        unlink(in->path);
    failed(in, "reading the snapshot", in->code, &in->why, ask_manifest);
}

static void load_state(struct install *in) {
    struct host *h = in->c->room->host;
    in->fresh = state_new();
    in->is_out = true;
    h->work(h->impl, load, on_loaded, in);
}

static void on_file(void *arg, int code, const struct err *why) {
    struct install *in = arg;
    struct err e;
    in->fetch = NULL;
    in->is_out = false;
    if (in->c->is_stopping)
        return;
    if (!code) {
        code = snapshots_adopt(in->c->conf.snapshots, in->manifest_bytes.p, in->manifest_bytes.n, &e);
        why = &e;
    }
    if (code)
        failed(in, "fetching the snapshot", code, why, ask_manifest);
    else
        load_state(in);
}

static void fetch_state(struct install *in) {
    const struct snapshot_manifest *m = &in->manifest;
    struct file_info f = {.name = m->file, .size = m->size, .hash = m->hash, .n_hash = m->n_hash,
                          .piece_bytes = m->piece_bytes ? m->piece_bytes : PIECE_BYTES, .pieces = m->pieces,
                          .n_pieces = m->n_pieces};
    struct err e;
    if (file_info_check(&f, &e)) {
        failed(in, "the manifest of another member", e.code, &e, ask_manifest);
        return;
    }
    in->is_out = true;
    in->c->stats.fetched_bytes += f.size;
    log_info("catching up: member %u has a snapshot at entry %llu of %llu bytes", in->source,
             (unsigned long long)m->index, (unsigned long long)m->size);
    in->fetch = fetch_start(in->c->room, in->source, &f, in->path, in->c->conf.rate, on_file, in);
}

/* ---- whose ---- */

static int take_manifest(struct install *in, const void *reply, size_t n, struct err *e) {
    auto_arena a = {0};
    struct manifest_reply r;
    int rc = rec_decode(manifest_reply_rec(), reply, n, &a, &r, e);
    if (rc)
        return rc;
    in->manifest_bytes.n = 0;
    buf_add(&in->manifest_bytes, r.manifest, r.n_manifest);
    arena_fini(&in->arena);
    rc = snapshots_manifest(in->manifest_bytes.p, in->manifest_bytes.n, &in->arena, &in->manifest, e);
    if (!rc && in->manifest.index < in->at_least)
        rc = err_set(e, E_STALE, "its snapshot is older than what it was asked for");
    return rc;
}

static void on_manifest(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct install *in = arg;
    struct err e;
    in->is_out = false;
    if (in->c->is_stopping)
        return;
    if (!code) {
        code = take_manifest(in, reply, n, &e);
        why = &e;
    }
    if (code) {
        if (++in->from.at < in->from.n)
            ask_manifest(in);
        else if (++in->rounds % COMPLAIN_EVERY == 0)
            failed(in, "no member has a snapshot for us", code, why, ask_manifest);
        else
            later(in, AGAIN_MS, ask_manifest);
        return;
    }
    in->source = in->from.id[in->from.at];
    free(in->path);
    in->path = snapshots_path(in->c->conf.snapshots, in->manifest.file);
    if (access(in->path, R_OK) == 0)
        on_file(in, 0, NULL); /* from an earlier attempt */
    else
        fetch_state(in);
}

static void ask_manifest(struct install *in) {
    struct manifest_request rq = {in->at_least, in->rounds >= TAKE_AFTER};
    struct err e;
    state_free(in->fresh);
    in->fresh = NULL;
    if (!in->is_marked && mark_set(in, &e)) { /* without it nothing may change here */
        failed(in, "marking this member's files", e.code, &e, ask_manifest);
        return;
    }
    in->is_marked = true;
    if (in->from.at >= in->from.n)
        sources_look(&in->from, in->c->room);
    if (!in->from.n) {
        later(in, AGAIN_MS, ask_manifest);
        return;
    }
    in->is_out = true;
    catchup_send(in->c, in->from.id[in->from.at], "/spur.v1.Member/Manifest", manifest_request_rec(), &rq, ASK_MS,
                 on_manifest, in);
}

void catchup_begin(struct catchup *c, uint64_t at_least, catchup_done_fn done, void *arg) {
    struct install *in = c->install;
    must(!in->is_out && !in->timer);
    in->at_least = at_least;
    in->done = done;
    in->arg = arg;
    in->begun_ms = catchup_now_ms(c);
    in->rounds = in->failures = 0;
    in->from = (struct sources){0};
    in->is_open = true;
    log_info("catching up: the state and the history of the others are fetched, up to entry %llu at least",
             (unsigned long long)at_least);
    ask_manifest(in);
}
