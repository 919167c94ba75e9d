/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing nodes for a job from those that have room.
 *
 * Lower weights first: the job gets nodes of a higher weight only when those of lower weights can't hold it; then one
 * node that holds all of it, else all the lower ones and as few of the higher ones as do. Among nodes of one weight it
 * gets as few as do, at least as many as asked; among sets of that number the one with the least room that still
 * holds it (so that large holes stay); among equals the first ones by rank.
 *
 * A picky ask has more to say on which nodes go together: the same feature on all, so many with a feature, generic
 * resources for the job as a whole. Its alternatives are tried in order; a group of so many nodes gets those with the most
 * room; and of sets that have enough resources in all it gets one with as few nodes as do.
 */
#ifndef SPUR_CORE_SCHED_SELECT_H
#define SPUR_CORE_SCHED_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/sched/ask.h"
#include "core/sched/timeline.h"

struct seat { /* a node, and how many tasks there is room for or, once picked, how many it gets */
    uint32_t rank;
    uint32_t tasks;
};

struct select {
    const struct grid *grid;
    struct seat *offer; /* ascending by rank, tasks > 0: filled in by the caller */
    uint32_t n_offer;
    struct seat *pick; /* the answer: in the order of names */
    uint32_t n_pick;
    struct claim *claim; /* what it takes of them: by the caller */
    uint64_t *spare; /* of picky asks, by want and rank: what the node could give of what is asked for in all; by the caller */
    uint64_t *given; /* by pick and want: what it gives */
    struct seat *all; /* every offer, while alternatives are tried */
    uint32_t *must;
    struct arena *scratch;
    uint32_t *tally; /* by tasks; scratch */
    struct seat *order;
    uint32_t totals; /* bits of the wants in all of the ask at hand */
    uint8_t *is_must; /* by rank */
};

/* Where the caller writes what a node could give. */
uint64_t *select_spare(struct select *s, uint32_t want, uint32_t rank);
static inline const uint64_t *select_given(const struct select *s, const struct ask *a, uint32_t pick) {
    return a->n_totals ? s->given + (size_t)pick * a->n_wants : NULL;
}
void select_init(struct select *s, const struct grid *g, struct arena *scratch);
/* Is there a set among the offered nodes? Exact. */
bool select_can(struct select *s, const struct ask *a);
/* Chooses; false when there is none. */
bool select_pick(struct select *s, const struct ask *a);

#endif
