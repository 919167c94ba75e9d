/* SPDX-License-Identifier: Apache-2.0
 *
 * What controllers send each other so that one that lacks something gets it: snapshots, history, bulk; and digests, by which
 * a state that went wrong is found.
 */
#ifndef SPUR_WIRE_CATCHUP_H
#define SPUR_WIRE_CATCHUP_H

#include "base/rec.h"

/* A file that the answering member holds ready for a while, by its pieces. */
#define FILE_INFO_FIELDS(F)                                                                                            \
    F(STR, name, 1, _) /* to be asked for with; no path */                                                             \
    F(U64, size, 2, _)                                                                                                 \
    F(BYTES, hash, 3, _)                                                                                               \
    F(U32, piece_bytes, 4, _) /* of each piece but the last */                                                         \
    F(BYTES, pieces, 5, _)    /* a BLAKE2b-256 hash for each, one after the other */                                   \
    F(U64, index, 6, _)       /* it holds everything up to this entry, at least */
REC_DECLARE(file_info, FILE_INFO_FIELDS)

/* The newest snapshot, if it holds everything up to this entry; with `take` one is made where there is none. */
#define MANIFEST_REQUEST_FIELDS(F) F(U64, at_least, 1, _) F(BOOL, take, 2, _)
REC_DECLARE(manifest_request, MANIFEST_REQUEST_FIELDS)
#define MANIFEST_REPLY_FIELDS(F) F(U64, index, 1, _) F(BYTES, manifest, 2, _)
REC_DECLARE(manifest_reply, MANIFEST_REPLY_FIELDS)

/* A copy of the history that holds all ends up to this entry. Answered with a file_info; E_BUSY: being made, ask again. */
#define HISTORY_COPY_REQUEST_FIELDS(F) F(U64, at_least, 1, _)
REC_DECLARE(history_copy_request, HISTORY_COPY_REQUEST_FIELDS)

#define PIECE_REQUEST_FIELDS(F) F(STR, name, 1, _) F(U64, offset, 2, _) F(U32, length, 3, _)
REC_DECLARE(piece_request, PIECE_REQUEST_FIELDS)
#define PIECE_REPLY_FIELDS(F) F(BYTES, data, 1, _)
REC_DECLARE(piece_reply, PIECE_REPLY_FIELDS)

/* A blob, or a part of a large one. */
#define BLOB_PART_FIELDS(F)                                                                                            \
    F(BYTES, hash, 1, _)                                                                                               \
    F(U64, size, 2, _) /* of the whole */                                                                              \
    F(U64, offset, 3, _)                                                                                               \
    F(BYTES, data, 4, _)                                                                                               \
    F(BOOL, missing, 5, _) /* the answering member has not got it */
REC_DECLARE(blob_part, BLOB_PART_FIELDS)
/* Blobs, by their hashes one after the other; the first from `offset` on. The answer has as many as fit. */
#define BLOBS_REQUEST_FIELDS(F) F(BYTES, hashes, 1, _) F(U64, offset, 2, _)
REC_DECLARE(blobs_request, BLOBS_REQUEST_FIELDS)
#define BLOBS_REPLY_FIELDS(F) F(LIST, parts, 1, blob_part)
REC_DECLARE(blobs_reply, BLOBS_REPLY_FIELDS)
/* Store these; answered when they are on disk, with a number of base/err.def for each (0: stored). Parts of a large one come
 * in order, each but the last is answered when it is in memory. */
#define STORE_BLOBS_REQUEST_FIELDS(F) F(LIST, parts, 1, blob_part)
REC_DECLARE(store_blobs_request, STORE_BLOBS_REQUEST_FIELDS)
#define STORE_BLOBS_REPLY_FIELDS(F) F(U32S, codes, 1, _)
REC_DECLARE(store_blobs_reply, STORE_BLOBS_REPLY_FIELDS)

/* The leader's state at an entry; what the other's was there. `is_wrong`: a majority has the leader's, you have not. */
#define DIGEST_REQUEST_FIELDS(F) F(U64, index, 1, _) F(U64, digest, 2, _) F(BOOL, is_wrong, 3, _)
REC_DECLARE(digest_request, DIGEST_REQUEST_FIELDS)
#define DIGEST_REPLY_FIELDS(F) F(BOOL, is_known, 1, _) F(U64, digest, 2, _)
REC_DECLARE(digest_reply, DIGEST_REPLY_FIELDS)

#endif
