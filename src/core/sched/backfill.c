/* SPDX-License-Identifier: Apache-2.0
 *
 * Backfill: small jobs go ahead where that delays nobody who was promised something.
 *
 * Jobs are taken in order. The first of a queue that can't start now gets a promise: the earliest moment, and nodes, at
 * which it can if every running job takes all of its limit. Later jobs may start if, on every node they take, they
 * leave the promised room free when its time comes:
 *
 *      nodes
 *       4 ┤▒▒▒▒▒▒▒▒▒▒▒▒▒▒┌──────────┐        ▒  running
 *       3 ┤▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ promise  │        B  may start: it ends before the promise begins
 *       2 ┤▒▒▒▒▒▒ BBBBBB │  to A    │        C  may not: it would be in A's way
 *       1 ┤▒▒▒▒▒▒ CCCCCCC│CCC       │        D  may start for as long as it likes: no promise lies on its node
 *       0 ┤DDDDDDDDDDDDDDDDDDDDDDDDDDDDD
 *         └───────┬──────┬──────────┬────►
 *                now     t        t + A's limit
 *
 * Why a promise is never delayed: all that was started since leaves the promised nodes free at t, and what runs can
 * only end earlier than its limit. So at the next pass t is still possible, and the earliest moment is t or before it.
 * The promise is made anew at each pass and nothing has to be remembered.
 *
 * The earliest moment. Room on a node grows when something ends and falls only where a promise begins. A job that
 * starts at t and runs d seconds meets the promise that begins at p when t > p - d. So the moments p - d cut time into
 * stretches within which "it fits at t" never turns from yes to no. In each stretch only ends of jobs and promises
 * have to be tried, the last of them tells whether the stretch has any, and a binary search finds the first:
 *
 *        fits?   n  n  n  y  y  y │ n  n  n  n │ n  n  y  y  y  y  y …
 *                ─────────────────┼────────────┼──────────────────────►
 *                              p1 - d       p2 - d
 */
#include "core/sched/backfill.h"

#include "base/bits.h"
#include "base/mem.h"
#include "core/sched/fit.h"

static void offer(struct select *s, const struct ask *a, uint32_t rank, struct room r) {
    uint32_t tasks = ask_tasks_in(&a->size, r.cpus, r.mem_mb, s->grid->node[rank].mem_mb);
    if (tasks)
        s->offer[s->n_offer++] = (struct seat){rank, tasks};
}

/* Where more than CPUs and memory decides. */
static void offer_look(const struct board *b, struct select *s, const struct ask *a, uint32_t rank, int64_t from, int64_t to) {
    struct fit f;
    fit_look(b, a, rank, from, to, &f);
    uint32_t tasks = fit_tasks(b->grid, a, rank, &f);
    if (!tasks)
        return;
    s->offer[s->n_offer++] = (struct seat){rank, tasks};
    for (uint32_t w = 0; a->n_totals && w < a->n_wants; w++)
        *select_spare(s, w, rank) = fit_spare(b->grid, a, rank, &f, w);
}

static bool is_plain(const struct board *b, const struct ask *a, uint32_t rank) {
    return !a->is_special && !bits_has(b->special, rank);
}

/* A word of nodes, of which some need a closer look. */
static void offer_word(const struct board *b, struct select *s, const struct ask *a, size_t w, uint64_t bits, uint64_t looks) {
    int64_t end = b->now + a->secs;
    for (; bits; bits &= bits - 1) {
        uint32_t rank = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
        if (looks & bits & -bits)
            offer_look(b, s, a, rank, b->now, end);
        else
            offer(s, a, rank, board_room_now(b, rank, end));
    }
}

static void offer_now(const struct board *b, struct select *s, const struct ask *a) {
    s->n_offer = 0;
    int64_t end = b->now + a->secs;
    const uint64_t *open = end > b->last_promise ? b->lasting : b->open;
    if (a->size.share == SHARE_OVER)
        open = b->grid->takes; /* no CPU needs to be free */
    for (size_t w = 0; w < b->grid->n_words; w++) {
        uint64_t bits = a->may[w] & open[w], looks = bits & (a->is_special ? ~(uint64_t)0 : b->special[w]);
        if (looks) {
            offer_word(b, s, a, w, bits, looks);
            continue;
        }
        for (; bits; bits &= bits - 1) { /* most words of most passes */
            uint32_t rank = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
            offer(s, a, rank, b->block[rank] ? board_room_now(b, rank, end) : b->now_free[rank]);
        }
    }
}

/* What the picked nodes give, from `from` on. */
static void set_claims(const struct board *b, struct select *s, const struct ask *a, int64_t from) {
    for (uint32_t i = 0; i < s->n_pick; i++) {
        struct seat p = s->pick[i];
        struct fit f;
        if (a->n_wants)
            fit_look(b, a, p.rank, from, from + a->secs, &f);
        s->claim[i] = fit_claim(b->grid, a, p.rank, p.tasks, select_given(s, a, i), &f, b->scratch);
    }
}

bool backfill_now(const struct board *b, struct select *s, const struct ask *a) {
    if (a->lacks)
        return false;
    offer_now(b, s, a);
    if (!s->n_offer || !select_pick(s, a))
        return false;
    set_claims(b, s, a, b->now);
    return true;
}

/* A shorter limit helps only where it ends before some promise begins. */
uint32_t backfill_shortened(const struct board *b, struct select *s, const struct ask *a) {
    struct ask least = ask_shorter(a, a->size.time_min);
    int64_t *begin;
    if (!a->size.time_min || !backfill_now(b, s, &least))
        return 0;
    uint32_t best = a->size.time_min;
    for (size_t i = board_promised(b, a->may, b->scratch, &begin); i-- > 0;) {
        int64_t minutes = (begin[i] - b->now) / 60;
        if (minutes >= a->size.limit_min)
            continue;
        if (minutes <= best)
            break;
        struct ask one = ask_shorter(a, (uint32_t)minutes);
        if (backfill_now(b, s, &one))
            return (uint32_t)minutes;
    }
    must(backfill_now(b, s, &least));
    return best;
}

static void offer_at(const struct board *b, struct select *s, const struct ask *a, const uint64_t *ranks, int64_t t) {
    s->n_offer = 0;
    for (size_t r = bits_next(ranks, b->grid->n_nodes, 0); r < b->grid->n_nodes;
         r = bits_next(ranks, b->grid->n_nodes, r + 1)) {
        if (is_plain(b, a, (uint32_t)r))
            offer(s, a, (uint32_t)r, board_room(b, (uint32_t)r, t, t + a->secs));
        else
            offer_look(b, s, a, (uint32_t)r, t, t + a->secs);
    }
}

static bool fits_at(const struct board *b, struct select *s, const struct ask *a, const uint64_t *ranks, int64_t t) {
    offer_at(b, s, a, ranks, t);
    return select_can(s, a);
}

/* The index of the first moment behind `limit`. */
static size_t behind(const int64_t *t, size_t low, size_t high, int64_t limit) {
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (t[mid] <= limit)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

int64_t backfill_earliest(const struct board *b, struct select *s, const struct ask *a, struct arena *scratch) {
    uint64_t *ranks = arena_calloc(scratch, b->grid->n_words + 1, sizeof(*ranks));
    for (size_t w = 0; w < b->grid->n_words; w++)
        ranks[w] = a->may[w] & b->grid->takes[w];
    int64_t *t, *cut;
    size_t n = board_moments(b, ranks, scratch, &t), n_cuts = board_promised(b, ranks, scratch, &cut);
    size_t first = 0;
    for (size_t i = 0; i <= n_cuts && first < n; i++) {
        size_t end = i < n_cuts ? behind(t, first, n, cut[i] - a->secs) : n;
        if (end == first || !fits_at(b, s, a, ranks, t[end - 1])) {
            first = end;
            continue;
        }
        size_t low = first, high = end - 1;
        while (low < high) {
            size_t mid = low + (high - low) / 2;
            if (fits_at(b, s, a, ranks, t[mid]))
                high = mid;
            else
                low = mid + 1;
        }
        offer_at(b, s, a, ranks, t[low]);
        must(select_pick(s, a));
        set_claims(b, s, a, t[low]);
        return t[low];
    }
    return 0;
}

void backfill_start(struct board *b, const struct select *s, const struct ask *a) {
    for (uint32_t i = 0; i < s->n_pick; i++)
        board_start(b, s->pick[i].rank, b->now + a->secs, &s->claim[i]);
}

void backfill_promise(struct board *b, const struct select *s, const struct ask *a, uint32_t job_id, int64_t from) {
    for (uint32_t i = 0; i < s->n_pick; i++)
        board_promise(b, s->pick[i].rank, job_id, from, from + a->secs, &s->claim[i]);
}
