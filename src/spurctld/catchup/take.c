/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk as other members send it, and as they ask for it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "spurctld/catchup/spread.h"

enum { PARTIAL_MOST = 4, PARTIAL_BYTES = 64 << 20, GIVE_MOST = 1024 };

struct partial { /* a large one on its way */
    struct blob_hash hash;
    uint64_t size;
    struct buf bytes;
    int64_t heard_ms;
};

struct taking_in {
    struct catchup *c;
    struct partial partial[PARTIAL_MOST];
};

struct taking_in *taking_in_new(struct catchup *c) {
    struct taking_in *t = xnew(struct taking_in);
    t->c = c;
    return t;
}

void taking_in_free(struct taking_in *t) {
    for (size_t i = 0; i < PARTIAL_MOST; i++)
        buf_fini(&t->partial[i].bytes);
    free(t);
}

/* ---- taking ---- */

struct batch { /* one message */
    unsigned n, n_done;
    uint32_t *codes;
    host_reply_fn fn;
    void *arg;
};

struct item {
    struct batch *b;
    unsigned i;
    struct blob_hash claimed;
};

static void item_done(struct batch *b, unsigned i, int code) {
    auto_buf bytes = {0};
    b->codes[i] = (uint32_t)-code;
    if (++b->n_done < b->n)
        return;
    struct store_blobs_reply reply = {b->codes, b->n};
    rec_encode(store_blobs_reply_rec(), &reply, &bytes);
    b->fn(b->arg, 0, NULL, bytes.p, bytes.n);
    free(b->codes);
    free(b);
}

static void on_put(void *arg, int code, const struct err *why, const struct blob_hash *hash) {
    struct item *it = arg;
    if (!code && memcmp(hash, &it->claimed, sizeof(*hash)) != 0)
        code = E_CORRUPT;
    item_done(it->b, it->i, code);
    free(it);
}

static void put(struct catchup *c, struct batch *b, unsigned i, const struct blob_hash *claimed, struct buf bytes) {
    struct item *it = xnew(struct item);
    *it = (struct item){b, i, *claimed};
    blob_put(c->conf.blobs, bytes, on_put, it);
}

/* Where the parts of this one are gathered; in the place of the one that was heard of longest ago. */
static struct partial *partial_of(struct taking_in *t, const struct blob_hash *h, uint64_t size) {
    struct partial *oldest = &t->partial[0];
    for (size_t i = 0; i < PARTIAL_MOST; i++) {
        struct partial *p = &t->partial[i];
        if (p->size == size && memcmp(&p->hash, h, sizeof(*h)) == 0)
            return p;
        if (p->heard_ms < oldest->heard_ms)
            oldest = p;
    }
    buf_fini(&oldest->bytes);
    *oldest = (struct partial){.hash = *h, .size = size};
    return oldest;
}

static void take_part(struct catchup *c, struct batch *b, unsigned i, const struct blob_part *part,
                      const struct blob_hash *h) {
    struct partial *p = partial_of(spread_taking(c->spread), h, part->size);
    p->heard_ms = catchup_now_ms(c);
    if (part->offset == 0)
        p->bytes.n = 0;
    if (p->bytes.n != part->offset || part->n_data > part->size - part->offset) {
        item_done(b, i, E_STALE); /* a part is missing: it begins anew */
        return;
    }
    buf_add(&p->bytes, part->data, part->n_data);
    if (p->bytes.n < part->size) {
        item_done(b, i, 0);
        return;
    }
    struct buf whole = p->bytes;
    *p = (struct partial){0};
    put(c, b, i, h, whole);
}

void catchup_take_blobs(struct catchup *c, const struct store_blobs_request *rq, host_reply_fn fn, void *arg) {
    struct err e;
    if (!rq->n_parts) {
        fn(arg, err_set(&e, E_USAGE, "no blobs"), &e, NULL, 0);
        return;
    }
    struct batch *b = xnew(struct batch);
    unsigned n = rq->n_parts;
    *b = (struct batch){.n = n, .codes = xcalloc(n, sizeof(uint32_t)), .fn = fn, .arg = arg};
    for (unsigned i = 0; i < n; i++) { /* behind the last one b may be gone */
        const struct blob_part *part = &rq->parts[i];
        struct blob_hash h = {0};
        struct buf bytes = {0};
        if (part->n_hash != sizeof(h.b) || part->size > PARTIAL_BYTES) {
            item_done(b, i, E_TOO_BIG);
            continue;
        }
        memcpy(h.b, part->hash, sizeof(h.b));
        if (part->offset || part->n_data != part->size) {
            take_part(c, b, i, part, &h);
            continue;
        }
        buf_add(&bytes, part->data, part->n_data);
        put(c, b, i, &h, bytes);
    }
}

/* ---- giving ---- */

struct giving {
    struct catchup *c;
    struct blob_hash *hashes;
    unsigned n, at;
    uint64_t offset;
    struct arena arena;
    VEC(struct blob_part) parts;
    size_t bytes;
    host_reply_fn fn;
    void *arg;
};

static void give_next(struct giving *g);

static void given(struct giving *g) {
    auto_buf bytes = {0};
    struct blobs_reply reply = {g->parts.p, (uint32_t)g->parts.n};
    rec_encode(blobs_reply_rec(), &reply, &bytes);
    g->fn(g->arg, 0, NULL, bytes.p, bytes.n);
    vec_fini(&g->parts);
    arena_fini(&g->arena);
    free(g->hashes);
    free(g);
}

static void on_got(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct giving *g = arg;
    uint64_t from = g->at == 0 ? MIN(g->offset, (uint64_t)n) : 0;
    struct blob_part part = {.hash = g->hashes[g->at].b, .n_hash = BLOB_HASH_SIZE, .size = n, .offset = from,
                             .missing = code != 0};
    size_t most = BULK_PART_BYTES - MIN(g->bytes, (size_t)BULK_PART_BYTES);
    if (!code && g->parts.n && n > most) { /* the next message */
        given(g);
        return;
    }
    if (!code) {
        part.n_data = (uint32_t)MIN(n - from, most);
        part.data = arena_memdup(&g->arena, (const uint8_t *)p + from, part.n_data);
        g->bytes += part.n_data + 64;
    }
    vec_push(&g->parts, part);
    g->at++;
    if (g->at == g->n || g->bytes >= BULK_PART_BYTES || part.offset + part.n_data < part.size)
        given(g);
    else
        give_next(g);
}

static void give_next(struct giving *g) {
    blob_get(g->c->conf.blobs, &g->hashes[g->at], on_got, g);
}

void catchup_give_blobs(struct catchup *c, const struct blobs_request *rq, host_reply_fn fn, void *arg) {
    struct err e;
    if (!rq->n_hashes || rq->n_hashes % BLOB_HASH_SIZE || rq->n_hashes > GIVE_MOST * BLOB_HASH_SIZE) {
        fn(arg, err_set(&e, E_USAGE, "this is no list of hashes"), &e, NULL, 0);
        return;
    }
    struct giving *g = xnew(struct giving);
    *g = (struct giving){.c = c, .n = rq->n_hashes / BLOB_HASH_SIZE, .offset = rq->offset, .fn = fn, .arg = arg};
    g->hashes = xcalloc(g->n, sizeof(*g->hashes));
    memcpy(g->hashes, rq->hashes, rq->n_hashes);
    give_next(g);
}
