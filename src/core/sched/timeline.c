/* SPDX-License-Identifier: Apache-2.0
 *
 * Timelines: what is free on each node, now and later.
 *
 * Every running job ends at the latest at its limit, so what a node has to give only grows with time. A node's *lane*
 * is the list of the shares that jobs hold of it, by their expected ends:
 *
 *      CPUs of a node                                     lane: (10:20, job 7, 3) (10:50, job 4, 2) (11:40, job 9, 2)
 *       8 ┤                                ┌───────────   free
 *       6 ┤                 ┌──────────────┘
 *         │       job 9     │     job 9
 *       4 ┤        ┌────────┘░░░░░░░░░░░░░░                what is free at a moment x: the node's size, minus the
 *       1 ┤────────┘▒▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░                shares whose end lies behind x
 *         └────────┬────────┬──────────────┬──────────►
 *        now     10:20    10:50          11:40   time
 *
 * A job past its limit is being killed and a completing one is being cleaned up: their shares come back "soon", which
 * is the second after now. This needs no touch of the lane: whoever asks for now counts all shares, whoever asks for
 * later counts those with an end behind that moment, and theirs is not.
 *
 * Two things are laid on top for the length of one pass, on the *board*: the starts of this pass (more shares), and
 * promises. A promise is a block in the future:
 *
 *       8 ┤                                ┌───────────
 *       6 ┤                 ┌╔═════════════╗               With a promise the room on a node may also fall, but only
 *       4 ┤        ┌────────┘║  promised   ║               where a promise begins. So the least room in a window
 *       1 ┤────────┘         ║             ║               [from, to) is the smallest of: the room at `from`, and the
 *         └────────┬────────┬╨─────────────╨──────────►    room at each beginning of a promise in the window.
 *
 * For windows that begin now, by far the most frequent question, each promise keeps the room that is left at its
 * beginning (its *slack*), mended at each start and promise. The question then costs one comparison a promise.
 *
 * Between passes lanes are kept. A pass walks the jobs that hold nodes, side by side with the list of those it knew:
 * the record's hash tells whether a job is the same as before, and only the others are taken out of and put into
 * lanes. In debug builds the result is compared with one made from nothing.
 */
#include "core/sched/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/rec.h"
#include "base/str.h"

/* ---- lanes ---- */

static void drop_run(struct run *r) {
    free(r->rank);
    *r = (struct run){0};
}

void timeline_fini(struct timeline *t) {
    for (size_t i = 0; i < t->run.n; i++)
        drop_run(&t->run.p[i]);
    vec_fini(&t->run);
    vec_fini(&t->next);
    for (uint32_t i = 0; i < t->n_lanes; i++) {
        for (size_t k = 0; k < t->lane[i].share.n; k++)
            free(t->lane[i].share.p[k].c.gres);
        vec_fini(&t->lane[i].share);
    }
    free(t->lane);
    *t = (struct timeline){0};
}

void timeline_reset(struct timeline *t, uint32_t n_lanes) {
    timeline_fini(t);
    t->lane = xcalloc(n_lanes + 1, sizeof(*t->lane));
    t->n_lanes = n_lanes;
}

/* Rounded up: a second in which a job still runs is not free. 0: any moment now. Nobody knows when a suspended one
 * will go on. */
static int64_t expected_end(const struct job *j) {
    if (j->completing)
        return 0;
    int64_t start = (j->start_ms + job_rare_of(j)->suspended_total_ms + 999) / 1000;
    if (!j->time_limit_min || j->time_limit_min == TIME_LIMIT_NONE || j->state == JOB_SUSPENDED)
        return start + UNLIMITED_SECS;
    return start + (int64_t)j->time_limit_min * 60;
}

/* Where a share is in its lane, or belongs. */
static size_t share_at(const struct lane *l, int64_t end, uint32_t job_id) {
    size_t low = 0, high = l->share.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct share *s = &l->share.p[mid];
        if (s->end_unix < end || (s->end_unix == end && s->job_id < job_id))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void lane_put(struct lane *l, struct share s) {
    size_t at = share_at(l, s.end_unix, s.job_id);
    vec_push(&l->share, s);
    memmove(&l->share.p[at + 1], &l->share.p[at], (l->share.n - 1 - at) * sizeof(s));
    l->share.p[at] = s;
    l->cpus += s.c.cpus;
    l->mem_mb += s.c.mem_mb;
    l->n_special += s.c.share != SHARE_CORES;
}

static void lane_take(struct lane *l, int64_t end, uint32_t job_id) {
    size_t at = share_at(l, end, job_id);
    must(at < l->share.n && l->share.p[at].job_id == job_id);
    l->cpus -= l->share.p[at].c.cpus;
    l->mem_mb -= l->share.p[at].c.mem_mb;
    l->n_special -= l->share.p[at].c.share != SHARE_CORES;
    free(l->share.p[at].c.gres);
    vec_remove(&l->share, at);
}

static void take_run(struct timeline *t, struct run *r) {
    for (uint32_t i = 0; i < r->n_ranks; i++)
        lane_take(&t->lane[r->rank[i]], r->end_unix, r->job_id);
    drop_run(r);
}

/* Of each slot of its kind as much as there is; what is beyond that, on a node that lost some, is nobody's. */
static uint64_t *held_gres(const struct grid *g, const struct grid_node *node, const struct job_node *n) {
    uint64_t *gres = NULL;
    for (uint32_t i = 0; i < n->n_gres; i++) {
        uint64_t left = n->gres[i].count;
        for (uint32_t k = 0; k < node->n_slots && left; k++) {
            const struct grid_kind *kind = &g->kind[node->slot[k].kind];
            if (!str_eq(kind->name, n->gres[i].name) || !str_eq(kind->type, n->gres[i].type))
                continue;
            if (!gres)
                gres = xcalloc(node->n_slots, sizeof(*gres));
            uint64_t take = MIN(left, node->slot[k].count - MIN(gres[k], node->slot[k].count));
            gres[k] += take;
            left -= take;
        }
    }
    return gres;
}

static void put_run(struct timeline *t, const struct grid *g, const struct job *j) {
    uint32_t part = j->partition ? grid_find_part(g, j->partition, strlen(j->partition)) : GRID_NONE;
    struct run r = {.hash = rec_hash(j), .end_unix = expected_end(j), .job_id = j->id};
    r.rank = xcalloc(job_n_held(j) + 1, sizeof(*r.rank));
    for (uint32_t i = 0; i < job_n_held(j); i++) {
        const struct job_node *n = job_held(j, i);
        uint32_t rank = n->is_done ? GRID_NONE : grid_rank(g, n->node_id);
        if (rank == GRID_NONE)
            continue;
        struct claim c = {n->cpus, (int64_t)MIN(n->mem_mb, GRID_MEM_MAX), NULL, part, j->spec->uid, n->share};
        c.gres = n->n_gres ? held_gres(g, &g->node[rank], n) : NULL;
        lane_put(&t->lane[rank], (struct share){r.end_unix, j->id, c});
        r.rank[r.n_ranks++] = rank;
    }
    vec_push(&t->next, r);
}

void timeline_sync(struct timeline *t, const struct grid *g, const struct view *v) {
    size_t old = 0;
    t->next.n = 0;
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(v, &k)); k++) {
        if (!job_holds_nodes(j))
            continue;
        for (; old < t->run.n && t->run.p[old].job_id < j->id; old++)
            take_run(t, &t->run.p[old]);
        if (old < t->run.n && t->run.p[old].job_id == j->id) {
            struct run *r = &t->run.p[old++];
            if (r->hash == rec_hash(j)) {
                vec_push(&t->next, *r);
                continue;
            }
            take_run(t, r);
        }
        put_run(t, g, j);
    }
    for (; old < t->run.n; old++)
        take_run(t, &t->run.p[old]);
    __auto_type was = t->run;
    t->run.p = t->next.p, t->run.n = t->next.n, t->run.cap = t->next.cap;
    t->next.p = was.p, t->next.n = 0, t->next.cap = was.cap;
}

static bool claim_same(const struct claim *x, const struct claim *y) {
    return x->cpus == y->cpus && x->mem_mb == y->mem_mb && !x->gres == !y->gres && x->part == y->part &&
           x->uid == y->uid && x->share == y->share;
}

static bool lane_same(const struct lane *a, const struct lane *b) {
    if (a->share.n != b->share.n || a->cpus != b->cpus || a->mem_mb != b->mem_mb || a->n_special != b->n_special)
        return false;
    for (size_t i = 0; i < a->share.n; i++) {
        const struct share *x = &a->share.p[i], *y = &b->share.p[i];
        if (x->end_unix != y->end_unix || x->job_id != y->job_id || !claim_same(&x->c, &y->c))
            return false;
    }
    return true;
}

bool timeline_same(const struct timeline *a, const struct timeline *b) {
    if (a->n_lanes != b->n_lanes || a->run.n != b->run.n)
        return false;
    for (uint32_t i = 0; i < a->n_lanes; i++) {
        if (!lane_same(&a->lane[i], &b->lane[i]))
            return false;
    }
    return true;
}

/* ---- the board ---- */

struct extra { /* a start of this pass */
    struct extra *next;
    int64_t end;
    struct claim c;
};

struct block { /* a promise's share of one node */
    struct block *next;
    int64_t from, to;
    struct claim c;
    uint32_t job_id;
    struct room slack; /* what is left at `from` when everything known then is taken off */
};

static void mark(uint64_t *bits, uint32_t rank, bool on) {
    if (on)
        bits_set(bits, rank);
    else
        bits_clear(bits, rank);
}

static void mark_open(struct board *b, uint32_t rank) {
    bool open = b->grid->node[rank].takes_work && b->now_free[rank].cpus > 0;
    mark(b->open, rank, open);
    for (const struct block *h = b->block[rank]; h && open; h = h->next)
        open = h->slack.cpus > 0;
    mark(b->lasting, rank, open);
}

void board_init(struct board *b, const struct grid *g, const struct timeline *t, int64_t now, struct arena *scratch) {
    *b = (struct board){.grid = g, .timeline = t, .now = now, .scratch = scratch};
    b->now_free = arena_calloc(scratch, g->n_nodes + 1, sizeof(*b->now_free));
    b->special = arena_calloc(scratch, g->n_words + 1, sizeof(*b->special));
    b->open = arena_calloc(scratch, g->n_words + 1, sizeof(*b->open));
    b->lasting = arena_calloc(scratch, g->n_words + 1, sizeof(*b->lasting));
    b->last_promise = now;
    b->extra = arena_calloc(scratch, g->n_nodes + 1, sizeof(struct extra *));
    b->block = arena_calloc(scratch, g->n_nodes + 1, sizeof(struct block *));
    for (uint32_t r = 0; r < g->n_nodes; r++) {
        b->now_free[r] = (struct room){(int64_t)g->node[r].cpus - t->lane[r].cpus,
                                       (int64_t)g->node[r].mem_mb - t->lane[r].mem_mb};
        mark_open(b, r);
        if (t->lane[r].n_special)
            bits_set(b->special, r);
    }
}

static void narrow(struct room *r, struct room by) {
    r->cpus = MIN(r->cpus, by.cpus);
    r->mem_mb = MIN(r->mem_mb, by.mem_mb);
}

/* What jobs, running and started in this pass, leave at a moment. */
static struct room unused_at(const struct board *b, uint32_t rank, int64_t x) {
    if (x <= b->now)
        return b->now_free[rank];
    struct room r = {b->grid->node[rank].cpus, (int64_t)b->grid->node[rank].mem_mb};
    const struct lane *l = &b->timeline->lane[rank];
    for (size_t i = l->share.n; i-- > 0 && l->share.p[i].end_unix > x;) {
        r.cpus -= l->share.p[i].c.cpus;
        r.mem_mb -= l->share.p[i].c.mem_mb;
    }
    for (const struct extra *e = b->extra[rank]; e; e = e->next) {
        if (e->end > x) {
            r.cpus -= e->c.cpus;
            r.mem_mb -= e->c.mem_mb;
        }
    }
    return r;
}

static struct room room_at(const struct board *b, uint32_t rank, int64_t x) {
    struct room r = unused_at(b, rank, x);
    for (const struct block *h = b->block[rank]; h; h = h->next) {
        if (h->from <= x && x < h->to) {
            r.cpus -= h->c.cpus;
            r.mem_mb -= h->c.mem_mb;
        }
    }
    return r;
}

struct room board_room_now(const struct board *b, uint32_t rank, int64_t to) {
    struct room r = b->now_free[rank];
    for (const struct block *h = b->block[rank]; h; h = h->next) {
        if (h->from < to)
            narrow(&r, h->slack);
    }
    return r;
}

struct room board_room(const struct board *b, uint32_t rank, int64_t from, int64_t to) {
    struct room r = room_at(b, rank, from);
    for (const struct block *h = b->block[rank]; h; h = h->next) {
        if (from < h->from && h->from < to)
            narrow(&r, room_at(b, rank, h->from));
    }
    return r;
}

void board_see(const struct board *b, uint32_t rank, int64_t x, board_see_fn see, void *arg) {
    const struct lane *l = &b->timeline->lane[rank];
    for (size_t i = l->share.n; i-- > 0 && (x <= b->now || l->share.p[i].end_unix > x);)
        see(arg, &l->share.p[i].c);
    for (const struct extra *e = b->extra[rank]; e; e = e->next) {
        if (x <= b->now || e->end > x)
            see(arg, &e->c);
    }
    for (const struct block *h = b->block[rank]; h; h = h->next) {
        if (h->from <= x && x < h->to)
            see(arg, &h->c);
    }
}

bool board_next_begin(const struct board *b, uint32_t rank, int64_t from, int64_t to, const struct block **cursor,
                      int64_t *out) {
    const struct block *h = *cursor ? (*cursor)->next : b->block[rank];
    while (h && (h->from <= from || h->from >= to))
        h = h->next;
    if (h)
        *cursor = h, *out = h->from;
    return h != NULL;
}

uint32_t board_promised_to(const struct block *b) {
    return b->job_id;
}

void board_start(struct board *b, uint32_t rank, int64_t end, const struct claim *c) {
    struct extra *e = arena_alloc(b->scratch, sizeof(*e));
    *e = (struct extra){b->extra[rank], end, *c};
    b->extra[rank] = e;
    b->now_free[rank].cpus -= c->cpus;
    b->now_free[rank].mem_mb -= c->mem_mb;
    for (struct block *h = b->block[rank]; h; h = h->next) {
        if (h->from < end) {
            h->slack.cpus -= c->cpus;
            h->slack.mem_mb -= c->mem_mb;
        }
    }
    mark_open(b, rank);
    if (c->share != SHARE_CORES)
        bits_set(b->special, rank);
}

void board_promise(struct board *b, uint32_t rank, uint32_t job_id, int64_t from, int64_t to, const struct claim *c) {
    must(from > b->now);
    for (struct block *h = b->block[rank]; h; h = h->next) {
        if (from <= h->from && h->from < to) {
            h->slack.cpus -= c->cpus;
            h->slack.mem_mb -= c->mem_mb;
        }
    }
    struct block *h = arena_alloc(b->scratch, sizeof(*h));
    *h = (struct block){b->block[rank], from, to, *c, job_id, {0, 0}};
    b->block[rank] = h;
    h->slack = room_at(b, rank, from);
    b->last_promise = MAX(b->last_promise, from);
    mark_open(b, rank);
    if (c->share != SHARE_CORES)
        bits_set(b->special, rank);
}

void board_withdraw(struct board *b, uint32_t rank, uint32_t job_id) {
    struct block **at = &b->block[rank];
    while (*at && (*at)->job_id != job_id)
        at = &(*at)->next;
    must(*at);
    const struct block *gone = *at;
    *at = gone->next;
    for (struct block *h = b->block[rank]; h; h = h->next) {
        if (gone->from <= h->from && h->from < gone->to) {
            h->slack.cpus += gone->c.cpus;
            h->slack.mem_mb += gone->c.mem_mb;
        }
    }
    mark_open(b, rank);
}

/* ---- moments ---- */

static int ascending(const void *pa, const void *pb) {
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

static size_t sort_unique(int64_t *t, size_t n) {
    qsort(t, n, sizeof(*t), ascending);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (!kept || t[kept - 1] != t[i])
            t[kept++] = t[i];
    }
    return kept;
}

static size_t count_blocks(const struct block *h) {
    size_t n = 0;
    for (; h; h = h->next)
        n++;
    return n;
}

static size_t count_moments(const struct board *b, const uint64_t *ranks) {
    size_t n = 0;
    uint32_t all = b->grid->n_nodes;
    for (size_t r = bits_next(ranks, all, 0); r < all; r = bits_next(ranks, all, r + 1)) {
        n += b->timeline->lane[r].share.n + count_blocks(b->block[r]);
        for (const struct extra *e = b->extra[r]; e; e = e->next)
            n++;
    }
    return n;
}

size_t board_moments(const struct board *b, const uint64_t *ranks, struct arena *a, int64_t **out) {
    int64_t soon = b->now + 1;
    int64_t *t = arena_alloc(a, (count_moments(b, ranks) + 1) * sizeof(*t));
    size_t n = 0;
    uint32_t all = b->grid->n_nodes;
    for (size_t r = bits_next(ranks, all, 0); r < all; r = bits_next(ranks, all, r + 1)) {
        const struct lane *l = &b->timeline->lane[r];
        for (size_t i = 0; i < l->share.n; i++) {
            int64_t end = MAX(l->share.p[i].end_unix, soon);
            if (!n || t[n - 1] != end)
                t[n++] = end;
        }
        for (const struct extra *e = b->extra[r]; e; e = e->next)
            t[n++] = MAX(e->end, soon);
        for (const struct block *h = b->block[r]; h; h = h->next)
            t[n++] = h->to;
    }
    *out = t;
    return sort_unique(t, n);
}

size_t board_promised(const struct board *b, const uint64_t *ranks, struct arena *a, int64_t **out) {
    size_t n = 0;
    uint32_t all = b->grid->n_nodes;
    for (size_t r = bits_next(ranks, all, 0); r < all; r = bits_next(ranks, all, r + 1))
        n += count_blocks(b->block[r]);
    int64_t *t = arena_alloc(a, (n + 1) * sizeof(*t));
    n = 0;
    for (size_t r = bits_next(ranks, all, 0); r < all; r = bits_next(ranks, all, r + 1)) {
        for (const struct block *h = b->block[r]; h; h = h->next)
            t[n++] = h->from;
    }
    *out = t;
    return sort_unique(t, n);
}
