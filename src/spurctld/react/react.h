/* SPDX-License-Identifier: Apache-2.0
 *
 * Effects in the world, on the leader alone, after apply: starts are launched, endings are carried to the agents.
 * Each may be repeated without harm; (job, start number) names a run. What was lost with a leader is derived again from
 * the state by the next (react_begin).
 */
#ifndef SPUR_SPURCTLD_REACT_H
#define SPUR_SPURCTLD_REACT_H

#include "spurctld/room.h"

struct react *react_new(struct room *r);
void react_free(struct react *re);
void react_begin(struct react *re);
void react_end(struct react *re);
void react_on_event(struct react *re, const struct event *ev);
/* To what runs of the job, on every node; lost if an agent is away. As Slurm: to its steps and not its batch shell. */
struct react_signal {
    uint32_t signal;
    uint32_t step_id; /* + 1: to that step only */
    bool batch_only, full; /* the batch shell alone; both */
};
void react_signal(struct react *re, const struct job *j, const struct react_signal *what);

struct react_stats {
    uint64_t launches, launch_failures, terminates, in_flight;
};
struct react_stats react_stats(const struct react *re);

#endif
