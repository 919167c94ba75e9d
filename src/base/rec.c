/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing walks the record twice over one cursor: the first time with no memory, to learn the size, the second time
 * to copy. Both walks are the same code, so they can't disagree.
 */
#include "base/rec.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

#define DEPTH_MAX 16
#define WIRE_VARINT 0u
#define WIRE_FIXED64 1u
#define WIRE_BYTES 2u
#define WIRE_FIXED32 5u

struct head {
    uint64_t hash;
    size_t size;
};

static const void *ptr_at(const void *rec, const struct rec_field *f) {
    const void *p;
    memcpy(&p, (const char *)rec + f->off, sizeof(p));
    return p;
}

static uint32_t count_at(const void *rec, const struct rec_field *f) {
    uint32_t n = 0;
    if (f->off_n)
        memcpy(&n, (const char *)rec + f->off_n, sizeof(n));
    return n;
}

static void key(struct buf *out, const struct rec_field *f, unsigned wire) {
    buf_varint(out, (uint64_t)f->tag << 3 | wire);
}

static void put_delimited(struct buf *out, const struct rec_field *f, const struct buf *inner) {
    key(out, f, WIRE_BYTES);
    buf_bytes(out, inner->p, inner->n);
}

static void encode_numbers(const struct rec_field *f, const void *rec, struct buf *out) {
    const void *p = ptr_at(rec, f);
    auto_buf inner = {0};
    for (uint32_t i = 0; i < count_at(rec, f); i++)
        buf_varint(&inner, f->kind == REC_U32S ? ((const uint32_t *)p)[i] : ((const uint64_t *)p)[i]);
    if (inner.n)
        put_delimited(out, f, &inner);
}

static void encode_subs(const struct rec_field *f, const void *rec, struct buf *out) {
    const char *p = ptr_at(rec, f);
    const struct rec_desc *d = f->sub();
    uint32_t n = f->kind == REC_SUB ? p != NULL : count_at(rec, f);
    for (uint32_t i = 0; i < n; i++) {
        auto_buf inner = {0};
        rec_encode(d, p + i * d->size, &inner);
        put_delimited(out, f, &inner);
    }
}

static void encode_field(const struct rec_field *f, const void *rec, struct buf *out) {
    const char *at = (const char *)rec + f->off;
    switch ((enum rec_kind)f->kind) {
    case REC_U32:
    case REC_U64: {
        uint64_t v = f->kind == REC_U32 ? *(const uint32_t *)at : *(const uint64_t *)at;
        if (v) {
            key(out, f, WIRE_VARINT);
            buf_varint(out, v);
        }
        break;
    }
    case REC_I64:
        if (*(const int64_t *)at) {
            key(out, f, WIRE_VARINT);
            buf_zigzag(out, *(const int64_t *)at);
        }
        break;
    case REC_BOOL:
        if (*(const bool *)at) {
            key(out, f, WIRE_VARINT);
            buf_varint(out, 1);
        }
        break;
    case REC_STR: {
        const char *s = ptr_at(rec, f);
        if (s) {
            key(out, f, WIRE_BYTES);
            buf_bytes(out, s, strlen(s));
        }
        break;
    }
    case REC_BYTES:
        if (count_at(rec, f)) {
            key(out, f, WIRE_BYTES);
            buf_bytes(out, ptr_at(rec, f), count_at(rec, f));
        }
        break;
    case REC_STRS: {
        const char *const *v = ptr_at(rec, f);
        for (uint32_t i = 0; i < count_at(rec, f); i++) {
            key(out, f, WIRE_BYTES);
            buf_bytes(out, v[i], strlen(v[i]));
        }
        break;
    }
    case REC_U32S:
    case REC_U64S: encode_numbers(f, rec, out); break;
    case REC_SUB:
    case REC_LIST: encode_subs(f, rec, out); break;
    }
}

void rec_encode(const struct rec_desc *d, const void *rec, struct buf *out) {
    for (size_t i = 0; i < d->n_fields; i++)
        encode_field(&d->field[i], rec, out);
}

/* ---- decoding ---- */

static size_t elem_size(const struct rec_field *f) {
    switch ((enum rec_kind)f->kind) {
    case REC_STRS: return sizeof(char *);
    case REC_U32S: return sizeof(uint32_t);
    case REC_U64S: return sizeof(uint64_t);
    case REC_LIST: return f->sub()->size;
    default: return 0;
    }
}

/* Room for one more element: arrays grow in the arena at powers of two. */
static void *grow(const struct rec_field *f, void *rec, struct arena *a) {
    char *p = (char *)ptr_at(rec, f);
    uint32_t n = count_at(rec, f);
    size_t size = elem_size(f);
    if ((n & (n - 1)) == 0) {
        char *bigger = arena_calloc(a, n ? 2 * (size_t)n : 1, size);
        if (n)
            memcpy(bigger, p, n * size);
        p = bigger;
        memcpy((char *)rec + f->off, &p, sizeof(p));
    }
    uint32_t next = n + 1;
    memcpy((char *)rec + f->off_n, &next, sizeof(next));
    return p + n * size;
}

static int decode_into(const struct rec_desc *d, struct rd r, struct arena *a, void *out, unsigned depth);

static int decode_text(struct rd v, struct arena *a, const char **out) {
    if (v.bad || memchr(v.p, 0, rd_left(&v)))
        return E_CORRUPT;
    *out = arena_strndup(a, (const char *)v.p, rd_left(&v));
    return 0;
}

static int decode_numbers(const struct rec_field *f, struct rd v, struct arena *a, void *rec) {
    while (!v.bad && rd_left(&v)) {
        uint64_t x = rd_varint(&v);
        if (f->kind == REC_U32S && x > UINT32_MAX)
            return E_CORRUPT;
        void *slot = grow(f, rec, a);
        if (f->kind == REC_U32S)
            *(uint32_t *)slot = (uint32_t)x;
        else
            *(uint64_t *)slot = x;
    }
    return v.bad ? E_CORRUPT : 0;
}

static int decode_delimited(const struct rec_field *f, struct rd *r, struct arena *a, void *rec, unsigned depth) {
    struct rd v = rd_bytes(r);
    char *at = (char *)rec + f->off;
    if (v.bad)
        return E_CORRUPT;
    switch ((enum rec_kind)f->kind) {
    case REC_STR: return decode_text(v, a, (const char **)at);
    case REC_STRS: return decode_text(v, a, grow(f, rec, a));
    case REC_BYTES: {
        uint32_t n = (uint32_t)rd_left(&v);
        uint8_t *p = arena_memdup(a, v.p, n);
        memcpy(at, &p, sizeof(p));
        memcpy((char *)rec + f->off_n, &n, sizeof(n));
        return 0;
    }
    case REC_U32S:
    case REC_U64S: return decode_numbers(f, v, a, rec);
    case REC_LIST: return decode_into(f->sub(), v, a, grow(f, rec, a), depth + 1);
    case REC_SUB: {
        void *sub = arena_calloc(a, 1, f->sub()->size);
        memcpy(at, &sub, sizeof(sub));
        return decode_into(f->sub(), v, a, sub, depth + 1);
    }
    default: return E_CORRUPT;
    }
}

static int decode_varint(const struct rec_field *f, struct rd *r, struct arena *a, void *rec) {
    void *at = (char *)rec + f->off;
    uint64_t v = 0;
    if (f->kind == REC_U32S || f->kind == REC_U64S) { /* an array that its writer did not pack */
        struct rd one = *r;
        rd_varint(r);
        return decode_numbers(f, rd_of(one.p, (size_t)(r->p - one.p)), a, rec);
    }
    if (f->kind == REC_I64)
        *(int64_t *)at = rd_zigzag(r);
    else
        v = rd_varint(r);
    switch ((enum rec_kind)f->kind) {
    case REC_U32:
        *(uint32_t *)at = (uint32_t)v;
        return v > UINT32_MAX ? E_CORRUPT : 0;
    case REC_U64: *(uint64_t *)at = v; return 0;
    case REC_BOOL: *(bool *)at = v != 0; return 0;
    case REC_I64: return 0;
    default: return E_CORRUPT;
    }
}

static int skip(struct rd *r, unsigned wire) {
    switch (wire) {
    case WIRE_VARINT: rd_varint(r); return 0;
    case WIRE_FIXED64: rd_take(r, 8); return 0;
    case WIRE_FIXED32: rd_take(r, 4); return 0;
    case WIRE_BYTES: rd_bytes(r); return 0;
    default: return E_CORRUPT;
    }
}

static const struct rec_field *field_of(const struct rec_desc *d, uint64_t tag, size_t *hint) {
    for (size_t i = 0; i < d->n_fields; i++) {
        size_t at = (*hint + i) % d->n_fields;
        if (d->field[at].tag == tag) {
            *hint = at;
            return &d->field[at];
        }
    }
    return NULL;
}

static int decode_into(const struct rec_desc *d, struct rd r, struct arena *a, void *out, unsigned depth) {
    memset(out, 0, d->size);
    if (depth > DEPTH_MAX)
        return E_CORRUPT;
    size_t hint = 0;
    while (!r.bad && rd_left(&r)) {
        uint64_t k = rd_varint(&r);
        unsigned wire = (unsigned)(k & 7);
        const struct rec_field *f = field_of(d, k >> 3, &hint);
        int rc = !f                     ? skip(&r, wire)
                 : wire == WIRE_BYTES  ? decode_delimited(f, &r, a, out, depth)
                 : wire == WIRE_VARINT ? decode_varint(f, &r, a, out)
                                       : E_CORRUPT;
        if (rc)
            return rc;
    }
    return r.bad ? E_CORRUPT : 0;
}

int rec_decode(const struct rec_desc *d, const void *p, size_t n, struct arena *a, void *out, struct err *e) {
    if (decode_into(d, rd_of(p ? p : "", n), a, out, 0))
        return err_set(e, E_CORRUPT, "not a %s record (%zu bytes)", d->name, n);
    return 0;
}

/* ---- packing ---- */

struct cursor {
    char *base; /* NULL while measuring */
    size_t at;
};

static void *place(struct cursor *c, const void *p, size_t n, size_t align) {
    c->at = (c->at + align - 1) & ~(align - 1);
    void *to = c->base ? c->base + c->at : NULL;
    if (to && n)
        memcpy(to, p, n);
    c->at += n;
    return to;
}

static void pack_inner(const struct rec_desc *d, const void *rec, void *copy, struct cursor *c);

static void set_ptr(void *copy, const struct rec_field *f, const void *p) {
    if (copy)
        memcpy((char *)copy + f->off, &p, sizeof(p));
}

static void pack_strs(const struct rec_field *f, const void *rec, void *copy, struct cursor *c) {
    const char *const *v = ptr_at(rec, f);
    uint32_t n = count_at(rec, f);
    const char **to = place(c, v, n * sizeof(*v), 8);
    set_ptr(copy, f, to);
    for (uint32_t i = 0; i < n; i++) {
        char *s = place(c, v[i], strlen(v[i]) + 1, 1);
        if (to)
            to[i] = s;
    }
}

static void pack_subs(const struct rec_field *f, const void *rec, void *copy, struct cursor *c) {
    const struct rec_desc *d = f->sub();
    const char *v = ptr_at(rec, f);
    uint32_t n = f->kind == REC_SUB ? v != NULL : count_at(rec, f);
    char *to = place(c, v, n * d->size, 8);
    set_ptr(copy, f, to);
    for (uint32_t i = 0; i < n; i++)
        pack_inner(d, v + i * d->size, to ? to + i * d->size : NULL, c);
}

static void pack_inner(const struct rec_desc *d, const void *rec, void *copy, struct cursor *c) {
    for (size_t i = 0; i < d->n_fields; i++) {
        const struct rec_field *f = &d->field[i];
        const char *p = f->kind >= REC_STR ? ptr_at(rec, f) : NULL;
        bool empty = f->off_n ? count_at(rec, f) == 0 : !p;
        if (f->kind < REC_STR)
            continue;
        if (empty)
            set_ptr(copy, f, NULL);
        else if (f->kind == REC_STR)
            set_ptr(copy, f, place(c, p, strlen(p) + 1, 1));
        else if (f->kind == REC_BYTES)
            set_ptr(copy, f, place(c, p, count_at(rec, f), 1));
        else if (f->kind == REC_U32S || f->kind == REC_U64S)
            set_ptr(copy, f, place(c, p, count_at(rec, f) * elem_size(f), 8));
        else if (f->kind == REC_STRS)
            pack_strs(f, rec, copy, c);
        else
            pack_subs(f, rec, copy, c);
    }
}

static void *pack_pass(const struct rec_desc *d, const void *rec, struct cursor *c) {
    void *top = place(c, rec, d->size, 8);
    pack_inner(d, rec, top, c);
    return top;
}

void *rec_pack(const struct rec_desc *d, const void *rec) {
    struct cursor measure = {0};
    pack_pass(d, rec, &measure);
    struct head *h = xmalloc(sizeof(*h) + measure.at);
    struct cursor write = {(char *)(h + 1), 0};
    void *top = pack_pass(d, rec, &write);
    must(write.at == measure.at);
    auto_buf bytes = {0};
    rec_encode(d, top, &bytes);
    h->hash = hash_fixed(bytes.p, bytes.n);
    h->size = sizeof(*h) + measure.at;
    return top;
}

void rec_free(void *packed) {
    if (packed)
        free((struct head *)packed - 1);
}

uint64_t rec_hash(const void *packed) {
    return ((const struct head *)packed - 1)->hash;
}

size_t rec_size(const void *packed) {
    return ((const struct head *)packed - 1)->size;
}

bool rec_same(const struct rec_desc *d, const void *a, const void *b) {
    auto_buf x = {0}, y = {0};
    rec_encode(d, a, &x);
    rec_encode(d, b, &y);
    return x.n == y.n && (!x.n || memcmp(x.p, y.p, x.n) == 0);
}

/* ---- printing ---- */

static void print_inner(const struct rec_desc *d, const void *rec, struct str *s) {
    for (size_t i = 0; i < d->n_fields; i++) {
        const struct rec_field *f = &d->field[i];
        auto_buf one = {0};
        encode_field(f, rec, &one);
        if (!one.n)
            continue;
        if (s->n && s->p[s->n - 1] != '{')
            str_addc(s, ' ');
        str_addf(s, "%s=", f->name);
        const char *at = (const char *)rec + f->off;
        const char *p = f->kind >= REC_STR ? ptr_at(rec, f) : NULL;
        uint32_t n = f->kind == REC_SUB ? 1 : count_at(rec, f);
        switch ((enum rec_kind)f->kind) {
        case REC_U32: str_addf(s, "%u", *(const uint32_t *)at); break;
        case REC_U64: str_addf(s, "%llu", (unsigned long long)*(const uint64_t *)at); break;
        case REC_I64: str_addf(s, "%lld", (long long)*(const int64_t *)at); break;
        case REC_BOOL: str_add(s, "true"); break;
        case REC_STR: str_addf(s, "\"%s\"", p); break;
        case REC_BYTES:
            for (uint32_t k = 0; k < n && k < 32; k++)
                str_addf(s, "%02x", ((const uint8_t *)p)[k]);
            break;
        case REC_STRS:
            for (uint32_t k = 0; k < n; k++)
                str_addf(s, "%s\"%s\"", k ? "," : "", ((const char *const *)(const void *)p)[k]);
            break;
        case REC_U32S:
            for (uint32_t k = 0; k < n; k++)
                str_addf(s, "%s%u", k ? "," : "", ((const uint32_t *)(const void *)p)[k]);
            break;
        case REC_U64S:
            for (uint32_t k = 0; k < n; k++)
                str_addf(s, "%s%llu", k ? "," : "", (unsigned long long)((const uint64_t *)(const void *)p)[k]);
            break;
        case REC_SUB:
        case REC_LIST:
            for (uint32_t k = 0; k < n; k++) {
                str_addc(s, '{');
                print_inner(f->sub(), p + k * f->sub()->size, s);
                str_addc(s, '}');
            }
            break;
        }
    }
}

char *rec_print(const struct rec_desc *d, const void *rec, struct arena *a) {
    auto_str s = {0};
    print_inner(d, rec, &s);
    return arena_strdup(a, str_text(&s));
}
