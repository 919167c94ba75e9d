/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes to the directory that are ours and not libraft's: repairs that check_dir found, the mark of its owner, the
 * lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/journal/check.h"

static int fix_one(const char *dir, const struct check_fix *f, struct err *e) {
    autofree char *path = xasprintf("%s/%s", dir, f->name);
    if (f->remove) {
        if (unlink(path) < 0 && errno != ENOENT)
            return err_sys(e, "%s", path);
        return 0;
    }
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)f->bytes) < 0 || fsync(fd) < 0)
        return err_sys(e, "%s", path);
    return 0;
}

int check_repair(const char *dir, const struct check *c, struct err *e) {
    for (size_t i = 0; i < c->fixes.n; i++) {
        int rc = fix_one(dir, &c->fixes.p[i], e);
        if (rc != 0)
            return rc;
    }
    return c->fixes.n ? dir_sync(dir, e) : 0;
}

int check_mark_owner(const char *dir, uint64_t id, bool joined, struct err *e) {
    autofree char *tmp = xasprintf("%s/tmp-" OWNER_FILE, dir);
    autofree char *path = xasprintf("%s/" OWNER_FILE, dir);
    char text[64];
    int n = snprintf(text, sizeof(text), "spur journal 1\nmember %llu\n%s", (unsigned long long)id,
                     joined ? "joined\n" : "");
    autoclose int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "%s", tmp);
    errno = ENOSPC; /* for a short write */
    if (write(fd, text, (size_t)n) != n || fsync(fd) < 0 || rename(tmp, path) < 0)
        return err_sys(e, "%s", path);
    return dir_sync(dir, e);
}

/* flock belongs to the open file, not to the process: a second journal of this process is refused as well, and the
 * lock goes with the process however it ends. */
int dir_lock(const char *dir, int *out_fd, struct err *e) {
    autofree char *path = xasprintf("%s/" LOCK_FILE, dir);
    autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "%s", path);
    char text[32] = {0};
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return err_sys(e, "%s", path);
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
        text[n > 0 ? strcspn(text, "\n") : 0] = 0;
        return err_set(e, E_EXISTS, "%s: is in use by process %s", dir, text[0] ? text : "(unknown)");
    }
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
        (void)0; /* the number is for people; the lock holds without it, on a full disk too */
    *out_fd = take_fd(&fd);
    return 0;
}
