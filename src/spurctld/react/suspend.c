/* SPDX-License-Identifier: Apache-2.0
 *
 * Suspend or resume to every node of a run, again until each has confirmed what the state says by then.
 */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "spurctld/react/call.h"
#include "spurctld/react/effort.h"
#include "wire/messages.h"

static void on_answer(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct node_call *call = arg;
    struct effort *ef = call->ef;
    uint32_t index = call->index;
    bool was_stop = call->node_id;
    free(call);
    ef->calls--;
    if (!effort_back(ef))
        return;
    if (!code || code == E_NOT_FOUND || code == E_JOB_ID) { /* nothing of it is there */
        ef->confirmed[index] |= was_stop == ef->is_stop;
        if (!ef->calls)
            effort_round(ef);
        return;
    }
    if (!effort_is_transport(code))
        log_warn("job %u start %u: %s refused: %s", ef->job_id, ef->start_no, was_stop ? "suspend" : "resume",
                 why ? why->text : "?");
    effort_back_off(ef);
}

static void ask(struct effort *ef, const struct job *j, uint32_t index) {
    const struct node *node = effort_node(ef, j->nodes[index].node_id);
    if (!node)
        return;
    struct suspend_run_request req = {.job_id = j->id,
                                      .start_no = j->start_no,
                                      .node_name = node->name,
                                      .uid = j->spec->uid,
                                      .resume = !ef->is_stop,
                                      .nonce = ef->re->room->host->random(ef->re->room->host->impl)};
    struct node_call *call = xnew(struct node_call);
    *call = (struct node_call){ef, index, ef->is_stop};
    ef->out++;
    ef->calls++;
    react_call(ef->re->room, node, WIRE_Agent_Suspend, &req, j->id, j->start_no, j->spec->uid, on_answer, call);
    log_info("sent SuspendJob to node %s: job_id=%u resume=%s", node->name, j->id, req.resume ? "true" : "false");
}

void suspend_round(struct effort *ef, const struct job *j) {
    bool is_stop = j && j->state == JOB_SUSPENDED;
    if (!j || j->completing || (j->state != JOB_RUNNING && !is_stop)) {
        effort_drop(ef);
        return;
    }
    if (ef->calls) { /* one round at a time; the last answer looks again */
        return;
    }
    bool is_smaller = ef->n_nodes != j->n_nodes; /* others stand at their places now */
    ef->n_nodes = MIN(ef->n_nodes, j->n_nodes);
    if (is_stop != ef->is_stop || is_smaller)
        memset(ef->confirmed, 0, ef->n_nodes * sizeof(*ef->confirmed));
    ef->is_stop = is_stop;
    ef->pause_ms = 0;
    bool is_done = true;
    for (uint32_t i = 0; i < j->n_nodes && i < ef->n_nodes; i++) {
        if (ef->confirmed[i] || j->nodes[i].is_done)
            continue;
        ask(ef, j, i);
        is_done = false;
    }
    if (is_done)
        effort_drop(ef);
}
