/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "io/cred/cred.h"
#include "tokens.h"

enum { NOW = 1700000000, END = NOW + 3600 };

static struct secret key, other;

static int setup(void **state) {
    secret_set(&key, "0123456789abcdef0123456789abcdef", 32);
    secret_set(&other, "another key of enough length....", 32);
    return cred_init(NULL);
}

static int teardown(void **state) {
    secret_fini(&key);
    secret_fini(&other);
    return 0;
}

static void slurms_token_is_taken(void **state) {
    struct cred_claims c;
    struct err e = {0};
    assert_int_equal(cred_jwt_check(TOKEN_SLURM, &key, NOW, &c, &e), 0);
    assert_string_equal(c.user, "alice");
    assert_int_equal(c.uid, -1);
    assert_false(c.admin);
    assert_int_equal(c.expires, END);
    assert_int_equal(c.issued, NOW);
    assert_int_equal(c.not_before, 0);
    assert_string_equal(c.key_id, "");
    assert_int_equal(e.code, 0);
}

static void amd_spurs_token_is_taken(void **state) {
    struct cred_claims c;
    assert_int_equal(cred_jwt_check(TOKEN_AMD, &key, NOW, &c, NULL), 0);
    assert_string_equal(c.user, "bob");
    assert_int_equal(c.uid, 1001);
    assert_true(c.admin);
}

static void times_are_kept(void **state) {
    struct cred_claims c;
    struct err e;
    assert_int_equal(cred_jwt_check(TOKEN_SLURM, &key, END - 1, &c, NULL), 0);
    assert_int_equal(cred_jwt_check(TOKEN_SLURM, &key, END, &c, &e), E_BAD_PROOF);
    assert_non_null(strstr(e.text, "expired"));
    /* valid from NOW + 100 on, by a clock that may be a little behind its maker's */
    assert_int_equal(cred_jwt_check(TOKEN_BOTH_NAMES, &key, NOW + 99 - CRED_JWT_LEEWAY_SECS, &c, &e), E_BAD_PROOF);
    assert_non_null(strstr(e.text, "not valid yet"));
    assert_int_equal(cred_jwt_check(TOKEN_BOTH_NAMES, &key, NOW + 100 - CRED_JWT_LEEWAY_SECS, &c, NULL), 0);
    assert_string_equal(c.user, "alice"); /* sun before sub */
    assert_string_equal(c.key_id, "k2");
    assert_int_equal(c.not_before, NOW + 100);
    assert_int_equal(cred_jwt_check(TOKEN_FRACTION, &key, NOW, &c, NULL), 0);
    assert_int_equal(c.expires, END);
}

static void refused(const char *name, const char *token, const char *why) {
    struct cred_claims c = {.uid = 77};
    struct err e = {0};
    int r = cred_jwt_check(token, &key, NOW, &c, &e);
    if (r != E_BAD_PROOF || !strstr(e.text, why))
        fail_msg("%s: %d %s", name, r, e.text);
    assert_int_equal(c.uid, 77); /* results are untouched on failure */
}
#define REFUSED(token, why) refused(#token, token, why)

static void other_algorithms_are_refused(void **state) {
    REFUSED(TOKEN_NONE, "form");
    REFUSED(TOKEN_NONE_WITH_SIGNATURE, "signature");
    REFUSED(TOKEN_NONE_SAID, "HS256");
    REFUSED(TOKEN_HS512, "signature");
    REFUSED(TOKEN_HS512_SAID, "HS256");
    REFUSED(TOKEN_RS256_SAID, "HS256");
    REFUSED(TOKEN_NO_ALG, "HS256");
    REFUSED(TOKEN_CRIT, "crit");
}

static void wrong_signatures_are_refused(void **state) {
    struct cred_claims c;
    REFUSED(TOKEN_OTHER_KEY, "signature");
    assert_int_equal(cred_jwt_check(TOKEN_OTHER_KEY, &other, NOW, &c, NULL), 0);
    struct secret empty = {0};
    assert_int_equal(cred_jwt_check(TOKEN_SLURM, &empty, NOW, &c, NULL), E_BAD_PROOF);
    assert_int_equal(cred_jwt_check(TOKEN_NONE, &empty, NOW, &c, NULL), E_BAD_PROOF);
}

static void every_changed_letter_is_refused(void **state) {
    struct cred_claims c;
    char token[] = TOKEN_SLURM;
    for (size_t i = 0; i < sizeof(token) - 1; i++) {
        char was = token[i];
        token[i] = was == 'A' ? 'B' : 'A';
        assert_int_equal(cred_jwt_check(token, &key, NOW, &c, NULL), E_BAD_PROOF);
        token[i] = was;
    }
    for (size_t n = sizeof(token) - 1; n-- > 0;) { /* and every beginning of it */
        token[n] = 0;
        assert_int_equal(cred_jwt_check(token, &key, NOW, &c, NULL), E_BAD_PROOF);
    }
}

static void bad_forms_are_refused(void **state) {
    static const char *const bad[] = {
        "", ".", "..", "...", "a.b.c", "a..c", ".b.c", "a.b.", TOKEN_SLURM ".", TOKEN_SLURM ".a", TOKEN_SLURM "=",
        TOKEN_SLURM "\n", " " TOKEN_SLURM, "Bearer " TOKEN_SLURM, TOKEN_SLURM "A", "\xff.\xff.\xff",
    };
    struct cred_claims c;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (cred_jwt_check(bad[i], &key, NOW, &c, NULL) != E_BAD_PROOF)
            fail_msg("taken: %s", bad[i]);
    autofree char *huge = xmalloc(1 << 20);
    memset(huge, 'a', (1 << 20) - 1);
    huge[(1 << 20) - 1] = 0;
    refused("huge", huge, "longer");
}

static void bad_claims_are_refused(void **state) {
    REFUSED(TOKEN_NO_EXP, "exp");
    REFUSED(TOKEN_EXP_TEXT, "exp");
    REFUSED(TOKEN_EXP_ZERO, "exp");
    REFUSED(TOKEN_EXP_HUGE, "exp");
    REFUSED(TOKEN_EXP_NULL, "exp");
    REFUSED(TOKEN_NO_USER, "no user");
    REFUSED(TOKEN_EMPTY_USER, "no user");
    REFUSED(TOKEN_USER_NUMBER, "sun");
    REFUSED(TOKEN_USER_NUL, "JSON");
    REFUSED(TOKEN_USER_LONG, "sun");
    REFUSED(TOKEN_UID_NEGATIVE, "uid");
    REFUSED(TOKEN_UID_TEXT, "uid");
    REFUSED(TOKEN_UID_MAX, "uid");
    REFUSED(TOKEN_NOT_JSON, "JSON");
    REFUSED(TOKEN_ARRAY, "no user");
}

static void admin_is_the_truth_value_only(void **state) {
    struct cred_claims c;
    assert_int_equal(cred_jwt_check(TOKEN_ADMIN_TEXT, &key, NOW, &c, NULL), 0);
    assert_false(c.admin);
}

static void what_is_made_is_taken(void **state) {
    struct cred_claims in = {.user = "carol", .uid = 0, .admin = true, .expires = END, .issued = NOW, .key_id = "k9"};
    struct cred_claims out;
    autofree char *full = cred_jwt_make(&in, &key);
    assert_int_equal(cred_jwt_check(full, &key, NOW, &out, NULL), 0);
    assert_memory_equal(&in, &out, sizeof(in));
    assert_int_equal(cred_jwt_check(full, &other, NOW, &out, NULL), E_BAD_PROOF);

    struct cred_claims plain = {.user = "dave", .uid = -1, .expires = END, .issued = NOW};
    autofree char *small = cred_jwt_make(&plain, &key);
    assert_int_equal(cred_jwt_check(small, &key, NOW, &out, NULL), 0);
    cred_key_id(&key, plain.key_id); /* tells by itself which key it is of */
    assert_memory_equal(&plain, &out, sizeof(plain));
    /* Slurm's own looks so, and recorded output of `scontrol token` starts so */
    assert_int_equal(strncmp(small, "eyJhbGciOiJIUzI1NiIs", 20), 0);

    struct cred_claims odd = {.user = "\xff\xfe", .uid = -1, .expires = END};
    assert_null(cred_jwt_make(&odd, &key)); /* a name that JSON can't hold comes from a client: no reason to die */
}

static void two_keys_are_valid_at_once(void **state) {
    struct secret none = {0};
    const struct secret *both[] = {&other, &key}, *new_only[] = {&other, &none}, *empty[] = {&none, NULL};
    struct cred_claims c, in = {.user = "erin", .uid = -1, .expires = END, .issued = NOW};
    struct err e;
    autofree char *old = cred_jwt_make(&in, &key), *new = cred_jwt_make(&in, &other);
    assert_int_equal(cred_jwt_check_any(old, both, 2, NOW, &c, NULL), 0);
    assert_int_equal(cred_jwt_check_any(new, both, 2, NOW, &c, NULL), 0);
    assert_int_equal(cred_jwt_check_any(TOKEN_SLURM, both, 2, NOW, &c, NULL), 0); /* without an id */
    assert_int_equal(cred_jwt_check_any(TOKEN_BOTH_NAMES, both, 2, NOW + 100, &c, NULL), 0); /* with one of its own */
    assert_int_equal(cred_jwt_check_any(new, new_only, 2, NOW, &c, NULL), 0);

    char id[CRED_KEY_ID_SIZE], other_id[CRED_KEY_ID_SIZE];
    cred_key_id(&key, id);
    cred_key_id(&other, other_id);
    assert_string_not_equal(id, other_id);
    assert_int_equal(cred_jwt_check_any(old, new_only, 2, NOW, &c, &e), E_BAD_PROOF);
    assert_non_null(strstr(e.text, id)); /* whoever is asked why knows which key it was */
    assert_int_equal(cred_jwt_check_any(TOKEN_SLURM, new_only, 2, NOW, &c, &e), E_BAD_PROOF);
    assert_null(strstr(e.text, "names the key"));
    assert_int_equal(cred_jwt_check_any(old, empty, 2, NOW, &c, &e), E_BAD_PROOF);
    assert_int_equal(cred_jwt_check_any(TOKEN_NONE, both, 2, NOW, &c, &e), E_BAD_PROOF);
    assert_int_equal(cred_jwt_check_any(TOKEN_OTHER_KEY, both, 2, NOW, &c, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slurms_token_is_taken),
        cmocka_unit_test(amd_spurs_token_is_taken),
        cmocka_unit_test(times_are_kept),
        cmocka_unit_test(other_algorithms_are_refused),
        cmocka_unit_test(wrong_signatures_are_refused),
        cmocka_unit_test(every_changed_letter_is_refused),
        cmocka_unit_test(bad_forms_are_refused),
        cmocka_unit_test(bad_claims_are_refused),
        cmocka_unit_test(admin_is_the_truth_value_only),
        cmocka_unit_test(what_is_made_is_taken),
        cmocka_unit_test(two_keys_are_valid_at_once),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
