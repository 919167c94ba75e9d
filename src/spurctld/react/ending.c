/* SPDX-License-Identifier: Apache-2.0
 *
 *     EV_JOB_ENDING ──► Terminate to every node that is not done, again until its report came
 *
 * Of a run that was made smaller: to the nodes that it gave back.
 */
#include "base/log.h"
#include "base/mem.h"
#include "spurctld/lead/lead.h"
#include "spurctld/react/call.h"
#include "spurctld/react/effort.h"
#include "wire/messages.h"

#define ENDING_AGAIN_MS 15000u /* an accepted Terminate is said again until the report is there */

static void on_done_proposed(void *arg, int code, const struct err *why, uint64_t index, const void *answer,
                             size_t n) {
    struct effort *ef = arg;
    if (effort_back(ef) && effort_is_worth_repeating(code))
        effort_back_off(ef);
}

/* Nothing of it lives there: that is the report. */
static void report_for(struct effort *ef, uint32_t node_id) {
    struct room *r = ef->re->room;
    struct cmd_node_done done = {.job_id = ef->job_id,
                                 .start_no = ef->start_no,
                                 .node_id = node_id,
                                 .end_ms = r->host->unix_ms(r->host->impl)};
    ef->out++;
    room_propose(r, CMD_NODE_DONE, &done, 0, NULL, on_done_proposed, ef);
}

static void on_terminated(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct node_call *call = arg;
    struct effort *ef = call->ef;
    uint32_t node_id = call->node_id;
    free(call);
    ef->calls--;
    if (!effort_back(ef))
        return;
    effort_again_in(ef, ENDING_AGAIN_MS);
    if (code == E_NOT_FOUND || code == E_JOB_ID) {
        report_for(ef, node_id);
        return;
    }
    if (code && !effort_is_transport(code))
        log_warn("job %u start %u: terminate refused: %s", ef->job_id, ef->start_no, why ? why->text : "?");
    if (!code)
        return;
    effort_back_off(ef);
    /* It can't be reached, but it may reach us: a list of its runs without this one is a report, too. */
    lead_ask_runs(ef->re->room->lead, node_id);
}

static const char *why_ending(const struct job *j) {
    switch (j->state) {
    case JOB_CANCELLED: return "CANCELLED";
    case JOB_TIMEOUT: return "DUE TO TIME LIMIT";
    case JOB_NODE_FAIL: return "DUE TO NODE FAILURE";
    default: return "";
    }
}

static void terminate_on(struct effort *ef, const struct job *j, const struct job_node *jn) {
    struct room *r = ef->re->room;
    const struct node *node = effort_node(ef, jn->node_id);
    if (!node)
        return;
    struct terminate_request req = {
        .job_id = j->id,
        .start_no = j->start_no,
        .kill_wait_secs = room_rconf(r)->kill_wait_secs,
        .why = why_ending(j),
        .node_name = node->name,
        .uid = j->spec->uid,
        .at_unix = j->kill_ms / 1000,
    };
    struct node_call *call = xnew(struct node_call);
    *call = (struct node_call){ef, 0, node->id};
    ef->out++;
    ef->calls++;
    ef->re->stats.terminates++;
    react_call(r, node, WIRE_Agent_Terminate, &req, j->id, j->start_no, j->spec->uid, on_terminated, call);
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
    ef->pause_ms = 0;
    for (uint32_t i = j->completing ? 0 : j->n_nodes; i < job_n_held(j); i++)
        if (!job_held(j, i)->is_done)
            terminate_on(ef, j, job_held(j, i));
}
