/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "spurctld/acct/acct.h"

#define MANIFEST_VERSION 1u
#define FILE_FORMAT "snap-%020" PRIu64
#define FILE_FORMAT_IN "snap-%20" SCNu64
#define SNAPSHOT_MOST_BYTES (8ull << 30)

#define MANIFEST_FIELDS(F)                                                                                             \
    F(U32, version, 1, _)                                                                                              \
    F(U64, index, 2, _)                                                                                                \
    F(U64, digest, 3, _)                                                                                               \
    F(STR, file, 4, _)                                                                                                 \
    F(U64, size, 5, _)                                                                                                 \
    F(BYTES, hash, 6, _) /* BLAKE2b-256 of the file */
REC_DECLARE(manifest, MANIFEST_FIELDS)
#define REC_SELF manifest
REC_DEFINE(manifest, MANIFEST_FIELDS)
#undef REC_SELF

enum { LONGEST_SLEEP_MS = 50 };

struct snapshots {
    struct room *room;
    char *dir;
    uint64_t rate;
    _Atomic bool stopping;
    unsigned n_out;
    struct snapshots_stats stats;
};

/* One on its way. */
struct taking {
    struct snapshots *s;
    struct view view;
    uint64_t index, stored_index;
    char name[64];
    int fd;
    uint64_t size;
    uint64_t begun_ms;
    struct cred_hasher *hasher;
    uint8_t hash[32];
    int code;
    struct err why;
    void (*done)(void *arg, uint64_t index, int code, const struct err *why, const void *manifest, size_t n);
    void *arg;
};

static uint64_t mono_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int snapshots_open(struct room *r, const char *dir, uint64_t rate, struct snapshots **out, struct err *e) {
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make %s", dir);
    struct snapshots *s = xnew(struct snapshots);
    s->room = r;
    s->dir = xstrdup(dir);
    s->rate = rate;
    *out = s;
    return 0;
}

void snapshots_stop(struct snapshots *s) {
    s->stopping = true;
}

void snapshots_close(struct snapshots *s) {
    if (!s)
        return;
    free(s->dir);
    free(s);
}

/* Sleeps so that the file grows no faster than the rate: the journal's fsyncs come first. On a worker. */
static void hold_rate(const struct taking *t) {
    if (!t->s->rate)
        return;
    uint64_t due_ms = t->size * 1000 / t->s->rate, spent_ms = mono_ms() - t->begun_ms;
    for (uint64_t ms; due_ms > spent_ms && !t->s->stopping; spent_ms += ms) {
        ms = MIN(due_ms - spent_ms, LONGEST_SLEEP_MS);
        struct timespec ts = {0, (long)ms * 1000000};
        nanosleep(&ts, NULL);
    }
}

static int write_some(void *arg, const void *p, size_t n, struct err *e) {
    struct taking *t = arg;
    const char *at = p;
    cred_hasher_add(t->hasher, p, n);
    while (n) {
        ssize_t k = write(t->fd, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_sys(e, "write snapshot");
        at += k;
        n -= (size_t)k;
        t->size += (uint64_t)k;
    }
    hold_rate(t);
    return t->s->stopping ? err_set(e, E_STOPPING, "the daemon is stopping") : 0;
}

static int sync_dir(const char *dir, struct err *e) {
    autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return err_sys(e, "sync %s", dir);
    return 0;
}

static int write_file(struct taking *t, const char *path, const char *tmp) {
    t->fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (t->fd < 0)
        return err_sys(&t->why, "make %s", tmp);
    int rc = state_snapshot_write(&t->view, write_some, t, &t->why);
    if (!rc && fsync(t->fd) < 0)
        rc = err_sys(&t->why, "sync %s", tmp);
    close(t->fd);
    if (!rc && rename(tmp, path) < 0)
        rc = err_sys(&t->why, "rename %s", tmp);
    return rc ? rc : sync_dir(t->s->dir, &t->why);
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Files that no manifest will name any more: those before the one that the newest stored manifest names, and one more
 * for safety. A manifest is stored some time after its file was written, or never, so newer files say nothing. On the
 * worker: a large file takes its time to go. */
static void drop_old(const char *path, uint64_t stored_index) {
    DIR *d = opendir(path);
    struct dirent *en;
    VEC(uint64_t) stored = {0};
    uint64_t index;
    while (d && (en = readdir(d)))
        if (sscanf(en->d_name, FILE_FORMAT_IN, &index) == 1 && index <= stored_index)
            vec_push(&stored, index);
    if (stored.n)
        qsort(stored.p, stored.n, sizeof(*stored.p), by_number);
    for (size_t i = 0; i + 2 < stored.n; i++) {
        char name[64];
        snprintf(name, sizeof(name), FILE_FORMAT, stored.p[i]);
        unlinkat(dirfd(d), name, 0);
    }
    if (d)
        closedir(d);
    vec_fini(&stored);
}

static void work(void *arg) {
    struct taking *t = arg;
    autofree char *path = xasprintf("%s/%s", t->s->dir, t->name);
    autofree char *tmp = xasprintf("%s.tmp", path);
    t->begun_ms = mono_ms();
    t->code = write_file(t, path, tmp);
    cred_hasher_end(t->hasher, t->hash);
    if (t->code)
        unlink(tmp);
    else
        drop_old(t->s->dir, t->stored_index);
}

static void finish(struct taking *t) {
    struct snapshots *s = t->s;
    struct manifest m = {MANIFEST_VERSION, t->index, t->view.digest, t->name, t->size, t->hash, 32};
    auto_buf bytes = {0};
    rec_encode(manifest_rec(), &m, &bytes);
    if (t->code) {
        s->stats.failed++;
    } else {
        s->stats.taken++;
        s->stats.last_bytes = t->size;
        s->stats.last_index = t->index;
        s->stats.last_ms = mono_ms() - t->begun_ms;
    }
    s->n_out--;
    state_view_end(&t->view);
    t->done(t->arg, t->index, t->code, &t->why, bytes.p, bytes.n);
    free(t);
}

static void on_flushed(void *arg) {
    finish(arg);
}

static void on_written(void *arg) {
    struct taking *t = arg;
    if (t->code)
        finish(t);
    else
        acct_when_flushed(t->s->room->acct, t->index, on_flushed, t);
}

void snapshots_take(struct snapshots *s, uint64_t index, uint64_t stored_index,
                    void (*done)(void *arg, uint64_t index, int code, const struct err *why, const void *manifest,
                                 size_t n),
                    void *arg) {
    struct taking *t = xnew(struct taking);
    *t = (struct taking){.s = s, .index = index, .stored_index = stored_index, .fd = -1, .done = done, .arg = arg};
    t->hasher = cred_hasher_new();
    snprintf(t->name, sizeof(t->name), FILE_FORMAT, index);
    s->n_out++;
    state_view(s->room->state, &t->view);
    s->room->host->work(s->room->host->impl, work, on_written, t);
}

/* ---- back ---- */

static int read_file(const char *path, uint64_t size, struct buf *out, struct err *e) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open snapshot %s", path);
    buf_reserve(out, size);
    while (out->n < size) {
        ssize_t k = read(fd, out->p + out->n, size - out->n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_sys(e, "read %s", path);
        if (k == 0)
            return err_set(e, E_CORRUPT, "snapshot %s is shorter than its manifest says", path);
        out->n += (size_t)k;
    }
    return 0;
}

int snapshots_restore(struct snapshots *s, struct state *into, const void *manifest, size_t n, struct err *e) {
    auto_arena a = {0};
    struct manifest m;
    int rc = rec_decode(manifest_rec(), manifest, n, &a, &m, e);
    if (rc)
        return rc;
    if (m.version != MANIFEST_VERSION)
        return err_set(e, E_VERSION, "snapshot manifest of version %u", m.version);
    if (!m.file || strchr(m.file, '/') || m.n_hash != 32 || m.size > SNAPSHOT_MOST_BYTES)
        return err_set(e, E_CORRUPT, "snapshot manifest is damaged");
    autofree char *path = xasprintf("%s/%s", s->dir, m.file);
    auto_buf bytes = {0};
    uint8_t hash[32];
    rc = read_file(path, m.size, &bytes, e);
    if (rc)
        return rc;
    cred_hash(bytes.p, bytes.n, hash);
    if (memcmp(hash, m.hash, 32) != 0)
        return err_set(e, E_CORRUPT, "snapshot %s differs from its manifest", path);
    return state_restore(into, bytes.p, bytes.n, e);
}

struct snapshots_stats snapshots_stats(const struct snapshots *s) {
    return s->stats;
}

bool snapshots_are_out(const struct snapshots *s) {
    return s->n_out > 0;
}
