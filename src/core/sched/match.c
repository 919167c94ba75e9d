/* SPDX-License-Identifier: Apache-2.0
 *
 * -w names nodes that the job has to have, and others may come on top. Only when it may have fewer nodes than it
 * names (`-w n[1-2] -N1`) the list is a choice: it is given some of them, as Slurm does.
 */
#include "core/sched/match.h"

#include <string.h>

#include "base/bits.h"

static void leave_out(const struct grid *g, const struct ask *a) {
    for (uint32_t i = 0; i < a->n_exc; i++) {
        uint32_t r = grid_rank_by_name(g, a->exc[i]);
        if (r != GRID_NONE)
            bits_clear(a->may, r);
    }
}

/* Nodes that have what each must have, and where there are alternatives at least one of them. */
static void keep_featured(const struct grid *g, const struct ask *a) {
    for (size_t w = 0; w < g->n_words; w++) {
        uint64_t some = a->has->n_alts ? 0 : ~(uint64_t)0;
        for (uint32_t i = 0; i < a->has->n_alts; i++)
            some |= a->has->alt[i][w];
        a->may[w] &= a->has->all[w] & some;
    }
}

/* --tmp, and numbers of sockets, cores and threads. */
static void keep_shaped(const struct grid *g, const struct ask *a) {
    for (uint32_t r = 0; r < g->n_nodes; r++) {
        const struct grid_node *n = &g->node[r];
        if (!ask_fits_shape(&a->size, n->tmp_disk_mb, n->sockets, n->cores, n->threads))
            bits_clear(a->may, r);
    }
}

/* The distinct nodes of -w that the partition has. */
static void find_required(const struct grid *g, struct ask *a, uint64_t *seen) {
    for (uint32_t i = 0; i < a->n_req; i++) {
        uint32_t r = grid_rank_by_name(g, a->req[i]);
        if (r == GRID_NONE || !bits_has(a->may, r)) {
            a->lacks = true;
        } else if (!bits_has(seen, r)) {
            bits_set(seen, r);
            a->must[a->n_must++] = r;
        }
    }
}

void match_nodes(const struct grid *g, struct ask *a, struct arena *scratch) {
    const struct grid_part *p = &g->part[a->size.part];
    a->may = p->bits;
    if (!a->n_req && !a->n_exc && !a->has && !ask_minds_shape(&a->size))
        return;
    a->may = arena_calloc(scratch, g->n_words + 1, sizeof(*a->may));
    memcpy(a->may, p->bits, g->n_words * sizeof(*a->may));
    leave_out(g, a);
    if (a->has)
        keep_featured(g, a);
    if (ask_minds_shape(&a->size))
        keep_shaped(g, a);
    if (!a->n_req)
        return;
    uint64_t *seen = arena_calloc(scratch, g->n_words + 1, sizeof(*seen));
    a->must = arena_alloc(scratch, (a->n_req + 1) * sizeof(*a->must));
    find_required(g, a, seen);
    if (a->n_req <= a->size.max_nodes)
        return;
    a->may = seen;
    a->n_must = 0;
    a->lacks = false;
}
