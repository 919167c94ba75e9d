/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define BLOCK_SIZE 8192u

struct arena_block {
    struct arena_block *next;
    size_t size;
    uint8_t data[] __attribute__((aligned(16)));
};

void arena_fini(struct arena *a) {
    while (a->head) {
        struct arena_block *next = a->head->next;
        free(a->head);
        a->head = next;
    }
    *a = (struct arena){0};
}

void arena_reset(struct arena *a) {
    struct arena_block *keep = a->head;
    if (!keep)
        return;
    while (keep->next) {
        struct arena_block *next = keep->next->next;
        free(keep->next);
        keep->next = next;
    }
    a->at = keep->data;
    a->end = keep->data + keep->size;
    a->total = 0;
}

void *arena_alloc(struct arena *a, size_t n) {
    n = (n + 7) & ~(size_t)7;
    a->total += n;
    if (!a->head || (size_t)(a->end - a->at) < n) {
        size_t size = MAX(n, (size_t)BLOCK_SIZE);
        struct arena_block *b = xmalloc(sizeof(*b) + size);
        b->size = size;
        b->next = a->head;
        a->head = b;
        a->at = b->data;
        a->end = b->data + size;
    }
    void *p = a->at;
    a->at += n;
    return p;
}

void *arena_calloc(struct arena *a, size_t count, size_t size) {
    must(!size || count <= SIZE_MAX / size);
    return memset(arena_alloc(a, count * size), 0, count * size);
}

char *arena_strndup(struct arena *a, const char *s, size_t n) {
    char *p = arena_alloc(a, n + 1);
    memcpy(p, s, n);
    p[n] = 0;
    return p;
}

char *arena_strdup(struct arena *a, const char *s) {
    return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

void *arena_memdup(struct arena *a, const void *p, size_t n) {
    return n ? memcpy(arena_alloc(a, n), p, n) : NULL;
}

char *arena_printf(struct arena *a, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    must(n >= 0);
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return p;
}
