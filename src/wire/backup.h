/* SPDX-License-Identifier: Apache-2.0
 *
 * A backup: one file over state, history and bulk of one log index (docs/format/backup.md), and how it is asked for.
 *
 *     16 bytes    "SPURBKUP", version, 0
 *     chunks      length, CRC-32C of kind and payload, kind, payload
 *                 HEAD  STATE…  HISTORY…  (BLOB BLOB_DATA…)…  END
 */
#ifndef SPUR_WIRE_BACKUP_H
#define SPUR_WIRE_BACKUP_H

#include "base/rec.h"

#define BACKUP_VERSION 1u
#define BACKUP_MAGIC "SPURBKUP"
#define BACKUP_BEGIN_BYTES 16u
#define BACKUP_HEAD_BYTES 9u           /* of a chunk, before its payload */
#define BACKUP_CHUNK_MOST (1u << 20)   /* of a payload */
#define BACKUP_BLOB_MOST (256ull << 20)

enum backup_kind { BACKUP_HEAD = 1, BACKUP_STATE, BACKUP_HISTORY, BACKUP_BLOB, BACKUP_BLOB_DATA, BACKUP_END };

#define BACKUP_HEAD_FIELDS(F)                                                                                          \
    F(STR, program, 1, _) /* version of the one that made it */                                                        \
    F(STR, cluster_name, 2, _)                                                                                         \
    F(I64, made_unix, 3, _)                                                                                            \
    F(U64, index, 4, _)  /* of the last entry in it */                                                                 \
    F(U64, digest, 5, _) /* of the state there */                                                                      \
    F(U32, state_version, 6, _) /* of the state's bytes, as in a snapshot */                                           \
    F(U32, entry_version, 7, _)                                                                                        \
    F(U32, history_version, 8, _)                                                                                      \
    F(U32, member_id, 9, _) /* whose files it was made of */
REC_DECLARE(backup_head, BACKUP_HEAD_FIELDS)

#define BACKUP_END_FIELDS(F)                                                                                           \
    F(BYTES, hash, 1, _) /* BLAKE2b-256 of all bytes before this chunk */                                              \
    F(U64, state_bytes, 2, _)                                                                                          \
    F(U64, history_bytes, 3, _)                                                                                        \
    F(U64, blobs, 4, _)                                                                                                \
    F(U64, blob_bytes, 5, _)                                                                                           \
    F(U64, missing, 6, _) /* bulk that a job names and no controller had */
REC_DECLARE(backup_end, BACKUP_END_FIELDS)

#define BACKUP_BLOB_FIELDS(F) F(BYTES, hash, 1, _) F(U64, size, 2, _)
REC_DECLARE(backup_blob, BACKUP_BLOB_FIELDS)

/* Without a name one is begun; with the one that was answered, asked how far it is. */
#define BACKUP_REQUEST_FIELDS(F) F(STR, name, 1, _)
REC_DECLARE(backup_request, BACKUP_REQUEST_FIELDS)
#define BACKUP_REPLY_FIELDS(F)                                                                                         \
    F(STR, name, 1, _)                                                                                                 \
    F(U64, bytes, 2, _)  /* so far */                                                                                  \
    F(BOOL, is_done, 3, _) /* it may be read, by BackupPiece, and is of that size */
REC_DECLARE(backup_reply, BACKUP_REPLY_FIELDS)

/* ---- making and reading the bytes ---- */

void backup_begin(struct buf *out); /* the first 16 */
void backup_chunk(struct buf *out, enum backup_kind kind, const void *p, size_t n);

/* Reads one from its beginning to its end: gives only what is whole, in its order, and complains otherwise. */
struct backup_reader {
    /* Fills n bytes, or fewer at the file's end: how many; < 0 is an error of err.def, with its text. */
    int64_t (*read)(void *arg, void *p, size_t n, struct err *e);
    void *arg;
    uint8_t head[BACKUP_BEGIN_BYTES];
    size_t n_head;       /* of `head`, which stood in front of the payload */
    enum backup_kind kind;
    struct buf payload;  /* of the chunk that was read last */
    uint64_t blob_left;  /* of the blob that began last */
    uint64_t at;         /* bytes read */
    struct backup_end counted;
};
/* 1: a chunk is there, 0: the end was read before and nothing stands behind it; else E_CORRUPT, E_VERSION, what `read` gave. The hash
 * in END is the caller's to check. */
int backup_next(struct backup_reader *r, struct err *e);
void backup_reader_fini(struct backup_reader *r);

#endif
