/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes: a growing buffer to write to, and a reader that can't run past its end.
 *
 * The number formats are those of Protocol Buffers (LEB128 varints, zigzag for signed), so that whatever we store can
 * be looked at with `protoc --decode_raw`. A reader that meets damaged input sets `bad` and returns zeros from then
 * on: check it once, at the end.
 */
#ifndef SPUR_BASE_BUF_H
#define SPUR_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *p;
    size_t n, cap;
};

void buf_fini(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory */
uint8_t *buf_reserve(struct buf *b, size_t more); /* room for `more` bytes behind n; does not move n */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_u8(struct buf *b, uint8_t v);
void buf_u32le(struct buf *b, uint32_t v);
void buf_u64le(struct buf *b, uint64_t v);
void buf_varint(struct buf *b, uint64_t v);
void buf_zigzag(struct buf *b, int64_t v);
void buf_bytes(struct buf *b, const void *p, size_t n); /* varint length, then the bytes */
struct buf buf_take(struct buf *b);

#define auto_buf __attribute__((cleanup(buf_fini))) struct buf

struct rd {
    const uint8_t *p, *end;
    bool bad;
};

static inline struct rd rd_of(const void *p, size_t n) {
    return (struct rd){p, (const uint8_t *)p + n, false};
}
static inline size_t rd_left(const struct rd *r) {
    return (size_t)(r->end - r->p);
}
uint8_t rd_u8(struct rd *r);
uint32_t rd_u32le(struct rd *r);
uint64_t rd_u64le(struct rd *r);
uint64_t rd_varint(struct rd *r);
int64_t rd_zigzag(struct rd *r);
const uint8_t *rd_take(struct rd *r, size_t n); /* borrowed; NULL and bad when there are fewer */
struct rd rd_bytes(struct rd *r);               /* what buf_bytes wrote, as a reader of its own */

#endif
