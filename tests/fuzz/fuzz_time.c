/* SPDX-License-Identifier: Apache-2.0
 *
 * Time limits come back from their print; moments are read or told.
 */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/mem.h"
#include "core/model/text.h"

static int64_t to_unix(void *arg, int year, int month, int day, int hour, int minute, int second) {
    struct tm t = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = hour, .tm_min = minute,
                   .tm_sec = second};
    must(month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour >= 0 && hour < 24 && minute >= 0 && minute < 60);
    return (int64_t)timegm(&t);
}

static void to_local(void *arg, int64_t unix_secs, int out[6]) {
    time_t when = (time_t)unix_secs;
    struct tm t;
    must(gmtime_r(&when, &t));
    int got[6] = {t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec};
    for (int i = 0; i < 6; i++)
        out[i] = got[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto_arena a = {0};
    auto_str s = {0};
    const char *text = arena_strndup(&a, (const char *)data, size);
    uint32_t minutes, again;
    if (time_limit_parse_conf(text, &minutes) == 0) {
        must(minutes > 0);
        time_limit_print(minutes, &s);
        must(time_limit_parse(str_text(&s), &again) == 0 && again == minutes);
    }
    struct text_clock c = {1764604124, to_unix, to_local, NULL, size % 2};
    struct err e = {0};
    int64_t when;
    must(moment_parse(text, &c, &when, &e) == 0 || *e.text);
    return 0;
}
