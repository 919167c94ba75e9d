/* SPDX-License-Identifier: Apache-2.0 */
#include "spurstepd/flow.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define READ_MOST (256u << 10) /* of one stream before others have their turn */

void ring_fini(struct ring *r) {
    free(r->p);
    *r = (struct ring){0};
}

/* The pieces of [from, from + n) in a memory of `cap` bytes. */
static int pieces(uint8_t *p, size_t cap, uint64_t from, size_t n, struct iovec out[2]) {
    size_t at = (size_t)(from & (cap - 1)), first = MIN(n, cap - at);
    out[0] = (struct iovec){p + at, first};
    out[1] = (struct iovec){p, n - first};
    return first < n ? 2 : 1;
}

static void grow(struct ring *r, size_t needed) {
    size_t cap = r->cap ? r->cap : MIN(RING_MIN, r->max);
    while (cap < needed)
        cap *= 2;
    if (cap == r->cap)
        return;
    uint8_t *bigger = xmalloc(cap);
    struct iovec from[2], to[2];
    size_t held = ring_held(r);
    if (held) {
        int n = pieces(r->p, r->cap, r->base, held, from);
        uint64_t at = r->base;
        for (int i = 0; i < n; at += from[i].iov_len, i++) {
            int m = pieces(bigger, cap, at, from[i].iov_len, to);
            memcpy(to[0].iov_base, from[i].iov_base, to[0].iov_len);
            if (m == 2)
                memcpy(to[1].iov_base, (uint8_t *)from[i].iov_base + to[0].iov_len, to[1].iov_len);
        }
    }
    free(r->p);
    r->p = bigger;
    r->cap = cap;
}

int ring_space(struct ring *r, size_t n, struct iovec out[2]) {
    must(n <= ring_room(r));
    grow(r, ring_held(r) + n);
    return pieces(r->p, r->cap, r->end, n, out);
}

void ring_added(struct ring *r, size_t n) {
    r->end += n;
    must(ring_held(r) <= r->cap);
}

int ring_view(const struct ring *r, uint64_t from, size_t n, struct iovec out[2]) {
    must(from >= r->base && from + n <= r->end);
    return pieces(r->p, r->cap, from, n, out);
}

void ring_drop(struct ring *r, uint64_t up_to) {
    if (up_to > r->base)
        r->base = MIN(up_to, r->end);
}

void ring_copy_in(struct ring *r, const void *p, size_t n) {
    struct iovec to[2];
    if (!n)
        return;
    int k = ring_space(r, n, to);
    memcpy(to[0].iov_base, p, to[0].iov_len);
    if (k == 2)
        memcpy(to[1].iov_base, (const uint8_t *)p + to[0].iov_len, to[1].iov_len);
    ring_added(r, n);
}

/* ---- a task's output ---- */

void outflow_open(struct outflow *f, int fd, uint32_t rank, uint32_t number, size_t window) {
    *f = (struct outflow){.fd = fd, .is_used = true, .rank = rank, .number = number, .ring.max = window};
}

void outflow_close(struct outflow *f) {
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    f->eof = f->is_used;
}

void outflow_fini(struct outflow *f) {
    outflow_close(f);
    ring_fini(&f->ring);
}

/* A ring that is full as often as not is let grow; one that is read out stays small. */
static size_t room_for_reading(const struct ring *r) {
    size_t room = ring_room(r), grown = r->cap - ring_held(r);
    if (grown >= RING_MIN / 2)
        room = MIN(room, grown);
    return MIN(room, (size_t)READ_MOST);
}

void outflow_read(struct outflow *f) {
    struct iovec to[2];
    if (!outflow_wants(f))
        return;
    int k = ring_space(&f->ring, room_for_reading(&f->ring), to);
    ssize_t n = readv(f->fd, to, k);
    if (n > 0)
        ring_added(&f->ring, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) /* a terminal nobody has open any more says EIO */
        outflow_close(f);
}
