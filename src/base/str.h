/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing text, and the few string questions that libc leaves open. An all-zero struct str is an empty text.
 */
#ifndef SPUR_BASE_STR_H
#define SPUR_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    char *p;  /* NUL-terminated when n > 0; NULL while nothing was added */
    size_t n; /* without the NUL */
    size_t cap;
};

void str_fini(struct str *s);
void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const char *text, size_t n);
void str_addc(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_vaddf(struct str *s, const char *fmt, va_list ap);
void str_clear(struct str *s);         /* keeps the memory */
char *str_take(struct str *s);         /* never NULL; the caller frees; s is empty afterwards */
const char *str_text(const struct str *s); /* never NULL; borrowed */

#define auto_str __attribute__((cleanup(str_fini))) struct str

bool str_eq(const char *a, const char *b);          /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* Whether the n characters are one of these words, in any case. */
bool str_is_one_of(const char *s, size_t n, const char *const *word, size_t n_words);

/* Strict decimal: the whole text, no sign, no blank, at most `max`. 0 or E_SYNTAX. */
int str_to_u64(const char *s, uint64_t max, uint64_t *out);

/* Edit distance (Damerau, at most 64 characters a side) for "did you mean"; UINT32_MAX when too long. */
uint32_t str_distance(const char *a, const char *b);

#endif
