/* SPDX-License-Identifier: Apache-2.0 */
#include "io/loop/gap.h"

#include <stdlib.h>

#include "base/mem.h"

void gap_begin(struct gap *g, uint64_t now_ns, uint64_t idle_ns) {
    g->last_ns = now_ns;
    g->last_idle_ns = idle_ns;
}

void gap_mark(struct gap *g, uint64_t now_ns, uint64_t idle_ns) {
    uint64_t spent = now_ns - g->last_ns, waited = idle_ns - g->last_idle_ns;
    uint64_t us = spent > waited ? (spent - waited) / 1000 : 0;
    gap_begin(g, now_ns, idle_ns);
    uint64_t turn = atomic_load_explicit(&g->turns, memory_order_relaxed);
    atomic_store_explicit(&g->ring[turn % GAP_RING], (uint32_t)MIN(us, UINT32_MAX), memory_order_relaxed);
    atomic_store_explicit(&g->turns, turn + 1, memory_order_release);
    if (us > atomic_load_explicit(&g->max_us, memory_order_relaxed))
        atomic_store_explicit(&g->max_us, us, memory_order_relaxed);
}

uint64_t gap_turns(const struct gap *g) {
    return atomic_load(&g->turns);
}

uint64_t gap_max_us(const struct gap *g) {
    return atomic_load(&g->max_us);
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint64_t gap_p99_us(const struct gap *g) {
    uint64_t turns = atomic_load_explicit(&g->turns, memory_order_acquire);
    size_t n = (size_t)MIN(turns - MIN(turns, atomic_load(&g->from)), (uint64_t)GAP_RING);
    if (!n)
        return 0;
    uint32_t copy[GAP_RING];
    for (size_t i = 0; i < n; i++)
        copy[i] = atomic_load_explicit(&g->ring[(turns - n + i) % GAP_RING], memory_order_relaxed);
    qsort(copy, n, sizeof(*copy), compare);
    return copy[(n * 99 - 1) / 100];
}

void gap_reset(struct gap *g) {
    atomic_store(&g->from, atomic_load(&g->turns));
    atomic_store(&g->max_us, 0);
}
