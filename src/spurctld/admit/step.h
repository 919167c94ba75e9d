/* SPDX-License-Identifier: Apache-2.0
 *
 * For the files of this folder: the steps that wait for room, and the tickets that let a client speak to nodes.
 */
#ifndef SPUR_SPURCTLD_ADMIT_STEP_H
#define SPUR_SPURCTLD_ADMIT_STEP_H

#include "base/map.h"
#include "spurctld/admit/admit.h"

struct admit {
    struct room *room;
    struct map64 queues; /* job id → struct step_queue: its steps that wait for room */
};

/* A ticket for each node of the step, or, where `st` is NULL, of the job; signed; in the arena. */
void tickets_make(struct room *r, enum ticket_use use, const struct job *j, const struct step *st, struct arena *a,
                  struct step_reply *out);

#endif
