/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a pack file (docs/format/blob-pack.md), and how one is read whose writer died. Knows no directory and
 * no thread: works on a descriptor.
 */
#ifndef SPUR_IO_BLOB_PACK_H
#define SPUR_IO_BLOB_PACK_H

#include "base/vec.h"
#include "io/blob/blob.h"

#define PACK_VERSION 1
#define PACK_HEADER_SIZE 32
#define PACK_RECORD_SIZE 48 /* the record's header; its bytes follow, filled up to a multiple of 8 */

struct pack_record {
    struct blob_hash hash;
    uint32_t offset, length;
    bool bad; /* the bytes are not those of the hash */
};

/* What a record of `length` bytes takes. */
static inline uint32_t pack_room(uint32_t length) {
    return PACK_RECORD_SIZE + ((length + 7) & ~(uint32_t)7);
}

void pack_header_encode(uint32_t number, uint64_t id, uint8_t out[PACK_HEADER_SIZE]);
/* E_VERSION for another version, E_CORRUPT for what is no header. */
int pack_header_decode(const uint8_t in[PACK_HEADER_SIZE], uint32_t *out_number, uint64_t *out_id);

/* `synced`: up to which offset the pack was on disk when this record was written. */
void pack_record_encode(uint32_t number, const struct pack_record *r, uint32_t synced, uint8_t out[PACK_RECORD_SIZE]);

struct pack_scan {
    VEC(struct pack_record) records; /* in the order of their offsets */
    uint64_t id;
    uint32_t end;    /* behind the last record; at least PACK_HEADER_SIZE */
    uint64_t size;   /* of the file */
    bool header_bad; /* the first bytes are no header (id is 0) */
    bool has_holes;  /* between records are bytes that are none */
};

/* Reads the headers of all records, and the bytes of those that may not have been on disk when the writer died or that
 * stand behind a damaged place. Errors: E_VERSION, E_SYS; damage is none. `out` is to be given to pack_scan_fini in any
 * case. */
int pack_scan(int fd, uint32_t number, struct pack_scan *out, struct err *e);
void pack_scan_fini(struct pack_scan *s);

/* The bytes of one record into `out` (emptied first), checked against the hash: E_CORRUPT, E_SYS. */
int pack_read(int fd, uint32_t number, const struct pack_record *r, struct buf *out, struct err *e);

#endif
