/* SPDX-License-Identifier: Apache-2.0
 *
 * What trouble.c wants to know of the disk: a probe, and the reserve file. Both on libuv's pool.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "io/journal/inside.h"

#define RESERVE_BYTES (SEGMENT_BYTES + (1u << 20))

/* ---- the probe: does what libraft does to get a file for the log ---- */

static void probe_work(uv_work_t *work) {
    struct journal *j = work->data;
    struct trouble *t = &j->trouble;
    static const char block[4096];
    t->probe_errno = 0;
    t->probe_step = "make a file";
    autoclose int fd = open(j->dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) {
        t->probe_errno = errno;
        return;
    }
    t->probe_step = "allocate a file of the log";
    if ((t->probe_errno = posix_fallocate(fd, 0, SEGMENT_BYTES)) != 0)
        return;
    t->probe_step = "write to a file of the log";
    ssize_t n = pwrite(fd, block, sizeof(block), 0);
    if (n != (ssize_t)sizeof(block) || fdatasync(fd) < 0)
        t->probe_errno = n >= 0 && n < (ssize_t)sizeof(block) ? ENOSPC : errno;
}

static void probe_done(uv_work_t *work, int status) {
    trouble_probed(work->data);
}

void probe_begin(struct journal *j) {
    j->trouble.work.data = j;
    must(uv_queue_work(loop_uv(j->loop), &j->trouble.work, probe_work, probe_done) == 0);
}

/* ---- the reserve ---- */

bool reserve_is_there(const struct journal *j) {
    autofree char *path = xasprintf("%s/" RESERVE_FILE, j->dir);
    return access(path, F_OK) == 0;
}

void reserve_remove(const struct journal *j) {
    autofree char *path = xasprintf("%s/" RESERVE_FILE, j->dir);
    unlink(path);
}

static void reserve_work(uv_work_t *work) {
    struct journal *j = work->data;
    autofree char *tmp = xasprintf("%s/tmp-" RESERVE_FILE, j->dir);
    autofree char *path = xasprintf("%s/" RESERVE_FILE, j->dir);
    autoclose int fd = open(tmp, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    /* Twice as much must be free: it is not to be what fills the disk. */
    if (posix_fallocate(fd, 0, 2 * (off_t)RESERVE_BYTES) != 0 || ftruncate(fd, RESERVE_BYTES) < 0 ||
        rename(tmp, path) < 0)
        unlink(tmp);
}

static void reserve_done(uv_work_t *work, int status) {
    trouble_reserved(work->data);
}

void reserve_begin(struct journal *j) {
    j->trouble.reserve_work.data = j;
    must(uv_queue_work(loop_uv(j->loop), &j->trouble.reserve_work, reserve_work, reserve_done) == 0);
}
