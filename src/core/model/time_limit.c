/* SPDX-License-Identifier: Apache-2.0
 *
 * Time limits and durations, as Slurm reads and prints them.
 *
 * A number alone is minutes; with one colon it is minutes:seconds; a dash makes what stands before it days and what
 * stands behind it hours. Slurm takes some forms that look unfinished ("1-" is one day), and so do we.
 */
#include "core/model/text.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define LIMIT_MAX_SECS (((uint64_t)TIME_LIMIT_NONE - 1) * 60)
#define NUMBER_MAX 999999999999u /* of one part: far beyond any limit, far below overflow when multiplied */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Reads digits at *p (none is 0, told by the return) and moves *p behind them. Saturates. */
static bool number(const char **p, uint64_t *out) {
    uint64_t v = 0;
    bool any = false;
    for (; is_digit(**p); (*p)++) {
        any = true;
        v = v * 10 + (unsigned)(**p - '0');
        if (v > NUMBER_MAX)
            v = NUMBER_MAX;
    }
    *out = v;
    return any;
}

static int to_minutes(uint64_t seconds, uint32_t *out_min) {
    if (seconds > LIMIT_MAX_SECS)
        return E_SYNTAX;
    *out_min = (uint32_t)((seconds + 59) / 60);
    return 0;
}

static bool is_endless(const char *s) {
    return strcmp(s, "-1") == 0 || strcasecmp(s, "INFINITE") == 0 || strcasecmp(s, "UNLIMITED") == 0;
}

/* "a", "a:b", "a:b:c" at *p; the number of parts, or 0 when it is something else. */
static int colon_parts(const char *p, uint64_t v[3]) {
    int n = 0;
    for (;;) {
        if (n == 3 || !number(&p, &v[n]))
            return 0;
        n++;
        if (!*p)
            return n;
        if (*p++ != ':')
            return 0;
    }
}

static int parse_seconds(const char *s, uint64_t *out) {
    uint64_t v[3] = {0}, days = 0;
    const char *dash = strchr(s, '-');
    if (!dash) {
        int n = colon_parts(s, v);
        if (!n)
            return E_SYNTAX;
        *out = n == 3 ? v[0] * 3600 + v[1] * 60 + v[2] : v[0] * 60 + v[1];
        return 0;
    }
    const char *p = s;
    if (!number(&p, &days) || p != dash)
        return E_SYNTAX;
    if (dash[1] && !colon_parts(dash + 1, v))
        return E_SYNTAX;
    *out = days * 86400 + v[0] * 3600 + v[1] * 60 + v[2];
    return 0;
}

int time_limit_parse(const char *s, uint32_t *out_min) {
    uint64_t seconds;
    uint32_t minutes;
    if (is_endless(s)) {
        *out_min = TIME_LIMIT_NONE;
        return 0;
    }
    if (parse_seconds(s, &seconds) || to_minutes(seconds, &minutes))
        return E_SYNTAX;
    *out_min = minutes ? minutes : TIME_LIMIT_NONE;
    return 0;
}

/* "2d12h", "1h40m", "30s": descending units, each at most once. */
static int parse_suffixed(const char *s, uint64_t *out) {
    static const struct {
        char unit;
        uint32_t seconds;
    } units[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
    uint64_t total = 0, v;
    size_t next = 0;
    while (*s) {
        if (!number(&s, &v))
            return E_SYNTAX;
        while (next < 4 && units[next].unit != (*s | 0x20))
            next++;
        if (next == 4)
            return E_SYNTAX;
        total += v * units[next++].seconds;
        s++;
    }
    *out = total;
    return 0;
}

int time_limit_parse_conf(const char *s, uint32_t *out_min) {
    uint64_t seconds;
    uint32_t minutes;
    if (time_limit_parse(s, out_min) == 0)
        return 0;
    if (!*s || parse_suffixed(s, &seconds) || to_minutes(seconds, &minutes))
        return E_SYNTAX;
    *out_min = minutes ? minutes : TIME_LIMIT_NONE;
    return 0;
}

void time_limit_print(uint32_t minutes, struct str *out) {
    if (minutes == TIME_LIMIT_NONE)
        str_add(out, "UNLIMITED");
    else
        duration_print((int64_t)minutes * 60, out);
}

void duration_print(int64_t seconds, struct str *out) {
    if (seconds < 0) {
        str_add(out, "INVALID");
        return;
    }
    int64_t days = seconds / 86400;
    int hours = (int)(seconds / 3600 % 24), minutes = (int)(seconds / 60 % 60), rest = (int)(seconds % 60);
    if (days)
        str_addf(out, "%" PRId64 "-%02d:%02d:%02d", days, hours, minutes, rest);
    else if (hours)
        str_addf(out, "%d:%02d:%02d", hours, minutes, rest);
    else
        str_addf(out, "%d:%02d", minutes, rest);
}

void duration_print_long(int64_t seconds, struct str *out) {
    if (seconds >= 0 && seconds < 36000)
        str_addc(out, '0');
    if (seconds >= 0 && seconds < 3600)
        str_add(out, "0:");
    if (seconds >= 0 && seconds < 600)
        str_addc(out, '0');
    duration_print(seconds, out);
}
