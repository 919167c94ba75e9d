/* SPDX-License-Identifier: Apache-2.0
 *
 * An arena: many small allocations, freed together. One a request or a log entry; nothing allocated here may outlive
 * it. Not thread safe. Memory is not zeroed by arena_alloc.
 */
#ifndef SPUR_BASE_ARENA_H
#define SPUR_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct arena_block;
struct arena {
    struct arena_block *head;
    uint8_t *at, *end;
    size_t total; /* bytes handed out, for bounds */
};

void arena_fini(struct arena *a); /* an all-zero arena is ready for use; so is a finished one */
void arena_reset(struct arena *a); /* frees all but one block */
void *arena_alloc(struct arena *a, size_t n); /* 8-byte aligned */
void *arena_calloc(struct arena *a, size_t count, size_t size);
char *arena_strdup(struct arena *a, const char *s); /* NULL for NULL */
char *arena_strndup(struct arena *a, const char *s, size_t n);
void *arena_memdup(struct arena *a, const void *p, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define auto_arena __attribute__((cleanup(arena_fini))) struct arena

#endif
