/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/model/text.h"

static void sizes(void **state) {
    static const struct {
        const char *text;
        uint64_t want;
    } rows[] = {{"500", 500},   {"0", 0},         {"2G", 2048},  {"1T", 1048576}, {"1024K", 1}, {"1K", 1},
                {"1025k", 2},   {"32gb", 32768},  {"6g", 6144},  {"16GB", 16384}, {"7m", 7},    {"7MB", 7},
                {"0K", 0},      {"999G", 1022976}, {"010", 10}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t got = 7777;
        if (size_mb_parse(rows[i].text, &got) || got != rows[i].want)
            fail_msg("\"%s\" is %llu", rows[i].text, (unsigned long long)got);
    }
    static const char *const bad[] = {"", "x", "-5", "5X", "1.5G", "G", "2Gx", "2GiB", "2 G", " 2", "+2", "2GBB",
                                      "9223372036854775808", "99999999999999999999", "9223372036854775807T"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t got = 7777;
        if (size_mb_parse(bad[i], &got) != E_SYNTAX || got != 7777)
            fail_msg("\"%s\" was taken", bad[i]);
    }
}

static void size_texts(void **state) {
    static const struct {
        uint64_t mb;
        const char *want;
    } rows[] = {{0, "0"},          {1, "1M"},         {500, "500M"},     {1024, "1G"},       {16000, "16000M"},
                {2048, "2G"},      {4000, "4000M"},   {1048576, "1T"},   {1048577, "1048577M"},
                {3ull << 20, "3T"}, {5ull << 30, "5P"}, {1536, "1.50G"}, {64000, "62.50G"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_str s = {0};
        size_mb_print(rows[i].mb, &s);
        assert_string_equal(str_text(&s), rows[i].want);
    }
}

static void counts(void **state) {
    uint64_t got = 0;
    assert_int_equal(count_parse("16", 100, &got), 0);
    assert_int_equal(got, 16);
    assert_int_equal(count_parse("4k", 10000, &got), 0);
    assert_int_equal(got, 4096);
    assert_int_equal(count_parse("1M", 1 << 20, &got), 0);
    assert_int_equal(got, 1 << 20);
    assert_int_equal(count_parse("0", 5, &got), 0);
    assert_int_equal(got, 0);
    static const char *const bad[] = {"", "x", "101", "-1", "1kk", "1g", "1 ", "k", "99999999999999999999k",
                                      "18446744073709551615m"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(count_parse(bad[i], 100, &got), E_SYNTAX);
}

static void node_counts(void **state) {
    static const struct {
        const char *text;
        uint32_t min, max;
    } rows[] = {{"2", 2, 2}, {"1-4", 1, 4}, {"2k", 2048, 2048}, {"0", 0, 0}, {"3-3", 3, 3}, {"0-2", 1, 2}, {"1-1k", 1, 1024}, {"-4", 1, 4}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t min = 9, max = 9;
        assert_int_equal(node_range_parse(rows[i].text, &min, &max), 0);
        assert_int_equal(min, rows[i].min);
        assert_int_equal(max, rows[i].max);
    }
    static const struct {
        const char *text, *why;
        int code;
    } bad[] = {{"x", "\"x\" is not a valid node count", E_SYNTAX},
               {"", "\"\" is not a valid node count", E_SYNTAX},
               {"-", "\"\" is not a valid node count", E_SYNTAX},
               {"3-2", "Maximum node count 2 is less than minimum node count 3", E_SYNTAX},
               {"2-", "Maximum node count -1 is less than minimum node count 2", E_SYNTAX},
               {"1-2-3", "\"2-3\" is not a valid node count", E_SYNTAX},
               {"1-x", "\"x\" is not a valid node count", E_SYNTAX},
               {"99999999999", "\"99999999999\" is not a valid node count", E_SYNTAX},
               {"2,4", "Lists of node counts are not supported yet: 2,4", E_UNSUPPORTED}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = {0};
        uint32_t min = 9, max = 9;
        assert_int_equal(node_count_parse(bad[i].text, &min, &max, &e), bad[i].code);
        assert_string_equal(e.text, bad[i].why);
        assert_int_equal(min, 9);
        assert_int_equal(max, 9);
    }
    char longest[400];
    memset(longest, '1', sizeof(longest));
    longest[399] = '\0';
    uint32_t min, max;
    assert_int_equal(node_range_parse(longest, &min, &max), E_SYNTAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(size_texts),
                                       cmocka_unit_test(counts), cmocka_unit_test(node_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
