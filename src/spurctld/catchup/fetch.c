/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/catchup/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "spurctld/catchup/pieces.h"

#define METHOD "/spur.v1.Member/File"

enum { WINDOW = 4, TRIES_MOST = 5, PIECE_TIMEOUT_MS = 10000, BUSY_WAIT_MS = 50 };

enum { PIECE_WANTED, PIECE_ASKED, PIECE_HERE };

struct fetch {
    struct room *room;
    uint64_t member;
    struct file_info *info; /* packed */
    char *path, *part;
    uint64_t rate, asked_bytes;
    int64_t begun_ms;
    int fd;
    uint32_t n, n_here, next; /* pieces; behind `next` none is wanted that was not asked for before */
    uint8_t *state, *tries;
    unsigned n_out;
    struct host_timer *timer;
    int code;
    struct err why;
    fetch_done_fn done;
    void *arg;
};

struct coming { /* one piece */
    struct fetch *f;
    uint32_t piece;
    struct arena arena;
    struct piece_reply reply;
    bool is_damaged;
    int code;
    struct err why;
};

static void pump(struct fetch *f);

static void failed(struct fetch *f, int code, const struct err *why) {
    if (f->code)
        return;
    f->code = code;
    if (why && why->code == code)
        f->why = *why;
    else
        err_set(&f->why, code, NULL);
}

/* ---- the end ---- */

static void put_in_place(void *arg) {
    struct fetch *f = arg;
    if (fsync(f->fd) < 0)
        f->code = err_sys(&f->why, "sync %s", f->part);
    else if (rename(f->part, f->path) < 0)
        f->code = err_sys(&f->why, "rename %s", f->part);
    autofree char *copy = xstrdup(f->path);
    autoclose int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!f->code && (dir < 0 || fsync(dir) < 0))
        f->code = err_sys(&f->why, "sync the directory of %s", f->path);
}

static void end(void *arg) {
    struct fetch *f = arg;
    f->room->host->timer_stop(f->room->host->impl, f->timer);
    if (f->fd >= 0)
        close(f->fd);
    f->done(f->arg, f->code, f->code ? &f->why : NULL);
    rec_free(f->info);
    free(f->path);
    free(f->part);
    free(f->state);
    free(f->tries);
    free(f);
}

/* ---- pieces ---- */

static int write_at(int fd, const uint8_t *p, size_t n, uint64_t offset, struct err *e) {
    if (FAULT("fetch.full"))
        return err_set(e, E_FULL, "write a piece: no space left on device");
    while (n) {
        ssize_t k = pwrite(fd, p, n, (off_t)offset);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno == ENOSPC || errno == EDQUOT ? err_set(e, E_FULL, "write a piece: %s", strerror(errno))
                                                      : err_sys(e, "write a piece");
        p += k;
        offset += (uint64_t)k;
        n -= (size_t)k;
    }
    return 0;
}

static void write_piece(void *arg) {
    struct coming *c = arg;
    struct fetch *f = c->f;
    if (FAULT("fetch.damaged") && c->reply.n_data)
        ((uint8_t *)c->reply.data)[0] ^= 1;
    c->is_damaged = !file_info_fits(f->info, c->piece, c->reply.data, c->reply.n_data);
    if (!c->is_damaged)
        c->code = write_at(f->fd, c->reply.data, c->reply.n_data, (uint64_t)c->piece * f->info->piece_bytes, &c->why);
}

static void again(struct fetch *f, uint32_t piece) {
    f->state[piece] = PIECE_WANTED;
    f->next = MIN(f->next, piece);
}

static void piece_written(void *arg) {
    struct coming *c = arg;
    struct fetch *f = c->f;
    f->n_out--;
    if (c->is_damaged) {
        again(f, c->piece);
        log_warn("%s: piece %u came damaged and is fetched again", f->info->name, c->piece);
        if (++f->tries[c->piece] >= TRIES_MOST)
            failed(f, err_set(&c->why, E_CORRUPT, "%s: piece %u came damaged %u times", f->info->name, c->piece,
                              f->tries[c->piece]), &c->why);
    } else if (c->code) {
        failed(f, c->code, &c->why);
    } else {
        f->state[c->piece] = PIECE_HERE;
        f->n_here++;
        if (FAULT("fetch.piece"))
            log_warn("fault point fetch.piece");
    }
    arena_fini(&c->arena);
    free(c);
    pump(f);
}

static void on_timer(void *arg) {
    struct fetch *f = arg;
    f->timer = NULL;
    pump(f);
}

static void wait_for(struct fetch *f, uint64_t ms) {
    if (!f->timer)
        f->timer = f->room->host->timer_start(f->room->host->impl, ms, on_timer, f);
}

static void on_piece(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct coming *c = arg;
    struct fetch *f = c->f;
    if (!code)
        code = rec_decode(piece_reply_rec(), reply, n, &c->arena, &c->reply, &c->why);
    if (!code) {
        f->room->host->work(f->room->host->impl, write_piece, piece_written, c);
        return;
    }
    f->n_out--;
    again(f, c->piece);
    if (code != E_BUSY)
        failed(f, code, why);
    arena_fini(&c->arena);
    free(c);
    if (code == E_BUSY && !f->code)
        wait_for(f, BUSY_WAIT_MS);
    else
        pump(f);
}

static void ask(struct fetch *f, uint32_t piece) {
    struct coming *c = xnew(struct coming);
    struct buf bytes = {0};
    struct piece_request rq = {f->info->name, (uint64_t)piece * f->info->piece_bytes, file_info_length(f->info, piece)};
    c->f = f;
    c->piece = piece;
    f->state[piece] = PIECE_ASKED;
    f->asked_bytes += rq.length;
    f->n_out++;
    rec_encode(piece_request_rec(), &rq, &bytes);
    f->room->host->member_send(f->room->host->impl, f->member, METHOD, bytes, PIECE_TIMEOUT_MS, on_piece, c);
}

/* How long to wait until the rate lets the next piece come. */
static uint64_t early_ms(const struct fetch *f) {
    int64_t spent = f->room->host->now_ms(f->room->host->impl) - f->begun_ms;
    int64_t due = f->rate ? (int64_t)(f->asked_bytes * 1000 / f->rate) : 0;
    return due > spent ? (uint64_t)(due - spent) : 0;
}

static void pump(struct fetch *f) {
    struct host *h = f->room->host;
    while (!f->code && f->n_out < WINDOW && !f->timer) {
        while (f->next < f->n && f->state[f->next] != PIECE_WANTED)
            f->next++;
        if (f->next == f->n)
            break;
        uint64_t wait = early_ms(f);
        if (wait) {
            wait_for(f, wait);
            break;
        }
        ask(f, f->next);
    }
    if (f->n_out)
        return;
    if (f->code) {
        end(f);
    } else if (f->n_here == f->n) {
        f->n_out++;
        h->work(h->impl, put_in_place, end, f);
    }
}

/* ---- the beginning ---- */

/* What an earlier attempt left. Without hashes nobody knows whether it is good. */
static void look(void *arg) {
    struct fetch *f = arg;
    f->fd = open(f->part, O_RDWR | O_CREAT | O_CLOEXEC | (f->info->n_pieces ? 0 : O_TRUNC), 0600);
    if (f->fd < 0 || ftruncate(f->fd, (off_t)f->info->size) < 0) {
        f->code = err_sys(&f->why, "make %s", f->part);
        return;
    }
    autofree uint8_t *block = xmalloc(f->info->piece_bytes);
    struct stat st;
    if (!f->info->n_pieces || fstat(f->fd, &st) < 0 || st.st_blocks == 0)
        return;
    for (uint32_t i = 0; i < f->n; i++) {
        ssize_t k = pread(f->fd, block, file_info_length(f->info, i), (off_t)i * f->info->piece_bytes);
        if (k > 0 && file_info_fits(f->info, i, block, (size_t)k)) {
            f->state[i] = PIECE_HERE;
            f->n_here++;
        }
    }
}

static void looked(void *arg) {
    struct fetch *f = arg;
    f->n_out--;
    f->begun_ms = f->room->host->now_ms(f->room->host->impl);
    if (f->n_here && !f->code)
        log_info("%s: %u of %u pieces are here already", f->info->name, f->n_here, f->n);
    pump(f);
}

struct fetch *fetch_start(struct room *r, uint64_t member, const struct file_info *info, const char *path,
                          uint64_t rate, fetch_done_fn done, void *arg) {
    struct fetch *f = xnew(struct fetch);
    *f = (struct fetch){.room = r, .member = member, .rate = rate, .fd = -1, .done = done, .arg = arg};
    f->info = rec_pack(file_info_rec(), info);
    f->path = xstrdup(path);
    f->part = xasprintf("%s.part", path);
    f->n = file_info_count(info);
    f->state = xcalloc(f->n + 1, 1);
    f->tries = xcalloc(f->n + 1, 1);
    f->n_out++;
    r->host->work(r->host->impl, look, looked, f);
    return f;
}

void fetch_stop(struct fetch *f) {
    struct err e;
    struct host *h = f->room->host;
    h->timer_stop(h->impl, f->timer);
    f->timer = NULL;
    failed(f, err_set(&e, E_STOPPING, NULL), &e);
    if (!f->n_out)
        end(f);
}
