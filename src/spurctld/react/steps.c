/* SPDX-License-Identifier: Apache-2.0
 *
 *     EV_STEP_ENDING ──► Terminate of the step to every node that is not done with it, again until its report came
 *
 * A node that has not got the step (its client never came) says so: that is the report. What ends with its whole job is
 * the job's ending.
 */
#include "base/log.h"
#include "base/mem.h"
#include "spurctld/react/call.h"
#include "spurctld/react/effort.h"
#include "wire/messages.h"

#define ENDING_AGAIN_MS 15000u
#define WAIT_STATUS_KILLED 9u

static void on_done_proposed(void *arg, int code, const struct err *why, uint64_t index, const void *answer,
                             size_t n) {
    struct effort *ef = arg;
    if (effort_back(ef) && effort_is_worth_repeating(code))
        effort_back_off(ef);
}

static void report_for(struct effort *ef, uint32_t node_id) {
    struct room *r = ef->re->room;
    struct cmd_step_done done = {.job_id = ef->job_id,
                                 .start_no = ef->start_no,
                                 .step_id = ef->step_id,
                                 .node_id = node_id,
                                 .wait_status = WAIT_STATUS_KILLED,
                                 .never_started = true,
                                 .end_ms = r->host->unix_ms(r->host->impl)};
    ef->out++;
    room_propose(r, CMD_STEP_DONE, &done, 0, NULL, on_done_proposed, ef);
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
    if (code == E_NOT_FOUND || code == E_JOB_ID || code == E_STEP_ID)
        report_for(ef, node_id);
    else if (code)
        effort_back_off(ef);
    if (code && !effort_is_transport(code) && code != E_NOT_FOUND && code != E_JOB_ID && code != E_STEP_ID)
        log_warn("step %u.%u: terminate refused: %s", ef->job_id, ef->step_id, why ? why->text : "?");
}

static const char *why_ending(const struct step *st) {
    return st->end_uid ? "DUE to SIGNAL Killed" : "DUE TO TIME LIMIT";
}

static void terminate_on(struct effort *ef, const struct job *j, const struct step *st, const struct step_node *sn) {
    struct room *r = ef->re->room;
    const struct node *node = effort_node(ef, sn->node_id);
    if (!node)
        return;
    struct terminate_request req = {
        .job_id = j->id,
        .start_no = j->start_no,
        .kill_wait_secs = st->end_uid ? 0 : room_rconf(r)->kill_wait_secs, /* as Slurm: a cancelled step is killed at once */
        .why = why_ending(st),
        .node_name = node->name,
        .uid = j->spec->uid,
        .at_unix = st->kill_ms / 1000,
        .step_id = st->id + 1,
    };
    struct node_call *call = xnew(struct node_call);
    *call = (struct node_call){ef, 0, node->id};
    ef->out++;
    ef->calls++;
    ef->re->stats.terminates++;
    react_call(r, node, WIRE_Agent_Terminate, &req, j->id, j->start_no, j->spec->uid, on_terminated, call);
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
    ef->pause_ms = 0;
    for (uint32_t i = 0; i < st->n_nodes; i++)
        if (!st->nodes[i].is_done)
            terminate_on(ef, j, st, &st->nodes[i]);
}
