/* SPDX-License-Identifier: Apache-2.0 */
#include "base/near.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define NEAR_MAX 64 /* longer words are not compared */

/* Longer words may hold more mistakes: one to three. */
struct near near_to(const char *word) {
    return (struct near){.word = word, .distance = (uint32_t)(MIN(strlen(word), 9) / 3 + 1)};
}

static bool lower(const char *word, char out[NEAR_MAX + 1]) {
    size_t n = strlen(word);
    if (n > NEAR_MAX)
        return false;
    for (size_t i = 0; i <= n; i++)
        out[i] = (char)tolower((unsigned char)word[i]);
    return true;
}

void near_try(struct near *n, const char *candidate) {
    char a[NEAR_MAX + 1], b[NEAR_MAX + 1];
    if (!candidate || str_eq(n->word, candidate) || !lower(n->word, a) || !lower(candidate, b))
        return;
    uint32_t d = str_distance(a, b);
    if (d >= n->distance)
        return;
    n->distance = d;
    n->best = candidate;
}
