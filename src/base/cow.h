/* SPDX-License-Identifier: Apache-2.0
 *
 * A table from a 64-bit key to a packed record (base/rec.h), with pictures.
 *
 *     root ──► [chunk 0][chunk 3][chunk 9]…      sorted by key / 256
 *                  │
 *                  └──► record, record, –, record, …        256 slots
 *
 * A *picture* is a root pointer taken under a pin. While a pin is held, nothing that its pictures reach is changed or
 * freed: the writer copies the root and a chunk the first time it touches them after the pin (once a pin, not once a
 * write), and what it replaced waits in a list until the last pin that could see it is gone. Taking a picture costs
 * nothing but the pin; one that nobody holds costs nothing at all.
 *
 * One epoch counter (struct cow_epochs) serves all tables of a state, so that one pin pictures them all at the same
 * moment. Writer, pin and unpin belong to one thread; pictures may be read by any thread that the writer handed them
 * to, until it tells the writer to unpin.
 */
#ifndef SPUR_BASE_COW_H
#define SPUR_BASE_COW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cow_root;
struct cow_epochs;

struct cow_table {
    struct cow_root *root; /* a picture of now; valid only on the writer's thread */
    struct cow_epochs *epochs;
    uint64_t digest; /* sum of the records' hashes mixed with their keys, modulo 2^64 */
    size_t n;
    size_t bytes; /* held by the records that are in the table now */
};

struct cow_epochs *cow_epochs_new(void);
void cow_epochs_free(struct cow_epochs *ep); /* no pin may be held, all tables are finished */
uint64_t cow_pin(struct cow_epochs *ep);
void cow_unpin(struct cow_epochs *ep, uint64_t pin);
/* Between the two nothing that is replaced is freed, so that copies of a record may borrow from it. Not nested. */
void cow_defer_begin(struct cow_epochs *ep);
void cow_defer_end(struct cow_epochs *ep);
/* Frees a packed record that views may still see, as soon as none can. */
void cow_retire_record(struct cow_epochs *ep, void *packed);
size_t cow_waiting(const struct cow_epochs *ep); /* things kept for pins only; for statistics */

void cow_init(struct cow_table *t, struct cow_epochs *ep);
void cow_fini(struct cow_table *t);
void cow_put(struct cow_table *t, uint64_t key, void *packed); /* takes it; a record of that key is replaced */
bool cow_del(struct cow_table *t, uint64_t key);               /* whether there was one */

const void *cow_get(const struct cow_root *root, uint64_t key); /* NULL: not there */
/* The first record at or behind *key in ascending order; sets *key to its key. NULL at the end. For a loop:
 * for (uint64_t k = 0; (r = cow_next(root, &k)); k++) */
const void *cow_next(const struct cow_root *root, uint64_t *key);
size_t cow_count(const struct cow_root *root);

#endif
