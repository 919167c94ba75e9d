/* SPDX-License-Identifier: Apache-2.0
 *
 * A map from a seeded hash of the name to the entry (who chooses scripts could choose their names' first bytes). The
 * few entries whose seeded hashes are equal form a list.
 */
#include "io/blob/index.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { CHUNK = 4096 };

static uint64_t key_of(const struct blob_hash *h) {
    return hash_seeded(h->b, sizeof(h->b));
}

void index_fini(struct blob_index *ix) {
    for (size_t i = 0; i < ix->chunks.n; i++)
        free(ix->chunks.p[i]);
    vec_fini(&ix->chunks);
    map64_fini(&ix->by_name);
    *ix = (struct blob_index){0};
}

struct blob_entry *index_find(const struct blob_index *ix, const struct blob_hash *h) {
    struct blob_entry *e = map64_get(&ix->by_name, key_of(h));
    while (e && memcmp(&e->hash, h, sizeof(*h)) != 0)
        e = e->next;
    return e;
}

static struct blob_entry *take_entry(struct blob_index *ix) {
    struct blob_entry *e = ix->first_free;
    if (e) {
        ix->first_free = e->next;
        return e;
    }
    if (ix->n_made == ix->chunks.n * CHUNK)
        vec_push(&ix->chunks, xcalloc(CHUNK, sizeof(struct blob_entry)));
    size_t at = ix->n_made++;
    return &ix->chunks.p[at / CHUNK][at % CHUNK];
}

struct blob_entry *index_add(struct blob_index *ix, const struct blob_hash *h) {
    must(!index_find(ix, h));
    struct blob_entry *e = take_entry(ix);
    *e = (struct blob_entry){.hash = *h};
    e->next = map64_put(&ix->by_name, key_of(h), e);
    ix->n++;
    return e;
}

void index_remove(struct blob_index *ix, struct blob_entry *e) {
    uint64_t key = key_of(&e->hash);
    struct blob_entry *first = map64_get(&ix->by_name, key), *before = first;
    if (e != first) {
        while (before->next != e)
            before = before->next;
        before->next = e->next;
    } else if (e->next) {
        map64_put(&ix->by_name, key, e->next);
    } else {
        map64_del(&ix->by_name, key);
    }
    *e = (struct blob_entry){.next = ix->first_free};
    ix->first_free = e;
    ix->n--;
}

struct blob_entry *index_next(const struct blob_index *ix, uint32_t *cursor) {
    while (*cursor < ix->n_made) {
        size_t at = (*cursor)++;
        struct blob_entry *e = &ix->chunks.p[at / CHUNK][at % CHUNK];
        if (e->pack)
            return e;
    }
    return NULL;
}
