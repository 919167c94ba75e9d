/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of ids by a key, for what is derived from the tables: ascending, so that they are the same however they grew.
 */
#ifndef SPUR_CORE_STATE_IDSET_H
#define SPUR_CORE_STATE_IDSET_H

#include "base/map.h"
#include "base/vec.h"

struct idset {
    VEC(uint32_t) ids; /* ascending */
    uint32_t count;    /* the keeper's own */
};

struct idset *idset_of(const struct map64 *m, uint64_t key); /* NULL: none */
struct idset *idset_make(struct map64 *m, uint64_t key);
void idset_add(struct map64 *m, uint64_t key, uint32_t id); /* once only */
void idset_del(struct map64 *m, uint64_t key, uint32_t id); /* an empty set goes */
bool idset_has(const struct idset *set, uint32_t id);       /* takes NULL */
void idset_drop(struct map64 *m, uint64_t key);
void idset_fini(struct map64 *m);

#endif
