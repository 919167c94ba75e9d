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

/* Few passes have picky asks: what they need is made when the first one comes. */
static void make_picky(struct select *s) {
    size_t n = s->grid->n_nodes + 1;
    if (s->spare)
        return;
    s->spare = arena_alloc(s->scratch, n * ASK_WANTS_MAX * sizeof(*s->spare));
    s->given = arena_alloc(s->scratch, n * ASK_WANTS_MAX * sizeof(*s->given));
    s->all = arena_alloc(s->scratch, n * sizeof(*s->all));
    s->must = arena_alloc(s->scratch, n * 2 * sizeof(*s->must));
}

uint64_t *select_spare(struct select *s, uint32_t want, uint32_t rank) {
    make_picky(s);
    return &s->spare[(size_t)want * s->grid->n_nodes + rank];
}

/* What the first n offers come to. */
struct sum {
    uint64_t tasks;
    uint64_t must_tasks;
    uint32_t n_must;
    uint32_t most; /* the largest room */
};

static void mark_must(struct select *s, const struct ask *a, bool on) {
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
    mark_must(s, a, true);
    bool yes = can(s, a, s->n_offer);
    mark_must(s, a, false);
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
    struct split r = {.low = MIN(low->n, most)};
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
    mark_must(s, a, true);
    uint32_t n_low = 0, n = by_weight(s, a, &n_low);
    bool is_one = n && !a->n_must && a->size.min_nodes <= 1 && a->size.want_nodes <= 1 && pick_one(s, a, n_low, n);
    if (n && !is_one)
        pick_several(s, a, n_low, n);
    mark_must(s, a, false);
    return n != 0;
}

/* ---- picky asks ---- */

/* The offer of a group with the most room that is no required one yet; NULL: none. What goes beyond the job counts as
 * enough, so that of equals the first is taken. */
static const struct seat *largest_of(const struct select *s, const struct ask *a, const uint64_t *group) {
    const struct seat *best = NULL;
    for (uint32_t i = 0; i < s->n_offer; i++) {
        const struct seat *o = &s->offer[i];
        if (s->is_must[o->rank] || !bits_has(group, o->rank))
            continue;
        if (!best || MIN(o->tasks, a->size.n_tasks) > MIN(best->tasks, a->size.n_tasks))
            best = o;
    }
    return best;
}

static uint32_t size_of(const struct select *s, const uint64_t *group) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_offer; i++)
        n += bits_has(group, s->offer[i].rank);
    return n;
}

/* The group that has the fewest offers, of those not yet done. */
static uint32_t rarest(const struct select *s, const struct ask_features *f, uint64_t done) {
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < f->n_groups && i < 64; i++) {
        uint32_t n = done >> i & 1 ? UINT32_MAX : size_of(s, f->group[i]);
        if (n < least)
            best = i, least = n;
    }
    return best;
}

/* Makes nodes of each group required ones: those of -w first. is_must: 1 required, 2 and counted for a group. */
static bool fill_groups(struct select *s, struct ask *a) {
    const struct ask_features *f = a->has;
    uint64_t done = 0;
    for (uint32_t k = 0; k < f->n_groups; k++) {
        uint32_t g = rarest(s, f, done), left = f->count[g];
        if (f->n_groups > 64)
            return false;
        done |= (uint64_t)1 << g;
        for (uint32_t i = 0; i < a->n_must && left; i++) {
            if (s->is_must[a->must[i]] == 1 && bits_has(f->group[g], a->must[i])) {
                s->is_must[a->must[i]] = 2;
                left--;
            }
        }
        for (const struct seat *o; left; left--) {
            o = largest_of(s, a, f->group[g]);
            if (!o)
                return false;
            s->is_must[o->rank] = 2;
            s->must[a->n_must++] = o->rank;
        }
    }
    return true;
}

static bool add_groups(struct select *s, struct ask *a) {
    if (!a->has || !a->has->n_groups)
        return true;
    if (a->n_must)
        memcpy(s->must, a->must, a->n_must * sizeof(*s->must));
    a->must = s->must;
    mark_must(s, a, true);
    bool ok = fill_groups(s, a);
    mark_must(s, a, false);
    return ok;
}

/* Sets of so few offers are all looked at. */
#define OFFERS_FEW 10u

static bool has_enough(struct select *s, const struct ask *a, const struct seat *seat, uint32_t n) {
    uint64_t tasks = 0;
    uint32_t n_must = 0;
    for (uint32_t i = 0; i < n; i++) {
        tasks += seat[i].tasks;
        n_must += s->is_must[seat[i].rank] != 0;
    }
    bool ok = tasks >= a->size.n_tasks && n_must == a->n_must;
    for (uint32_t w = 0; w < a->n_wants && ok; w++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < n && a->want[w].job; i++)
            sum += *select_spare(s, w, seat[i].rank);
        ok = !a->want[w].job || (sum >= a->want[w].job && n <= a->want[w].job);
    }
    return ok;
}

static bool search_few(struct select *s, const struct ask *a, uint32_t k) {
    for (unsigned set = 1; set < 1u << s->n_offer; set++) {
        if ((uint32_t)__builtin_popcount(set) != k)
            continue;
        s->n_pick = 0;
        for (uint32_t i = 0; i < s->n_offer; i++) {
            if (set >> i & 1)
                s->pick[s->n_pick++] = s->offer[i];
        }
        if (has_enough(s, a, s->pick, k))
            return true;
    }
    return false;
}

/* Required ones, then the most resources, then the most room. */
static int by_riches(const void *pa, const void *pb, void *arg) {
    struct select *s = arg;
    const struct seat *a = pa, *b = pb;
    if (s->is_must[a->rank] != s->is_must[b->rank])
        return s->is_must[a->rank] ? -1 : 1;
    for (uint32_t w = 0; w < ASK_WANTS_MAX; w++) {
        uint64_t x = s->totals >> w & 1 ? *select_spare(s, w, a->rank) : 0;
        uint64_t y = s->totals >> w & 1 ? *select_spare(s, w, b->rank) : 0;
        if (x != y)
            return x > y ? -1 : 1;
    }
    if (a->tasks != b->tasks)
        return a->tasks > b->tasks ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static bool search(struct select *s, const struct ask *a, uint32_t k) {
    if (s->n_offer <= OFFERS_FEW)
        return search_few(s, a, k);
    memcpy(s->pick, s->order, k * sizeof(*s->pick));
    s->n_pick = k;
    return has_enough(s, a, s->pick, k);
}

/* The fewest nodes that have enough in all, or, when it wants many, the most. */
static bool choose_totals(struct select *s, const struct ask *a) {
    uint32_t least = MAX(a->size.min_nodes, 1), most = MIN(a->size.max_nodes, s->n_offer);
    bool ok = false, many = a->size.want_nodes > 1;
    if (a->lacks || least > most)
        return false;
    s->totals = 0;
    for (uint32_t w = 0; w < a->n_wants; w++)
        s->totals |= (uint32_t)(a->want[w].job != 0) << w;
    mark_must(s, a, true);
    if (s->n_offer > OFFERS_FEW) {
        memcpy(s->order, s->offer, s->n_offer * sizeof(*s->order));
        qsort_r(s->order, s->n_offer, sizeof(*s->order), by_riches, s);
    }
    for (uint32_t i = 0; i <= most - least && !ok; i++)
        ok = search(s, a, many ? most - i : least + i);
    mark_must(s, a, false);
    return ok;
}

static bool choose(struct select *s, const struct ask *a, bool pick) {
    if (!a->is_picky)
        return pick ? choose_plain(s, a) : can_plain(s, a);
    make_picky(s);
    uint32_t n = s->n_offer, n_alts = a->has ? a->has->n_alts : 0;
    memcpy(s->all, s->offer, n * sizeof(*s->all));
    for (uint32_t k = 0; k < MAX(n_alts, 1u); k++) {
        struct ask one = *a;
        s->n_offer = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (!n_alts || bits_has(a->has->alt[k], s->all[i].rank))
                s->offer[s->n_offer++] = s->all[i];
        }
        if (!add_groups(s, &one))
            continue;
        if (one.n_totals ? choose_totals(s, &one) : pick ? choose_plain(s, &one) : can_plain(s, &one))
            return true;
    }
    return false;
}

/* In proportion to the tasks, at least one from each node, at most what it has. */
static void give(struct select *s, const struct ask *a, uint32_t want) {
    uint64_t total = a->want[want].job, left = total, tasks = 0;
    for (uint32_t i = 0; i < s->n_pick; i++)
        tasks += s->pick[i].tasks;
    for (uint32_t i = 0; i < s->n_pick; i++) {
        uint64_t share = total / tasks * s->pick[i].tasks + total % tasks * s->pick[i].tasks / tasks;
        share = MIN(MAX(share, 1), *select_spare(s, want, s->pick[i].rank));
        share = MIN(share, left - MIN(left, s->n_pick - 1 - i)); /* the others need one each */
        s->given[(size_t)i * a->n_wants + want] = share;
        left -= share;
    }
    for (uint32_t i = 0; i < s->n_pick && left; i++) {
        uint64_t *at = &s->given[(size_t)i * a->n_wants + want];
        uint64_t more = MIN(left, *select_spare(s, want, s->pick[i].rank) - *at);
        *at += more;
        left -= more;
    }
    must(left == 0);
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
            give(s, a, w);
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
