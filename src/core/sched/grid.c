/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether something rare has changed is told by a stamp: a hash over all that ranks and partitions are made of. Node
 * records as a whole change with every start and end of a job, so their own hash would say "changed" each time.
 */
#include "core/sched/grid.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rec.h"
#include "base/str.h"
#include "core/model/text.h"
#include "core/sched/priority.h"

struct id_rank {
    uint32_t id, rank;
};

static uint32_t weight_of(const struct node *n) {
    return n->weight ? n->weight : 1;
}

static void forget(struct grid *g) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        free(g->node[i].name);
        free(g->node[i].slot);
    }
    for (uint32_t i = 0; i < g->n_kinds; i++) {
        free(g->kind[i].name);
        free(g->kind[i].type);
    }
    free(g->kind);
    for (uint32_t i = 0; i < g->n_parts; i++)
        free(g->part[i].bits);
    free(g->node);
    free(g->by_id);
    free(g->takes);
    free(g->part);
    maps_fini(&g->by_name);
    *g = (struct grid){0};
}

void grid_fini(struct grid *g) {
    forget(g);
}

static uint64_t mix(uint64_t stamp, uint64_t v) {
    return hash_u64(stamp ^ hash_u64(v));
}

static uint64_t mix_text(uint64_t stamp, const char *s) {
    return mix(stamp, s ? hash_fixed(s, strlen(s)) : 0);
}

static uint64_t stamp_of(const struct view *v) {
    uint64_t s = 1;
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
        s = mix(s, (uint64_t)n->id << 32 | weight_of(n));
        s = mix_text(s, n->name);
        uint32_t n_active;
        const char *const *active = node_active(n, &n_active);
        for (uint32_t i = 0; i < n_active; i++)
            s = mix_text(s, active[i]);
        for (uint32_t i = 0; i < n->n_gres; i++) {
            s = mix_text(mix_text(s, n->gres[i].name), n->gres[i].type);
            s = mix(mix(s, n->gres[i].count), (uint64_t)n->gres[i].first << 1 | (n->gres[i].n_files != 0));
        }
        for (uint32_t i = 0; i < n->n_labels; i++)
            s = mix_text(mix_text(s, n->labels[i].key), n->labels[i].value);
    }
    const struct part *p;
    for (uint64_t k = 0; (p = view_next_part(v, &k)); k++)
        s = mix(s, rec_hash(p));
    return s;
}

static int by_preference(const void *pa, const void *pb) {
    const struct grid_node *a = pa, *b = pb;
    if (a->weight != b->weight)
        return a->weight < b->weight ? -1 : 1;
    int c = hostname_compare(a->name, b->name);
    return c ? c : (a->id > b->id) - (a->id < b->id);
}

static int by_name(const void *pa, const void *pb) {
    const struct grid_node *a = *(struct grid_node *const *)pa, *b = *(struct grid_node *const *)pb;
    int c = hostname_compare(a->name, b->name);
    return c ? c : (a->id > b->id) - (a->id < b->id);
}

static int by_id(const void *pa, const void *pb) {
    const struct id_rank *a = pa, *b = pb;
    return (a->id > b->id) - (a->id < b->id);
}

static void set_places(struct grid *g) {
    autofree struct grid_node **order = xcalloc(g->n_nodes + 1, sizeof(*order));
    for (uint32_t i = 0; i < g->n_nodes; i++)
        order[i] = &g->node[i];
    qsort(order, g->n_nodes, sizeof(*order), by_name);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        order[i]->place = i;
}

static void index_nodes(struct grid *g) {
    g->by_id = xcalloc(g->n_nodes + 1, sizeof(*g->by_id));
    for (uint32_t r = 0; r < g->n_nodes; r++) {
        g->by_id[r] = (struct id_rank){g->node[r].id, r};
        maps_put(&g->by_name, g->node[r].name, (void *)(uintptr_t)(r + 1));
    }
    qsort(g->by_id, g->n_nodes, sizeof(*g->by_id), by_id);
}

static uint32_t kind_of(struct grid *g, const struct gres *r) {
    const char *name = r->name ? r->name : "";
    for (uint32_t i = 0; i < g->n_kinds; i++) {
        if (str_eq(g->kind[i].name, name) && str_eq(g->kind[i].type, r->type))
            return i;
    }
    g->kind = xrealloc(g->kind, (g->n_kinds + 1) * sizeof(*g->kind));
    g->kind[g->n_kinds] = (struct grid_kind){xstrdup(name), r->type ? xstrdup(r->type) : NULL};
    return g->n_kinds++;
}

/* In the order of ids, so that kinds have the same numbers everywhere. */
static void make_slots(struct grid *g, const struct view *v) {
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
        struct grid_node *gn = &g->node[grid_rank(g, n->id)];
        if (!n->n_gres)
            continue;
        gn->n_slots = MIN(n->n_gres, GRID_SLOTS_MAX);
        gn->slot = xcalloc(gn->n_slots, sizeof(*gn->slot));
        for (uint32_t i = 0; i < gn->n_slots; i++)
            gn->slot[i] = (struct grid_slot){kind_of(g, &n->gres[i]), n->gres[i].first,
                                             MIN(n->gres[i].count, GRID_MEM_MAX),
                                             n->gres[i].n_files != 0 && n->gres[i].count <= GRID_DEVICES_MAX,
                                             n->gres[i].no_consume, n->gres[i].is_explicit};
    }
}

static void make_nodes(struct grid *g, const struct view *v) {
    g->n_nodes = (uint32_t)cow_count(v->nodes);
    g->n_words = bits_words(g->n_nodes);
    g->node = xcalloc(g->n_nodes + 1, sizeof(*g->node));
    g->takes = xcalloc(g->n_words + 1, sizeof(*g->takes));
    const struct node *n;
    uint32_t i = 0;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++)
        g->node[i++] = (struct grid_node){.name = xstrdup(n->name ? n->name : ""), .id = n->id, .weight = weight_of(n)};
    qsort(g->node, g->n_nodes, sizeof(*g->node), by_preference);
    set_places(g);
    index_nodes(g);
    make_slots(g, v);
}

static void make_part(struct grid *g, const struct view *v, const struct part *p, struct grid_part *out) {
    *out = (struct grid_part){.bits = xcalloc(g->n_words + 1, sizeof(*out->bits))};
    if (p->all_nodes || p->n_selectors) {
        const struct node *n;
        for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
            if (part_has_node(p, n))
                bits_set(out->bits, grid_rank(g, n->id));
        }
    }
    for (uint32_t i = 0; !p->all_nodes && i < p->n_nodes; i++) {
        uint32_t r = grid_rank_by_name(g, p->nodes[i]);
        if (r == GRID_NONE)
            out->n_missing++;
        else
            bits_set(out->bits, r);
    }
    out->n_nodes = (uint32_t)bits_count(out->bits, g->n_words);
}

static void make_parts(struct grid *g, const struct view *v) {
    g->part = xcalloc(cow_count(v->parts) + 1, sizeof(*g->part));
    const struct part *p;
    for (uint64_t k = 0; (p = view_next_part(v, &k)); k++)
        make_part(g, v, p, &g->part[g->n_parts++]);
}

/* What may differ at each pass. The order of the walk is that of by_id: the stamp says that the ids are the same. */
static void refresh(struct grid *g, const struct view *v) {
    const struct node *n;
    uint32_t i = 0;
    g->n_cpus = 0;
    memset(g->takes, 0, g->n_words * sizeof(*g->takes));
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
        uint32_t rank = g->by_id[i++].rank;
        struct grid_node *gn = &g->node[rank];
        must(gn->id == n->id);
        gn->cpus = MIN(n->cpus, GRID_CPUS_MAX);
        gn->mem_mb = MIN(n->mem_mb, GRID_MEM_MAX);
        gn->tmp_disk_mb = n->tmp_disk_mb;
        gn->sockets = n->sockets, gn->cores = n->cores_per_socket, gn->threads = n->threads_per_core;
        gn->features = node_active(n, &gn->n_features);
        gn->takes_work = node_takes_work(n);
        gn->is_down = n->base != NODE_UP || n->not_responding;
        g->n_cpus += gn->cpus;
        if (gn->takes_work)
            bits_set(g->takes, rank);
    }
    const struct part *p;
    i = 0;
    g->max_factor = 0;
    for (uint64_t k = 0; (p = view_next_part(v, &k)); k++) {
        g->part[i++].rec = p;
        g->max_factor = MAX(g->max_factor, priority_factor(p));
    }
}

bool grid_sync(struct grid *g, const struct view *v) {
    uint64_t stamp = stamp_of(v);
    bool is_new = !g->node || g->stamp != stamp;
    if (is_new) {
        forget(g);
        make_nodes(g, v);
        make_parts(g, v);
        g->stamp = stamp;
    }
    refresh(g, v);
    return is_new;
}

uint32_t grid_rank(const struct grid *g, uint32_t node_id) {
    uint32_t low = 0, high = g->n_nodes;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (g->by_id[mid].id < node_id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < g->n_nodes && g->by_id[low].id == node_id ? g->by_id[low].rank : GRID_NONE;
}

uint32_t grid_rank_by_name(const struct grid *g, const char *name) {
    uintptr_t r = (uintptr_t)maps_get(&g->by_name, name);
    return r ? (uint32_t)(r - 1) : GRID_NONE;
}

uint32_t grid_find_part(const struct grid *g, const char *name, size_t n) {
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const char *have = g->part[i].rec->name;
        if (have && strncmp(have, name, n) == 0 && have[n] == '\0')
            return i;
    }
    return GRID_NONE;
}
