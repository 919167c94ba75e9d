/* SPDX-License-Identifier: Apache-2.0
 *
 * The hand-shake among controllers, by its bytes: who holds the key gets through, and nothing else does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "io/cred/cred.h"
#include "io/peer/shake.h"

struct side {
    struct shake s;
    struct shake_keys k;
};

static void side_init(struct side *d, const char *cluster, const char *key, const char *old, uint32_t from, uint32_t to) {
    struct secret keys[2] = {{.bytes = (uint8_t *)(uintptr_t)key, .n = key ? strlen(key) : 0},
                             {.bytes = (uint8_t *)(uintptr_t)old, .n = old ? strlen(old) : 0}};
    memset(d, 0, sizeof(*d));
    shake_keys_make(&d->k, cluster, keys, (size_t)(key != NULL) + (old != NULL));
    d->s.use = PEER_RAFT;
    d->s.from = from;
    d->s.to = to;
}

struct talk {
    uint8_t ask[SHAKE_ASK_BYTES], reply[SHAKE_REPLY_BYTES], proofs[SHAKE_PROOFS_BYTES], verdict[SHAKE_VERDICT_BYTES];
};

/* 0, or the error of the first step that refuses: of the listener (*out_step 1, 3) or of the dialler (2, 4). */
static int talk(struct side *dialler, struct side *listener, struct talk *t, int *out_step) {
    struct err e;
    int rc;
    shake_ask(&dialler->s, &dialler->k, t->ask);
    *out_step = 1;
    if ((rc = shake_reply(&listener->s, &listener->k, t->ask, t->reply, &e)))
        return rc;
    *out_step = 2;
    if ((rc = shake_prove(&dialler->s, &dialler->k, t->reply, t->proofs, &e)))
        return rc;
    *out_step = 3;
    if ((rc = shake_judge(&listener->s, &listener->k, t->proofs, t->verdict, &e)))
        return rc;
    *out_step = 4;
    return shake_end(&dialler->s, &dialler->k, t->verdict, &e);
}

struct pairing {
    const char *what, *cluster[2], *key[2], *old[2];
    int code, step;
};

static void test_who_holds_the_key(void **state) {
    static const struct pairing rows[] = {
        {"one key", {"c", "c"}, {"k1", "k1"}, {0}, 0, 4},
        {"no key on either side", {"c", "c"}, {0}, {0}, 0, 4},
        {"the listener has the new key and the old one", {"c", "c"}, {"k1", "k2"}, {NULL, "k1"}, 0, 4},
        {"the dialler has the new key and the old one", {"c", "c"}, {"k2", "k1"}, {"k1", NULL}, 0, 4},
        {"both change, in opposite order", {"c", "c"}, {"k1", "k2"}, {"k2", "k1"}, 0, 4},
        {"another key", {"c", "c"}, {"k1", "k2"}, {0}, E_BAD_PROOF, 3},
        {"no key, where one is asked for", {"c", "c"}, {NULL, "k1"}, {0}, E_BAD_PROOF, 3},
        {"a key, where there is none", {"c", "c"}, {"k1", NULL}, {0}, E_BAD_PROOF, 3},
        {"another cluster with the same key", {"c", "d"}, {"k1", "k1"}, {0}, E_CONFIG, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct pairing *r = &rows[i];
        struct side d, l;
        struct talk t;
        int step;
        side_init(&d, r->cluster[0], r->key[0], r->old[0], 1, 2);
        side_init(&l, r->cluster[1], r->key[1], r->old[1], 0, 2);
        int rc = talk(&d, &l, &t, &step);
        if (rc != r->code || step != r->step)
            fail_msg("%s: code %d at step %d", r->what, rc, step);
    }
}

static void good(struct side *d, struct side *l) {
    side_init(d, "c", "k1", NULL, 1, 2);
    side_init(l, "c", "k1", NULL, 0, 2);
}

static void test_a_recorded_talk_is_no_good(void **state) {
    struct side d, l, again;
    struct talk t, mine;
    struct err e;
    int step;
    good(&d, &l);
    assert_int_equal(talk(&d, &l, &t, &step), 0);
    good(&d, &again);
    assert_int_equal(shake_reply(&again.s, &again.k, t.ask, mine.reply, &e), 0);
    assert_int_equal(shake_judge(&again.s, &again.k, t.proofs, mine.verdict, &e), E_BAD_PROOF);
    /* nor what a listener said, to a dialler of later */
    good(&d, &l);
    shake_ask(&d.s, &d.k, mine.ask);
    assert_int_equal(shake_prove(&d.s, &d.k, t.reply, mine.proofs, &e), 0);
    assert_int_equal(shake_end(&d.s, &d.k, t.verdict, &e), E_BAD_PROOF);
}

/* Our own words sent back: a dialler that is answered with its proof, and one that is handed on to another listener's port. */
static void test_our_own_words_are_no_proof(void **state) {
    struct side d, l;
    struct talk t;
    struct err e;
    good(&d, &l);
    shake_ask(&d.s, &d.k, t.ask);
    assert_int_equal(shake_reply(&l.s, &l.k, t.ask, t.reply, &e), 0);
    assert_int_equal(shake_prove(&d.s, &d.k, t.reply, t.proofs, &e), 0);
    memset(t.verdict, 0, sizeof(t.verdict));
    memcpy(t.verdict + 4, t.proofs + 4, 32);
    assert_int_equal(shake_end(&d.s, &d.k, t.verdict, &e), E_BAD_PROOF);
    /* the hello of member 1 to member 2, sent to member 1 itself, and to member 3 */
    struct side self, third;
    side_init(&self, "c", "k1", NULL, 0, 1);
    side_init(&third, "c", "k1", NULL, 0, 3);
    assert_int_equal(shake_reply(&self.s, &self.k, t.ask, t.reply, &e), E_CONFIG);
    assert_int_equal(shake_reply(&third.s, &third.k, t.ask, t.reply, &e), E_CONFIG);
}

/* Each bit of each message counts, but for what is there for later. */
static void test_a_changed_bit_is_found(void **state) {
    for (int which = 0; which < 4; which++) {
        static const size_t size[] = {SHAKE_ASK_BYTES, SHAKE_REPLY_BYTES, 4 + 32, SHAKE_VERDICT_BYTES};
        for (size_t bit = 0; bit < size[which] * 8; bit++) {
            struct side d, l;
            struct talk t;
            struct err e;
            good(&d, &l);
            uint8_t *const part[] = {t.ask, t.reply, t.proofs, t.verdict};
            bool is_reserved = (which == 2 && bit >= 8 && bit < 32) || (which == 3 && bit >= 24 && bit < 32) ||
                               (which == 2 && bit < 8) || (which == 1 && bit >= 64 && bit < 80);
            shake_ask(&d.s, &d.k, t.ask);
            if (which == 0)
                part[0][bit / 8] ^= (uint8_t)(1u << bit % 8);
            int rc = shake_reply(&l.s, &l.k, t.ask, t.reply, &e);
            if (!rc && which == 1)
                part[1][bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (!rc)
                rc = shake_prove(&d.s, &d.k, t.reply, t.proofs, &e);
            if (!rc && which == 2)
                part[2][bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (!rc)
                rc = shake_judge(&l.s, &l.k, t.proofs, t.verdict, &e);
            if (!rc && which == 3)
                part[3][bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (!rc)
                rc = shake_end(&d.s, &d.k, t.verdict, &e);
            if (!rc && !is_reserved)
                fail_msg("message %d, bit %zu: it got through", which, bit);
        }
    }
}

static void test_noise(void **state) {
    for (int i = 0; i < 2000; i++) {
        struct side d, l;
        struct talk t;
        struct err e;
        good(&d, &l);
        cred_random(t.ask, sizeof(t.ask));
        cred_random(t.reply, sizeof(t.reply));
        cred_random(t.proofs, sizeof(t.proofs));
        cred_random(t.verdict, sizeof(t.verdict));
        assert_int_not_equal(shake_reply(&l.s, &l.k, t.ask, t.reply, &e), 0);
        assert_int_equal(shake_judge(&l.s, &l.k, t.proofs, t.verdict, &e), E_BAD_PROOF);
        shake_ask(&d.s, &d.k, t.ask);
        cred_random(t.reply, sizeof(t.reply));
        cred_random(t.verdict, sizeof(t.verdict));
        assert_int_not_equal(shake_prove(&d.s, &d.k, t.reply, t.proofs, &e), 0);
        assert_int_not_equal(shake_end(&d.s, &d.k, t.verdict, &e), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_holds_the_key), cmocka_unit_test(test_a_recorded_talk_is_no_good),
                                       cmocka_unit_test(test_our_own_words_are_no_proof), cmocka_unit_test(test_a_changed_bit_is_found),
                                       cmocka_unit_test(test_noise)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
