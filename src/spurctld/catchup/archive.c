/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/catchup/archive.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"

#define LONGEST_SLEEP_NS 20000000ull
#define READ_BYTES (512u << 10)

static uint64_t ns_since(const struct timespec *t) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)(now.tv_sec - t->tv_sec) * 1000000000ull + (uint64_t)now.tv_nsec - (uint64_t)t->tv_nsec;
}

void archive_pace(const struct archive *a, uint64_t bytes) {
    uint64_t due_ns = a->rate ? (uint64_t)((double)bytes * 1e9 / (double)a->rate) : 0;
    for (uint64_t spent; due_ns > (spent = ns_since(&a->begun)) && !*a->is_stopping;) {
        struct timespec ts = {0, (long)MIN(due_ns - spent, LONGEST_SLEEP_NS)};
        nanosleep(&ts, NULL);
    }
}

static int flush(struct archive *a, struct err *e) {
    if (FAULT("backup.full"))
        return err_set(e, E_FULL, "write the backup: no space left on device");
    if (a->hash)
        cred_hasher_add(a->hash, a->bytes.p, a->bytes.n);
    if (fd_write(a->fd, a->bytes.p, a->bytes.n) < 0)
        return err_sys(e, "write the backup");
    a->size += a->bytes.n;
    a->bytes.n = 0;
    archive_pace(a, a->size);
    return *a->is_stopping ? err_set(e, E_STOPPING, NULL) : 0;
}

static int chunk(struct archive *a, enum backup_kind kind, const void *p, size_t n, struct err *e) {
    backup_chunk(&a->bytes, kind, p, n);
    return flush(a, e);
}

int archive_begin(struct archive *a, const struct backup_head *head, struct err *e) {
    auto_buf record = {0};
    clock_gettime(CLOCK_MONOTONIC, &a->begun);
    a->hash = cred_hasher_new();
    backup_begin(&a->bytes);
    rec_encode(backup_head_rec(), head, &record);
    return chunk(a, BACKUP_HEAD, record.p, record.n, e);
}

int archive_add(struct archive *a, enum backup_kind kind, const void *p, size_t n, struct err *e) {
    const uint8_t *at = p;
    int rc = 0;
    for (size_t k; n && !rc; at += k, n -= k) {
        k = MIN(n, (size_t)BACKUP_CHUNK_MOST);
        rc = chunk(a, kind, at, k, e);
        if (kind == BACKUP_STATE)
            a->end.state_bytes += k;
        else if (kind == BACKUP_HISTORY)
            a->end.history_bytes += k;
        else
            a->end.blob_bytes += k;
    }
    return rc;
}

int archive_add_file(struct archive *a, enum backup_kind kind, const char *path, struct err *e) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    autofree uint8_t *block = xmalloc(READ_BYTES);
    if (fd < 0)
        return err_sys(e, "open %s", path);
    for (;;) {
        ssize_t k = fd_read(fd, block, READ_BYTES);
        if (k < 0)
            return err_sys(e, "read %s", path);
        int rc = k ? archive_add(a, kind, block, (size_t)k, e) : 0;
        if (rc || !k)
            return rc;
    }
}

int archive_add_blob(struct archive *a, const uint8_t hash[32], const void *p, size_t n, struct err *e) {
    struct backup_blob b = {hash, 32, n};
    auto_buf record = {0};
    rec_encode(backup_blob_rec(), &b, &record);
    backup_chunk(&a->bytes, BACKUP_BLOB, record.p, record.n);
    a->end.blobs++;
    return n ? archive_add(a, BACKUP_BLOB_DATA, p, n, e) : flush(a, e);
}

int archive_end(struct archive *a, struct err *e) {
    uint8_t hash[32];
    auto_buf record = {0};
    cred_hasher_end(a->hash, hash);
    a->hash = NULL;
    a->end.hash = hash;
    a->end.n_hash = sizeof(hash);
    rec_encode(backup_end_rec(), &a->end, &record);
    int rc = chunk(a, BACKUP_END, record.p, record.n, e);
    a->end.hash = NULL;
    return !rc && fsync(a->fd) < 0 ? err_sys(e, "sync the backup") : rc;
}

void archive_fini(struct archive *a) {
    uint8_t unused[32];
    if (a->hash)
        cred_hasher_end(a->hash, unused);
    a->hash = NULL;
    buf_fini(&a->bytes);
}
