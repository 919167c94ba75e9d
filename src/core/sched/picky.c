/* SPDX-License-Identifier: Apache-2.0
 *
 * First the ways that are quick and good to the cluster (rare groups first, the richest nodes): they find nearly always
 * something where there is something. What they miss is found by exact ones.
 *
 * Groups. "Two nodes of this, one of that, up to k in all" is a matroid: sets of nodes that can be dealt out to the groups,
 * and to a group for anybody that has the rest of the k places. So the k nodes with the most room are found by taking the
 * offers by room and keeping each that can still be dealt in, where those before it may change places.
 *
 * Resources in all. Of ten offers all sets are tried. Of more the most tasks that k nodes with g of the resource have room
 * for are found offer by offer (a table by k and g).
 */
#include "core/sched/picky.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"

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
    select_mark_must(s, a, true);
    bool ok = fill_groups(s, a);
    select_mark_must(s, a, false);
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
    select_mark_must(s, a, true);
    if (s->n_offer > OFFERS_FEW) {
        memcpy(s->order, s->offer, s->n_offer * sizeof(*s->order));
        qsort_r(s->order, s->n_offer, sizeof(*s->order), by_riches, s);
    }
    for (uint32_t i = 0; i <= most - least && !ok; i++)
        ok = search(s, a, many ? most - i : least + i);
    select_mark_must(s, a, false);
    return ok;
}

/* ---- exact: groups ---- */

#define NOWHERE UINT32_MAX
struct deal { /* offers in s->order dealt out to groups */
    struct select *s;
    const struct ask_features *f;
    uint32_t *of;    /* by place in s->order: its group; NOWHERE */
    uint32_t *n, *cap; /* by group; the last one is anybody's */
};

static bool deal_init(struct deal *d, struct select *s, const struct ask *a) {
    *d = (struct deal){.s = s, .f = a->has, .of = s->must};
    if (a->has->n_groups >= 63)
        return false;
    d->n = arena_calloc(s->scratch, a->has->n_groups + 1, sizeof(*d->n));
    d->cap = arena_calloc(s->scratch, a->has->n_groups + 1, sizeof(*d->cap));
    return true;
}

static bool is_in(const struct deal *d, uint32_t i, uint32_t group) {
    return group == d->f->n_groups || bits_has(d->f->group[group], d->s->order[i].rank);
}

/* Deals i in, where need be by moving others. `seen`: groups already asked. */
static bool deal_in(struct deal *d, uint32_t i, uint64_t *seen) {
    for (uint32_t g = 0; g <= d->f->n_groups; g++) {
        if (*seen >> g & 1 || !d->cap[g] || !is_in(d, i, g))
            continue;
        *seen |= (uint64_t)1 << g;
        bool free = d->n[g] < d->cap[g];
        for (uint32_t m = 0; m < d->s->n_offer && !free; m++) {
            if (d->of[m] == g && deal_in(d, m, seen)) {
                d->n[g]--;
                free = true;
            }
        }
        if (!free)
            continue;
        d->of[i] = g;
        d->n[g]++;
        return true;
    }
    return false;
}

/* The k offers with the most room that can be dealt out, as the pick. */
static bool deal(struct deal *d, const struct ask *a, uint32_t k) {
    struct select *s = d->s;
    uint32_t grouped = 0;
    for (uint32_t g = 0; g < d->f->n_groups; g++) {
        d->cap[g] = d->f->count[g];
        grouped += d->cap[g];
    }
    if (k < grouped)
        return false;
    d->cap[d->f->n_groups] = k - grouped;
    memset(d->n, 0, (d->f->n_groups + 1) * sizeof(*d->n));
    for (uint32_t i = 0; i < s->n_offer; i++)
        d->of[i] = NOWHERE;
    s->n_pick = 0;
    for (uint32_t i = 0; i < s->n_offer && s->n_pick < k; i++) {
        uint64_t seen = 0;
        if (deal_in(d, i, &seen))
            s->pick[s->n_pick++] = s->order[i];
    }
    return s->n_pick == k && has_enough(s, a, s->pick, k);
}

static bool exact_groups(struct select *s, const struct ask *a) {
    uint32_t least = MAX(a->size.min_nodes, 1), most = MIN(a->size.max_nodes, s->n_offer);
    struct deal d;
    if (!deal_init(&d, s, a))
        return false;
    s->totals = 0;
    memcpy(s->order, s->offer, s->n_offer * sizeof(*s->order));
    qsort_r(s->order, s->n_offer, sizeof(*s->order), by_riches, s);
    if (!deal(&d, a, most))
        return false;
    for (uint32_t k = least; k < most && a->size.want_nodes <= 1; k++) {
        if (deal(&d, a, k))
            return true;
    }
    return deal(&d, a, most);
}

/* Groups and resources in all, of few offers: every set. */
static bool search_sets(struct select *s, const struct ask *a) {
    uint32_t n = s->n_offer, least = MAX(a->size.min_nodes, 1), most = MIN(a->size.max_nodes, n);
    struct deal d;
    if (!deal_init(&d, s, a))
        return false;
    for (unsigned set = 1; set < 1u << n; set++) {
        uint32_t k = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (set >> i & 1)
                s->order[k++] = s->offer[i];
        }
        if (k < least || k > most)
            continue;
        s->n_offer = k;
        bool ok = deal(&d, a, k);
        s->n_offer = n;
        if (ok)
            return true;
    }
    return false;
}

/* ---- exact: resources in all ---- */

#define TABLE_MAX ((size_t)1 << 23) /* moves of one search; larger ones stay with what the quick way finds */

struct table { /* best[k][g]: the most tasks of k offers that have g or more in all; -1: none have */
    int64_t *best;
    uint64_t *taken; /* bits by offer, k, g: whether the offer is one of them */
    uint32_t most, total;
    size_t width;
};

static int64_t *cell(const struct table *t, uint32_t k, uint32_t g) {
    return &t->best[k * (size_t)(t->total + 1) + g];
}

/* A required one is always taken. */
static void add_offer(struct select *s, const struct table *t, uint32_t want, uint32_t i) {
    const struct seat *o = &s->offer[i];
    uint64_t give = *select_spare(s, want, o->rank);
    bool required = s->is_must[o->rank];
    for (uint32_t k = t->most + 1; k-- > 0;) {
        for (uint32_t g = 0; g <= t->total; g++) {
            uint32_t from = g > give ? g - (uint32_t)give : 0;
            int64_t *at = cell(t, k, g), with = k && *cell(t, k - 1, from) >= 0 ? *cell(t, k - 1, from) + o->tasks : -1;
            if (with <= *at && !required)
                continue;
            *at = with;
            if (with >= 0)
                bits_set(t->taken, i * t->width + k * (size_t)(t->total + 1) + g);
        }
    }
}

static void read_back(struct select *s, const struct table *t, uint32_t want, uint32_t k) {
    uint32_t g = t->total;
    s->n_pick = 0;
    for (uint32_t i = s->n_offer; i-- > 0;) {
        if (!bits_has(t->taken, i * t->width + k * (size_t)(t->total + 1) + g))
            continue;
        uint64_t give = *select_spare(s, want, s->offer[i].rank);
        s->pick[s->n_pick++] = s->offer[i];
        g = g > give ? g - (uint32_t)give : 0;
        k--;
    }
}

static bool by_table(struct select *s, const struct ask *a, uint32_t want) {
    uint64_t total = a->want[want].job;
    uint32_t least = MAX(a->size.min_nodes, 1), most = (uint32_t)MIN(MIN(a->size.max_nodes, s->n_offer), total);
    if (total > UINT16_MAX || s->n_offer * (size_t)(most + 1) * (total + 1) > TABLE_MAX)
        return false;
    struct table t = {.most = most, .total = (uint32_t)total, .width = (most + 1) * (size_t)(total + 1)};
    t.best = arena_alloc(s->scratch, t.width * sizeof(*t.best));
    t.taken = arena_calloc(s->scratch, bits_words(s->n_offer * t.width), sizeof(*t.taken));
    for (size_t i = 0; i < t.width; i++)
        t.best[i] = -1;
    *cell(&t, 0, 0) = 0;
    for (uint32_t i = 0; i < s->n_offer; i++)
        add_offer(s, &t, want, i);
    bool many = a->size.want_nodes > 1;
    for (uint32_t i = 0; least <= most && i <= most - least; i++) {
        uint32_t k = many ? most - i : least + i;
        if (*cell(&t, k, t.total) < (int64_t)a->size.n_tasks)
            continue;
        read_back(s, &t, want, k);
        must(s->n_pick == k && has_enough(s, a, s->pick, k));
        return true;
    }
    return false;
}

/* Whether as many of the best in each respect would do: if not, no set does. */
static bool may_do(struct select *s, const struct ask *a, uint32_t most) {
    uint64_t tasks = 0, n_must = 0;
    for (uint32_t i = 0; i < s->n_offer; i++)
        tasks += s->offer[i].tasks, n_must += s->is_must[s->offer[i].rank] != 0;
    if (tasks < a->size.n_tasks || n_must < a->n_must)
        return false;
    for (uint32_t w = 0; w < a->n_wants; w++) { /* s->order is by the first total, richest first */
        uint64_t sum = 0;
        for (uint32_t i = 0; i < s->n_offer && (i < most || a->n_totals > 1 || n_must); i++)
            sum += *select_spare(s, w, s->order[i].rank);
        if (a->want[w].job && sum < a->want[w].job)
            return false;
    }
    return true;
}

static bool exact_totals(struct select *s, const struct ask *a) {
    uint32_t most = MIN(a->size.max_nodes, s->n_offer), want = 0;
    if (s->n_offer <= OFFERS_FEW || a->n_totals > 1 || (a->has && a->has->n_groups))
        return s->n_offer <= OFFERS_FEW && a->has && a->has->n_groups && search_sets(s, a);
    while (!a->want[want].job)
        want++;
    s->totals = (uint32_t)1 << want;
    memcpy(s->order, s->offer, s->n_offer * sizeof(*s->order));
    qsort_r(s->order, s->n_offer, sizeof(*s->order), by_riches, s);
    return may_do(s, a, most) && by_table(s, a, want);
}

static bool quick(struct select *s, const struct ask *a, bool pick) {
    struct ask one = *a;
    if (!add_groups(s, &one))
        return false;
    return one.n_totals ? choose_totals(s, &one) : select_plain(s, &one, pick);
}

static bool exact(struct select *s, const struct ask *a) {
    if (a->lacks || a->size.min_nodes > MIN(a->size.max_nodes, s->n_offer))
        return false;
    select_mark_must(s, a, true);
    bool ok = a->n_totals ? exact_totals(s, a) : a->has && a->has->n_groups && exact_groups(s, a);
    select_mark_must(s, a, false);
    return ok;
}

bool picky_choose(struct select *s, const struct ask *a, bool pick) {
    make_picky(s);
    uint32_t n = s->n_offer, n_alts = a->has ? a->has->n_alts : 0;
    memcpy(s->all, s->offer, n * sizeof(*s->all));
    for (uint32_t k = 0; k < MAX(n_alts, 1u); k++) {
        s->n_offer = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (!n_alts || bits_has(a->has->alt[k], s->all[i].rank))
                s->offer[s->n_offer++] = s->all[i];
        }
        if (quick(s, a, pick) || exact(s, a))
            return true;
    }
    return false;
}

/* In proportion to the tasks, at least one from each node, at most what it has. */
void picky_give(struct select *s, const struct ask *a, uint32_t want) {
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

