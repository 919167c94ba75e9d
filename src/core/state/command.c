/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries of the log: their envelope.
 */
#include "core/state/command.h"

#include "base/mem.h"

void command_encode(const struct command_head *h, const void *record, struct buf *out) {
    const struct rec_desc *d = command_record(h->command);
    must(d);
    buf_u8(out, COMMAND_VERSION);
    buf_varint(out, h->command);
    buf_varint(out, h->uid);
    buf_zigzag(out, h->now_ms);
    buf_bytes(out, h->token, h->token ? COMMAND_TOKEN_SIZE : 0);
    auto_buf inner = {0};
    rec_encode(d, record, &inner);
    buf_bytes(out, inner.p, inner.n);
}

int command_decode(const void *p, size_t n, struct arena *a, struct command_head *out, void **out_record,
                   struct err *e) {
    struct rd r = rd_of(p, n);
    uint8_t version = rd_u8(&r);
    if (n && version != COMMAND_VERSION)
        return err_set(e, E_VERSION, "log entry of version %u; this program reads version %u", version,
                       COMMAND_VERSION);
    uint64_t number = rd_varint(&r);
    uint64_t uid = rd_varint(&r);
    int64_t now_ms = rd_zigzag(&r);
    struct rd token = rd_bytes(&r);
    struct rd body = rd_bytes(&r);
    if (r.bad || token.bad || body.bad || rd_left(&r) || uid > UINT32_MAX)
        return err_set(e, E_CORRUPT, "log entry of %zu bytes is damaged", n);
    const struct rec_desc *d = number < 65536 ? command_record((enum command)number) : NULL;
    if (!d)
        return err_set(e, E_VERSION, "log entry with command %llu, which this program does not know",
                       (unsigned long long)number);
    if (rd_left(&token) && rd_left(&token) != COMMAND_TOKEN_SIZE)
        return err_set(e, E_CORRUPT, "log entry with a token of %zu bytes", rd_left(&token));
    void *record = arena_alloc(a, d->size);
    int rc = rec_decode(d, body.p, rd_left(&body), a, record, e);
    if (rc)
        return rc;
    *out = (struct command_head){(enum command)number, (uint32_t)uid, now_ms, rd_left(&token) ? token.p : NULL};
    *out_record = record;
    return 0;
}
