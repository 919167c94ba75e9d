/* SPDX-License-Identifier: Apache-2.0
 *
 * A moment, as people write it behind --begin.
 *
 * The text is a row of words: day words, clock words, numbers. Blanks, dashes and `T` between them mean nothing, so
 * "10:00 tomorrow", "12/24-18:00" and "2030-01-01T10:00" are one grammar; the last word of a kind wins. What is left
 * open is filled in towards the future: a time without a date is the next such time, a date without a year the next
 * such date, a date without a time its first second. With `past` it is filled in towards the past (sacct -S 08:00).
 *
 * The position told on failure is Slurm's: the start of a number that is out of range, else where reading stopped.
 */
#include "core/model/text.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define UNSET (-1)
#define UTS_MIN 1000000
#define DELTA_MAX_SECS ((int64_t)100 * 366 * 86400)

struct reader {
    const char *s;
    int at;
    const struct text_clock *clock;
    int now[6]; /* year, month (1…), day, hour, minute, second, local */
    int year, month, day, hour, minute, second;
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool word_at(const struct reader *r, const char *word) {
    return strncasecmp(r->s + r->at, word, strlen(word)) == 0;
}

static void set_day(struct reader *r, int64_t unix_secs) {
    int t[6];
    r->clock->to_local(r->clock->arg, unix_secs, t);
    r->year = t[0];
    r->month = t[1];
    r->day = t[2];
}

static void set_moment(struct reader *r, int64_t unix_secs) {
    int t[6];
    set_day(r, unix_secs);
    r->clock->to_local(r->clock->arg, unix_secs, t);
    r->hour = t[3];
    r->minute = t[4];
    r->second = t[5];
}

/* One or two digits within bounds; the second must be there when `two`. */
static int two_digits(struct reader *r, bool two, int min, int max, int *out) {
    int start = r->at;
    if (!is_digit(r->s[r->at]))
        return E_SYNTAX;
    int v = r->s[r->at++] - '0';
    if (is_digit(r->s[r->at]))
        v = v * 10 + r->s[r->at++] - '0';
    else if (two)
        return E_SYNTAX;
    if (v < min || v > max) {
        r->at = start;
        return E_SYNTAX;
    }
    *out = v;
    return 0;
}

static int am_pm(struct reader *r, int *hour) {
    int at = r->at;
    while (r->s[at] == ' ' || r->s[at] == '\t')
        at++;
    int half = strncasecmp(r->s + at, "am", 2) == 0 ? 1 : strncasecmp(r->s + at, "pm", 2) == 0 ? 2 : 0;
    if (!half)
        return 0;
    r->at = at;
    if (*hour > 12)
        return E_SYNTAX;
    *hour = *hour % 12 + (half == 2 ? 12 : 0);
    r->at += 2;
    return 0;
}

/* HH:MM[:SS] [AM|PM] */
static int read_time(struct reader *r) {
    int hour, minute, second = 0;
    if (two_digits(r, false, 0, 23, &hour) || r->s[r->at] != ':')
        return E_SYNTAX;
    r->at++;
    if (two_digits(r, true, 0, 59, &minute))
        return E_SYNTAX;
    if (r->s[r->at] == ':') {
        r->at++;
        if (two_digits(r, true, 0, 59, &second))
            return E_SYNTAX;
    }
    if (am_pm(r, &hour))
        return E_SYNTAX;
    r->hour = hour;
    r->minute = minute;
    r->second = second;
    return 0;
}

static void skip_mark(struct reader *r) {
    if (r->s[r->at] == '.' || r->s[r->at] == '/')
        r->at++;
}

/* YYYY-MM-DD */
static int read_iso_date(struct reader *r) {
    int year = 0, month, day;
    for (int i = 0; i < 4; i++, r->at++) {
        if (!is_digit(r->s[r->at]))
            return E_SYNTAX;
        year = year * 10 + r->s[r->at] - '0';
    }
    r->at++;
    if (two_digits(r, false, 1, 12, &month))
        return E_SYNTAX;
    if (r->s[r->at++] != '-' || two_digits(r, false, 1, 31, &day))
        return E_SYNTAX;
    r->year = year;
    r->month = month;
    r->day = day;
    return 0;
}

/* MMDD[YY], MM/DD[/YY], MM.DD[.YY], YYYY-MM-DD */
static int read_date(struct reader *r) {
    const char *p = r->s + r->at;
    int month, day, year = UNSET;
    if (strnlen(p, 8) >= 7 && p[4] == '-' && (p[7] == '-' || p[6] == '-'))
        return read_iso_date(r);
    if (two_digits(r, false, 1, 12, &month))
        return E_SYNTAX;
    skip_mark(r);
    if (two_digits(r, false, 1, 31, &day))
        return E_SYNTAX;
    skip_mark(r);
    if (is_digit(r->s[r->at])) {
        if (two_digits(r, true, 0, 99, &year))
            return E_SYNTAX;
        r->year = 2000 + year;
    }
    r->month = month;
    r->day = day;
    return 0;
}

static int set_delta(struct reader *r, int64_t delta) {
    if (delta > DELTA_MAX_SECS || delta < -DELTA_MAX_SECS)
        return E_SYNTAX;
    set_moment(r, r->clock->now_unix + delta);
    return 0;
}

/* The count and unit behind "now+" and "now-". On failure `at` is the place before what can't be read, as Slurm says. */
static int read_delta(struct reader *r, int sign) {
    static const struct {
        const char *name;
        int seconds;
    } units[] = {{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}, {"week", 7 * 86400}};
    int64_t count = 0;
    bool any = false;
    for (r->at++; r->s[r->at] && r->s[r->at] != '\n'; r->at++) {
        char c = r->s[r->at];
        if (c == ' ' || c == '\t')
            continue;
        if (is_digit(c)) {
            any = true;
            count = count * 10 + (c - '0');
            if (count > INT32_MAX)
                return E_SYNTAX;
            continue;
        }
        for (size_t i = 0; any && i < ARRAY_LEN(units); i++) {
            if (word_at(r, units[i].name)) {
                r->at += (int)strlen(units[i].name);
                r->at += (r->s[r->at] | 0x20) == 's';
                return set_delta(r, sign * count * units[i].seconds);
            }
        }
        r->at--;
        return E_SYNTAX;
    }
    if (!any) {
        r->at--;
        return E_SYNTAX;
    }
    return set_delta(r, sign * count);
}

static int read_now(struct reader *r) {
    r->at += 3;
    while (r->s[r->at] == ' ' || r->s[r->at] == '\t')
        r->at++;
    char c = r->s[r->at];
    if (c == '+' || c == '-')
        return read_delta(r, c == '+' ? 1 : -1);
    if (c && c != '\n')
        return E_SYNTAX;
    set_moment(r, r->clock->now_unix);
    return 0;
}

static bool read_clock_word(struct reader *r) {
    static const struct {
        const char *word;
        int hour;
    } words[] = {{"midnight", 0}, {"noon", 12}, {"elevenses", 11}, {"fika", 15}, {"teatime", 16}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (word_at(r, words[i].word)) {
            r->hour = words[i].hour;
            r->minute = r->second = 0;
            r->at += (int)strlen(words[i].word);
            return true;
        }
    }
    return false;
}

static bool read_day_word(struct reader *r) {
    if (word_at(r, "today")) {
        set_day(r, r->clock->now_unix);
        r->at += 5;
        return true;
    }
    if (word_at(r, "tomorrow")) {
        set_day(r, r->clock->now_unix + 86400);
        r->at += 8;
        return true;
    }
    return false;
}

static int read_number(struct reader *r) {
    const char *p = r->s + r->at;
    if (!is_digit(p[0]))
        return E_SYNTAX;
    return p[1] == ':' || (p[1] && p[2] == ':') ? read_time(r) : read_date(r);
}

static int read_words(struct reader *r) {
    while (r->s[r->at] && r->s[r->at] != '\n') {
        char c = r->s[r->at];
        int rc = 0;
        /* "today" and "tomorrow" first: a lone T is a separator, in either case of the word */
        if (read_day_word(r) || read_clock_word(r))
            continue;
        if (c == ' ' || c == '\t' || c == '-' || c == 'T') {
            r->at++;
            continue;
        }
        rc = word_at(r, "now") ? read_now(r) : read_number(r);
        if (rc)
            return rc;
    }
    return 0;
}

static bool later_today(const struct reader *r) {
    return r->hour > r->now[3] || (r->hour == r->now[3] && r->minute > r->now[4]);
}

static int guess_year(const struct reader *r) {
    int dm = r->month - r->now[1], dd = r->day - r->now[2];
    if (r->clock->past)
        return r->now[0] - (dm > 0);
    bool future = dm > 0 || (dm == 0 && (dd > 0 || (dd == 0 && later_today(r))));
    return r->now[0] + !future;
}

static void fill_in(struct reader *r) {
    if (r->hour == UNSET)
        r->hour = r->minute = 0;
    if (r->month == UNSET)
        set_day(r, r->clock->now_unix + (r->clock->past || later_today(r) ? 0 : 86400));
    if (r->year == UNSET)
        r->year = guess_year(r);
}

static int bad(const char *s, int at, struct err *e) {
    return err_set(e, E_SYNTAX, "Invalid time specification (pos=%d): %s", at < 0 ? 0 : at, s);
}

static int read_uts(const char *s, int64_t *out_unix, struct err *e) {
    uint64_t v;
    if (str_to_u64(s + 3, INT64_MAX, &v) || v < UTS_MIN)
        return bad(s, 0, e);
    *out_unix = (int64_t)v;
    return 0;
}

int moment_parse(const char *s, const struct text_clock *c, int64_t *out_unix, struct err *e) {
    if (strncasecmp(s, "uts", 3) == 0)
        return read_uts(s, out_unix, e);
    struct reader r = {.s = s, .clock = c, .year = UNSET, .month = UNSET, .day = UNSET, .hour = UNSET};
    c->to_local(c->arg, c->now_unix, r.now);
    if (read_words(&r))
        return bad(s, r.at, e);
    if (r.hour == UNSET && r.month == UNSET) {
        *out_unix = 0;
        return 0;
    }
    fill_in(&r);
    int64_t t = c->to_unix(c->arg, r.year, r.month, r.day, r.hour, r.minute, r.second);
    if (t == -1)
        return bad(s, r.at, e);
    *out_unix = t;
    return 0;
}
