/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of k nodes can hold n tasks with at least one on each when each has room for one, k <= n, and the sum of their
 * rooms is at least n. So whether there is any set at all is told by the largest rooms, and the best fit of k nodes is
 * found by sliding a window of k over the rooms in ascending order until the sum is enough. Rooms are small numbers:
 * they are sorted by counting.
 */
#include "core/sched/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "core/sched/picky.h"
#include "core/sched/sched.h"

void select_init(struct select *s, const struct grid *g, struct arena *scratch) {
    *s = (struct select){.grid = g, .scratch = scratch};
    uint32_t most = 0;
    for (uint32_t r = 0; r < g->n_nodes; r++)
        most = MAX(most, g->node[r].cpus);
    s->offer = arena_alloc(scratch, (g->n_nodes + 1) * sizeof(*s->offer));
    s->pick = arena_alloc(scratch, (g->n_nodes + 1) * sizeof(*s->pick));
    s->claim = arena_alloc(scratch, (g->n_nodes + 1) * sizeof(*s->claim));
    s->order = arena_alloc(scratch, (g->n_nodes + 1) * sizeof(*s->order));
    s->tally = arena_alloc(scratch, (most + 3) * sizeof(*s->tally)); /* its users clear what they use */
    s->is_must = arena_calloc(scratch, g->n_nodes + 1, sizeof(*s->is_must));
}

/* What the first n offers come to. */
struct sum {
    uint64_t tasks;
    uint64_t must_tasks;
    uint32_t n_must;
    uint32_t most; /* the largest room */
};

void select_mark_must(struct select *s, const struct ask *a, bool on) {
    for (uint32_t i = 0; i < a->n_must; i++)
        s->is_must[a->must[i]] = on;
}

static struct sum sum_up(const struct select *s, uint32_t n) {
    struct sum r = {0};
    for (uint32_t i = 0; i < n; i++) {
        const struct seat *o = &s->offer[i];
        r.tasks += o->tasks;
        r.most = MAX(r.most, o->tasks);
        if (s->is_must[o->rank]) {
            r.n_must++;
            r.must_tasks += o->tasks;
        }
    }
    return r;
}

/* The sum of the k largest rooms that are not required ones. */
static uint64_t largest(struct select *s, uint32_t n, uint32_t k, uint32_t most) {
    memset(s->tally, 0, (most + 1) * sizeof(*s->tally));
    for (uint32_t i = 0; i < n; i++) {
        if (!s->is_must[s->offer[i].rank])
            s->tally[s->offer[i].tasks]++;
    }
    uint64_t sum = 0;
    for (uint32_t t = most; t > 0 && k > 0; t--) {
        uint32_t take = MIN(k, s->tally[t]);
        sum += (uint64_t)take * t;
        k -= take;
    }
    return sum;
}

/* The first n offers, required nodes marked. */
static bool can(struct select *s, const struct ask *a, uint32_t n) {
    const struct ask_size *z = &a->size;
    if (a->lacks || n < z->min_nodes || z->min_nodes > z->max_nodes)
        return false;
    struct sum r = sum_up(s, n);
    if (r.n_must < a->n_must || a->n_must > z->max_nodes || r.tasks < z->n_tasks)
        return false;
    if (n <= z->max_nodes || (!a->n_must && r.most >= z->n_tasks))
        return true;
    return r.must_tasks + largest(s, n, z->max_nodes - a->n_must, r.most) >= z->n_tasks;
}

static bool can_plain(struct select *s, const struct ask *a) {
    select_mark_must(s, a, true);
    bool yes = can(s, a, s->n_offer);
    select_mark_must(s, a, false);
    return yes;
}

/* The offers up to the lowest weight that does; 0: none. `out_low`: how many of them are of lower weights. A job that
 * wants as many as it can get looks on while it hasn't. */
static uint32_t by_weight(struct select *s, const struct ask *a, uint32_t *out_low) {
    uint32_t n = 0, found = 0;
    while (n < s->n_offer && (!found || n < a->size.want_nodes)) {
        uint32_t weight = s->grid->node[s->offer[n].rank].weight, low = n;
        while (n < s->n_offer && s->grid->node[s->offer[n].rank].weight == weight)
            n++;
        if (found || can(s, a, n)) {
            found = n;
            *out_low = low;
        }
    }
    return found;
}

/* Offers that are not required, sorted by room, then by rank. */
struct sorted {
    struct seat *p;
    uint32_t n;
};

static struct sorted sort_offers(struct select *s, uint32_t from, uint32_t to, struct seat *out) {
    uint32_t most = 0, n = 0;
    for (uint32_t i = from; i < to; i++)
        most = MAX(most, s->offer[i].tasks);
    memset(s->tally, 0, (most + 2) * sizeof(*s->tally));
    for (uint32_t i = from; i < to; i++) {
        if (!s->is_must[s->offer[i].rank])
            s->tally[s->offer[i].tasks + 1]++;
    }
    for (uint32_t t = 1; t <= most + 1; t++)
        s->tally[t] += s->tally[t - 1];
    for (uint32_t i = from; i < to; i++) {
        if (s->is_must[s->offer[i].rank])
            continue;
        out[s->tally[s->offer[i].tasks]++] = s->offer[i];
        n++;
    }
    return (struct sorted){out, n};
}

static uint64_t window_sum(const struct sorted *o, uint32_t from, uint32_t n) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += o->p[from + i].tasks;
    return sum;
}

/* The first window of k with enough room, into the pick. It exists: the last one has. Returns its room. */
static uint64_t slide(struct select *s, const struct sorted *o, uint32_t k, uint64_t have, uint64_t need) {
    uint32_t from = 0;
    uint64_t sum = window_sum(o, 0, k);
    while (have + sum < need) {
        must(from + k < o->n);
        sum += o->p[from + k].tasks;
        sum -= o->p[from++].tasks;
    }
    memcpy(s->pick + s->n_pick, o->p + from, k * sizeof(*s->pick));
    s->n_pick += k;
    return sum;
}

/* How many nodes of the highest weight (the fewest that do), and how many of lower ones (as many as there are: a job
 * fills them before it touches better nodes), within the bound on nodes. */
struct split {
    uint32_t low, top;
    uint64_t top_tasks; /* of the largest `top` */
};

static struct split split_up(const struct ask *a, const struct sorted *low, const struct sorted *top, struct sum must) {
    uint32_t most = a->size.max_nodes - must.n_must;
    uint32_t least = MAX(a->size.min_nodes, MIN(a->size.want_nodes, a->size.max_nodes));
    struct split r = {.low = MIN(low->n, most)};
    if (must.n_must && must.n_must >= least && must.must_tasks >= a->size.n_tasks)
        return (struct split){0}; /* the nodes that are named hold it */
    uint64_t low_tasks = window_sum(low, low->n - r.low, r.low);
    while (must.must_tasks + low_tasks + r.top_tasks < a->size.n_tasks ||
           must.n_must + r.low + r.top < a->size.min_nodes) {
        must(r.top < top->n);
        r.top_tasks += top->p[top->n - ++r.top].tasks;
        if (r.low + r.top > most)
            low_tasks -= low->p[low->n - r.low--].tasks;
    }
    uint32_t want = MIN(a->size.want_nodes, a->size.max_nodes), have = must.n_must + r.low;
    if (want > have + r.top) {
        r.top = MIN(want - have, top->n);
        r.top_tasks = window_sum(top, top->n - r.top, r.top);
    }
    return r;
}

/* One node that holds all: the tightest. */
static bool pick_one(struct select *s, const struct ask *a, uint32_t from, uint32_t n) {
    const struct seat *best = NULL;
    for (uint32_t i = from; i < n; i++) {
        if (s->offer[i].tasks >= a->size.n_tasks && (!best || s->offer[i].tasks < best->tasks))
            best = &s->offer[i];
    }
    if (!best)
        return false;
    s->pick[0] = *best;
    s->n_pick = 1;
    return true;
}

static void pick_several(struct select *s, const struct ask *a, uint32_t n_low, uint32_t n) {
    struct sum required = sum_up(s, n);
    struct sorted low = sort_offers(s, 0, n_low, s->order);
    struct sorted top = sort_offers(s, n_low, n, s->order + low.n);
    struct split k = split_up(a, &low, &top, required);
    s->n_pick = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (s->is_must[s->offer[i].rank])
            s->pick[s->n_pick++] = s->offer[i];
    }
    uint64_t need = MAX(a->size.n_tasks, required.n_must + k.low + k.top);
    uint64_t have = required.must_tasks;
    have += slide(s, &low, k.low, have + k.top_tasks, need);
    slide(s, &top, k.top, have, need);
}

static int by_place(const void *pa, const void *pb, void *arg) {
    const struct grid *g = arg;
    uint32_t a = g->node[((const struct seat *)pa)->rank].place, b = g->node[((const struct seat *)pb)->rank].place;
    return (a > b) - (a < b);
}

/* Block distribution: a node is filled before the next gets more than the one task that is everybody's. */
static uint32_t block_share(uint32_t room, uint32_t left, uint32_t nodes_after) {
    uint32_t most = left > nodes_after ? left - nodes_after : 0;
    return MIN(room, most);
}

static void spread(struct select *s, uint32_t n_tasks) {
    uint32_t left = n_tasks;
    for (uint32_t i = 0; i < s->n_pick; i++) {
        s->pick[i].tasks = block_share(s->pick[i].tasks, left, s->n_pick - 1 - i);
        left -= s->pick[i].tasks;
    }
    must(left == 0);
}

static bool choose_plain(struct select *s, const struct ask *a) {
    select_mark_must(s, a, true);
    uint32_t n_low = 0, n = by_weight(s, a, &n_low);
    bool is_one = n && !a->n_must && a->size.min_nodes <= 1 && a->size.want_nodes <= 1 && pick_one(s, a, n_low, n);
    if (n && !is_one)
        pick_several(s, a, n_low, n);
    select_mark_must(s, a, false);
    return n != 0;
}

bool select_plain(struct select *s, const struct ask *a, bool pick) {
    return pick ? choose_plain(s, a) : can_plain(s, a);
}

/* How many of the offers from the first on, which are in the order of names, do it as neighbours; 0: they don't. */
static uint32_t run_from(const struct select *s, const struct ask *a, const struct seat *first, uint32_t n) {
    const struct ask_size *z = &a->size;
    uint32_t want = MAX(z->min_nodes, MIN(z->want_nodes, z->max_nodes)), found = 0, n_must = 0;
    uint64_t tasks = 0;
    for (uint32_t i = 0; i < n && i < z->max_nodes && found < want; i++) {
        if (i && s->grid->node[first[i].rank].place != s->grid->node[first[i - 1].rank].place + 1)
            break;
        tasks += first[i].tasks;
        n_must += s->is_must[first[i].rank];
        if (i + 1 >= z->min_nodes && tasks >= z->n_tasks && n_must == a->n_must) {
            found = i + 1;
            if (!z->want_nodes)
                break;
        }
    }
    return found;
}

/* The fewest nodes that do, or the most where it wants many; of those the first by name. */
static bool choose_run(struct select *s, const struct ask *a, bool pick) {
    uint32_t best = 0, at = 0;
    memcpy(s->order, s->offer, s->n_offer * sizeof(*s->order));
    qsort_r(s->order, s->n_offer, sizeof(*s->order), by_place, (void *)s->grid);
    select_mark_must(s, a, true);
    for (uint32_t i = 0; i < s->n_offer && !a->lacks; i++) {
        uint32_t n = run_from(s, a, s->order + i, s->n_offer - i);
        if (n && (!best || (a->size.want_nodes ? n > best : n < best)))
            best = n, at = i;
    }
    select_mark_must(s, a, false);
    if (best && pick) {
        memcpy(s->pick, s->order + at, best * sizeof(*s->pick));
        s->n_pick = best;
    }
    return best != 0;
}

static bool choose(struct select *s, const struct ask *a, bool pick) {
    if (a->size.is_contiguous)
        return choose_run(s, a, pick);
    return a->is_picky ? picky_choose(s, a, pick) : select_plain(s, a, pick);
}

bool select_can(struct select *s, const struct ask *a) {
    return choose(s, a, false);
}

bool select_pick(struct select *s, const struct ask *a) {
    if (!choose(s, a, true))
        return false;
    qsort_r(s->pick, s->n_pick, sizeof(*s->pick), by_place, (void *)s->grid);
    spread(s, MAX(a->size.n_tasks, s->n_pick));
    for (uint32_t w = 0; w < a->n_wants && a->n_totals; w++) {
        if (a->want[w].job)
            picky_give(s, a, w);
        else
            for (uint32_t i = 0; i < s->n_pick; i++)
                s->given[(size_t)i * a->n_wants + w] = 0;
    }
    return true;
}

void sched_spread_tasks(uint32_t n_tasks, uint32_t cpus_per_task, struct job_node *nodes, uint32_t n_nodes) {
    uint32_t left = n_tasks, each = MAX(cpus_per_task, 1);
    for (uint32_t i = 0; i < n_nodes; i++) {
        nodes[i].n_tasks = block_share(MAX(nodes[i].cpus / each, 1), left, n_nodes - 1 - i);
        left -= nodes[i].n_tasks;
    }
    for (uint32_t i = 0; left && n_nodes; i = (i + 1) % n_nodes, left--)
        nodes[i].n_tasks++; /* more tasks than CPUs: the rest goes round */
}
