/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/backup.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define REC_SELF backup_head
REC_DEFINE(backup_head, BACKUP_HEAD_FIELDS)
#undef REC_SELF
#define REC_SELF backup_end
REC_DEFINE(backup_end, BACKUP_END_FIELDS)
#undef REC_SELF
#define REC_SELF backup_blob
REC_DEFINE(backup_blob, BACKUP_BLOB_FIELDS)
#undef REC_SELF
#define REC_SELF backup_request
REC_DEFINE(backup_request, BACKUP_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF backup_reply
REC_DEFINE(backup_reply, BACKUP_REPLY_FIELDS)
#undef REC_SELF

/* ---- making ---- */

void backup_begin(struct buf *out) {
    buf_add(out, BACKUP_MAGIC, sizeof(BACKUP_MAGIC) - 1);
    buf_u32le(out, BACKUP_VERSION);
    buf_u32le(out, 0);
}

static uint32_t sum_of(uint8_t kind, const void *p, size_t n) {
    return hash_crc32c(hash_crc32c(0, &kind, 1), p, n);
}

void backup_chunk(struct buf *out, enum backup_kind kind, const void *p, size_t n) {
    must(n <= BACKUP_CHUNK_MOST);
    buf_u32le(out, (uint32_t)n);
    buf_u32le(out, sum_of((uint8_t)kind, p, n));
    buf_u8(out, (uint8_t)kind);
    buf_add(out, p, n);
}

/* ---- reading ---- */

static int whole(struct backup_reader *r, void *p, size_t n, struct err *e) {
    int64_t got = r->read(r->arg, p, n, e);
    if (got < 0)
        return (int)got;
    r->at += (uint64_t)got;
    return (size_t)got == n ? 0 : err_set(e, E_CORRUPT, "the backup ends at byte %llu, in the middle", (unsigned long long)r->at);
}

static int bad(const struct backup_reader *r, const char *what, struct err *e) {
    return err_set(e, E_CORRUPT, "the backup is damaged before byte %llu: %s", (unsigned long long)r->at, what);
}

static int read_begin(struct backup_reader *r, struct err *e) {
    int rc = whole(r, r->head, BACKUP_BEGIN_BYTES, e);
    struct rd rd = rd_of(r->head + 8, 8);
    if (rc == E_CORRUPT || (!rc && memcmp(r->head, BACKUP_MAGIC, 8) != 0))
        return err_set(e, E_CORRUPT, "this file is no backup");
    uint32_t version = rd_u32le(&rd);
    if (!rc && version != BACKUP_VERSION)
        return err_set(e, E_VERSION, "this backup is of format %u, and this program knows format %u: take the program that made it, "
                       "or a later one", version, BACKUP_VERSION);
    return !rc && rd_u32le(&rd) ? bad(r, "its beginning is not as it was written", e) : rc;
}

static bool may_follow(const struct backup_reader *r, enum backup_kind kind) {
    switch (kind) {
    case BACKUP_HEAD: return r->kind == 0;
    case BACKUP_STATE: return r->kind == BACKUP_HEAD || r->kind == BACKUP_STATE;
    case BACKUP_HISTORY: return r->kind == BACKUP_STATE || r->kind == BACKUP_HISTORY;
    case BACKUP_BLOB: return r->kind >= BACKUP_HISTORY && r->kind < BACKUP_END && !r->blob_left;
    case BACKUP_BLOB_DATA: return r->blob_left > 0;
    case BACKUP_END: return r->kind >= BACKUP_HISTORY && r->kind < BACKUP_END && !r->blob_left;
    }
    return false;
}

static int count(struct backup_reader *r, struct err *e) {
    const struct buf *p = &r->payload;
    auto_arena a = {0};
    struct backup_blob b;
    if (r->kind == BACKUP_STATE) {
        r->counted.state_bytes += p->n;
    } else if (r->kind == BACKUP_HISTORY) {
        r->counted.history_bytes += p->n;
    } else if (r->kind == BACKUP_BLOB_DATA) {
        if (p->n > r->blob_left || !p->n)
            return bad(r, "a script is longer than it says", e);
        r->blob_left -= p->n;
        r->counted.blob_bytes += p->n;
    } else if (r->kind == BACKUP_BLOB) {
        if (rec_decode(backup_blob_rec(), p->p, p->n, &a, &b, e) || b.n_hash != 32 || b.size > BACKUP_BLOB_MOST)
            return bad(r, "the name of a script can't be read", e);
        r->blob_left = b.size;
        r->counted.blobs++;
    }
    return 0;
}

static int check_end(struct backup_reader *r, struct err *e) {
    auto_arena a = {0};
    struct backup_end end;
    const struct backup_end *c = &r->counted;
    if (rec_decode(backup_end_rec(), r->payload.p, r->payload.n, &a, &end, e) || end.n_hash != 32)
        return bad(r, "its end can't be read", e);
    if (end.state_bytes != c->state_bytes || end.history_bytes != c->history_bytes || end.blobs != c->blobs ||
        end.blob_bytes != c->blob_bytes)
        return bad(r, "something is missing", e);
    return 0;
}

int backup_next(struct backup_reader *r, struct err *e) {
    uint8_t extra;
    if (r->kind == BACKUP_END) {
        int64_t n = r->read(r->arg, &extra, 1, e);
        return n < 0 ? (int)n : n ? bad(r, "something stands behind its end", e) : 0;
    }
    int rc = r->at ? 0 : read_begin(r, e);
    if (!rc)
        rc = whole(r, r->head, BACKUP_HEAD_BYTES, e);
    if (rc)
        return rc;
    r->n_head = BACKUP_HEAD_BYTES;
    struct rd rd = rd_of(r->head, BACKUP_HEAD_BYTES);
    uint32_t n = rd_u32le(&rd), sum = rd_u32le(&rd);
    enum backup_kind kind = rd_u8(&rd);
    if (n > BACKUP_CHUNK_MOST || !may_follow(r, kind))
        return bad(r, "a part is not in its place", e);
    r->payload.n = 0;
    rc = whole(r, buf_reserve(&r->payload, n + 1), n, e);
    if (rc)
        return rc;
    r->payload.n = n;
    if (sum_of((uint8_t)kind, r->payload.p, n) != sum)
        return bad(r, "a part's checksum is wrong", e);
    r->kind = kind;
    rc = count(r, e);
    if (!rc && kind == BACKUP_END)
        rc = check_end(r, e);
    return rc ? rc : 1;
}

void backup_reader_fini(struct backup_reader *r) {
    buf_fini(&r->payload);
}
