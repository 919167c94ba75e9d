/* SPDX-License-Identifier: Apache-2.0
 *
 * Two hash maps, from a number and from a text to a pointer. Open addressing, linear probing.
 * Iteration order depends on the process's hash seed: nothing that is stored, sent or decided may depend on it.
 * Not thread safe. All-zero is empty.
 *
 * No single call is long, however many entries there are: a map that grows moves a few entries with each later put and
 * del, and until all are moved it has two tables. A get changes nothing.
 */
#ifndef SPUR_BASE_MAP_H
#define SPUR_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map64_slot {
    uint64_t key;
    void *value; /* NULL: free slot */
};
struct map64_table {
    struct map64_slot *slot;
    size_t cap; /* a power of two, or 0 */
};
struct map64 {
    struct map64_table now, old; /* old: what a growing map has not moved yet, from slot `moved` on */
    size_t moved, n;
};
void map64_fini(struct map64 *m);                            /* values are the caller's */
void *map64_get(const struct map64 *m, uint64_t key);        /* NULL: not there */
void *map64_put(struct map64 *m, uint64_t key, void *value); /* value not NULL; returns the one it replaces */
void *map64_del(struct map64 *m, uint64_t key);              /* returns what was there */
/* cursor starts at 0; no put and no del until the loop is left */
bool map64_next(const struct map64 *m, size_t *cursor, uint64_t *key, void **value);

struct maps_slot {
    const char *key; /* borrowed from the value: must live as long as the entry */
    void *value;
};
struct maps_table {
    struct maps_slot *slot;
    size_t cap;
};
struct maps {
    struct maps_table now, old;
    size_t moved, n;
};
void maps_fini(struct maps *m);
void *maps_get(const struct maps *m, const char *key);
void *maps_put(struct maps *m, const char *key, void *value);
void *maps_del(struct maps *m, const char *key);
bool maps_next(const struct maps *m, size_t *cursor, const char **key, void **value);

#endif
