/* SPDX-License-Identifier: Apache-2.0
 *
 * Appending, syncing, reading, removing.
 *
 * The order that makes crashes harmless: a new pack has its header and its name in the directory on disk before the
 * first record is told to be stored; a record is told to be stored after fdatasync of its pack; a pack is removed after
 * what it held elsewhere is on disk (the caller's part), its list before it.
 */
#include "io/blob/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fault.h"
#include "io/blob/sidefile.h"

enum { RECORDS_MAX = 8192 }; /* in one pack: bounds the memory of its list */

struct files files_none(void) {
    struct files f = {.dir_fd = -1, .fd = -1};
    for (size_t i = 0; i < FILES_CACHED; i++)
        f.cached[i].fd = -1;
    return f;
}

static void drop_cached(struct files *f, uint32_t pack) {
    for (size_t i = 0; i < FILES_CACHED; i++)
        if (f->cached[i].fd >= 0 && (f->cached[i].pack == pack || !pack)) {
            close(f->cached[i].fd);
            f->cached[i].fd = -1;
        }
}

static void leave_active(struct files *f) {
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    f->active = 0;
    vec_fini(&f->records);
}

void files_fini(struct files *f) {
    leave_active(f);
    drop_cached(f, 0);
    if (f->dir_fd >= 0)
        close(f->dir_fd);
    free(f->dir);
    *f = files_none();
}

static void pack_name(uint32_t number, char out[24]) {
    snprintf(out, 24, "pack-%06u", number);
}

static int write_header(struct files *f, int fd, uint32_t number, uint64_t id) {
    uint8_t h[PACK_HEADER_SIZE];
    pack_header_encode(number, id, h);
    ssize_t n = pwrite(fd, h, sizeof(h), 0);
    if (n >= 0 && n != sizeof(h))
        errno = ENOSPC;
    return n == sizeof(h) && fdatasync(fd) == 0 && fsync(f->dir_fd) == 0 ? 0 : -1;
}

static int make_pack(struct files *f, struct err *e) {
    char name[24];
    pack_name(f->next, name);
    must(f->next < UINT32_MAX);
    autoclose int fd = openat(f->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "cannot make %s/%s", f->dir, name);
    uint64_t id;
    do
        randombytes_buf(&id, sizeof(id));
    while (!id);
    if (write_header(f, fd, f->next, id)) {
        int r = err_sys(e, "cannot write %s/%s", f->dir, name);
        unlinkat(f->dir_fd, name, 0);
        return r;
    }
    f->active = f->next++;
    f->fd = take_fd(&fd);
    f->id = id;
    f->tail = f->synced = PACK_HEADER_SIZE;
    f->n_syncs++;
    return 0;
}

static bool is_full(const struct files *f) {
    return f->active && (f->tail >= f->pack_bytes || f->records.n >= RECORDS_MAX);
}

/* Where a write ends early its rest is tried again, so that the reason comes to light as an error. */
static int write_record(int fd, const uint8_t *head, const void *p, uint32_t n, uint32_t room, uint32_t offset) {
    static const uint8_t zeros[8];
    struct iovec part[3] = {
        {(void *)head, PACK_RECORD_SIZE},
        {(void *)p, n},
        {(void *)zeros, room - PACK_RECORD_SIZE - n},
    };
    int at = 0;
    while (at < 3) {
        if (!part[at].iov_len) {
            at++;
            continue;
        }
        ssize_t put = pwritev(fd, part + at, 3 - at, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return -1;
        offset += (uint32_t)put;
        for (; at < 3 && (size_t)put >= part[at].iov_len; at++)
            put -= (ssize_t)part[at].iov_len;
        if (at < 3) {
            part[at].iov_base = (char *)part[at].iov_base + put;
            part[at].iov_len -= (size_t)put;
        }
    }
    return 0;
}

static int append(struct files *f, struct files_item *it, struct err *e) {
    int r = f->active ? 0 : make_pack(f, e);
    if (r)
        return r;
    struct pack_record rec = {.hash = it->hash, .offset = f->tail, .length = it->n};
    uint8_t head[PACK_RECORD_SIZE];
    pack_record_encode(f->active, &rec, f->synced, head);
    if (write_record(f->fd, head, it->p, it->n, pack_room(it->n), f->tail)) {
        r = err_sys(e, "cannot write a blob of %u bytes to %s/pack-%06u", it->n, f->dir, f->active);
        if (ftruncate(f->fd, (off_t)f->tail)) {
            /* the next record is written over it, or the next open cuts it off */
        }
        return r;
    }
    it->pack = f->active;
    it->offset = f->tail;
    f->tail += pack_room(it->n);
    vec_push(&f->records, rec);
    return 0;
}

/* When it fails the pack is given up behind what was on disk before: the system may have thrown the pages away, and
 * would call the next sync a success. */
static int sync_active(struct files *f, struct err *e) {
    if (!f->active || f->tail == f->synced)
        return 0;
    f->n_syncs++;
    bool fails = FAULT("blob.sync");
    if (fails)
        errno = EIO;
    if (!fails && fdatasync(f->fd) == 0) {
        f->synced = f->tail;
        return 0;
    }
    int r = err_sys(e, "cannot sync %s/pack-%06u", f->dir, f->active);
    if (ftruncate(f->fd, (off_t)f->synced)) {
        /* the records behind are whole, only nobody was told of them */
    }
    leave_active(f);
    return r;
}

/* Without a list the next open scans the pack: not being able to write one is no failure. */
static void seal(struct files *f) {
    must(f->tail == f->synced);
    sidefile_write(f->dir_fd, f->active, f->id, f->tail, f->records.p, f->records.n, NULL);
    leave_active(f);
}

int files_finish(struct files *f, struct err *e) {
    int r = sync_active(f, e);
    if (!r && f->active)
        seal(f);
    return r;
}

/* Syncs, and tells the items of [*from, to) what came of it. */
static void settle(struct files *f, struct files_item *items, size_t *from, size_t to, struct err *why) {
    int r = sync_active(f, why);
    for (; *from < to; ++*from)
        if (!items[*from].code)
            items[*from].code = r;
}

void files_write(struct files *f, struct files_item *items, size_t n, struct err *why) {
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].code)
            continue;
        if (is_full(f)) {
            settle(f, items, &from, i, why);
            if (f->active)
                seal(f);
        }
        items[i].code = append(f, &items[i], why);
    }
    (void)FAULT("blob.written"); /* to die here */
    settle(f, items, &from, n, why);
}

static int open_cached(struct files *f, uint32_t pack, struct err *e) {
    for (size_t i = 0; i < FILES_CACHED; i++)
        if (f->cached[i].fd >= 0 && f->cached[i].pack == pack)
            return f->cached[i].fd;
    char name[24];
    pack_name(pack, name);
    int fd = openat(f->dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? err_set(e, E_CORRUPT, "%s/%s is missing", f->dir, name)
                               : err_sys(e, "cannot open %s/%s", f->dir, name);
    __auto_type c = &f->cached[f->next_cached++ % FILES_CACHED];
    if (c->fd >= 0)
        close(c->fd);
    c->pack = pack;
    c->fd = fd;
    return fd;
}

int files_read(struct files *f, uint32_t pack, const struct pack_record *r, struct buf *out, struct err *e) {
    int fd = pack == f->active ? f->fd : open_cached(f, pack, e);
    return fd < 0 ? fd : pack_read(fd, pack, r, out, e);
}

int files_unlink(struct files *f, uint32_t pack, struct err *e) {
    must(pack != f->active);
    char name[24], list[32];
    pack_name(pack, name);
    snprintf(list, sizeof(list), "%s.list", name);
    drop_cached(f, pack);
    unlinkat(f->dir_fd, list, 0);
    if (FAULT("blob.removing"))
        return err_set(e, E_SYS, "cannot remove %s/%s: told to fail", f->dir, name);
    if (unlinkat(f->dir_fd, name, 0) && errno != ENOENT)
        return err_sys(e, "cannot remove %s/%s", f->dir, name);
    return fsync(f->dir_fd) ? err_sys(e, "cannot sync %s", f->dir) : 0;
}

void files_adopt(struct files *f, uint32_t number, int fd, const struct pack_scan *s) {
    must(!f->active);
    f->active = number;
    f->fd = fd;
    f->id = s->id;
    f->tail = f->synced = s->end;
    for (size_t i = 0; i < s->records.n; i++)
        if (!s->records.p[i].bad)
            vec_push(&f->records, s->records.p[i]);
}
