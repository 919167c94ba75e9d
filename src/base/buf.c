/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <string.h>

#include "base/mem.h"

void buf_fini(struct buf *b) {
    free(b->p);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b) {
    b->n = 0;
}

uint8_t *buf_reserve(struct buf *b, size_t more) {
    if (b->n + more > b->cap) {
        b->cap = MAX(b->n + more, b->cap * 2);
        b->cap = MAX(b->cap, (size_t)128);
        b->p = xrealloc(b->p, b->cap);
    }
    return b->p + b->n;
}

void buf_add(struct buf *b, const void *p, size_t n) {
    if (!n)
        return;
    memcpy(buf_reserve(b, n), p, n);
    b->n += n;
}

void buf_u8(struct buf *b, uint8_t v) {
    buf_add(b, &v, 1);
}

void buf_u32le(struct buf *b, uint32_t v) {
    uint8_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = (uint8_t)(v >> (8 * i));
    buf_add(b, t, sizeof(t));
}

void buf_u64le(struct buf *b, uint64_t v) {
    buf_u32le(b, (uint32_t)v);
    buf_u32le(b, (uint32_t)(v >> 32));
}

void buf_varint(struct buf *b, uint64_t v) {
    uint8_t t[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        t[n++] = (uint8_t)(v | 0x80);
    t[n++] = (uint8_t)v;
    buf_add(b, t, n);
}

void buf_zigzag(struct buf *b, int64_t v) {
    buf_varint(b, ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0));
}

void buf_bytes(struct buf *b, const void *p, size_t n) {
    buf_varint(b, n);
    buf_add(b, p, n);
}

struct buf buf_take(struct buf *b) {
    struct buf t = *b;
    *b = (struct buf){0};
    return t;
}

const uint8_t *rd_take(struct rd *r, size_t n) {
    if (r->bad || rd_left(r) < n) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *p = r->p;
    r->p += n;
    return p;
}

uint8_t rd_u8(struct rd *r) {
    const uint8_t *p = rd_take(r, 1);
    return p ? *p : 0;
}

uint32_t rd_u32le(struct rd *r) {
    const uint8_t *p = rd_take(r, 4);
    return p ? p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24 : 0;
}

uint64_t rd_u64le(struct rd *r) {
    uint64_t low = rd_u32le(r);
    return low | (uint64_t)rd_u32le(r) << 32;
}

uint64_t rd_varint(struct rd *r) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = rd_u8(r);
        if (shift == 63 && byte > 1)
            break;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return r->bad ? 0 : v;
    }
    r->bad = true;
    return 0;
}

int64_t rd_zigzag(struct rd *r) {
    uint64_t v = rd_varint(r);
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

struct rd rd_bytes(struct rd *r) {
    uint64_t n = rd_varint(r);
    if (n > rd_left(r))
        r->bad = true;
    const uint8_t *p = rd_take(r, r->bad ? 0 : n);
    return p ? rd_of(p, n) : (struct rd){.bad = true};
}
