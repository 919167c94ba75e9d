/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a job waits, from the pass itself: a pass with a look at one job, which writes down what stands in its way at its
 * turn. why.c has gates, limits and the queue, why_nodes.c the nodes.
 */
#ifndef SPUR_CORE_SCHED_WHY_H
#define SPUR_CORE_SCHED_WHY_H

#include "base/vec.h"
#include "core/model/why.h"
#include "core/sched/pass.h"

struct why_look {
    uint32_t job_id;
    struct arena *arena; /* of the answer */
    VEC(struct why_fact) facts;
    VEC(struct why_node) rows;
    VEC(uint32_t) before;
    uint64_t *told; /* of those that wait: who is in `before` */
    uint32_t n_before_all, n_rows_more;
};

/* What is known before turns are taken. */
void why_gates(struct pass *p, const struct waiting *w);
/* At its turn, before it is tried. */
void why_turn(struct pass *p, const struct entry *e);
/* The nodes of one partition. */
void why_nodes(struct pass *p, const struct waiting *w, struct ask *a);

__attribute__((format(printf, 3, 4))) struct why_fact *why_add(struct why_look *l, const char *kind, const char *fmt, ...);

#endif
