/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/mem.h"

void str_fini(struct str *s) {
    free(s->p);
    *s = (struct str){0};
}

static void reserve(struct str *s, size_t more) {
    size_t need = s->n + more + 1;
    if (need <= s->cap)
        return;
    s->cap = MAX(need, s->cap * 2);
    s->cap = MAX(s->cap, (size_t)64);
    s->p = xrealloc(s->p, s->cap);
}

void str_addn(struct str *s, const char *text, size_t n) {
    reserve(s, n);
    memcpy(s->p + s->n, text, n);
    s->n += n;
    s->p[s->n] = 0;
}

void str_add(struct str *s, const char *text) {
    str_addn(s, text, strlen(text));
}

void str_addc(struct str *s, char c) {
    str_addn(s, &c, 1);
}

void str_vaddf(struct str *s, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    must(n >= 0);
    reserve(s, (size_t)n);
    vsnprintf(s->p + s->n, (size_t)n + 1, fmt, again);
    s->n += (size_t)n;
    va_end(again);
}

void str_addf(struct str *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str_vaddf(s, fmt, ap);
    va_end(ap);
}

void str_clear(struct str *s) {
    s->n = 0;
    if (s->p)
        s->p[0] = 0;
}

char *str_take(struct str *s) {
    char *p = s->p ? s->p : xstrdup("");
    *s = (struct str){0};
    return p;
}

const char *str_text(const struct str *s) {
    return s->p ? s->p : "";
}

bool str_eq(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool str_starts(const char *s, const char *prefix) {
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix) {
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool str_is_one_of(const char *s, size_t n, const char *const *word, size_t n_words) {
    for (size_t i = 0; i < n_words; i++)
        if (strlen(word[i]) == n && strncasecmp(s, word[i], n) == 0)
            return true;
    return false;
}

int str_to_u64(const char *s, uint64_t max, uint64_t *out) {
    uint64_t v = 0;
    if (!s || !*s)
        return E_SYNTAX;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return E_SYNTAX;
        unsigned digit = (unsigned)(*s - '0');
        if (v > (UINT64_MAX - digit) / 10)
            return E_SYNTAX;
        v = v * 10 + digit;
    }
    if (v > max)
        return E_SYNTAX;
    *out = v;
    return 0;
}

uint32_t str_distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > 64 || m > 64)
        return UINT32_MAX;
    uint32_t d[3][66];
    for (size_t j = 0; j <= m; j++)
        d[1][j] = (uint32_t)j;
    memcpy(d[0], d[1], sizeof(d[0]));
    for (size_t i = 1; i <= n; i++) {
        d[2][0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            uint32_t best = d[1][j - 1] + (a[i - 1] != b[j - 1]);
            best = MIN(best, d[1][j] + 1);
            best = MIN(best, d[2][j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, d[0][j - 2] + 1);
            d[2][j] = best;
        }
        memcpy(d[0], d[1], sizeof(d[0]));
        memcpy(d[1], d[2], sizeof(d[1]));
    }
    return d[1][m];
}
