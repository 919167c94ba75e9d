/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the one of several words that is nearest to what somebody typed.
 *
 *     struct near n = near_to(typed);
 *     for (…) near_try(&n, name[i]);
 *     if (n.best) …
 */
#ifndef SPUR_BASE_NEAR_H
#define SPUR_BASE_NEAR_H

#include <stdint.h>

struct near {
    const char *word, *best; /* best NULL: none is near enough. Borrowed */
    uint32_t distance;       /* a candidate has to be nearer than this */
};

struct near near_to(const char *word);
/* Case doesn't count. Of two that are as near, the first one stays; the word itself is no answer. NULL is no candidate. */
void near_try(struct near *n, const char *candidate);

#endif
