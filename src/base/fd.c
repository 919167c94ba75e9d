/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"

int fd_write(int fd, const void *p, size_t n) {
    for (const char *at = p; n;) {
        ssize_t k = write(fd, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        at += k;
        n -= (size_t)k;
    }
    return 0;
}

ssize_t fd_read(int fd, void *p, size_t n) {
    size_t got = 0;
    while (got < n) {
        ssize_t k = read(fd, (char *)p + got, n - got);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        if (!k)
            break;
        got += (size_t)k;
    }
    return (ssize_t)got;
}

int dir_sync(const char *dir, struct err *e) {
    autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? err_sys(e, "sync %s", dir) : 0;
}
