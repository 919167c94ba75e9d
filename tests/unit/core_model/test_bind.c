/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "core/model/bind.h"
#include "core/model/mail.h"

static void test_words(void **s) {
    static const struct {
        const char *text;
        int rc;
        enum cpu_bind kind;
        bool verbose;
    } cases[] = {
        {"q", 0, CPU_BIND_NONE, false},      {"none", 0, CPU_BIND_NONE, false},       {"verbose,rank", 0, CPU_BIND_RANK, true},
        {"map_cpu:0,2*3", 0, CPU_BIND_MAP, false}, {"v,mask_cpu:0x3,c", 0, CPU_BIND_MASK, true}, {"cores", 0, CPU_BIND_LATER, false},
        {"bogus", E_SYNTAX, 0, false},       {"map_cpu:", E_SYNTAX, 0, false},        {"map_cpu:x", E_SYNTAX, 0, false},
        {"map_cpu:1,,2", E_SYNTAX, 0, false}, {"mask_cpu:0x", E_SYNTAX, 0, false},    {"mask_cpu:0", E_SYNTAX, 0, false},
        {"map_cpu:1*0", E_SYNTAX, 0, false}, {"map_cpu:5000", E_SYNTAX, 0, false},    {"map_cpu", E_SYNTAX, 0, false},
        {"rank:1", E_SYNTAX, 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cpu_bind_ask b = {0};
        assert_int_equal(cpu_bind_parse(cases[i].text, &b), cases[i].rc);
        assert_int_equal(b.kind, cases[i].kind);
        assert_int_equal(b.verbose, cases[i].verbose);
    }
}

static void expect(const char *text, uint32_t local, const uint32_t *want, uint32_t n_want) {
    auto_arena a = {0};
    struct cpu_bind_ask b;
    const uint32_t *cpus;
    uint32_t n;
    assert_int_equal(cpu_bind_parse(text, &b), 0);
    cpu_bind_task(&b, local, &a, &cpus, &n);
    assert_int_equal(n, n_want);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(cpus[i], want[i]);
}
#define EXPECT(text, local, ...)                                                                                       \
    expect(text, local, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void test_cpus_of_a_task(void **s) {
    EXPECT("map_cpu:4,7", 0, 4);
    EXPECT("map_cpu:4,7", 1, 7);
    EXPECT("map_cpu:4,7", 2, 4); /* again from the front */
    EXPECT("map_cpu:4*2,7", 1, 4);
    EXPECT("map_cpu:4*2,7", 2, 7);
    EXPECT("mask_cpu:0x3,f00", 0, 0, 1);
    EXPECT("mask_cpu:0x3,f00", 1, 8, 9, 10, 11);
    EXPECT("rank", 5, 5);
    expect("none", 1, NULL, 0);
    expect("verbose", 1, NULL, 0);
}

static void test_mail(void **s) {
    static const char *const good[][2] = {
        {"END", "END"}, {"fail,begin", "BEGIN,FAIL"}, {"ALL", "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT"},
        {"NONE", "NONE"}, {"TIME_LIMIT,TIME_LIMIT_80", "TIME_LIMIT_80,TIME_LIMIT"}, {"ARRAY_TASKS,END", "ARRAY_TASKS,END"},
        {"END,NONE", "NONE"},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        auto_str out = {0};
        uint32_t bits;
        assert_int_equal(mail_type_parse(good[i][0], &bits), 0);
        mail_type_print(bits, &out);
        assert_string_equal(str_text(&out), good[i][1]);
    }
    uint32_t bits = 7;
    assert_int_not_equal(mail_type_parse("BOGUS", &bits), 0);
    assert_int_not_equal(mail_type_parse("", &bits), 0);
    assert_int_equal(bits, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_cpus_of_a_task),
        cmocka_unit_test(test_mail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
