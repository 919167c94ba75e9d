/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of a step on their way: what tasks say, kept until the client has it, and the client's input, kept until the
 * tasks have it. Offsets count from the beginning of a stream. Nothing here copies but into and out of a ring.
 */
#ifndef SPUR_SPURSTEPD_FLOW_H
#define SPUR_SPURSTEPD_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RING_MIN (64u << 10)

struct ring {
    uint8_t *p;
    size_t cap, max;    /* powers of two; cap 0: nothing was in it yet */
    uint64_t base, end; /* offsets of what is kept */
};
void ring_fini(struct ring *r);
static inline size_t ring_held(const struct ring *r) {
    return (size_t)(r->end - r->base);
}
static inline size_t ring_room(const struct ring *r) {
    return r->max - ring_held(r);
}
/* Where up to `n` bytes can be put (n <= ring_room); the ring grows for them. Returns how many pieces, 1 or 2. */
int ring_space(struct ring *r, size_t n, struct iovec out[2]);
void ring_added(struct ring *r, size_t n);
/* Bytes [from, from + n), which must be kept. */
int ring_view(const struct ring *r, uint64_t from, size_t n, struct iovec out[2]);
void ring_drop(struct ring *r, uint64_t up_to); /* what is before is not needed any more */
void ring_copy_in(struct ring *r, const void *p, size_t n);

/* Where a task's stdout or stderr comes out. */
struct outflow {
    int fd;       /* -1: none, or at its end */
    bool is_used; /* there is such a stream */
    bool eof;     /* ring.end is its length */
    uint32_t rank, number;
    struct ring ring;
};
void outflow_open(struct outflow *f, int fd, uint32_t rank, uint32_t number, size_t window);
void outflow_fini(struct outflow *f);
/* Whether there is room for more, so that reading it makes sense. */
static inline bool outflow_wants(const struct outflow *f) {
    return f->fd >= 0 && ring_room(&f->ring) > 0;
}
void outflow_read(struct outflow *f);  /* what is there, without waiting */
void outflow_close(struct outflow *f); /* its end, whoever still holds the other side */

#endif
