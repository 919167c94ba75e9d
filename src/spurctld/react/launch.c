/* SPDX-License-Identifier: Apache-2.0
 *
 *     EV_JOB_STARTED ─► load blobs ─► Launch to every node but the first ─► to the first ─┬─ all said yes ─► RUNNING
 *                                       │ again until launch_timeout     runs the script  └─ one said no ──► UNDO
 */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "spurctld/lead/lead.h"
#include "spurctld/react/call.h"
#include "spurctld/react/effort.h"
#include "wire/messages.h"

#define DEFAULT_LAUNCH_TIMEOUT_SECS 30

static void on_outcome(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct effort *ef = arg;
    if (!effort_back(ef))
        return;
    ef->is_proposed = false;
    if (!effort_is_worth_repeating(code)) {
        effort_drop(ef);
        return;
    }
    log_warn("job %u start %u: its %s was refused, will be tried again: %s", ef->job_id, ef->start_no,
             ef->failure ? "failure" : "start", why ? why->text : err_sentence(code));
    effort_back_off(ef);
}

/* Those that were asked and did not answer: of the first only when all others had. */
static uint32_t find_mute(const struct effort *ef, const struct job *j, uint32_t *out) {
    uint32_t n = 0;
    for (uint32_t i = 1; i < ef->n_nodes; i++)
        if (!ef->confirmed[i])
            out[n++] = j->nodes[i].node_id;
    if (!n && !ef->confirmed[0])
        out[n++] = j->nodes[0].node_id;
    for (uint32_t i = 0; i < n; i++)
        lead_shun(ef->re->room->lead, out[i]);
    return n;
}

static void propose_undo(struct effort *ef) {
    const struct job *j = effort_job(ef);
    autofree uint32_t *mute = xcalloc(ef->n_nodes + 1, sizeof(*mute));
    struct cmd_undo cmd = {.job_id = ef->job_id, .start_no = ef->start_no, .text = ef->failure, .mute_nodes = mute};
    if (j && ef->is_late)
        cmd.n_mute_nodes = find_mute(ef, j, mute);
    room_propose(ef->re->room, CMD_UNDO, &cmd, 0, NULL, on_outcome, ef);
}

static void propose_outcome(struct effort *ef) {
    struct room *r = ef->re->room;
    ef->is_proposed = true;
    ef->pause_ms = 0;
    ef->out++;
    if (ef->failure) {
        propose_undo(ef);
    } else {
        struct cmd_running cmd = {ef->job_id, ef->start_no};
        room_propose(r, CMD_RUNNING, &cmd, 0, NULL, on_outcome, ef);
    }
}

static void give_up_launch(struct effort *ef, const char *text) {
    if (ef->failure || ef->is_proposed)
        return;
    ef->failure = xstrdup(text);
    ef->re->stats.launch_failures++;
    log_warn("job %u start %u: launch failed: %s", ef->job_id, ef->start_no, text);
    propose_outcome(ef);
}

static bool is_confirmed_from(const struct effort *ef, uint32_t first) {
    for (uint32_t i = first; i < ef->n_nodes; i++)
        if (!ef->confirmed[i])
            return false;
    return true;
}

static void on_launched(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct node_call *call = arg;
    struct effort *ef = call->ef;
    uint32_t index = call->index, node_id = call->node_id;
    free(call);
    ef->calls--;
    if (!effort_back(ef))
        return;
    if (!code) {
        ef->confirmed[index] = true;
        if (is_confirmed_from(ef, 1))
            effort_round(ef);
        return;
    }
    if (effort_is_transport(code) || code == E_STALE) { /* stale: it is about to register anew, see fail_rebooted */
        effort_back_off(ef);
        return;
    }
    const struct node *node = effort_node(ef, node_id);
    char text[ERR_TEXT_MAX + 300];
    snprintf(text, sizeof(text), "%s: %s", node ? node->name : "?", why ? why->text : err_sentence(code));
    if (code != E_CREDENTIAL) {
        give_up_launch(ef, text);
        return;
    }
    /* An agent that has not registered yet knows no key. */
    free(ef->excuse);
    ef->excuse = xstrdup(text);
    effort_back_off(ef);
}

/* Which tasks the array had is kept by its own record; the environment of each task tells. `spec` and `more` are room for
 * what is returned. */
static const struct job_spec *spec_to_send(struct room *r, const struct job *j, struct job_spec *spec,
                                           struct job_more *more) {
    struct view v;
    state_peek(r->state, &v);
    const struct job *head = j->array ? view_job(&v, j->array->job_id) : NULL;
    const struct part *p = j->partition ? view_find_part(&v, j->partition) : NULL;
    const struct job_spec *settled = p ? part_settle(p, j->spec, spec, more) : j->spec;
    if (!head || job_spec_more(j->spec)->n_array_ranges)
        return settled;
    *spec = *settled;
    *more = *job_spec_more(settled);
    more->array_ranges = job_spec_more(head->spec)->array_ranges;
    more->n_array_ranges = job_spec_more(head->spec)->n_array_ranges;
    spec->more = more;
    return spec;
}

static void launch_on(struct effort *ef, const struct job *j, uint32_t index) {
    struct job_spec spec;
    struct job_more more;
    struct room *r = ef->re->room;
    const struct node *node = effort_node(ef, j->nodes[index].node_id);
    if (!node)
        return;
    const struct rconf *conf = room_rconf(r);
    bool everywhere = job_rare_of(j)->everywhere, runs = everywhere || !index;
    const struct node *first = everywhere ? effort_node(ef, j->nodes[0].node_id) : NULL;
    struct launch_request req = {
        .job_id = j->id,
        .start_no = j->start_no,
        .spec = spec_to_send(r, j, &spec, &more),
        .nodes = j->nodes,
        .n_nodes = j->n_nodes,
        .node_index = index,
        .script = runs ? ef->script.p : NULL,
        .n_script = runs ? (uint32_t)ef->script.n : 0,
        .env = runs ? ef->env.p : NULL,
        .n_env = runs ? (uint32_t)ef->env.n : 0,
        .time_limit_min = j->time_limit_min,
        .start_unix = j->start_ms / 1000,
        .cluster_name = conf->cluster_name,
        .sluid = j->sluid,
        .partition = j->partition,
        .kill_wait_secs = conf->kill_wait_secs,
        .complete_wait_secs = conf->complete_wait_secs,
        .restarts = j->restarts,
        .batch_host = j->nodes[0].name,
        .node_name = node->name,
        .array = j->array,
        .everywhere = everywhere,
        .first_address = first ? first->address : NULL,
    };
    struct node_call *call = xnew(struct node_call);
    *call = (struct node_call){ef, index, node->id};
    ef->out++;
    ef->calls++;
    ef->re->stats.launches++;
    react_call(r, node, WIRE_Agent_Launch, &req, j->id, j->start_no, j->spec->uid, on_launched, call);
}

static int64_t launch_left_ms(const struct effort *ef) {
    const struct rconf *conf = room_rconf(ef->re->room);
    int64_t most_ms = 1000 * (int64_t)(conf->launch_timeout_secs ? conf->launch_timeout_secs
                                                                 : DEFAULT_LAUNCH_TIMEOUT_SECS);
    return ef->begun_ms + most_ms - effort_now_ms(ef);
}

static void ask_nodes(struct effort *ef, const struct job *j) {
    ef->pause_ms = 0;
    ef->may_run |= job_rare_of(j)->everywhere;
    for (uint32_t i = 1; i < j->n_nodes; i++)
        if (!ef->confirmed[i])
            launch_on(ef, j, i);
    /* The first one runs the script: last, so that nothing has run of a start that must be undone. */
    if (!is_confirmed_from(ef, 1))
        return;
    ef->may_run = true;
    launch_on(ef, j, 0);
}

/* A machine that was started anew since may have forgotten what it was asked before: it must not be asked again, for the
 * script may have run. Whether there is one. */
static bool fail_rebooted(struct effort *ef, const struct job *j) {
    struct room *r = ef->re->room;
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        const struct node *n = effort_node(ef, j->nodes[i].node_id);
        if (ef->confirmed[i] || !n || !j->nodes[i].boot || node_boot(n) == j->nodes[i].boot)
            continue;
        char sluid[SLUID_SIZE];
        lead_new_sluid(r, sluid);
        struct cmd_node_done done = {.job_id = j->id,
                                     .new_sluid = sluid,
                                     .start_no = j->start_no,
                                     .node_id = n->id,
                                     .node_failed = true,
                                     .never_started = (i && !job_rare_of(j)->everywhere) || !ef->may_run,
                                     .text = "the node was started anew",
                                     .end_ms = r->host->unix_ms(r->host->impl)};
        ef->is_proposed = true;
        ef->out++;
        room_propose(r, CMD_NODE_DONE, &done, 0, NULL, on_outcome, ef);
        return true;
    }
    return false;
}

void launch_round(struct effort *ef, const struct job *j) {
    if (!j || j->state != JOB_RUNNING || !j->configuring) {
        effort_drop(ef);
        return;
    }
    if (ef->is_proposed)
        return; /* on_outcome comes back here */
    for (uint32_t i = 0; i < j->n_nodes; i++)
        ef->confirmed[i] |= j->nodes[i].is_done; /* has reported already: it must not be asked again */
    if (ef->failure || is_confirmed_from(ef, 0)) {
        propose_outcome(ef);
        return;
    }
    if (fail_rebooted(ef, j))
        return;
    int64_t left_ms = launch_left_ms(ef);
    if (left_ms <= 0) {
        ef->is_late = !ef->loads && !ef->excuse;
        give_up_launch(ef, ef->excuse ? ef->excuse : "the nodes could not be reached in time");
        return;
    }
    effort_again_in(ef, (uint64_t)left_ms);
    if (!ef->loads && !ef->calls) /* one round at a time: the last answer decides about the next */
        ask_nodes(ef, j);
}

static void blob_back(struct effort *ef, struct buf *into, int code, const struct err *why, const void *p, size_t n) {
    ef->loads--;
    if (!effort_back(ef))
        return;
    if (code) {
        char text[ERR_TEXT_MAX + 64];
        snprintf(text, sizeof(text), "script or environment can't be read: %s", why ? why->text : err_sentence(code));
        give_up_launch(ef, text);
        return;
    }
    buf_add(into, p, n);
    if (!ef->loads)
        effort_round(ef);
}

static void on_script(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct effort *ef = arg;
    blob_back(ef, &ef->script, code, why, p, n);
}

static void on_env(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct effort *ef = arg;
    blob_back(ef, &ef->env, code, why, p, n);
}

void launch_load(struct effort *ef, const struct job *j) {
    struct host *h = ef->re->room->host;
    if (job_spec_more(j->spec)->interactive) /* an allocation: nothing to run */
        return;
    if (j->spec->n_script_hash != 32 || j->spec->n_env_hash != 32) {
        give_up_launch(ef, "the job has no script");
        return;
    }
    ef->out += 2;
    ef->loads += 2;
    h->load(h->impl, j->spec->script_hash, on_script, ef);
    h->load(h->impl, j->spec->env_hash, on_env, ef);
}
