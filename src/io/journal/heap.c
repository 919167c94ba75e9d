/* SPDX-License-Identifier: Apache-2.0
 *
 * libraft's memory. Out of it ends the process in one place, so that libraft need not cope.
 *
 * When a snapshot is stored, libraft frees all entries before it in one go: a million jobs bring some hundred thousand, and the loop would be
 * deaf for 20 to 60 ms. So what is freed meanwhile is only noted, and goes a slice a turn. The note is in the block itself.
 */
#include <string.h>

#include "io/journal/inside.h"

enum { FREED_A_TURN = 4096 };

struct block {
    struct block *next;
};

static _Thread_local struct {
    struct block *first;
    bool is_on;
} later;

/* Zeroed where it is small: a barrier's 8 bytes go to the disk and to other members as they come. */
static void *heap_malloc(void *data, size_t n) {
    n = MAX(n, sizeof(struct block));
    return n <= 64 ? xcalloc(1, n) : xmalloc(n);
}

static void heap_free(void *data, void *p) {
    if (!later.is_on || !p) {
        free(p);
        return;
    }
    struct block *b = p;
    b->next = later.first;
    later.first = b;
}

static void *heap_calloc(void *data, size_t count, size_t size) {
    return xcalloc(count, MAX(size, sizeof(struct block)));
}

static void *heap_realloc(void *data, void *p, size_t n) {
    return xrealloc(p, MAX(n, sizeof(struct block)));
}

static void *heap_aligned_alloc(void *data, size_t alignment, size_t n) {
    void *p = NULL;
    must(posix_memalign(&p, alignment, n) == 0);
    return p;
}

static void heap_aligned_free(void *data, size_t alignment, void *p) {
    free(p);
}

static void set(void) {
    static struct raft_heap heap = {
        .malloc = heap_malloc,
        .free = heap_free,
        .calloc = heap_calloc,
        .realloc = heap_realloc,
        .aligned_alloc = heap_aligned_alloc,
        .aligned_free = heap_aligned_free,
    };
    raft_heap_set(&heap);
}

void heap_init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set);
}

void heap_free_later(bool is_on) {
    later.is_on = is_on;
}

bool heap_turn(void) {
    struct block *b = later.first;
    for (unsigned n = 0; b && n < FREED_A_TURN; n++) {
        struct block *next = b->next;
        free(b);
        b = next;
    }
    later.first = b;
    return b;
}
