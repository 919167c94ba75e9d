/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cow.h"
#include "base/mem.h"
#include "base/rec.h"

#define ITEM_FIELDS(F) F(U64, value, 1, _)
REC_DECLARE(item, ITEM_FIELDS)
#define REC_SELF item
REC_DEFINE(item, ITEM_FIELDS)
#undef REC_SELF

static void put(struct cow_table *t, uint64_t key, uint64_t value) {
    cow_put(t, key, rec_pack(item_rec(), &(struct item){.value = value}));
}

static uint64_t get(const struct cow_root *r, uint64_t key) {
    const struct item *it = cow_get(r, key);
    return it ? it->value : 0;
}

/* A picture taken at any moment shows exactly what a copy made at that moment shows, whatever is written later. */
static void pictures_never_change(void **state) {
    enum { KEYS = 2000, STEPS = 20000, PICTURES = 8 };
    struct cow_epochs *ep = cow_epochs_new();
    struct cow_table t;
    cow_init(&t, ep);
    static uint64_t now[KEYS], then[PICTURES][KEYS];
    struct {
        bool held;
        uint64_t pin;
        const struct cow_root *root;
    } pic[PICTURES] = {0};
    uint64_t seed = 42;
    memset(now, 0, sizeof(now));
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t key = (seed >> 33) % KEYS;
        if ((seed >> 20) % 5 == 0) {
            assert_int_equal(cow_del(&t, key), now[key] != 0);
            now[key] = 0;
        } else {
            put(&t, key, now[key] = (uint64_t)step + 1);
        }
        if (step % 97)
            continue;
        unsigned i = (unsigned)((seed >> 45) % PICTURES);
        if (pic[i].held) {
            for (uint64_t k = 0; k < KEYS; k++)
                assert_true(get(pic[i].root, k) == then[i][k]);
            cow_unpin(ep, pic[i].pin);
            pic[i].held = false;
        } else {
            pic[i].pin = cow_pin(ep);
            pic[i].root = t.root;
            pic[i].held = true;
            memcpy(then[i], now, sizeof(now));
        }
    }
    size_t n = 0, seen = 0;
    for (uint64_t k = 0; k < KEYS; k++)
        n += now[k] != 0;
    for (uint64_t k = 0; cow_next(t.root, &k); k++)
        seen += now[k] != 0;
    assert_int_equal(n, seen);
    assert_int_equal(cow_count(t.root), n);
    for (unsigned i = 0; i < PICTURES; i++)
        if (pic[i].held)
            cow_unpin(ep, pic[i].pin);
    assert_int_equal(cow_waiting(ep), 0);
    cow_fini(&t);
    cow_epochs_free(ep);
}

/* The digest speaks of values, not of the way to them. */
static void digest_is_of_values(void **state) {
    struct cow_epochs *ep = cow_epochs_new();
    struct cow_table a, b;
    cow_init(&a, ep);
    cow_init(&b, ep);
    for (uint64_t k = 0; k < 1000; k++)
        put(&a, k * 77, k);
    for (uint64_t k = 1000; k-- > 0;) {
        put(&b, k * 77, 5);
        put(&b, k * 77, k);
    }
    put(&b, 3, 3);
    assert_false(a.digest == b.digest);
    cow_del(&b, 3);
    assert_true(a.digest == b.digest);
    assert_int_equal(a.bytes, b.bytes);
    cow_fini(&a);
    cow_fini(&b);
    cow_epochs_free(ep);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_never_change),
        cmocka_unit_test(digest_is_of_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
