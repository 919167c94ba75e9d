/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/cred/cred.h"

static char dir[] = "/tmp/spur-test-cred-XXXXXX";

static int setup(void **state) {
    return cred_init(NULL) || !mkdtemp(dir);
}

static int teardown(void **state) {
    return rmdir(dir); /* each test removes its files, and no temporary one may be left over */
}

static char *path_of(const char *name) {
    return xasprintf("%s/%s", dir, name);
}

static void write_file(const char *path, const void *p, size_t n, mode_t mode) {
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
}

/* RFC 8032, section 7.1, test 2 */
static const char rfc_seed[] = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb\n";
static const char rfc_public[] = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
static const uint8_t rfc_signature[] = {
    0x92, 0xa0, 0x09, 0xa9, 0xf0, 0xd4, 0xca, 0xb8, 0x72, 0x0e, 0x82, 0x0b, 0x5f, 0x64, 0x25, 0x40,
    0xa2, 0xb2, 0x7b, 0x54, 0x16, 0x50, 0x3f, 0x8f, 0xb3, 0x76, 0x22, 0x23, 0xeb, 0xdb, 0x69, 0xda,
    0x08, 0x5a, 0xc1, 0xe4, 0x3e, 0x15, 0x99, 0x6e, 0x45, 0x8f, 0x36, 0x13, 0xd0, 0xf1, 0x1d, 0x8c,
    0x38, 0x7b, 0x2e, 0xae, 0xb4, 0x30, 0x2a, 0xee, 0xb0, 0x0d, 0x29, 0x16, 0x12, 0xbb, 0x0c, 0x00,
};

static void the_known_vector(void **state) {
    autofree char *path = path_of("rfc");
    write_file(path, rfc_seed, strlen(rfc_seed), 0600);
    struct cred_key k = {0};
    assert_int_equal(cred_key_load_or_make(path, &k, NULL), 0);
    char hex[65];
    cred_public_print(&k.pub, hex);
    assert_string_equal(hex, rfc_public);
    uint8_t sig[CRED_SIGNATURE_SIZE];
    cred_sign(&k, "\x72", 1, sig);
    assert_memory_equal(sig, rfc_signature, sizeof(sig));
    cred_key_fini(&k);
    unlink(path);
}

static void a_signature_holds_for_its_words_only(void **state) {
    struct cred_key k = {0}, other = {0};
    cred_key_new(&k);
    cred_key_new(&other);
    const char text[] = "node n1, job 7, start 2";
    uint8_t sig[CRED_SIGNATURE_SIZE];
    cred_sign(&k, text, sizeof(text), sig);
    assert_true(cred_verify(&k.pub, text, sizeof(text), sig));
    assert_false(cred_verify(&other.pub, text, sizeof(text), sig));
    assert_false(cred_verify(&k.pub, text, sizeof(text) - 1, sig));
    for (size_t i = 0; i < sizeof(sig); i++) {
        sig[i] ^= 1;
        assert_false(cred_verify(&k.pub, text, sizeof(text), sig));
        sig[i] ^= 1;
    }
    cred_sign(&k, NULL, 0, sig);
    assert_true(cred_verify(&k.pub, NULL, 0, sig));
    cred_key_fini(&k);
    cred_key_fini(&other);
}

static void derived_keys_are_the_same_again(void **state) {
    struct secret a = {0}, b = {0};
    char long_text[300];
    memset(long_text, 'x', sizeof(long_text));
    secret_set(&a, "0123456789abcdef", 16);
    secret_set(&b, long_text, sizeof(long_text));
    struct cred_key k[4];
    cred_key_derive(&a, "launch", &k[0]);
    cred_key_derive(&a, "launch", &k[1]);
    cred_key_derive(&a, "other", &k[2]);
    cred_key_derive(&b, "launch", &k[3]);
    assert_memory_equal(&k[0].pub, &k[1].pub, sizeof(k[0].pub));
    assert_memory_not_equal(&k[0].pub, &k[2].pub, sizeof(k[0].pub));
    assert_memory_not_equal(&k[0].pub, &k[3].pub, sizeof(k[0].pub));
    /* Python: hashlib.blake2b(b"launch", key=b"0123456789abcdef", digest_size=32) */
    static const uint8_t seed[CRED_SEED_SIZE] = {
        0xe8, 0x29, 0x00, 0x4b, 0xbe, 0xd8, 0x0a, 0xc3, 0x57, 0x2b, 0x84, 0x86, 0x42, 0xd0, 0xff, 0x72,
        0xdc, 0x24, 0x53, 0xb3, 0xa0, 0x64, 0xe7, 0xf9, 0x6b, 0x9e, 0x1a, 0x68, 0x7e, 0x10, 0x4e, 0xcc,
    };
    assert_memory_equal(k[0].seed.bytes, seed, sizeof(seed));
    for (size_t i = 0; i < ARRAY_LEN(k); i++)
        cred_key_fini(&k[i]);
    secret_fini(&a);
    secret_fini(&b);
}

static void a_key_is_made_once(void **state) {
    autofree char *path = path_of("key");
    struct cred_key a = {0}, b = {0};
    assert_int_equal(cred_key_load_or_make(path, &a, NULL), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 65);
    assert_int_equal(st.st_nlink, 1);
    assert_int_equal(cred_key_load_or_make(path, &b, NULL), 0);
    assert_memory_equal(&a.pub, &b.pub, sizeof(a.pub));
    cred_key_fini(&a);
    cred_key_fini(&b);
    unlink(path);
}

static void *make_one(void *arg) {
    autofree char *path = path_of("race");
    assert_int_equal(cred_key_load_or_make(path, arg, NULL), 0);
    return NULL;
}

static void two_who_make_it_at_once_get_one_key(void **state) {
    autofree char *path = path_of("race");
    struct cred_key k[8] = {0};
    pthread_t t[8];
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&t[i], NULL, make_one, &k[i]), 0);
    for (size_t i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    for (size_t i = 0; i < 8; i++) {
        assert_memory_equal(&k[i].pub, &k[0].pub, sizeof(k[0].pub));
        if (i)
            cred_key_fini(&k[i]);
    }
    cred_key_fini(&k[0]);
    unlink(path);
}

static void what_others_may_read_is_refused(void **state) {
    autofree char *path = path_of("open");
    static const mode_t bad[] = {0604, 0644, 0602, 0666, 0601};
    struct cred_key k = {0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = {0};
        write_file(path, rfc_seed, strlen(rfc_seed), bad[i]);
        assert_int_equal(cred_key_load_or_make(path, &k, &e), E_CONFIG);
        assert_non_null(strstr(e.text, "0600"));
    }
    write_file(path, rfc_seed, strlen(rfc_seed), 0640); /* our own group, as in a pod's volume */
    assert_int_equal(cred_key_load_or_make(path, &k, NULL), 0);
    cred_key_fini(&k);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 0, 12345), 0);
        assert_int_equal(chmod(path, 0640), 0);
        assert_int_equal(cred_key_load_or_make(path, &k, NULL), E_CONFIG);
    }
    unlink(path);
}

static void damaged_key_files_are_refused_and_kept(void **state) {
    autofree char *path = path_of("bad");
    static const char *const bad[] = {"", "\n", "4ccd", "zz", rfc_public + 1};
    struct cred_key k = {0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        write_file(path, bad[i], strlen(bad[i]), 0600);
        assert_int_equal(cred_key_load_or_make(path, &k, NULL), E_CONFIG);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, strlen(bad[i]));
    }
    autofree char *two = xasprintf("%s\n%s\n", rfc_public, rfc_public);
    write_file(path, two, strlen(two), 0600);
    assert_int_equal(cred_key_load_or_make(path, &k, NULL), E_CONFIG);
    unlink(path);
    autofree char *nowhere = path_of("no/such/dir");
    struct err e;
    assert_int_equal(cred_key_load_or_make(nowhere, &k, &e), E_SYS);
    assert_int_equal(cred_key_load_or_make(dir, &k, &e), E_CONFIG);
}

static void public_keys_as_text(void **state) {
    struct cred_public p, q;
    assert_int_equal(cred_public_parse(rfc_public, &p), 0);
    autofree char *with_newline = xasprintf("%s\n", rfc_public);
    assert_int_equal(cred_public_parse(with_newline, &q), 0);
    assert_memory_equal(&p, &q, sizeof(p));
    char hex[65];
    cred_public_print(&p, hex);
    assert_string_equal(hex, rfc_public);
    autofree char *long_one = xasprintf("%s00", rfc_public);
    assert_int_equal(cred_public_parse(long_one, &p), E_SYNTAX);
    assert_int_equal(cred_public_parse(rfc_public + 1, &p), E_SYNTAX);
    assert_int_equal(cred_public_parse("", &p), E_SYNTAX);
    hex[10] = 'g';
    assert_int_equal(cred_public_parse(hex, &p), E_SYNTAX);
    assert_memory_equal(&p, &q, sizeof(p));
}

static void secrets_of_a_configuration(void **state) {
    autofree char *path = path_of("jwt.key");
    struct secret s = {0};
    struct err e;
    assert_int_equal(cred_secret_from("0123456789abcdef", NULL, CRED_SECRET_MIN, &s, NULL), 0);
    assert_int_equal(s.n, 16);
    assert_int_equal(cred_secret_from("0123456789abcde", NULL, CRED_SECRET_MIN, &s, &e), E_CONFIG);
    assert_null(strstr(e.text, "0123456789"));
    struct secret brief = {0};
    assert_int_equal(cred_secret_from("e2e-test-key", NULL, 1, &brief, NULL), 0);
    assert_int_equal(brief.n, 12);
    secret_fini(&brief);
    assert_int_equal(cred_secret_from(NULL, NULL, CRED_SECRET_MIN, &s, NULL), E_CONFIG);
    assert_int_equal(cred_secret_from("", "", CRED_SECRET_MIN, &s, NULL), E_CONFIG);
    assert_int_equal(s.n, 16);
    uint8_t bytes[32] = {0, 1, 2, 0xff, [31] = '\n'}; /* a key of random bytes may end so: nothing is cut off */
    write_file(path, bytes, sizeof(bytes), 0444);
    assert_int_equal(cred_secret_from("", path, CRED_SECRET_MIN, &s, NULL), 0);
    assert_int_equal(s.n, 32);
    assert_memory_equal(s.bytes, bytes, 32);
    assert_int_equal(cred_secret_from("0123456789abcdef", path, CRED_SECRET_MIN, &s, NULL), E_CONFIG);
    write_file(path, bytes, 15, 0600);
    assert_int_equal(cred_secret_from(NULL, path, CRED_SECRET_MIN, &s, NULL), E_CONFIG);
    autofree char *huge = xcalloc(1, 70000);
    write_file(path, huge, 70000, 0600);
    assert_int_equal(cred_secret_from(NULL, path, CRED_SECRET_MIN, &s, NULL), E_CONFIG);
    assert_int_equal(cred_secret_from(NULL, dir, CRED_SECRET_MIN, &s, NULL), E_CONFIG);
    unlink(path);
    assert_int_equal(cred_secret_from(NULL, path, CRED_SECRET_MIN, &s, NULL), E_SYS);
    assert_int_equal(s.n, 32);
    secret_fini(&s);
}

static void hashing_and_comparing(void **state) {
    uint8_t h[32];
    static const uint8_t of_abc[32] = /* hashlib.blake2b(b"abc", digest_size=32) */
        {
        0xbd, 0xdd, 0x81, 0x3c, 0x63, 0x42, 0x39, 0x72, 0x31, 0x71, 0xef, 0x3f, 0xee, 0x98, 0x57, 0x9b,
        0x94, 0x96, 0x4e, 0x3b, 0xb1, 0xcb, 0x3e, 0x42, 0x72, 0x62, 0xc8, 0xc0, 0x68, 0xd5, 0x23, 0x19,
    };
    cred_hash("abc", 3, h);
    assert_memory_equal(h, of_abc, 32);
    assert_true(cred_same(h, of_abc, 32));
    h[31] ^= 1;
    assert_false(cred_same(h, of_abc, 32));
    assert_true(cred_same(NULL, NULL, 0));
    uint8_t a[32], b[32];
    cred_random(a, 32);
    cred_random(b, 32);
    assert_memory_not_equal(a, b, 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_known_vector),
        cmocka_unit_test(a_signature_holds_for_its_words_only),
        cmocka_unit_test(derived_keys_are_the_same_again),
        cmocka_unit_test(a_key_is_made_once),
        cmocka_unit_test(two_who_make_it_at_once_get_one_key),
        cmocka_unit_test(what_others_may_read_is_refused),
        cmocka_unit_test(damaged_key_files_are_refused_and_kept),
        cmocka_unit_test(public_keys_as_text),
        cmocka_unit_test(secrets_of_a_configuration),
        cmocka_unit_test(hashing_and_comparing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
