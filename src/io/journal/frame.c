/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames and blobs: the few bytes of our own around what the owner gives us. docs/format/journal.md is their contract.
 *
 * libraft keeps neither the length of an entry that is no multiple of 8 nor the index of an entry on disk; the tail
 * says both. An index that is not that of the entry's place means that a file before it is missing.
 */
#include "io/journal/frame.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"

#define BLOB_MAGIC "SPURsnap"
#define BLOB_VERSION 1
#define BLOB_HEAD (8 + 4 + 4 + 8 + 8 + 8) /* magic, version, CRC, two indexes, length */

void frame_close(struct buf *entry, const struct frame *f) {
    unsigned pad = (unsigned)(-entry->n & 7);
    static const uint8_t zeros[8];
    buf_reserve(entry, pad + FRAME_TAIL);
    buf_add(entry, zeros, pad);
    must(f->term <= UINT32_MAX);
    buf_u8(entry, FRAME_VERSION);
    buf_u8(entry, (uint8_t)pad);
    buf_u8(entry, (uint8_t)f->behind);
    buf_u8(entry, (uint8_t)(f->behind >> 8));
    buf_u32le(entry, (uint32_t)f->term);
    buf_u64le(entry, f->index);
}

bool frame_open(const void *p, size_t n, struct frame *out, size_t *out_n) {
    if (n < FRAME_TAIL || n % 8)
        return false;
    struct rd r = rd_of((const uint8_t *)p + n - FRAME_TAIL, FRAME_TAIL);
    uint8_t version = rd_u8(&r), pad = rd_u8(&r);
    if (version != FRAME_VERSION || pad > 7 || n - FRAME_TAIL < pad)
        return false;
    out->behind = rd_u8(&r);
    out->behind |= (uint16_t)(rd_u8(&r) << 8);
    out->term = rd_u32le(&r);
    out->index = rd_u64le(&r);
    *out_n = n - FRAME_TAIL - pad;
    return true;
}

void blob_write(struct buf *out, const struct blob *b) {
    buf_add(out, BLOB_MAGIC, 8);
    buf_u32le(out, BLOB_VERSION);
    buf_u32le(out, 0);
    buf_u64le(out, b->raft_index);
    buf_u64le(out, b->owner_index);
    buf_u64le(out, b->n);
    buf_add(out, b->manifest, b->n);
    uint32_t crc = crc_add(0, out->p + 16, out->n - 16);
    for (int i = 0; i < 4; i++)
        out->p[12 + i] = (uint8_t)(crc >> (8 * i));
}

bool blob_read(const void *p, size_t n, struct blob *out) {
    if (n < BLOB_HEAD || memcmp(p, BLOB_MAGIC, 8) != 0)
        return false;
    struct rd r = rd_of((const uint8_t *)p + 8, n - 8);
    uint32_t version = rd_u32le(&r), crc = rd_u32le(&r);
    if (version != BLOB_VERSION || crc != crc_add(0, (const uint8_t *)p + 16, n - 16))
        return false;
    out->raft_index = rd_u64le(&r);
    out->owner_index = rd_u64le(&r);
    out->n = rd_u64le(&r);
    out->manifest = r.p;
    return out->n == rd_left(&r);
}

/* One row for each byte of four, so that four bytes cost one step. */
static uint32_t crc_table[4][256];

static void crc_fill(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i << 24;
        for (int bit = 0; bit < 8; bit++)
            c = (c << 1) ^ ((c >> 31) * 0x04c11db7u);
        crc_table[0][i] = c;
    }
    for (int row = 1; row < 4; row++)
        for (uint32_t i = 0; i < 256; i++)
            crc_table[row][i] = (crc_table[row - 1][i] << 8) ^ crc_table[0][crc_table[row - 1][i] >> 24];
}

uint32_t crc_add(uint32_t crc, const void *data, size_t n) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, crc_fill);
    const uint8_t *p = data;
    for (; n >= 4; n -= 4, p += 4) {
        crc ^= (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
        crc = crc_table[3][crc >> 24] ^ crc_table[2][crc >> 16 & 255] ^ crc_table[1][crc >> 8 & 255] ^
              crc_table[0][crc & 255];
    }
    while (n--)
        crc = (crc << 8) ^ crc_table[0][(crc >> 24) ^ *p++];
    return crc;
}
