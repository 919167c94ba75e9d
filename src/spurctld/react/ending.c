/* SPDX-License-Identifier: Apache-2.0
 *
 *     EV_JOB_ENDING ──► Terminate to every node that is not done, again until its report came
 *
 * Of a run that was made smaller: to the nodes that it gave back.
 */
#include "spurctld/react/effort.h"

#define WHY_NODE_FAILURE "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS" /* Slurm's words */

/* "DUE …" becomes the end of the line that the step's output ends with. */
static const char *why_ending(const struct job *j) {
    switch (j->state) {
    case JOB_CANCELLED: return "CANCELLED";
    case JOB_TIMEOUT: return "DUE TO TIME LIMIT";
    case JOB_NODE_FAIL: return WHY_NODE_FAILURE;
    case JOB_PENDING:
        if (job_rare_of(j)->requeue_wanted)
            return j->reason == REASON_NODE_DOWN ? WHY_NODE_FAILURE : "DUE TO JOB REQUEUE";
        return "";
    default: return "";
    }
}

void ending_round(struct effort *ef, const struct job *j) {
    if (!j || (!j->completing && !job_rare_of(j)->n_leaving)) {
        effort_drop(ef);
        return;
    }
    if (ef->calls) { /* one round at a time */
        effort_again_in(ef, ef->wait_ms);
        return;
    }
    struct ending how = {.why = why_ending(j), .asked_ms = j->kill_ms};
    ef->pause_ms = 0;
    for (uint32_t i = j->completing ? 0 : j->n_nodes; i < job_n_held(j); i++)
        if (!job_held(j, i)->is_done)
            effort_terminate(ef, j, job_held(j, i)->node_id, &how);
}
