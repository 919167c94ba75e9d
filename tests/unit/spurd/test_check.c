/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's credential: each forgery is refused, for its own reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurd/api/check.h"
#include "wire/proof.h"

#define NOW 1796171505
#define PATH "/spur.v1.Agent/Launch"

struct fixture {
    struct cred_key key;
    struct check_call call;
    struct str header;
};

static void sign(struct fixture *x, const struct cred_key *key, const char *path, const char *node, uint32_t job,
                 uint32_t start, uint32_t uid, int64_t expires, const char *body) {
    auto_str text = {0};
    uint8_t hash[32], sig[CRED_SIGNATURE_SIZE];
    cred_hash(body, strlen(body), hash);
    proof_launch_text(path, node, job, start, uid, expires, hash, &text);
    cred_sign(key, text.p, text.n, sig);
    str_clear(&x->header);
    proof_launch_print(expires, sig, &x->header);
    x->call.header = x->header.p;
}

static void good(struct fixture *x) {
    sign(x, &x->key, PATH, "n1", 12, 1, 1001, NOW + 60, "body");
}

static void begin(struct fixture *x) {
    *x = (struct fixture){.call = {.path = PATH, .node = "n1", .job_id = 12, .start_no = 1, .uid = 1001, .body = "body",
                                   .n_body = 4}};
    cred_key_new(&x->key);
    good(x);
}

static void end(struct fixture *x) {
    cred_key_fini(&x->key);
    str_fini(&x->header);
}

static int ask(const struct fixture *x) {
    struct err e;
    return check_credential(&x->call, "n1", &x->key.pub, NOW, &e);
}

static void the_true_one_is_taken(void **state) {
    struct fixture x;
    (void)state;
    begin(&x);
    assert_int_equal(ask(&x), 0);
    sign(&x, &x.key, PATH, "n1", 12, 1, 1001, NOW, "body"); /* its last second */
    assert_int_equal(ask(&x), 0);
    end(&x);
}

static void another_call_is_refused(void **state) {
    struct fixture x;
    (void)state;
    begin(&x);
    const struct {
        const char *path, *node;
        uint32_t job, start, uid;
        const char *body;
    } others[] = {
        {"/spur.v1.Agent/Signal", "n1", 12, 1, 1001, "body"}, {PATH, "n2", 12, 1, 1001, "body"},
        {PATH, "n1", 13, 1, 1001, "body"},                    {PATH, "n1", 12, 2, 1001, "body"},
        {PATH, "n1", 12, 1, 0, "body"},                       {PATH, "n1", 12, 1, 1001, "bodY"},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        sign(&x, &x.key, others[i].path, others[i].node, others[i].job, others[i].start, others[i].uid, NOW + 60,
             others[i].body);
        assert_int_equal(ask(&x), E_CREDENTIAL);
    }
    end(&x);
}

static void time_is_part_of_it(void **state) {
    struct fixture x;
    (void)state;
    begin(&x);
    sign(&x, &x.key, PATH, "n1", 12, 1, 1001, NOW - 1, "body");
    assert_int_equal(ask(&x), E_CRED_EXPIRED);
    sign(&x, &x.key, PATH, "n1", 12, 1, 1001, NOW + 86400, "body");
    assert_int_equal(ask(&x), E_CREDENTIAL);
    sign(&x, &x.key, PATH, "n1", 12, 1, 1001, NOW - 1, "body");
    auto_str stretched = {0}; /* an expired signature with a later time in front */
    str_addf(&stretched, "%d.%s", NOW + 60, strchr(x.header.p, '.') + 1);
    x.call.header = stretched.p;
    assert_int_equal(ask(&x), E_CREDENTIAL);
    end(&x);
}

static void other_keys_and_noise_are_refused(void **state) {
    struct fixture x;
    struct cred_key other;
    struct err e;
    (void)state;
    begin(&x);
    cred_key_new(&other);
    sign(&x, &other, PATH, "n1", 12, 1, 1001, NOW + 60, "body");
    assert_int_equal(ask(&x), E_CREDENTIAL);
    static const char *const noise[] = {"", ".", "1", "x.y", "-5.00", "99999999999999999999999999.00"};
    for (size_t i = 0; i < sizeof(noise) / sizeof(*noise); i++) {
        x.call.header = noise[i];
        assert_int_equal(ask(&x), E_CREDENTIAL);
    }
    x.call.header = NULL;
    assert_int_equal(ask(&x), E_CREDENTIAL);
    good(&x);
    assert_int_equal(check_credential(&x.call, "n1", NULL, NOW, &e), E_CREDENTIAL);
    x.call.node = NULL;
    assert_int_equal(ask(&x), E_CREDENTIAL);
    cred_key_fini(&other);
    end(&x);
}

static void some_calls_count_once(void **state) {
    struct fixture x;
    struct once *o = once_new();
    struct err e;
    int64_t now = NOW;
    (void)state;
    begin(&x);
    assert_int_equal(check_once(o, &x.call, now, &e), 0);
    assert_int_equal(check_once(o, &x.call, now, &e), E_CRED_REPLAY);
    autofree char *first = xstrdup(x.header.p);
    sign(&x, &x.key, PATH, "n1", 12, 1, 1001, NOW + 60, "another body");
    assert_int_equal(check_once(o, &x.call, now, &e), 0);
    /* as long as it could be good, whatever comes between */
    for (uint32_t i = 0; i < 3000; i++, now += i % 10 == 0) {
        char body[32];
        snprintf(body, sizeof(body), "body %u", i);
        sign(&x, &x.key, PATH, "n1", 12, 1, 1001, now + 60, body);
        assert_int_equal(check_once(o, &x.call, now, &e), 0);
        struct check_call again = {.header = first};
        if (now <= NOW + 600)
            assert_int_equal(check_once(o, &again, now, &e), E_CRED_REPLAY);
    }
    x.call.header = "nonsense";
    assert_int_equal(check_once(o, &x.call, now, &e), E_CREDENTIAL);
    once_free(o);
    end(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_true_one_is_taken),
        cmocka_unit_test(another_call_is_refused),
        cmocka_unit_test(time_is_part_of_it),
        cmocka_unit_test(other_keys_and_noise_are_refused),
        cmocka_unit_test(some_calls_count_once),
    };
    struct err e;
    if (cred_init(&e))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
