/* SPDX-License-Identifier: Apache-2.0
 *
 * A secret: bytes that the log functions can't take, cleared when they go.
 */
#ifndef SPUR_BASE_SECRET_H
#define SPUR_BASE_SECRET_H

#include <stddef.h>
#include <stdint.h>

struct secret {
    uint8_t *bytes;
    size_t n;
};

void secret_set(struct secret *s, const void *p, size_t n); /* copies */
void secret_fini(struct secret *s);                         /* clears, then frees */

#endif
