/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/mem.h"
#include "core/model/text.h"

static void expect(const char *list, const char *want) {
    auto_arena a = {0};
    auto_str s = {0};
    struct err e = {0};
    const char *const *names;
    uint32_t n;
    if (hostlist_expand(list, &a, &names, &n, &e))
        fail_msg("\"%s\": %s", list, e.text);
    for (uint32_t i = 0; i < n; i++) {
        str_add(&s, i ? " " : "");
        str_add(&s, names[i]);
    }
    assert_string_equal(str_text(&s), want);
}

static void expanding(void **state) {
    expect("n1", "n1");
    expect("", "");
    expect("n[1-3,5],n[01-03]", "n1 n2 n3 n5 n01 n02 n03");
    expect("n[001-003,7],x[1-2]y", "n001 n002 n003 n7 x1y x2y");
    expect("r[1-2]n[1-3]", "r1n1 r1n2 r1n3 r2n1 r2n2 r2n3");
    expect("[7101-7104]", "7101 7102 7103 7104");
    expect("n[9-11]", "n9 n10 n11");
    expect("n[09-11]", "n09 n10 n11");
    expect("n[1]", "n1");
    expect("n[3,1,3]", "n3 n1 n3");
    expect("a,b", "a b");
    expect("a,,b,", "a b");
    expect("n1 n2\nn4\n", "n1 n2 n4");
    expect("x,y-12,z", "x y-12 z");
    expect("a[1-2]b[3-4]c[5-6]", "a1b3c5 a1b3c6 a1b4c5 a1b4c6 a2b3c5 a2b3c6 a2b4c5 a2b4c6");
    expect("n[000]", "n000");
    expect("gpu-[1-2].example.com", "gpu-1.example.com gpu-2.example.com");
}

static void refusing(void **state) {
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"n[3-1]", "_parse_single_range: Invalid range: `3-1'"},
        {"n[1-", "Invalid hostlist: n[1-"},
        {"n[1-2][a-b]", "_parse_single_range: Invalid range: `a-b'"},
        {"n[1", "Invalid hostlist: n[1"},
        {"n1]", "Invalid hostlist: n1]"},
        {"n[]", "Invalid hostlist: n[]"},
        {"[]", "Invalid hostlist: []"},
        {"n[1-[2]]", "Invalid hostlist: n[1-[2]]"},
        {"n[1,]", "_parse_single_range: Invalid range: `'"},
        {"n[-3]", "_parse_single_range: Invalid range: `-3'"},
        {"n[1-2-3]", "_parse_single_range: Invalid range: `1-2-3'"},
        {"n[1 2]", "_parse_single_range: Invalid range: `1 2'"},
        {"n[99999999999999999999]", "_parse_single_range: Invalid range: `99999999999999999999'"},
        {"n[0-65536]", "Invalid hostlist: more than 65536 names"},
        {"n[0-999999999]", "Invalid hostlist: more than 65536 names"},
        {"n[1-300]m[1-300]", "Invalid hostlist: more than 65536 names"},
        {"n[1-65536],x", "Invalid hostlist: more than 65536 names"},
        {"n[1-60000,1-60000]", "Invalid hostlist: more than 65536 names"},
        {"[1][1][1][1][1][1][1][1][1]", "Invalid hostlist: [1][1][1][1][1][1][1][1][1]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_arena a = {0};
        struct err e = {0};
        const char *const *names = NULL;
        uint32_t n = 7;
        assert_int_equal(hostlist_expand(rows[i].text, &a, &names, &n, &e), E_SYNTAX);
        assert_string_equal(e.text, rows[i].why);
        assert_int_equal(n, 7);
    }
}

static void bounds(void **state) {
    auto_arena a = {0};
    const char *const *names;
    uint32_t n;
    assert_int_equal(hostlist_expand("n[1-65536]", &a, &names, &n, NULL), 0);
    assert_int_equal(n, HOSTLIST_MAX);
    assert_string_equal(names[65535], "n65536");
    char text[400];
    memset(text, 'x', sizeof(text));
    text[255] = '\0';
    assert_int_equal(hostlist_expand(text, &a, &names, &n, NULL), 0);
    text[255] = 'x';
    text[256] = '\0';
    assert_int_equal(hostlist_expand(text, &a, &names, &n, NULL), E_SYNTAX);
    memcpy(text + 256, "[1-2]", 6);
    assert_int_equal(hostlist_expand(text, &a, &names, &n, NULL), E_SYNTAX);
}

static void expect_compact(const char *given, const char *want) {
    auto_arena a = {0};
    auto_str s = {0};
    const char *const *names;
    uint32_t n;
    assert_int_equal(hostlist_expand(given, &a, &names, &n, NULL), 0);
    hostlist_compact(names, n, &s);
    assert_string_equal(str_text(&s), want);
}

static int order(const void *a, const void *b) {
    return hostname_compare(*(const char *const *)a, *(const char *const *)b);
}

static void expect_sorted(const char *given, const char *want) {
    auto_arena a = {0};
    auto_str s = {0};
    const char *const *names;
    uint32_t n;
    assert_int_equal(hostlist_expand(given, &a, &names, &n, NULL), 0);
    const char **mine = arena_memdup(&a, names, n * sizeof(*names));
    qsort(mine, n, sizeof(*mine), order);
    hostlist_compact(mine, n, &s);
    assert_string_equal(str_text(&s), want);
}

static void compacting(void **state) {
    expect_compact("n001,n002,n003,n7", "n[001-003,7]");
    expect_compact("n3,n1,n2,n1", "n[3,1-2,1]");
    expect_compact("n09,n10,n11,n8,x1,n100", "n[09-11,8],x1,n100");
    expect_compact("r1n1,r1n2,r2n1,r2n2", "r1n[1-2],r2n[1-2]");
    expect_compact("n1-ib,n2-ib", "n1-ib,n2-ib");
    expect_compact("n1,n2,n4", "n[1-2,4]");
    expect_compact("", "");
    expect_compact("n1", "n1");
    expect_compact("n01", "n01");
    expect_compact("a,b,a", "a,b,a");
    expect_compact("a,a", "a,a");
    expect_compact("n,n1", "n,n1");
    expect_compact("n9,n10", "n[9-10]");
    expect_compact("n9,n010", "n[9,010]");
    expect_compact("n99,n100,n101", "n[99-101]");
    expect_compact("n099,n100", "n[099-100]");
    expect_compact("n0,n00,n000", "n[0,00,000]");
    expect_compact("7101,7102", "[7101-7102]");
    expect_compact("n5,n4,n3", "n[5,4,3]");
    expect_compact("n[1-65536]", "n[1-65536]");
    expect_sorted("n3,n1,n2,n1", "n[1,1-3]");
    expect_sorted("n10,n9,m1,n09,n8", "m1,n[8-9,09-10]");
    expect_sorted("n10,n2,n1", "n[1-2,10]");
    expect_sorted("r10n1,r2n10,r2n9", "r2n[9-10],r10n1");
    expect_sorted("b,a1,a", "a,a1,b");
}

static void comparing(void **state) {
    static const char *const rising[] = {"", "a", "a1", "a2", "a02", "a10", "a10b", "a010", "a11", "ab", "b"};
    for (size_t i = 0; i < ARRAY_LEN(rising); i++) {
        for (size_t k = 0; k < ARRAY_LEN(rising); k++) {
            int got = hostname_compare(rising[i], rising[k]);
            /* a10b and a010 differ beyond the number, which counts before the number's zeros */
            if ((i == 6 && k == 7) || (i == 7 && k == 6))
                continue;
            assert_int_equal(got < 0, i < k);
            assert_int_equal(got > 0, i > k);
        }
    }
    assert_true(hostname_compare("a99999999999999999999998", "a99999999999999999999999") < 0);
}

/* What compacting prints, expanding reads back. */
static void round_trip(void **state) {
    srandom(7);
    for (int round = 0; round < 3000; round++) {
        auto_arena a = {0};
        auto_str s = {0};
        const char *names[12];
        uint32_t n = (uint32_t)(random() % 12) + 1, back_n;
        for (uint32_t i = 0; i < n; i++)
            names[i] = arena_printf(&a, "%c%0*ld%s", (int)('a' + random() % 2), (int)(random() % 4), random() % 12,
                                    random() % 8 ? "" : "-x");
        hostlist_compact(names, n, &s);
        const char *const *back;
        assert_int_equal(hostlist_expand(str_text(&s), &a, &back, &back_n, NULL), 0);
        assert_int_equal(back_n, n);
        for (uint32_t i = 0; i < n; i++)
            assert_string_equal(back[i], names[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(expanding),  cmocka_unit_test(refusing),
                                       cmocka_unit_test(bounds),     cmocka_unit_test(compacting),
                                       cmocka_unit_test(comparing),  cmocka_unit_test(round_trip)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
