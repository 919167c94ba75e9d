/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/model/text.h"

static const struct {
    const char *text;
    uint32_t want;
} good[] = {
    {"10", 10},
    {"0", TIME_LIMIT_NONE}, /* Slurm: -t 0 is UNLIMITED */
    {"-1", TIME_LIMIT_NONE},
    {"infinite", TIME_LIMIT_NONE},
    {"UNLIMITED", TIME_LIMIT_NONE},
    {"Infinite", TIME_LIMIT_NONE},
    {"1440", 1440},
    {"10:00", 10},
    {"5:30", 6},
    {"0:01", 1},
    {"0:00", TIME_LIMIT_NONE},
    {"0:05:00", 5},
    {"2:0:0", 120},
    {"24:00:00", 1440},
    {"1:2:3", 63},
    {"1-", 1440},
    {"1-00", 1440},
    {"0-06", 360},
    {"1-25", 1440 + 1500},
    {"5-0", 7200},
    {"1-2:3", 1440 + 123},
    {"4-00:00:00", 4 * 1440},
    {"2-03:04:05", 2 * 1440 + 185},
    {"0001", 1},
    {"1:90", 3},
    {"4294967294", 4294967294u},
};

static const char *const bad[] = {"",     "x",      "5:x",   "1:2:3:4:5", "1:2:3:4", "1-2:3:4:5", "-5",   ":",
                                  ":5",   "5:",     "1-:5",  "1--2",      "1-2-3",   "1:2-3",     " 5",   "5 ",
                                  "+5",   "1.5",    "UNL",   "infinit",   "4294967295", "4294967296",
                                  "99999999999999999999", "1-99999999999999999999", "-", "-2", "1h", "1-1h"};

static void limits(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        uint32_t got = 7;
        if (time_limit_parse(good[i].text, &got) || got != good[i].want)
            fail_msg("\"%s\" is %u, not %u", good[i].text, got, good[i].want);
        got = 7;
        assert_int_equal(time_limit_parse_conf(good[i].text, &got), 0);
        assert_int_equal(got, good[i].want);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint32_t got = 7;
        if (time_limit_parse(bad[i], &got) != E_SYNTAX || got != 7)
            fail_msg("\"%s\" was taken", bad[i]);
    }
}

static void conf_limits(void **state) {
    static const struct {
        const char *text;
        uint32_t want;
    } rows[] = {{"1h40m", 100}, {"2d12h", 3600},  {"30s", 1},   {"90s", 2},     {"1h", 60},
                {"10m", 10},    {"8h", 480},      {"1d", 1440}, {"1D2H3M4S", 1440 + 120 + 4},
                {"0h", TIME_LIMIT_NONE}, {"1d30s", 1441}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t got = 7;
        if (time_limit_parse_conf(rows[i].text, &got) || got != rows[i].want)
            fail_msg("\"%s\" is %u", rows[i].text, got);
    }
    static const char *const wrong[] = {"", "h", "1h2", "1m1h", "1h1h", "1w", "1h 2m", "-1h", "1.5h", "99999999999999d"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        uint32_t got = 7;
        if (time_limit_parse_conf(wrong[i], &got) != E_SYNTAX || got != 7)
            fail_msg("\"%s\" was taken", wrong[i]);
    }
}

typedef void (*print_fn)(int64_t, struct str *);

static void expect(print_fn print, int64_t seconds, const char *want) {
    auto_str s = {0};
    print(seconds, &s);
    assert_string_equal(str_text(&s), want);
}

static void expect_limit(uint32_t minutes, const char *want) {
    auto_str s = {0};
    time_limit_print(minutes, &s);
    assert_string_equal(str_text(&s), want);
}

static void printing(void **state) {
    expect(duration_print, 0, "0:00");
    expect(duration_print, 4, "0:04");
    expect(duration_print, 596, "9:56");
    expect(duration_print, 600, "10:00");
    expect(duration_print, 3723, "1:02:03");
    expect(duration_print, 86399, "23:59:59");
    expect(duration_print, 86400, "1-00:00:00");
    expect(duration_print, 183845, "2-03:04:05");
    expect(duration_print, -1, "INVALID");
    expect(duration_print_long, 0, "00:00:00");
    expect(duration_print_long, 4, "00:00:04");
    expect(duration_print_long, 599, "00:09:59");
    expect(duration_print_long, 600, "00:10:00");
    expect(duration_print_long, 3599, "00:59:59");
    expect(duration_print_long, 3600, "01:00:00");
    expect(duration_print_long, 35999, "09:59:59");
    expect(duration_print_long, 36000, "10:00:00");
    expect(duration_print_long, 183845, "2-03:04:05");
    expect(duration_print_long, (int64_t)365 * 86400, "365-00:00:00");
    expect(duration_print_long, -5, "INVALID");
    expect_limit(10, "10:00");
    expect_limit(5, "5:00");
    expect_limit(60, "1:00:00");
    expect_limit(7200, "5-00:00:00");
    expect_limit(0, "0:00");
    expect_limit(TIME_LIMIT_NONE, "UNLIMITED");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(limits), cmocka_unit_test(conf_limits),
                                       cmocka_unit_test(printing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
