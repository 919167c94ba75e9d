/* SPDX-License-Identifier: Apache-2.0
 *
 * Terminate to one node, of a run or of a step of it, and what its answer means. An accepted one is said again until the
 * node's report is there; a node that has not got it has reported by saying so.
 */
#include "base/log.h"
#include "base/mem.h"
#include "spurctld/lead/lead.h"
#include "spurctld/react/call.h"
#include "spurctld/react/effort.h"
#include "wire/messages.h"

#define ENDING_AGAIN_MS 15000u

static void on_done_proposed(void *arg, int code, const struct err *why, uint64_t index, const void *answer,
                             size_t n) {
    struct effort *ef = arg;
    if (effort_back(ef) && effort_is_worth_repeating(code))
        effort_back_off(ef);
}

/* Nothing of it lives there: that is the report. */
static void report_for(struct effort *ef, uint32_t node_id) {
    struct room *r = ef->re->room;
    int64_t end_ms = r->host->unix_ms(r->host->impl);
    struct cmd_node_done run = {.job_id = ef->job_id, .start_no = ef->start_no, .node_id = node_id, .end_ms = end_ms};
    struct cmd_step_done step = {.job_id = ef->job_id,
                                 .start_no = ef->start_no,
                                 .step_id = ef->step_id,
                                 .node_id = node_id,
                                 .wait_status = 9, /* SIGKILL */
                                 .never_started = true,
                                 .end_ms = end_ms};
    bool is_step = ef->kind == EFFORT_STEP_ENDING;
    ef->out++;
    room_propose(r, is_step ? CMD_STEP_DONE : CMD_NODE_DONE, is_step ? (void *)&step : (void *)&run, 0, NULL,
                 on_done_proposed, ef);
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
    if (code == E_NOT_FOUND || code == E_JOB_ID || (code == E_STEP_ID && ef->kind == EFFORT_STEP_ENDING)) {
        report_for(ef, node_id);
        return;
    }
    if (!code)
        return;
    if (!effort_is_transport(code) && ef->kind == EFFORT_STEP_ENDING)
        log_warn("step %u.%u: terminate refused: %s", ef->job_id, ef->step_id, why ? why->text : "?");
    else if (!effort_is_transport(code))
        log_warn("job %u start %u: terminate refused: %s", ef->job_id, ef->start_no, why ? why->text : "?");
    effort_back_off(ef);
    /* It can't be reached, but it may reach us: a list of its runs without this one is a report, too. */
    lead_ask_runs(ef->re->room->lead, node_id);
}

void effort_terminate(struct effort *ef, const struct job *j, uint32_t node_id, const struct ending *how) {
    struct room *r = ef->re->room;
    const struct node *node = effort_node(ef, node_id);
    if (!node)
        return;
    struct terminate_request req = {
        .job_id = j->id,
        .start_no = j->start_no,
        .kill_wait_secs = how->at_once ? 0 : room_rconf(r)->kill_wait_secs,
        .why = how->why,
        .node_name = node->name,
        .uid = j->spec->uid,
        .at_unix = how->asked_ms / 1000,
        .step_id = how->step_plus_1,
    };
    struct node_call *call = xnew(struct node_call);
    *call = (struct node_call){ef, 0, node->id};
    ef->out++;
    ef->calls++;
    ef->re->stats.terminates++;
    react_call(r, node, WIRE_Agent_Terminate, &req, j->id, j->start_no, j->spec->uid, on_terminated, call);
}
