/* SPDX-License-Identifier: Apache-2.0
 *
 * Where each blob is: 56-byte entries under a hash map. Entries never move; one that was removed is used again by a
 * later add. Not thread safe. All-zero is empty.
 */
#ifndef SPUR_IO_BLOB_INDEX_H
#define SPUR_IO_BLOB_INDEX_H

#include "base/map.h"
#include "base/vec.h"
#include "io/blob/blob.h"

struct blob_entry {
    struct blob_entry *next; /* the index's */
    struct blob_hash hash;
    uint32_t pack;        /* 0: the entry is free */
    uint32_t offset;      /* of its record in the pack */
    uint32_t length : 31; /* of its bytes */
    uint32_t bad : 1;     /* its bytes were found damaged: it does not count as there */
    uint32_t fresh;       /* when it was put, in the store's ticks; 0: no grace any more */
};

struct blob_index {
    struct map64 by_name;
    VEC(struct blob_entry *) chunks;
    uint32_t n, n_made;            /* in use; ever given out */
    struct blob_entry *first_free; /* those that were removed, by `next` */
};

void index_fini(struct blob_index *ix);
struct blob_entry *index_find(const struct blob_index *ix, const struct blob_hash *h); /* or NULL */
/* A new entry with this hash, which must not be there, and the rest zero; the caller sets `pack` at once. */
struct blob_entry *index_add(struct blob_index *ix, const struct blob_hash *h);
void index_remove(struct blob_index *ix, struct blob_entry *e);
/* All entries, cursor from 0; NULL at the end. Removing the one that was just given is allowed. */
struct blob_entry *index_next(const struct blob_index *ix, uint32_t *cursor);

#endif
