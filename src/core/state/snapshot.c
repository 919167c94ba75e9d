/* SPDX-License-Identifier: Apache-2.0
 *
 * The state as bytes (docs/format/snapshot.md):
 *
 *     "SPURSNAP" u32 version
 *     chunk…       u32 length | u32 crc32c | rows     (a row never crosses a chunk)
 *     chunk of length 0 at the end
 *
 *     row          u8 table | varint key | bytes record
 *
 * Tables are written in the order of their numbers, rows in the order of their keys, so equal states give equal files.
 */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/state/inside.h"

#define MAGIC "SPURSNAP"
#define CHUNK_BYTES 65536u

enum row { ROW_HEAD = 0, ROW_CLUSTER = 1, ROW_PART = 2, ROW_NODE = 3, ROW_JOB = 4, ROW_TOKEN = 5, ROW_STEP = 6 };

#define SNAP_HEAD_FIELDS(F) F(U64, index, 1, _) F(U64, digest, 2, _) F(SUB, counters, 3, counters)
REC_DECLARE(snap_head, SNAP_HEAD_FIELDS)
#define REC_SELF snap_head
REC_DEFINE(snap_head, SNAP_HEAD_FIELDS)
#undef REC_SELF

struct writer {
    state_write_fn write;
    void *arg;
    struct buf chunk, row;
    struct err *e;
};

static int flush(struct writer *w, bool is_last) {
    auto_buf head = {0};
    int rc = 0;
    if (w->chunk.n) {
        buf_u32le(&head, (uint32_t)w->chunk.n);
        buf_u32le(&head, hash_crc32c(0, w->chunk.p, w->chunk.n));
        rc = w->write(w->arg, head.p, head.n, w->e);
        if (!rc)
            rc = w->write(w->arg, w->chunk.p, w->chunk.n, w->e);
        buf_clear(&w->chunk);
    }
    if (!rc && is_last) {
        buf_clear(&head);
        buf_u64le(&head, 0);
        rc = w->write(w->arg, head.p, head.n, w->e);
    }
    return rc;
}

static int add_row(struct writer *w, enum row table, uint64_t key, const struct rec_desc *d, const void *rec) {
    buf_clear(&w->row);
    rec_encode(d, rec, &w->row);
    buf_u8(&w->chunk, (uint8_t)table);
    buf_varint(&w->chunk, key);
    buf_bytes(&w->chunk, w->row.p, w->row.n);
    return w->chunk.n >= CHUNK_BYTES ? flush(w, false) : 0;
}

static int add_table(struct writer *w, enum row table, const struct cow_root *root, const struct rec_desc *d) {
    const void *rec;
    for (uint64_t k = 0; (rec = cow_next(root, &k)); k++) {
        int rc = add_row(w, table, k, d, rec);
        if (rc)
            return rc;
    }
    return 0;
}

static int write_all(struct writer *w, const struct view *v) {
    auto_buf head = {0};
    buf_add(&head, MAGIC, 8);
    buf_u32le(&head, STATE_SNAPSHOT_VERSION);
    int rc = w->write(w->arg, head.p, head.n, w->e);
    struct snap_head sh = {v->index, v->digest, &v->counters};
    if (!rc)
        rc = add_row(w, ROW_HEAD, 0, snap_head_rec(), &sh);
    if (!rc)
        rc = add_row(w, ROW_CLUSTER, 0, cluster_rec(), v->cluster);
    if (!rc)
        rc = add_table(w, ROW_PART, v->parts, part_rec());
    if (!rc)
        rc = add_table(w, ROW_NODE, v->nodes, node_rec());
    if (!rc)
        rc = add_table(w, ROW_JOB, v->jobs, job_rec());
    if (!rc)
        rc = add_table(w, ROW_TOKEN, v->tokens, token_rec_rec());
    if (!rc)
        rc = add_table(w, ROW_STEP, v->steps, step_rec());
    return rc ? rc : flush(w, true);
}

int state_snapshot_write(const struct view *v, state_write_fn write, void *arg, struct err *e) {
    struct writer w = {.write = write, .arg = arg, .e = e};
    int rc = write_all(&w, v);
    buf_fini(&w.chunk);
    buf_fini(&w.row);
    return rc;
}

/* ---- reading ---- */

static const struct rec_desc *row_desc(unsigned table) {
    switch (table) {
    case ROW_HEAD: return snap_head_rec();
    case ROW_CLUSTER: return cluster_rec();
    case ROW_PART: return part_rec();
    case ROW_NODE: return node_rec();
    case ROW_JOB: return job_rec();
    case ROW_TOKEN: return token_rec_rec();
    case ROW_STEP: return step_rec();
    default: return NULL;
    }
}

static int take_row(struct state *s, unsigned table, uint64_t key, const void *rec, uint64_t *out_digest) {
    const struct snap_head *head = rec;
    switch (table) {
    case ROW_HEAD:
        s->index = head->index;
        *out_digest = head->digest;
        if (head->counters)
            s->counters = *head->counters;
        return 0;
    case ROW_CLUSTER: state_set_cluster(s, rec); return 0;
    case ROW_PART: cow_put(&s->parts, key, rec_pack(part_rec(), rec)); return 0;
    case ROW_NODE:
        if (!key || ((const struct node *)rec)->id != key || !((const struct node *)rec)->name)
            return E_CORRUPT;
        cow_put(&s->nodes, key, rec_pack(node_rec(), rec));
        return 0;
    case ROW_JOB:
        if (!key || ((const struct job *)rec)->id != key || !((const struct job *)rec)->spec)
            return E_CORRUPT;
        cow_put(&s->jobs, key, rec_pack(job_rec(), rec));
        return 0;
    case ROW_TOKEN:
        if (((const struct token_rec *)rec)->n_token != COMMAND_TOKEN_SIZE)
            return E_CORRUPT;
        cow_put(&s->tokens, key, rec_pack(token_rec_rec(), rec));
        return 0;
    case ROW_STEP:
        if (!key || step_key(((const struct step *)rec)->job_id, ((const struct step *)rec)->id) != key)
            return E_CORRUPT;
        cow_put(&s->steps, key, rec_pack(step_rec(), rec));
        return 0;
    default: return E_CORRUPT;
    }
}

static int read_chunk(struct state *s, struct rd r, uint64_t *digest, struct err *e) {
    auto_arena a = {0};
    while (!r.bad && rd_left(&r)) {
        unsigned table = rd_u8(&r);
        uint64_t key = rd_varint(&r);
        struct rd body = rd_bytes(&r);
        const struct rec_desc *d = row_desc(table);
        if (r.bad || body.bad)
            break;
        if (!d)
            return err_set(e, E_VERSION, "snapshot row of table %u, which this program does not know", table);
        void *rec = arena_alloc(&a, d->size);
        int rc = rec_decode(d, body.p, rd_left(&body), &a, rec, e);
        if (!rc)
            rc = take_row(s, table, key, rec, digest);
        if (rc)
            return err_set(e, rc, "snapshot row %u/%llu is damaged", table, (unsigned long long)key);
        arena_reset(&a);
    }
    return r.bad ? err_set(e, E_CORRUPT, "snapshot chunk is damaged") : 0;
}

static int read_chunks(struct state *s, struct rd r, uint64_t *digest, struct err *e) {
    for (;;) {
        uint32_t n = rd_u32le(&r);
        uint32_t crc = rd_u32le(&r);
        if (!r.bad && !n)
            return crc || rd_left(&r) ? err_set(e, E_CORRUPT, "snapshot has bytes behind its end") : 0;
        const uint8_t *p = rd_take(&r, n);
        if (!p)
            return err_set(e, E_CORRUPT, "snapshot ends early");
        if (hash_crc32c(0, p, n) != crc)
            return err_set(e, E_CORRUPT, "snapshot chunk has a wrong checksum");
        int rc = read_chunk(s, rd_of(p, n), digest, e);
        if (rc)
            return rc;
    }
}

int state_restore(struct state *s, const void *p, size_t n, struct err *e) {
    struct rd r = rd_of(p, n);
    const uint8_t *magic = rd_take(&r, 8);
    uint32_t version = rd_u32le(&r);
    if (r.bad || memcmp(magic, MAGIC, 8) != 0)
        return err_set(e, E_CORRUPT, "not a snapshot of spur");
    if (version != STATE_SNAPSHOT_VERSION)
        return err_set(e, E_VERSION, "snapshot of version %u; this program reads version %u", version,
                       STATE_SNAPSHOT_VERSION);
    uint64_t digest = 0;
    int rc = read_chunks(s, r, &digest, e);
    if (rc)
        return rc;
    state_derive(s);
    if (digest != state_digest(s))
        return err_set(e, E_CORRUPT, "snapshot does not add up to its digest");
    return state_check(s, e) ? err_wrap(e, "snapshot") : 0;
}
