/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks that have more to say on which nodes go together: see select.h.
 */
#ifndef SPUR_CORE_SCHED_PICKY_H
#define SPUR_CORE_SCHED_PICKY_H

#include "core/sched/select.h"

/* Whether there is a set among the offers, and with `pick` one. */
bool picky_choose(struct select *s, const struct ask *a, bool pick);
/* Deals out what is asked for in all of a want among the picks. */
void picky_give(struct select *s, const struct ask *a, uint32_t want);

/* Of select.c: a set for an ask as if it was not picky; marks the nodes that it has to have. */
bool select_plain(struct select *s, const struct ask *a, bool pick);
void select_mark_must(struct select *s, const struct ask *a, bool on);

#endif
