/* SPDX-License-Identifier: Apache-2.0
 *
 * The maps against a plain array: random puts, deletes and looks, with growth under way most of the time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"

enum { KEYS = 5000 };

static uint64_t draw(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void compare(const struct map64 *m, void *const *model) {
    size_t n = 0, cursor = 0, seen = 0;
    for (uint64_t k = 0; k < KEYS; k++) {
        assert_ptr_equal(map64_get(m, k), model[k]);
        n += model[k] != NULL;
    }
    assert_int_equal(m->n, n);
    uint64_t key;
    for (void *v; map64_next(m, &cursor, &key, &v); seen++)
        assert_ptr_equal(v, model[key]);
    assert_int_equal(seen, n);
}

static void numbers(void **state) {
    (void)state;
    for (uint64_t round = 1; round <= 20; round++) {
        struct map64 m = {0};
        void *model[KEYS] = {0};
        uint64_t seed = round;
        for (size_t i = 0; i < 20000; i++) {
            uint64_t k = draw(&seed) % (1 + i % KEYS); /* grows, and works on old keys as much as on new ones */
            if (draw(&seed) % 10 < round % 9) {
                assert_ptr_equal(map64_del(&m, k), model[k]);
                model[k] = NULL;
            } else {
                void *v = (void *)(uintptr_t)(1 + draw(&seed));
                assert_ptr_equal(map64_put(&m, k, v), model[k]);
                model[k] = v;
            }
            if (i % 997 == 0)
                compare(&m, model);
        }
        compare(&m, model);
        map64_fini(&m);
    }
}

/* Keys belong to their values: one that was deleted is freed, and no later call may look at it. */
static void texts(void **state) {
    (void)state;
    struct maps m = {0};
    char *own[2000] = {0}, name[16];
    uint64_t seed = 7;
    for (size_t i = 0; i < 40000; i++) {
        size_t k = draw(&seed) % (1 + i / 20);
        snprintf(name, sizeof(name), "key-%zu", k);
        assert_ptr_equal(maps_get(&m, name), own[k]);
        if (own[k] && draw(&seed) % 3 == 0) {
            assert_ptr_equal(maps_del(&m, name), own[k]);
            memset(own[k], 'x', strlen(own[k]));
            free(own[k]);
            own[k] = NULL;
        } else {
            char *fresh = strdup(name);
            assert_ptr_equal(maps_put(&m, fresh, fresh), own[k]);
            free(own[k]);
            own[k] = fresh;
        }
    }
    for (size_t k = 0; k < 2000; k++)
        free(own[k]);
    maps_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers), cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
