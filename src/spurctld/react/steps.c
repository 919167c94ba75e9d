/* SPDX-License-Identifier: Apache-2.0
 *
 *     EV_STEP_ENDING ──► Terminate of the step to every node that is not done with it, again until its report came
 *
 * A node that has not got the step (its client never came) says so: that is the report. What ends with its whole job is
 * the job's ending.
 */
#include "spurctld/react/effort.h"

static const char *why_ending(const struct step *st) {
    return st->end_uid ? "DUE to SIGNAL Killed" : "DUE TO TIME LIMIT";
}

void step_ending_round(struct effort *ef, const struct job *j) {
    struct view v;
    state_peek(ef->re->room->state, &v);
    const struct step *st = view_step(&v, ef->job_id, ef->step_id);
    if (!j || j->completing || !job_holds_nodes(j) || !st || st->end_ms || st->start_no != ef->start_no) {
        effort_drop(ef);
        return;
    }
    if (ef->calls) { /* one round at a time */
        effort_again_in(ef, ef->wait_ms);
        return;
    }
    struct ending how = {.why = why_ending(st),
                         .asked_ms = st->kill_ms,
                         .step_plus_1 = st->id + 1,
                         .at_once = st->end_uid}; /* as Slurm: a cancelled step is killed at once */
    ef->pause_ms = 0;
    for (uint32_t i = 0; i < st->n_nodes; i++)
        if (!st->nodes[i].is_done)
            effort_terminate(ef, j, st->nodes[i].node_id, &how);
}
