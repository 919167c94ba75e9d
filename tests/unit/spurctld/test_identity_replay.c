/* SPDX-License-Identifier: Apache-2.0
 *
 * What is remembered of a node's messages: each is taken once, whatever time does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "spurctld/api/identity_replay.h"

#define UNIX 1796171505000

static void a_repeat_is_known_however_much_came_between(void **state) {
    struct replay *r = replay_new();
    assert_false(replay_seen(r, 1, UNIX, 0, UNIX));
    assert_true(replay_seen(r, 1, UNIX, 0, UNIX));
    for (uint64_t i = 2; i < 20000; i++)
        assert_false(replay_seen(r, i, UNIX + 1, 1, UNIX + 1));
    assert_true(replay_seen(r, 1, UNIX, 2, UNIX + 2));
    /* and for as long as anything with its time could be taken */
    for (int64_t ms = 0; ms < 600000; ms += 500) {
        assert_false(replay_seen(r, 100000 + (uint64_t)ms, UNIX + ms, ms, UNIX + ms));
        assert_true(replay_seen(r, 1, UNIX, ms, UNIX + ms));
    }
    replay_free(r);
}

static void messages_may_overtake_each_other(void **state) {
    struct replay *r = replay_new();
    for (int64_t ms = 0; ms < 200000; ms += 1000) {
        assert_false(replay_seen(r, 1 + (uint64_t)ms * 2, UNIX + ms, ms, UNIX + ms));
        if (ms >= REPLAY_KEEP_MS)
            assert_false(replay_seen(r, 2 + (uint64_t)ms * 2, UNIX + ms - REPLAY_KEEP_MS + 1000, ms, UNIX + ms));
    }
    replay_free(r);
}

/* A clock that was two minutes ahead is put right: the node goes on being heard, and nothing is taken twice. */
static void a_clock_that_is_put_right(void **state) {
    struct replay *r = replay_new();
    uint64_t nonce = 1;
    for (int64_t ms = 0; ms < 100000; ms += 1000)
        assert_false(replay_seen(r, nonce++, UNIX + ms + 120000, ms, UNIX + ms));
    for (int64_t ms = 100000; ms < 500000; ms += 1000) {
        assert_false(replay_seen(r, nonce++, UNIX + ms, ms, UNIX + ms));
        for (uint64_t old = 1; old < 100; old += 7)
            assert_true(replay_seen(r, old, UNIX + (int64_t)(old - 1) * 1000 + 120000, ms, UNIX + ms));
    }
    replay_free(r);
}

/* Random times and order, a clock that jumps: taken at most once, always. */
static void nothing_is_taken_twice(void **state) {
    enum { N = 30000 };
    struct message {
        uint64_t nonce;
        int64_t sent_ms;
        bool is_taken;
    } *m = xcalloc(N, sizeof(*m));
    for (unsigned seed = 1; seed <= 4; seed++) {
        struct replay *r = replay_new();
        int64_t now_ms = 0, skew_ms = 0;
        srandom(seed);
        for (size_t i = 0; i < N; i++) {
            now_ms += random() % 40;
            if (random() % 1000 == 0)
                skew_ms = random() % 600000 - 300000;
            m[i] = (struct message){(uint64_t)i * 7919 + 1, UNIX + now_ms + skew_ms - random() % 20000, false};
            m[i].is_taken = !replay_seen(r, m[i].nonce, m[i].sent_ms, now_ms, UNIX + now_ms);
            const struct message *again = &m[(size_t)random() % (i + 1)];
            if (again->is_taken)
                assert_true(replay_seen(r, again->nonce, again->sent_ms, now_ms, UNIX + now_ms));
        }
        replay_free(r);
    }
    free(m);
}

/* More than can be remembered make the window narrower, and nothing is taken twice then either. */
static void a_flood_is_bounded(void **state) {
    struct replay *r = replay_new();
    uint32_t taken = 0;
    for (uint32_t i = 0; i < 4 * REPLAY_MOST; i++)
        taken += !replay_seen(r, i, UNIX + i / 100, i / 100, UNIX + i / 100);
    assert_true(taken > 3 * REPLAY_MOST);
    for (uint32_t i = 0; i < 4 * REPLAY_MOST; i += 1009)
        assert_true(replay_seen(r, i, UNIX + i / 100, REPLAY_MOST, UNIX + REPLAY_MOST));
    replay_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeat_is_known_however_much_came_between),
        cmocka_unit_test(messages_may_overtake_each_other),
        cmocka_unit_test(a_clock_that_is_put_right),
        cmocka_unit_test(nothing_is_taken_twice),
        cmocka_unit_test(a_flood_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
