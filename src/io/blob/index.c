/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear probing over numbers of entries. Removing shifts back what follows, so there are no tombstones. The place of a
 * hash is taken from a seeded hash of it: who chooses scripts could choose their hashes' first bytes otherwise.
 */
#include "io/blob/index.h"

#include <string.h>

#include "base/hash.h"

enum { CHUNK = 4096, FIRST_SLOTS = 1024 };

static struct blob_entry *entry_at(const struct blob_index *ix, uint32_t number) {
    return &ix->chunks.p[number / CHUNK][number % CHUNK];
}

static uint32_t home_of(const struct blob_index *ix, const struct blob_hash *h) {
    return (uint32_t)hash_seeded(h->b, 16) & (ix->n_slots - 1);
}

void index_fini(struct blob_index *ix) {
    for (size_t i = 0; i < ix->chunks.n; i++)
        free(ix->chunks.p[i]);
    vec_fini(&ix->chunks);
    free(ix->slot);
    *ix = (struct blob_index){0};
}

/* The slot that holds h, or the free one where it belongs. */
static uint32_t slot_of(const struct blob_index *ix, const struct blob_hash *h) {
    uint32_t i = home_of(ix, h);
    while (ix->slot[i] && memcmp(&entry_at(ix, ix->slot[i] - 1)->hash, h, sizeof(*h)) != 0)
        i = (i + 1) & (ix->n_slots - 1);
    return i;
}

struct blob_entry *index_find(const struct blob_index *ix, const struct blob_hash *h) {
    if (!ix->n)
        return NULL;
    uint32_t at = ix->slot[slot_of(ix, h)];
    return at ? entry_at(ix, at - 1) : NULL;
}

static void grow(struct blob_index *ix) {
    free(ix->slot);
    ix->n_slots = ix->n_slots ? ix->n_slots * 2 : FIRST_SLOTS;
    ix->slot = xcalloc(ix->n_slots, sizeof(*ix->slot));
    for (uint32_t i = 0; i < ix->n_made; i++)
        if (entry_at(ix, i)->pack)
            ix->slot[slot_of(ix, &entry_at(ix, i)->hash)] = i + 1;
}

/* Free entries form a list through `offset`, of numbers plus 1. */
static uint32_t take_entry(struct blob_index *ix) {
    if (ix->first_free) {
        uint32_t number = ix->first_free - 1;
        ix->first_free = entry_at(ix, number)->offset;
        return number;
    }
    must(ix->n_made < UINT32_MAX / 4);
    if (ix->n_made == ix->chunks.n * CHUNK)
        vec_push(&ix->chunks, xcalloc(CHUNK, sizeof(struct blob_entry)));
    return ix->n_made++;
}

struct blob_entry *index_add(struct blob_index *ix, const struct blob_hash *h) {
    if ((uint64_t)(ix->n + 1) * 4 > (uint64_t)ix->n_slots * 3)
        grow(ix);
    uint32_t slot = slot_of(ix, h);
    must(!ix->slot[slot]);
    uint32_t number = take_entry(ix);
    ix->slot[slot] = number + 1;
    ix->n++;
    struct blob_entry *e = entry_at(ix, number);
    *e = (struct blob_entry){.hash = *h};
    return e;
}

void index_remove(struct blob_index *ix, struct blob_entry *e) {
    uint32_t mask = ix->n_slots - 1, hole = slot_of(ix, &e->hash), number = ix->slot[hole] - 1;
    must(ix->slot[hole] && entry_at(ix, number) == e);
    for (uint32_t i = (hole + 1) & mask; ix->slot[i]; i = (i + 1) & mask) {
        uint32_t home = home_of(ix, &entry_at(ix, ix->slot[i] - 1)->hash);
        if (((i - home) & mask) >= ((i - hole) & mask)) { /* it may stand as early as the hole */
            ix->slot[hole] = ix->slot[i];
            hole = i;
        }
    }
    ix->slot[hole] = 0;
    ix->n--;
    *e = (struct blob_entry){.offset = ix->first_free};
    ix->first_free = number + 1;
}

struct blob_entry *index_next(const struct blob_index *ix, uint32_t *cursor) {
    while (*cursor < ix->n_made) {
        struct blob_entry *e = entry_at(ix, (*cursor)++);
        if (e->pack)
            return e;
    }
    return NULL;
}
