/* SPDX-License-Identifier: Apache-2.0 */
#include "core/state/idset.h"

#include <string.h>

#include "base/mem.h"

struct idset *idset_of(const struct map64 *m, uint64_t key) {
    return map64_get(m, key);
}

struct idset *idset_make(struct map64 *m, uint64_t key) {
    struct idset *set = map64_get(m, key);
    if (!set) {
        set = xnew(struct idset);
        map64_put(m, key, set);
    }
    return set;
}

/* Where the id stands or would stand. Most come in ascending order. */
static size_t place(const struct idset *set, uint32_t id) {
    size_t lo = 0, hi = set->ids.n;
    if (!hi || set->ids.p[hi - 1] < id)
        return hi;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (set->ids.p[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void idset_add(struct map64 *m, uint64_t key, uint32_t id) {
    struct idset *set = idset_make(m, key);
    size_t at = place(set, id);
    if (at < set->ids.n && set->ids.p[at] == id)
        return;
    vec_push(&set->ids, id);
    memmove(set->ids.p + at + 1, set->ids.p + at, (set->ids.n - 1 - at) * sizeof(id));
    set->ids.p[at] = id;
}

static void release(struct idset *set) {
    vec_fini(&set->ids);
    free(set);
}

void idset_del(struct map64 *m, uint64_t key, uint32_t id) {
    struct idset *set = idset_of(m, key);
    if (!set || !idset_has(set, id))
        return;
    vec_remove(&set->ids, place(set, id));
    if (!set->ids.n && !set->count)
        release(map64_del(m, key));
}

bool idset_has(const struct idset *set, uint32_t id) {
    if (!set)
        return false;
    size_t at = place(set, id);
    return at < set->ids.n && set->ids.p[at] == id;
}

void idset_drop(struct map64 *m, uint64_t key) {
    struct idset *set = map64_del(m, key);
    if (set)
        release(set);
}

void idset_fini(struct map64 *m) {
    size_t cursor = 0;
    void *set;
    while (map64_next(m, &cursor, NULL, &set))
        release(set);
    map64_fini(m);
}
