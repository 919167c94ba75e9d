/* SPDX-License-Identifier: Apache-2.0
 *
 * Where output goes. A reader that does not read must not stop srun, and the flags of an inherited descriptor are not
 * ours to change (others write through it too): so a pipe or terminal is opened once more through /proc, without
 * blocking. Where that is not possible it is written to in pieces that fit when poll says that there is room.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/srun.h"

#define FULL (128u << 10)  /* so much may wait */
#define DIRECT (16u << 10) /* so much at once is not copied */

void sink_open(struct sink *k, int fd) {
    *k = (struct sink){.fd = fd, .own_fd = -1};
    struct stat st;
    char path[32];
    if (fstat(fd, &st))
        return;
    if (S_ISSOCK(st.st_mode)) {
        k->kind = SINK_SOCKET;
    } else if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        k->own_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        k->kind = SINK_NONBLOCK;
    }
}

void sink_fini(struct sink *k) {
    if (k->own_fd >= 0)
        close(k->own_fd);
    buf_fini(&k->out);
}

int sink_fd(const struct sink *k) {
    return k->own_fd >= 0 ? k->own_fd : k->fd;
}

size_t sink_waiting(const struct sink *k) {
    return k->is_broken ? 0 : k->out.n - k->at;
}

/* Bytes written; 0: there is no room. */
static size_t write_some(struct sink *k, const void *p, size_t n) {
    ssize_t got;
    do {
        if (k->kind == SINK_SOCKET) {
            got = send(k->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        } else if (k->kind == SINK_PLAIN || k->own_fd >= 0) {
            got = write(sink_fd(k), p, n);
        } else {
            struct pollfd room = {.fd = k->fd, .events = POLLOUT};
            if (poll(&room, 1, 0) <= 0)
                return 0;
            got = write(k->fd, p, MIN(n, (size_t)PIPE_BUF));
        }
    } while (got < 0 && errno == EINTR);
    if (got >= 0)
        return (size_t)got;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return 0;
    k->is_broken = true;
    k->error = errno;
    return 0;
}

void sink_flush(struct sink *k) {
    while (sink_waiting(k)) {
        size_t n = write_some(k, k->out.p + k->at, k->out.n - k->at);
        if (!n)
            break;
        k->at += n;
    }
    if (!sink_waiting(k)) {
        buf_clear(&k->out);
        k->at = 0;
    }
}

bool sink_is_full(struct sink *k) {
    if (sink_waiting(k) <= FULL)
        return false;
    sink_flush(k);
    return sink_waiting(k) > FULL;
}

void sink_put(struct sink *k, const void *p, size_t n) {
    const uint8_t *b = p;
    if (k->is_broken)
        return;
    if (n >= DIRECT) {
        sink_flush(k);
        while (n && !sink_waiting(k)) {
            size_t done = write_some(k, b, n);
            if (!done)
                break;
            b += done;
            n -= done;
        }
        if (k->is_broken)
            return;
    }
    if (k->at && k->at >= FULL) { /* what was written goes */
        memmove(k->out.p, k->out.p + k->at, k->out.n - k->at);
        k->out.n -= k->at;
        k->at = 0;
    }
    buf_add(&k->out, b, n);
    if (sink_waiting(k) > FULL / 2)
        sink_flush(k);
}
