/* SPDX-License-Identifier: Apache-2.0 */
#include "io/rpc/frame.h"

#include <string.h>

#include "base/mem.h"

/* Moves what is pending to the front when the dead part is the larger one, so that a long stream stays small and no byte
 * is moved more than once on average. */
static void compact(struct buf *b, size_t *at) {
    if (*at == 0 || *at < b->n - *at)
        return;
    memmove(b->p, b->p + *at, b->n - *at);
    b->n -= *at;
    *at = 0;
}

void outq_message(struct outq *q, const void *message, size_t n) {
    must(n <= UINT32_MAX);
    compact(&q->b, &q->at);
    uint8_t prefix[FRAME_PREFIX] = {0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    buf_reserve(&q->b, sizeof(prefix) + n);
    buf_add(&q->b, prefix, sizeof(prefix));
    buf_add(&q->b, message, n);
    if (outq_pending(q) >= FRAME_HIGH)
        q->is_high = true;
}

void outq_copy(struct outq *q, uint8_t *to, size_t n) {
    must(n <= outq_pending(q));
    if (n)
        memcpy(to, q->b.p + q->at, n);
    q->at += n;
    if (q->is_high && outq_pending(q) < FRAME_HIGH) {
        q->is_high = false;
        q->drained = true;
    }
}

void outq_rewind(struct outq *q) {
    q->at = 0;
}

void outq_drop(struct outq *q) {
    q->b.n = q->at = 0;
    q->is_high = false;
}

void inq_add(struct inq *q, const void *data, size_t n) {
    compact(&q->b, &q->at);
    buf_add(&q->b, data, n);
}

static size_t declared(const struct inq *q) {
    const uint8_t *p = q->b.p + q->at;
    return (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
}

int inq_check(const struct inq *q, struct err *e) {
    if (inq_held(q) < FRAME_PREFIX)
        return 0;
    if (declared(q) > q->max)
        return err_set(e, E_TOO_BIG, "Message of %zu bytes is larger than the limit of %u", declared(q), q->max);
    if (q->b.p[q->at] != 0)
        return err_set(e, E_UNSUPPORTED, "Compressed messages are not supported");
    return 0;
}

int inq_next(struct inq *q, const uint8_t **out, size_t *out_n, struct err *e) {
    int rc = inq_check(q, e);
    if (rc || inq_held(q) < FRAME_PREFIX)
        return rc;
    size_t n = declared(q);
    if (inq_held(q) < FRAME_PREFIX + n)
        return 0;
    *out = q->b.p + q->at + FRAME_PREFIX;
    *out_n = n;
    q->at += FRAME_PREFIX + n;
    return 1;
}

bool inq_has_message(const struct inq *q) {
    if (inq_held(q) < FRAME_PREFIX)
        return false;
    return inq_check(q, NULL) != 0 || inq_held(q) >= FRAME_PREFIX + declared(q);
}

bool inq_is_empty(const struct inq *q) {
    return inq_held(q) == 0;
}
