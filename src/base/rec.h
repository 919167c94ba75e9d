/* SPDX-License-Identifier: Apache-2.0
 *
 * Records: plain structs that are described by a table of their fields.
 *
 * One list of rows makes the struct and its description; from the description come encoding, decoding, packing,
 * hashing and comparing, so that a new field is one row and can't be forgotten in one of five places.
 *
 *     #define POINT_FIELDS(F)          \
 *         F(U32, x, 1, _)              \
 *         F(STR, label, 2, _)          \
 *         F(LIST, parts, 3, part)
 *     REC_DECLARE(point, POINT_FIELDS)         in the header: struct point, point_rec()
 *     REC_DEFINE(point, POINT_FIELDS)          in one .c file
 *
 * Kinds: U32 U64 I64 BOOL; STR (const char *, NULL is absent); BYTES (const uint8_t *x, uint32_t n_x); STRS, U32S,
 * U64S (arrays with n_x); SUB (const struct sub *, NULL is absent); LIST (array of struct sub with n_x).
 * Tags are for ever: append rows, never renumber; a row that goes leaves its tag unused. A reader skips tags that it
 * doesn't know, a field that is missing reads as zero: that is the whole versioning of a record.
 *
 * The encoding is that of Protocol Buffers: varints, zigzag for I64, length-delimited for the rest, arrays of numbers
 * packed; zero values are left out, in ascending row order. So equal values have equal bytes, on every machine.
 *
 * A *packed* record is one malloc that holds the struct and all it points to. Packed records are never changed in
 * place: copy the struct, change the copy (its pointers may borrow), pack the copy.
 */
#ifndef SPUR_BASE_REC_H
#define SPUR_BASE_REC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum rec_kind {
    REC_U32,
    REC_U64,
    REC_I64,
    REC_BOOL,
    REC_STR,
    REC_BYTES,
    REC_STRS,
    REC_U32S,
    REC_U64S,
    REC_SUB,
    REC_LIST,
};

struct rec_desc;
struct rec_field {
    const char *name;
    uint32_t tag;
    uint32_t kind;
    size_t off;   /* of the value or the pointer */
    size_t off_n; /* of the count; 0 where the kind has none */
    const struct rec_desc *(*sub)(void);
};
struct rec_desc {
    const char *name;
    size_t size;
    const struct rec_field *field;
    size_t n_fields;
};

#define REC_MEMBER_U32(x, sub) uint32_t x;
#define REC_MEMBER_U64(x, sub) uint64_t x;
#define REC_MEMBER_I64(x, sub) int64_t x;
#define REC_MEMBER_BOOL(x, sub) bool x;
#define REC_MEMBER_STR(x, sub) const char *x;
#define REC_MEMBER_BYTES(x, sub)                                                                                       \
    const uint8_t *x;                                                                                                  \
    uint32_t n_##x;
#define REC_MEMBER_STRS(x, sub)                                                                                        \
    const char *const *x;                                                                                              \
    uint32_t n_##x;
#define REC_MEMBER_U32S(x, sub)                                                                                        \
    const uint32_t *x;                                                                                                 \
    uint32_t n_##x;
#define REC_MEMBER_U64S(x, sub)                                                                                        \
    const uint64_t *x;                                                                                                 \
    uint32_t n_##x;
#define REC_MEMBER_SUB(x, sub) const struct sub *x;
#define REC_MEMBER_LIST(x, sub)                                                                                        \
    const struct sub *x;                                                                                               \
    uint32_t n_##x;
#define REC_MEMBER(kind, x, tag, sub) REC_MEMBER_##kind(x, sub)

#define REC_COUNT_U32(T, x) 0
#define REC_COUNT_U64(T, x) 0
#define REC_COUNT_I64(T, x) 0
#define REC_COUNT_BOOL(T, x) 0
#define REC_COUNT_STR(T, x) 0
#define REC_COUNT_SUB(T, x) 0
#define REC_COUNT_BYTES(T, x) offsetof(struct T, n_##x)
#define REC_COUNT_STRS(T, x) offsetof(struct T, n_##x)
#define REC_COUNT_U32S(T, x) offsetof(struct T, n_##x)
#define REC_COUNT_U64S(T, x) offsetof(struct T, n_##x)
#define REC_COUNT_LIST(T, x) offsetof(struct T, n_##x)
#define REC_SUBDESC_U32(sub) NULL
#define REC_SUBDESC_U64(sub) NULL
#define REC_SUBDESC_I64(sub) NULL
#define REC_SUBDESC_BOOL(sub) NULL
#define REC_SUBDESC_STR(sub) NULL
#define REC_SUBDESC_BYTES(sub) NULL
#define REC_SUBDESC_STRS(sub) NULL
#define REC_SUBDESC_U32S(sub) NULL
#define REC_SUBDESC_U64S(sub) NULL
#define REC_SUBDESC_SUB(sub) sub##_rec
#define REC_SUBDESC_LIST(sub) sub##_rec
#define REC_ROW(kind, x, tag, sub)                                                                                     \
    {#x, tag, REC_##kind, offsetof(struct REC_SELF, x), REC_COUNT_##kind(REC_SELF, x), REC_SUBDESC_##kind(sub)},

#define REC_DECLARE(T, FIELDS)                                                                                         \
    struct T {                                                                                                         \
        FIELDS(REC_MEMBER)                                                                                             \
    };                                                                                                                 \
    const struct rec_desc *T##_rec(void);

/* In the .c file: #define REC_SELF point / REC_DEFINE(point, POINT_FIELDS) / #undef REC_SELF */
#define REC_DEFINE(T, FIELDS)                                                                                          \
    const struct rec_desc *T##_rec(void) {                                                                             \
        static const struct rec_field rows[] = {FIELDS(REC_ROW)};                                                      \
        static const struct rec_desc desc = {#T, sizeof(struct T), rows, sizeof(rows) / sizeof(*rows)};                \
        return &desc;                                                                                                  \
    }

void rec_encode(const struct rec_desc *d, const void *rec, struct buf *out);
/* Fills *out; strings and arrays are in the arena. 0, or E_CORRUPT when the bytes are no such record (a NUL inside a
 * text, a wrong wire type, a length past the end, nesting deeper than 16). */
int rec_decode(const struct rec_desc *d, const void *p, size_t n, struct arena *a, void *out, struct err *e);

void *rec_pack(const struct rec_desc *d, const void *rec); /* never NULL; rec_free it */
void rec_free(void *packed);                               /* takes NULL */
uint64_t rec_hash(const void *packed); /* hash_fixed of the encoding, computed once at packing */
size_t rec_size(const void *packed);   /* bytes held, for accounting */

bool rec_same(const struct rec_desc *d, const void *a, const void *b); /* same encoding */
/* "name=value name=value …", absent fields left out: for logs, tests and dumps. Borrowed from the arena. */
char *rec_print(const struct rec_desc *d, const void *rec, struct arena *a);

#endif
