/* SPDX-License-Identifier: Apache-2.0
 *
 * What surrounds the owner's bytes in libraft's files.
 */
#ifndef SPUR_IO_JOURNAL_FRAME_H
#define SPUR_IO_JOURNAL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Behind each entry: zeros to a multiple of 8 (libraft wants that), then 16 bytes. */
#define FRAME_VERSION 1
#define FRAME_TAIL 16
struct frame {
    uint64_t index, term;
    uint16_t behind; /* how many entries up to this one were not yet durable when it was made; 0: not known */
};
void frame_close(struct buf *entry, const struct frame *f);
/* The owner's bytes are the first *out_n of `p`. False: not a frame. */
bool frame_open(const void *p, size_t n, struct frame *out, size_t *out_n);

/* What libraft keeps as the content of a snapshot: the owner's manifest and which moment it is of. */
struct blob {
    uint64_t raft_index;  /* libraft's */
    uint64_t owner_index; /* that of the last on_entry before it */
    const void *manifest; /* borrowed */
    size_t n;
};
void blob_write(struct buf *out, const struct blob *b);
bool blob_read(const void *p, size_t n, struct blob *out);

uint32_t crc_add(uint32_t crc, const void *p, size_t n); /* libraft's CRC-32: 0x04c11db7, high bit first, from 0 */

#endif
