/* SPDX-License-Identifier: Apache-2.0
 *
 * gRPC's messages in a stream of bytes: one byte (1: compressed), four of length (big-endian), the message. A queue of
 * what is to be sent, and one that puts together what arrives in pieces. Internal to io/rpc.
 */
#ifndef SPUR_IO_RPC_FRAME_H
#define SPUR_IO_RPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { FRAME_PREFIX = 5 };

/* All-zero is empty. */
struct outq {
    struct buf b;
    size_t at;    /* before it: sent */
    bool is_high; /* was at FRAME_HIGH or above since the last drain */
    bool drained; /* and fell below: whoever is interested clears it */
};
enum { FRAME_HIGH = 64 << 10 };

static inline size_t outq_pending(const struct outq *q) {
    return q->b.n - q->at;
}
void outq_message(struct outq *q, const void *message, size_t n);
void outq_copy(struct outq *q, uint8_t *to, size_t n); /* the next n bytes (there must be as many); they are sent then */
void outq_rewind(struct outq *q);                      /* for a retry; only while outq_message was called once */
void outq_drop(struct outq *q);                        /* forgets what is pending */

/* All-zero but for `max` is empty. */
struct inq {
    struct buf b;
    size_t at;    /* before it: delivered */
    uint32_t max; /* of one message */
};

static inline size_t inq_held(const struct inq *q) {
    return q->b.n - q->at;
}
void inq_add(struct inq *q, const void *data, size_t n);
/* 1: a message (borrowed until the next inq_add); 0: none is whole yet; E_TOO_BIG as soon as a length says so;
 * E_UNSUPPORTED: it is compressed. */
int inq_next(struct inq *q, const uint8_t **out, size_t *out_n, struct err *e);
int inq_check(const struct inq *q, struct err *e); /* inq_next's error, if that is what comes next */
bool inq_has_message(const struct inq *q); /* inq_next would not return 0 */
bool inq_is_empty(const struct inq *q);    /* not even a part of one */

#endif
