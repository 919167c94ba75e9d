/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret.h"

#include <string.h>

#include "base/mem.h"

void secret_fini(struct secret *s) {
    if (s->bytes)
        explicit_bzero(s->bytes, s->n);
    free(s->bytes);
    *s = (struct secret){0};
}

void secret_set(struct secret *s, const void *p, size_t n) {
    secret_fini(s);
    s->bytes = xmemdup(p, n);
    s->n = n;
}
