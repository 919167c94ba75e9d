/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "io/blob/index.h"

static struct blob_hash hash_of_number(uint32_t n) {
    struct blob_hash h;
    blob_hash_of(&n, sizeof(n), &h);
    return h;
}

static void add(struct blob_index *ix, uint32_t n) {
    struct blob_hash h = hash_of_number(n);
    struct blob_entry *e = index_add(ix, &h);
    e->pack = 1;
    e->offset = n;
}

static void an_entry_is_small(void **state) {
    assert_int_equal(sizeof(struct blob_entry), 56);
}

static void against_a_plain_array(void **state) {
    enum { N = 3000 };
    struct blob_index ix = {0};
    bool there[N] = {0};
    uint32_t random = 1, count = 0;
    for (int step = 0; step < 60000; step++) {
        random = random * 1664525 + 1013904223;
        uint32_t n = (random >> 8) % N;
        struct blob_hash h = hash_of_number(n);
        struct blob_entry *e = index_find(&ix, &h);
        assert_int_equal(e != NULL, there[n]);
        if (e) {
            assert_int_equal(e->offset, n);
            index_remove(&ix, e);
            count--;
        } else {
            add(&ix, n);
            count++;
        }
        there[n] = !there[n];
        assert_int_equal(ix.n, count);
    }
    uint32_t cursor = 0, seen = 0;
    for (struct blob_entry *e; (e = index_next(&ix, &cursor)); seen++) {
        assert_true(there[e->offset]);
        if (e->offset % 2)
            index_remove(&ix, e);
    }
    assert_int_equal(seen, count);
    for (uint32_t n = 0; n < N; n++) {
        struct blob_hash h = hash_of_number(n);
        assert_int_equal(index_find(&ix, &h) != NULL, there[n] && n % 2 == 0);
    }
    assert_true(ix.n_made <= N); /* removed entries were used again */
    index_fini(&ix);
}

static void equal_beginnings_are_told_apart(void **state) {
    struct blob_index ix = {0};
    struct blob_hash a = {{1}}, b = {{1}}, c = {{1}};
    b.b[31] = 1;
    index_add(&ix, &a)->pack = 1;
    index_add(&ix, &b)->pack = 2;
    assert_int_equal(index_find(&ix, &a)->pack, 1);
    assert_int_equal(index_find(&ix, &b)->pack, 2);
    c.b[31] = 2;
    assert_null(index_find(&ix, &c));
    index_remove(&ix, index_find(&ix, &a));
    assert_null(index_find(&ix, &a));
    assert_int_equal(index_find(&ix, &b)->pack, 2);
    index_fini(&ix);
}

static void memory_a_blob(void **state) {
    enum { N = 200000 };
    struct blob_index ix = {0};
    for (uint32_t n = 0; n < N; n++)
        add(&ix, n);
    size_t bytes = ix.chunks.n * 4096 * sizeof(struct blob_entry) + (ix.by_name.now.cap + ix.by_name.old.cap) * sizeof(struct map64_slot);
    print_message("%.1f bytes a blob\n", (double)bytes / N);
    assert_true(bytes / N <= 128); /* N is where a table has just grown: the worst moment */
    index_fini(&ix);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_small),
        cmocka_unit_test(against_a_plain_array),
        cmocka_unit_test(equal_beginnings_are_told_apart),
        cmocka_unit_test(memory_a_blob),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
