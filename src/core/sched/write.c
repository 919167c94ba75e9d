/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan as others get it: starts with nodes and devices, and a note of each job that stays.
 */
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/sched/explain.h"
#include "core/sched/pass.h"

/* ---- devices ---- */

static size_t words_of(const struct grid_slot *s) {
    return s->has_files ? bits_words(s->count) : 0;
}

static uint64_t *slot_bits(const struct grid_node *n, uint64_t *bits, uint32_t slot) {
    for (uint32_t i = 0; i < slot; i++)
        bits += words_of(&n->slot[i]);
    return bits;
}

static void mark_held(const struct grid *g, const struct grid_node *n, const struct gres_held *h, uint64_t *bits) {
    for (uint32_t k = 0; k < n->n_slots; k++) {
        const struct grid_slot *s = &n->slot[k];
        if (!s->has_files || !str_eq(g->kind[s->kind].name, h->name))
            continue;
        uint64_t *at = slot_bits(n, bits, k);
        for (uint32_t i = 0; i < h->n_indexes; i++) {
            if (h->indexes[i] >= s->first && h->indexes[i] - s->first < s->count)
                bits_set(at, h->indexes[i] - s->first);
        }
    }
}

/* The devices of a node that jobs have: looked up in their records when the first one is to be given away. */
static uint64_t *taken_on(struct pass *p, uint32_t rank) {
    const struct grid *g = &p->s->grid;
    const struct grid_node *n = &g->node[rank];
    const struct lane *l = &p->s->timeline.lane[rank];
    if (!p->taken)
        p->taken = arena_calloc(p->scratch, g->n_nodes + 1, sizeof(*p->taken));
    if (p->taken[rank])
        return p->taken[rank];
    size_t words = 1;
    for (uint32_t i = 0; i < n->n_slots; i++)
        words += words_of(&n->slot[i]);
    uint64_t *bits = p->taken[rank] = arena_calloc(p->scratch, words, sizeof(*bits));
    for (size_t i = 0; i < l->share.n; i++) {
        const struct job *j = l->share.p[i].c.gres ? view_job(p->v, l->share.p[i].job_id) : NULL;
        const struct job_node *jn = j ? job_held_on(j, n->id) : NULL;
        for (uint32_t m = 0; jn && m < jn->n_gres; m++)
            mark_held(g, n, &jn->gres[m], bits);
    }
    return bits;
}

static void give_devices(struct pass *p, uint32_t rank, uint32_t slot, struct gres_held *out) {
    const struct grid_node *n = &p->s->grid.node[rank];
    const struct grid_slot *s = &n->slot[slot];
    uint64_t *bits = slot_bits(n, taken_on(p, rank), slot);
    uint32_t *indexes = arena_alloc(p->out, out->count * sizeof(*indexes));
    for (uint32_t i = 0; i < s->count && out->n_indexes < out->count; i++) {
        if (bits_has(bits, i))
            continue;
        bits_set(bits, i);
        indexes[out->n_indexes++] = s->first + i;
    }
    out->indexes = indexes;
}

/* `final`: devices are given away; else only counted. */
static void write_gres(struct pass *p, uint32_t rank, const struct claim *c, bool final, struct job_node *out) {
    const struct grid *g = &p->s->grid;
    const struct grid_node *n = &g->node[rank];
    struct gres_held *held = arena_calloc(p->out, n->n_slots, sizeof(*held));
    for (uint32_t i = 0; i < n->n_slots; i++) {
        const struct grid_kind *kind = &g->kind[n->slot[i].kind];
        if (!c->gres[i])
            continue;
        struct gres_held *h = &held[out->n_gres++];
        *h = (struct gres_held){.name = arena_strdup(p->out, kind->name), .type = arena_strdup(p->out, kind->type),
                                .count = c->gres[i]};
        if (final && n->slot[i].has_files)
            give_devices(p, rank, i, h);
    }
    out->gres = held;
}

/* ---- starts and notes ---- */

/* Seats as the state machine takes them. */
static struct job_node *write_nodes(struct pass *p, const struct seat *seat, const struct claim *claim, uint32_t n_seats,
                                    bool final) {
    struct job_node *nodes = arena_calloc(p->out, n_seats, sizeof(*nodes));
    for (uint32_t i = 0; i < n_seats; i++) {
        const struct grid_node *n = &p->s->grid.node[seat[i].rank];
        nodes[i] = (struct job_node){.node_id = n->id,
                                     .name = arena_strdup(p->out, n->name),
                                     .cpus = (uint32_t)claim[i].cpus,
                                     .mem_mb = (uint64_t)claim[i].mem_mb,
                                     .n_tasks = seat[i].tasks,
                                     .share = claim[i].share};
        if (claim[i].gres)
            write_gres(p, seat[i].rank, &claim[i], final, &nodes[i]);
    }
    return nodes;
}

/* With -O the seats are for one task each; all tasks are told. */
static const struct job_node *start_nodes(struct pass *p, const struct job_spec *s) {
    struct job_node *nodes = write_nodes(p, p->select.pick, p->select.claim, p->select.n_pick, true);
    if (job_spec_more(s)->overcommit)
        sched_spread_tasks(MAX(s->n_tasks, p->select.n_pick), s->cpus_per_task, nodes, p->select.n_pick);
    return nodes;
}

static void keep_choice(struct pass *p, const struct license_take *lic, struct sched_start *st) {
    if (!lic->is_choice || !lic->n)
        return;
    struct license_ask *one = arena_calloc(p->out, 1, sizeof(*one));
    *one = (struct license_ask){.name = arena_strdup(p->out, lic->ask->name), .count = lic->ask->count};
    st->licenses = one;
    st->n_licenses = 1;
}

void pass_write_start(struct pass *p, const struct waiting *w, const struct ask *a, const struct license_take *lic) {
    struct sched_plan *plan = p->plan;
    if (plan->n_starts == p->starts_cap) {
        struct sched_start *more = arena_alloc(p->out, (p->starts_cap * 2 + 16) * sizeof(*more));
        memcpy(more, plan->starts, plan->n_starts * sizeof(*more));
        plan->starts = more;
        p->starts_cap = p->starts_cap * 2 + 16;
    }
    struct sched_start *st = &plan->starts[plan->n_starts++];
    *st = (struct sched_start){.job_id = w->job->id,
                               .partition = arena_strdup(p->out, p->s->grid.part[a->size.part].rec->name),
                               .nodes = start_nodes(p, w->job->spec),
                               .n_nodes = p->select.n_pick,
                               .time_limit_min = a->size.limit_min,
                               .array_task = w->is_array ? w->task + 1 : 0};
    keep_choice(p, lic, st);
}

static void write_detail(struct pass *p, const struct waiting *w) {
    struct sched_detail d = {.job_id = w->job->id};
    if (w->told)
        d.text = explain_text(&p->s->grid, w->told, w->reason, p->out);
    if (w->promised) {
        d.nodes = write_nodes(p, w->seat, w->claim, w->n_seats, false);
        d.n_nodes = w->n_seats;
    }
    p->plan->details[p->plan->n_details++] = d;
}

static bool has_detail(const struct waiting *w) {
    return w->promised || (w->told && w->reason == REASON_NODES_UNAVAIL);
}

void pass_write_notes(struct pass *p) {
    struct sched_plan *plan = p->plan;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_waiting; i++)
        n += has_detail(&p->waiting[i]);
    plan->notes = arena_alloc(p->out, (p->n_waiting + 1) * sizeof(*plan->notes));
    plan->details = arena_alloc(p->out, (n + 1) * sizeof(*plan->details));
    for (uint32_t i = 0; i < p->n_waiting; i++) {
        const struct waiting *w = &p->waiting[i];
        if (w->is_started)
            continue;
        plan->notes[plan->n_notes++] = (struct sched_note){w->job->id, w->reason, w->expected, w->priority};
        if (has_detail(w))
            write_detail(p, w);
    }
}
