/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/catchup/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "spurctld/catchup/pieces.h"

#define LOOK_MS 5000u

struct shelved {
    char *name; /* NULL: free */
    int fd;
    uint64_t size;
    int64_t read_ms;
    unsigned n_reads;
    bool is_old; /* goes when nobody has read it for a while */
};

struct shelf {
    struct room *room;
    struct shelved files[SHELF_FILES];
    unsigned n_reads;
    bool is_stopping;
    struct host_timer *timer;
};

struct reading {
    struct shelf *shelf;
    struct shelved *file;
    int fd;
    uint64_t offset;
    uint8_t *data;
    size_t n;
    int code;
    struct err why;
    host_reply_fn fn;
    void *arg;
};

static int64_t now_ms(const struct shelf *s) {
    return s->room->host->now_ms(s->room->host->impl);
}

struct shelf *shelf_new(struct room *r) {
    struct shelf *s = xnew(struct shelf);
    s->room = r;
    return s;
}

static void drop(struct shelved *f) {
    close(f->fd);
    free(f->name);
    *f = (struct shelved){0};
}

void shelf_stop(struct shelf *s) {
    s->is_stopping = true;
    s->room->host->timer_stop(s->room->host->impl, s->timer);
    s->timer = NULL;
}

void shelf_free(struct shelf *s) {
    if (!s)
        return;
    must(!s->n_reads && !s->timer);
    for (size_t i = 0; i < SHELF_FILES; i++)
        if (s->files[i].name)
            drop(&s->files[i]);
    free(s);
}

static struct shelved *find(const struct shelf *s, const char *name) {
    for (size_t i = 0; name && i < SHELF_FILES; i++)
        if (s->files[i].name && strcmp(s->files[i].name, name) == 0)
            return (struct shelved *)&s->files[i];
    return NULL;
}

bool shelf_has(const struct shelf *s, const char *name) {
    return find(s, name) != NULL;
}

/* A free place; else that of the file which was read longest ago, old ones first. NULL: all are being read. */
static struct shelved *place(struct shelf *s) {
    struct shelved *best = NULL;
    for (size_t i = 0; i < SHELF_FILES; i++) {
        struct shelved *f = &s->files[i];
        if (!f->name)
            return f;
        bool better = !best || f->is_old > best->is_old || (f->is_old == best->is_old && f->read_ms < best->read_ms);
        if (!f->n_reads && better)
            best = f;
    }
    if (best)
        drop(best);
    return best;
}

int shelf_put(struct shelf *s, const char *name, const char *path, struct err *e) {
    struct stat st;
    if (find(s, name))
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int rc = err_sys(e, "open %s", path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    struct shelved *f = place(s);
    if (!f) {
        close(fd);
        return err_set(e, E_BUSY, "too many files are being read");
    }
    *f = (struct shelved){.name = xstrdup(name), .fd = fd, .size = (uint64_t)st.st_size, .read_ms = now_ms(s)};
    return 0;
}

static void look(void *arg) {
    struct shelf *s = arg;
    bool more = false;
    s->timer = NULL;
    for (size_t i = 0; i < SHELF_FILES; i++) {
        struct shelved *f = &s->files[i];
        if (!f->name || !f->is_old)
            continue;
        if (!f->n_reads && now_ms(s) - f->read_ms >= (int64_t)SHELF_KEEP_MS)
            drop(f);
        else
            more = true;
    }
    if (more)
        s->timer = s->room->host->timer_start(s->room->host->impl, LOOK_MS, look, s);
}

void shelf_let_go(struct shelf *s, const char *name) {
    struct shelved *f = find(s, name);
    if (!f)
        return;
    f->is_old = true;
    if (!s->timer && !s->is_stopping)
        s->timer = s->room->host->timer_start(s->room->host->impl, LOOK_MS, look, s);
}

/* ---- reading ---- */

static void work(void *arg) {
    struct reading *r = arg;
    size_t got = 0;
    while (got < r->n) {
        ssize_t k = pread(r->fd, r->data + got, r->n - got, (off_t)(r->offset + got));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            r->code = k < 0 ? err_sys(&r->why, "read a piece") : err_set(&r->why, E_CORRUPT, "the file was cut");
            return;
        }
        got += (size_t)k;
    }
}

static void done(void *arg) {
    struct reading *r = arg;
    auto_buf bytes = {0};
    struct piece_reply reply = {r->data, (uint32_t)r->n};
    r->file->n_reads--;
    r->shelf->n_reads--;
    if (!r->code)
        rec_encode(piece_reply_rec(), &reply, &bytes);
    r->fn(r->arg, r->code, r->code ? &r->why : NULL, bytes.p, bytes.n);
    free(r->data);
    free(r);
}

void shelf_read(struct shelf *s, const struct piece_request *what, host_reply_fn fn, void *arg) {
    struct err e;
    struct shelved *f = find(s, what->name);
    int rc = 0;
    if (!f)
        rc = err_set(&e, E_NOT_FOUND, "no such file is held ready here");
    else if (s->n_reads >= SHELF_READS)
        rc = err_set(&e, E_BUSY, "%u pieces are being read", s->n_reads);
    else if (what->length == 0 || what->length > PIECE_BYTES || what->offset > f->size ||
             what->length > f->size - what->offset)
        rc = err_set(&e, E_USAGE, "there is no such piece");
    if (rc) {
        fn(arg, rc, &e, NULL, 0);
        return;
    }
    struct reading *r = xnew(struct reading);
    *r = (struct reading){.shelf = s, .file = f, .fd = f->fd, .offset = what->offset, .data = xmalloc(what->length),
                          .n = what->length, .fn = fn, .arg = arg};
    f->read_ms = now_ms(s);
    f->n_reads++;
    s->n_reads++;
    s->room->host->work(s->room->host->impl, work, done, r);
}

bool shelf_is_out(const struct shelf *s) {
    return s->n_reads > 0;
}
