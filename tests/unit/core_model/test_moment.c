/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "core/model/text.h"

/* UTC; the state of the world is Tuesday 2026-12-01 15:48:44. */
static int64_t to_unix(void *arg, int year, int month, int day, int hour, int minute, int second) {
    struct tm t = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = hour, .tm_min = minute,
                   .tm_sec = second};
    return (int64_t)timegm(&t);
}

static void to_local(void *arg, int64_t unix_secs, int out[6]) {
    time_t when = (time_t)unix_secs;
    struct tm t;
    gmtime_r(&when, &t);
    out[0] = t.tm_year + 1900;
    out[1] = t.tm_mon + 1;
    out[2] = t.tm_mday;
    out[3] = t.tm_hour;
    out[4] = t.tm_min;
    out[5] = t.tm_sec;
}

static struct text_clock utc(bool past) {
    struct text_clock c = {.to_unix = to_unix, .to_local = to_local, .past = past};
    c.now_unix = to_unix(NULL, 2026, 12, 1, 15, 48, 44);
    return c;
}

static void expect(bool past, const char *text, const char *want) {
    struct text_clock c = utc(past);
    struct err e = {0};
    int64_t got = -7;
    int t[6];
    char buf[64];
    if (moment_parse(text, &c, &got, &e))
        fail_msg("\"%s\": %s", text, e.text);
    to_local(NULL, got, t);
    snprintf(buf, sizeof(buf), "%04d-%02d-%02dT%02d:%02d:%02d", t[0], t[1], t[2], t[3], t[4], t[5]);
    if (strcmp(buf, want) != 0)
        fail_msg("\"%s\" is %s, not %s", text, buf, want);
}

static void words(void **state) {
    expect(false, "now", "2026-12-01T15:48:44");
    expect(false, "now+1hour", "2026-12-01T16:48:44");
    expect(false, "now+3", "2026-12-01T15:48:47");
    expect(false, "now+5minutes", "2026-12-01T15:53:44");
    expect(false, "NOW + 5 Minutes", "2026-12-01T15:53:44");
    expect(false, "now+2hours", "2026-12-01T17:48:44");
    expect(false, "now+1day", "2026-12-02T15:48:44");
    expect(false, "now+2weeks", "2026-12-15T15:48:44");
    expect(false, "now-3days", "2026-11-28T15:48:44");
    expect(false, "now-60", "2026-12-01T15:47:44");
    expect(false, "today", "2026-12-01T00:00:00");
    expect(false, "tomorrow", "2026-12-02T00:00:00");
    expect(false, "Tomorrow", "2026-12-02T00:00:00");
    expect(false, "midnight", "2026-12-02T00:00:00");
    expect(false, "noon", "2026-12-02T12:00:00");
    expect(false, "elevenses", "2026-12-02T11:00:00");
    expect(false, "fika", "2026-12-02T15:00:00");
    expect(false, "teatime", "2026-12-01T16:00:00");
    expect(false, "noon tomorrow", "2026-12-02T12:00:00");
    expect(false, "today noon", "2026-12-01T12:00:00");
    expect(false, "10:00 tomorrow", "2026-12-02T10:00:00");
    expect(false, "tomorrow-10:00", "2026-12-02T10:00:00");
    expect(false, "uts1764604124", "2025-12-01T15:48:44");
}

static void times_and_dates(void **state) {
    expect(false, "16:00", "2026-12-01T16:00:00");
    expect(false, "15:49", "2026-12-01T15:49:00");
    expect(false, "15:48", "2026-12-02T15:48:00"); /* this minute is over */
    expect(false, "9:30", "2026-12-02T09:30:00");
    expect(false, "09:30:15", "2026-12-02T09:30:15");
    expect(false, "4:30PM", "2026-12-01T16:30:00");
    expect(false, "4:30 pm", "2026-12-01T16:30:00");
    expect(false, "12:15am", "2026-12-02T00:15:00");
    expect(false, "12:15 PM", "2026-12-02T12:15:00");
    expect(false, "12/24", "2026-12-24T00:00:00");
    expect(false, "11/24", "2027-11-24T00:00:00");
    expect(false, "12/01", "2027-12-01T00:00:00"); /* today 00:00 is over */
    expect(false, "12/01-18:00", "2026-12-01T18:00:00");
    expect(false, "12/24-18:00", "2026-12-24T18:00:00");
    expect(false, "12/24/30-18:00:09", "2030-12-24T18:00:09");
    expect(false, "12.24.30", "2030-12-24T00:00:00");
    expect(false, "122430", "2030-12-24T00:00:00");
    expect(false, "1224", "2026-12-24T00:00:00");
    expect(false, "1/2/30", "2030-01-02T00:00:00");
    expect(false, "2020-01-01", "2020-01-01T00:00:00");
    expect(false, "2030-01-01T10:00", "2030-01-01T10:00:00");
    expect(false, "2030-01-01T10:00:30", "2030-01-01T10:00:30");
    expect(false, "2030-01-01 10:00", "2030-01-01T10:00:00");
    expect(false, "2030-1-2", "2030-01-02T00:00:00");
    expect(false, "2030-01-01T10:00\n", "2030-01-01T10:00:00");
}

static void backwards(void **state) {
    expect(true, "08:00", "2026-12-01T08:00:00");
    expect(true, "18:00", "2026-12-01T18:00:00"); /* Slurm: today's, even if it is to come */
    expect(true, "12/24", "2026-12-24T00:00:00");
    expect(true, "11/24", "2026-11-24T00:00:00");
    expect(true, "now-1day", "2026-11-30T15:48:44");
    expect(true, "midnight", "2026-12-01T00:00:00");
}

static void nonsense(void **state) {
    static const struct {
        const char *text;
        int pos;
    } rows[] = {
        {"25:99", 0},     {"now+5x", 4},  {"13/45/30", 0},   {"bogus", 0},  {"x", 0},       {"now+", 3},
        {"nowx", 3},      {"10:75", 3},   {"10:7", 4},       {"10", 2},     {"12/32", 3},   {"00/10", 0},
        {"13:00pm", 5},   {"2030-13-01", 5}, {"2030-01-45", 8}, {"today x", 6}, {"uts12", 0}, {"utsx", 0},
        {"now+1h", 4},    {"1", 1},       {"-5x", 2},        {"10:00:61", 6}, {"now+99999999999", 13}, {"now5", 3},
    };
    struct text_clock c = utc(false);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = {0};
        int64_t got = -7;
        char want[200];
        assert_int_equal(moment_parse(rows[i].text, &c, &got, &e), E_SYNTAX);
        assert_int_equal(got, -7);
        snprintf(want, sizeof(want), "Invalid time specification (pos=%d): %s", rows[i].pos, rows[i].text);
        assert_string_equal(e.text, want);
    }
    int64_t got = -7;
    assert_int_equal(moment_parse("", &c, &got, NULL), 0);
    assert_int_equal(got, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(times_and_dates),
                                       cmocka_unit_test(backwards), cmocka_unit_test(nonsense)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
