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

#include "base/fd.h"
#include "base/mem.h"
#include "base/vec.h"
#include "spurctld/acct/acct.h"
#include "spurctld/acct/schema.h"
#include "spurctld/catchup/pieces.h"

#define MANIFEST_VERSION 1u
#define MANIFEST_ENDING ".manifest"
#define FILE_FORMAT "snap-%020" PRIu64
#define FILE_FORMAT_IN "snap-%20" SCNu64 "%n"
#define MANIFEST_MOST_BYTES (16u << 20)
#define SNAPSHOT_MOST_BYTES (8ull << 30)

#define REC_SELF snapshot_formats
REC_DEFINE(snapshot_formats, SNAPSHOT_FORMATS_FIELDS)
#undef REC_SELF
#define REC_SELF snapshot_manifest
REC_DEFINE(snapshot_manifest, SNAPSHOT_MANIFEST_FIELDS)
#undef REC_SELF

enum { LONGEST_SLEEP_MS = 50, DISK_BYTES = 1 << 20 };

struct snapshots {
    struct room *room;
    char *dir;
    uint64_t rate;
    _Atomic bool stopping;
    unsigned n_out;
    struct snapshots_stats stats;
    struct buf newest; /* its manifest */
    char newest_name[64];
    uint64_t newest_index;
    void (*on_newest)(void *arg, const char *name, const char *path, const char *old_name);
    void *on_newest_arg;
};

/* One on its way. */
struct taking {
    struct snapshots *s;
    struct view view;
    uint64_t index, stored_index;
    char name[64];
    int fd;
    uint64_t size, on_disk;
    uint64_t begun_ms;
    struct pieces pieces;
    struct buf manifest;
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

void snapshots_stop(struct snapshots *s) {
    s->stopping = true;
}

void snapshots_close(struct snapshots *s) {
    if (!s)
        return;
    buf_fini(&s->newest);
    free(s->dir);
    free(s);
}

char *snapshots_path(const struct snapshots *s, const char *file) {
    return xasprintf("%s/%s", s->dir, file);
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

/* What the kernel merely keeps would come to the disk in one burst, with the fsync at the end or when the kernel likes.
 * So it is sent there as it grows; without a commit of the file system's journal, which others' syncs would wait for. */
static void send_to_disk(struct taking *t) {
    if (t->size - t->on_disk < DISK_BYTES)
        return;
    sync_file_range(t->fd, (off_t)t->on_disk, (off_t)(t->size - t->on_disk),
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    t->on_disk = t->size; /* where that isn't known or fails, the fsync says so */
}

static int write_some(void *arg, const void *p, size_t n, struct err *e) {
    struct taking *t = arg;
    pieces_add(&t->pieces, p, n);
    if (fd_write(t->fd, p, n) < 0)
        return err_sys(e, "write snapshot");
    t->size += n;
    send_to_disk(t);
    hold_rate(t);
    return t->s->stopping ? err_set(e, E_STOPPING, "the daemon is stopping") : 0;
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
    return rc ? rc : dir_sync(t->s->dir, &t->why);
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* ---- files on disk ---- */

static int read_file(const char *path, uint64_t size, struct buf *out, struct err *e) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open snapshot %s", path);
    buf_reserve(out, size);
    ssize_t k = fd_read(fd, out->p, size);
    if (k < 0)
        return err_sys(e, "read %s", path);
    out->n = (size_t)k;
    return out->n < size ? err_set(e, E_CORRUPT, "snapshot %s is shorter than its manifest says", path) : 0;
}

static bool index_of(const char *name, const char *ending, uint64_t *out) {
    int n = 0;
    return sscanf(name, FILE_FORMAT_IN, out, &n) == 1 && n > 0 && strcmp(name + n, ending) == 0;
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
        if (index_of(en->d_name, "", &index) && index <= stored_index)
            vec_push(&stored, index);
    if (stored.n)
        qsort(stored.p, stored.n, sizeof(*stored.p), by_number);
    for (size_t i = 0; i + 2 < stored.n; i++) {
        char name[64], manifest[80];
        snprintf(name, sizeof(name), FILE_FORMAT, stored.p[i]);
        snprintf(manifest, sizeof(manifest), "%s" MANIFEST_ENDING, name);
        unlinkat(dirfd(d), manifest, 0);
        unlinkat(dirfd(d), name, 0);
    }
    if (d)
        closedir(d);
    vec_fini(&stored);
}

static int write_small(const char *path, const struct buf *bytes, struct err *e) {
    autofree char *tmp = xasprintf("%s.tmp", path);
    autoclose int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "make %s", tmp);
    ssize_t k = write(fd, bytes->p, bytes->n);
    if (k < 0 || (size_t)k != bytes->n || fsync(fd) < 0 || rename(tmp, path) < 0) {
        int rc = err_sys(e, "write %s", tmp);
        unlink(tmp);
        return rc;
    }
    return 0;
}

/* The manifest lies beside its file: with it, the file is one that can be started from, or given to others. */
static int write_manifest(const char *dir, const char *name, const struct buf *bytes, struct err *e) {
    autofree char *path = xasprintf("%s/%s" MANIFEST_ENDING, dir, name);
    int rc = write_small(path, bytes, e);
    return rc ? rc : dir_sync(dir, e);
}

static void work(void *arg) {
    struct taking *t = arg;
    autofree char *path = snapshots_path(t->s, t->name);
    autofree char *tmp = xasprintf("%s.tmp", path);
    t->begun_ms = mono_ms();
    pieces_begin(&t->pieces);
    t->code = write_file(t, path, tmp);
    pieces_end(&t->pieces);
    if (t->code)
        unlink(tmp);
    else
        drop_old(t->s->dir, t->stored_index);
}

/* ---- which is the newest ---- */

static void tell_newest(struct snapshots *s, const char *old) {
    autofree char *path = snapshots_path(s, s->newest_name);
    if (s->on_newest)
        s->on_newest(s->on_newest_arg, s->newest_name, path, strcmp(old, s->newest_name) == 0 ? "" : old);
}

void snapshots_tell_newest(struct snapshots *s) {
    if (s->newest.n)
        tell_newest(s, "");
}

static void set_newest(struct snapshots *s, uint64_t index, const char *name, const void *p, size_t n) {
    char old[64];
    memcpy(old, s->newest_name, sizeof(old));
    s->newest.n = 0;
    buf_add(&s->newest, p, n);
    s->newest_index = index;
    snprintf(s->newest_name, sizeof(s->newest_name), "%s", name);
    tell_newest(s, old);
}

void snapshots_on_newest(struct snapshots *s,
                         void (*fn)(void *arg, const char *name, const char *path, const char *old_name), void *arg) {
    s->on_newest = fn;
    s->on_newest_arg = arg;
}

bool snapshots_newest(const struct snapshots *s, uint64_t at_least, uint64_t *out_index, const struct buf **out) {
    if (!s->newest.n || s->newest_index < at_least)
        return false;
    *out_index = s->newest_index;
    *out = &s->newest;
    return true;
}

int snapshots_adopt(struct snapshots *s, const void *manifest, size_t n, struct err *e) {
    auto_arena a = {0};
    struct snapshot_manifest m;
    int rc = snapshots_manifest(manifest, n, &a, &m, e);
    struct buf bytes = {.p = (void *)manifest, .n = n};
    if (!rc)
        rc = write_manifest(s->dir, m.file, &bytes, e);
    if (!rc)
        set_newest(s, m.index, m.file, manifest, n);
    return rc;
}

/* The newest whose manifest lies in the directory: at start. */
static void look_for_newest(struct snapshots *s) {
    DIR *d = opendir(s->dir);
    struct dirent *en;
    uint64_t index, best = 0;
    while (d && (en = readdir(d)))
        if (index_of(en->d_name, MANIFEST_ENDING, &index))
            best = MAX(best, index);
    if (d)
        closedir(d);
    if (!best)
        return;
    char name[64];
    snprintf(name, sizeof(name), FILE_FORMAT, best);
    autofree char *path = xasprintf("%s/%s" MANIFEST_ENDING, s->dir, name);
    autofree char *file = snapshots_path(s, name);
    auto_buf bytes = {0};
    struct stat st;
    if (access(file, R_OK) == 0 && stat(path, &st) == 0 && (uint64_t)st.st_size <= MANIFEST_MOST_BYTES &&
        !read_file(path, (uint64_t)st.st_size, &bytes, NULL))
        set_newest(s, best, name, bytes.p, bytes.n);
}

int snapshots_open(struct room *r, const char *dir, uint64_t rate, struct snapshots **out, struct err *e) {
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make %s", dir);
    struct snapshots *s = xnew(struct snapshots);
    s->room = r;
    s->dir = xstrdup(dir);
    s->rate = rate;
    look_for_newest(s);
    *out = s;
    return 0;
}

/* ---- taking one ---- */

void snapshots_name(uint64_t index, char out[SNAPSHOT_NAME_MOST]) {
    snprintf(out, SNAPSHOT_NAME_MOST, FILE_FORMAT, index);
}

void snapshots_describe(const struct pieces *p, uint64_t index, uint64_t digest, struct buf *out) {
    static const struct snapshot_formats formats = {STATE_SNAPSHOT_VERSION, COMMAND_VERSION, SCHEMA_VERSION, 1};
    char name[SNAPSHOT_NAME_MOST];
    snapshots_name(index, name);
    struct file_info f = pieces_info(p, name);
    struct snapshot_manifest m = {MANIFEST_VERSION, index, digest, name, f.size, f.hash, f.n_hash,
                                  f.piece_bytes, f.pieces, f.n_pieces, &formats};
    rec_encode(snapshot_manifest_rec(), &m, out);
}

int snapshots_write_manifest(const char *dir, uint64_t index, const struct buf *manifest, struct err *e) {
    char name[SNAPSHOT_NAME_MOST];
    snapshots_name(index, name);
    return write_manifest(dir, name, manifest, e);
}

static void finish(void *arg) {
    struct taking *t = arg;
    struct snapshots *s = t->s;
    if (t->code) {
        s->stats.failed++;
    } else {
        s->stats.taken++;
        s->stats.last_bytes = t->size;
        s->stats.last_index = t->index;
        s->stats.last_ms = mono_ms() - t->begun_ms;
        set_newest(s, t->index, t->name, t->manifest.p, t->manifest.n);
    }
    s->n_out--;
    state_view_end(&t->view);
    t->done(t->arg, t->index, t->code, &t->why, t->manifest.p, t->manifest.n);
    buf_fini(&t->manifest);
    pieces_fini(&t->pieces);
    free(t);
}

static void store_manifest(void *arg) {
    struct taking *t = arg;
    t->code = write_manifest(t->s->dir, t->name, &t->manifest, &t->why);
}

static void on_flushed(void *arg) {
    struct taking *t = arg;
    struct host *h = t->s->room->host;
    snapshots_describe(&t->pieces, t->index, t->view.digest, &t->manifest);
    h->work(h->impl, store_manifest, finish, t);
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
    snapshots_name(index, t->name);
    s->n_out++;
    state_view(s->room->state, &t->view);
    s->room->host->work(s->room->host->impl, work, on_written, t);
}

/* ---- back ---- */

int snapshots_manifest(const void *p, size_t n, struct arena *a, struct snapshot_manifest *m, struct err *e) {
    int rc = rec_decode(snapshot_manifest_rec(), p, n, a, m, e);
    uint64_t index;
    if (rc)
        return rc;
    if (m->version != MANIFEST_VERSION)
        return err_set(e, E_VERSION, "snapshot manifest of version %u", m->version);
    if (!m->file || !index_of(m->file, "", &index) || index != m->index || m->n_hash != 32 ||
        m->size > SNAPSHOT_MOST_BYTES)
        return err_set(e, E_CORRUPT, "snapshot manifest is damaged");
    return 0;
}

int snapshots_load(const char *path, const struct snapshot_manifest *m, struct state *into, struct err *e) {
    auto_buf bytes = {0};
    uint8_t hash[32];
    int rc = read_file(path, m->size, &bytes, e);
    if (rc)
        return rc;
    cred_hash(bytes.p, bytes.n, hash);
    if (memcmp(hash, m->hash, 32) != 0)
        return err_set(e, E_CORRUPT, "snapshot %s differs from its manifest", path);
    return state_restore(into, bytes.p, bytes.n, e);
}

struct snapshots_stats snapshots_stats(const struct snapshots *s) {
    return s->stats;
}

bool snapshots_are_out(const struct snapshots *s) {
    return s->n_out > 0;
}
