/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rec.h"

#define PART_FIELDS(F) F(STR, name, 1, _) F(U64S, sizes, 2, _)
REC_DECLARE(part, PART_FIELDS)
#define REC_SELF part
REC_DEFINE(part, PART_FIELDS)
#undef REC_SELF

#define THING_FIELDS(F)                                                                                                \
    F(U32, a, 1, _)                                                                                                    \
    F(I64, b, 2, _)                                                                                                    \
    F(BOOL, c, 3, _)                                                                                                   \
    F(STR, text, 4, _)                                                                                                 \
    F(BYTES, blob, 5, _)                                                                                               \
    F(STRS, names, 6, _)                                                                                               \
    F(U32S, ids, 7, _)                                                                                                 \
    F(SUB, one, 8, part)                                                                                               \
    F(LIST, many, 9, part)                                                                                             \
    F(U64, big, 300, _)
REC_DECLARE(thing, THING_FIELDS)
#define REC_SELF thing
REC_DEFINE(thing, THING_FIELDS)
#undef REC_SELF

static const uint64_t sizes[] = {1, UINT64_MAX};
static const char *const names[] = {"x", "", "zed"};
static const uint32_t ids[] = {0, 5, UINT32_MAX};
static const struct part parts[] = {{.name = "p"}, {.sizes = sizes, .n_sizes = 2}};
static const struct thing full = {
    .a = 7, .b = -3, .c = true, .text = "hello", .blob = (const uint8_t *)"\0\1", .n_blob = 2, .names = names,
    .n_names = 3, .ids = ids, .n_ids = 3, .one = parts, .many = parts, .n_many = 2, .big = UINT64_MAX,
};

static void check_full(const struct thing *t) {
    assert_int_equal(t->a, 7);
    assert_int_equal(t->b, -3);
    assert_true(t->c);
    assert_string_equal(t->text, "hello");
    assert_int_equal(t->n_blob, 2);
    assert_memory_equal(t->blob, "\0\1", 2);
    assert_int_equal(t->n_names, 3);
    assert_string_equal(t->names[1], "");
    assert_string_equal(t->names[2], "zed");
    assert_int_equal(t->ids[2], UINT32_MAX);
    assert_string_equal(t->one->name, "p");
    assert_int_equal(t->n_many, 2);
    assert_null(t->many[1].name);
    assert_true(t->many[1].sizes[1] == UINT64_MAX);
    assert_true(t->big == UINT64_MAX);
}

static void round_trip(void **state) {
    auto_buf b = {0};
    rec_encode(thing_rec(), &full, &b);
    auto_arena a = {0};
    struct thing back;
    assert_int_equal(rec_decode(thing_rec(), b.p, b.n, &a, &back, NULL), 0);
    check_full(&back);
    assert_true(rec_same(thing_rec(), &full, &back));
}

static void packing_owns_everything(void **state) {
    struct thing copy = full;
    char text[] = "hello";
    copy.text = text;
    struct thing *packed = rec_pack(thing_rec(), &copy);
    memset(text, 'x', sizeof(text) - 1);
    check_full(packed);
    struct thing *again = rec_pack(thing_rec(), packed);
    assert_true(rec_hash(packed) == rec_hash(again));
    copy.text = "other";
    struct thing *other = rec_pack(thing_rec(), &copy);
    assert_false(rec_hash(packed) == rec_hash(other));
    rec_free(packed);
    check_full(again);
    rec_free(again);
    rec_free(other);
}

/* Damage of any kind is told, never followed. */
static void damage_is_refused(void **state) {
    auto_buf b = {0};
    rec_encode(thing_rec(), &full, &b);
    for (size_t cut = 0; cut < b.n; cut++) {
        auto_arena a = {0};
        struct thing t;
        uint8_t *exact = xmemdup(b.p, cut);
        rec_decode(thing_rec(), exact, cut, &a, &t, NULL); /* must not read past `cut`: ASan watches */
        free(exact);
    }
    for (size_t i = 0; i < b.n * 8; i++) {
        auto_arena a = {0};
        struct thing t;
        b.p[i / 8] ^= (uint8_t)(1 << (i % 8));
        rec_decode(thing_rec(), b.p, b.n, &a, &t, NULL);
        b.p[i / 8] ^= (uint8_t)(1 << (i % 8));
    }
    auto_arena a = {0};
    struct thing t;
    struct err e = {0};
    assert_int_equal(rec_decode(thing_rec(), "\x22\x05he\0lo", 7, &a, &t, &e), E_CORRUPT);
    assert_int_equal(rec_decode(thing_rec(), "\x22\x7f", 2, &a, &t, &e), E_CORRUPT);
    assert_int_equal(rec_decode(thing_rec(), "\x08\xff\xff\xff\xff\x7f", 6, &a, &t, &e), E_CORRUPT);
    /* unknown tags are skipped */
    assert_int_equal(rec_decode(thing_rec(), "\xf8\x3f\x01\x08\x07", 5, &a, &t, &e), 0);
    assert_int_equal(t.a, 7);
}

static void printing(void **state) {
    auto_arena a = {0};
    assert_string_equal(rec_print(part_rec(), &parts[1], &a), "sizes=1,18446744073709551615");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(packing_owns_everything),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(printing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
