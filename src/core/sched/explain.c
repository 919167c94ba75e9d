/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/explain.h"

#include "base/bits.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/text.h"
#include "core/sched/fit.h"

/* Enough for certain, without a look at which nodes. */
static bool is_plenty(const struct ask_size *z, uint32_t n, uint64_t sum, uint32_t last) {
    return sum >= z->n_tasks && n >= z->min_nodes && (n <= z->max_nodes || last >= z->n_tasks);
}

static uint32_t special_tasks(struct select *s, const struct ask *a, uint32_t rank) {
    struct fit f;
    fit_look_empty(s->grid, rank, &f);
    for (uint32_t w = 0; a->n_totals && w < a->n_wants; w++)
        *select_spare(s, w, rank) = fit_spare(s->grid, a, rank, &f, w);
    return fit_tasks(s->grid, a, rank, &f);
}

/* Offers empty nodes, all of them or those that take work, until it is plain that there are enough. */
static bool fits_empty(struct select *s, const struct ask *a, bool takes_work) {
    const struct grid *g = s->grid;
    uint64_t sum = 0;
    s->n_offer = 0;
    for (size_t w = 0; w < g->n_words; w++) {
        for (uint64_t bits = takes_work ? a->may[w] & g->takes[w] : a->may[w]; bits; bits &= bits - 1) {
            uint32_t rank = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
            const struct grid_node *n = &g->node[rank];
            uint32_t tasks = a->is_special ? special_tasks(s, a, rank)
                                           : ask_tasks_in(&a->size, n->cpus, (int64_t)n->mem_mb, n->mem_mb);
            if (!tasks)
                continue;
            s->offer[s->n_offer++] = (struct seat){rank, tasks};
            sum += tasks;
            if (!a->n_must && !a->is_picky && is_plenty(&a->size, s->n_offer, sum, tasks))
                return !a->lacks;
        }
    }
    return select_can(s, a);
}

/* A node that is named and not there yet may be of any size, so nothing can be called impossible. */
static bool is_awaited(const struct grid *g, const struct ask *a) {
    const struct grid_part *p = &g->part[a->size.part];
    if (p->n_missing || !p->n_nodes)
        return true;
    for (uint32_t i = 0; a->lacks && i < a->n_req; i++) {
        if (grid_rank_by_name(g, a->req[i]) == GRID_NONE)
            return true;
    }
    return false;
}

uint32_t explain_never(struct select *s, const struct ask *a) {
    if (fits_empty(s, a, true))
        return REASON_NONE;
    if (is_awaited(s->grid, a) || fits_empty(s, a, false))
        return REASON_NODES_UNAVAIL;
    return a->has && bits_next(a->may, s->grid->n_nodes, 0) == s->grid->n_nodes ? REASON_BAD_CONSTRAINTS
                                                                              : REASON_PARTITION_CONFIG;
}

/* A node of -w that is down or not there is named; a drained one is not, as in Slurm. */
const char *explain_text(const struct grid *g, const struct ask *a, uint32_t reason, struct arena *out) {
    if (reason != REASON_NODES_UNAVAIL)
        return NULL;
    if (!a->n_req)
        return "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions";
    const char **gone = arena_alloc(out, a->n_req * sizeof(*gone));
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_req; i++) {
        uint32_t r = grid_rank_by_name(g, a->req[i]);
        if (r == GRID_NONE || g->node[r].is_down)
            gone[n++] = a->req[i];
    }
    if (!n)
        return "ReqNodeNotAvail, May be reserved for other job";
    auto_str list = {0};
    hostlist_compact(gone, n, &list);
    return arena_printf(out, "ReqNodeNotAvail, UnavailableNodes:%s", str_text(&list));
}

uint32_t explain_weight(uint32_t reason) {
    switch (reason) {
    case REASON_NONE:
        return 0;
    case REASON_RESOURCES:
        return 4;
    case REASON_PRIORITY:
        return 3;
    case REASON_NODES_UNAVAIL:
        return 2;
    default:
        return 1;
    }
}
