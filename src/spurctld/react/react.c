/* SPDX-License-Identifier: Apache-2.0
 *
 * An *effort* is what we are doing about one run: launching it on all its nodes, or ending it on those that are not
 * clean. At most one a job; an ending replaces a launch. Every step looks the job up again: what it finds decides, and
 * an effort whose run is not in that state any more just goes. One goes on until the state says that it is over: a
 * proposal that was refused (a full disk) is made again.
 *
 *     EV_JOB_STARTED ─► load blobs ─► Launch to every node but the first ─► to the first ─┬─ all said yes ─► propose RUNNING
 *                                       │ again until launch_timeout     runs the script  └─ one said no ──► propose UNDO
 *     EV_JOB_ENDING ──► Terminate to every node that is not done, again until its report came
 */
#include "spurctld/react/react.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "spurctld/lead/lead.h"
#include "spurctld/react/call.h"
#include "wire/messages.h"

#define DEFAULT_LAUNCH_TIMEOUT_SECS 30
#define RETRY_FIRST_MS 250u
#define RETRY_MOST_MS 10000u
#define ENDING_AGAIN_MS 15000u /* an accepted Terminate is said again until the report is there */

struct effort {
    struct react *re;
    uint32_t job_id, start_no;
    bool is_ending;
    bool is_dead; /* replaced or done, but callbacks are still to come */
    unsigned out;   /* callbacks that will still come */
    unsigned calls; /* those of agents among them */
    unsigned loads; /* those of the blob store */
    uint32_t n_nodes;
    bool *confirmed; /* launch: per node of the job, in its order */
    char *failure;   /* launch: why it is to be undone */
    bool is_late;     /* launch: it failed because nodes did not answer */
    bool is_proposed; /* launch: its outcome is on its way into the log */
    int64_t begun_ms;
    uint64_t wait_ms;  /* before the next round, when this one fails */
    uint64_t pause_ms; /* not 0: this one has failed, and the next is so far off */
    struct host_timer *timer;
    int64_t due_ms; /* of the timer */
    struct buf script, env;
};

struct react {
    struct room *room;
    struct map64 efforts; /* job id → struct effort */
    struct react_stats stats;
};

static void try_round(struct effort *ef);

struct react *react_new(struct room *r) {
    struct react *re = xnew(struct react);
    re->room = r;
    return re;
}

static void effort_free(struct effort *ef) {
    buf_fini(&ef->script);
    buf_fini(&ef->env);
    free(ef->failure);
    free(ef->confirmed);
    free(ef);
}

/* Out of the table; freed when the last callback is back. */
static void effort_drop(struct effort *ef) {
    struct host *h = ef->re->room->host;
    if (map64_get(&ef->re->efforts, ef->job_id) == ef)
        map64_del(&ef->re->efforts, ef->job_id);
    h->timer_stop(h->impl, ef->timer);
    ef->timer = NULL;
    ef->is_dead = true;
    if (!ef->out)
        effort_free(ef);
}

/* A callback came back: false when the effort is gone and nothing more may be done with it. */
static bool effort_back(struct effort *ef) {
    ef->out--;
    if (!ef->is_dead)
        return true;
    if (!ef->out)
        effort_free(ef);
    return false;
}

void react_end(struct react *re) {
    size_t cursor = 0;
    void *ef;
    while (cursor = 0, map64_next(&re->efforts, &cursor, NULL, &ef))
        effort_drop(ef);
}

void react_free(struct react *re) {
    if (!re)
        return;
    react_end(re);
    map64_fini(&re->efforts);
    free(re);
}

static const struct job *job_of(const struct effort *ef) {
    struct view v;
    state_peek(ef->re->room->state, &v);
    const struct job *j = view_job(&v, ef->job_id);
    return j && j->start_no == ef->start_no ? j : NULL;
}

static const struct node *node_of(const struct effort *ef, uint32_t node_id) {
    struct view v;
    state_peek(ef->re->room->state, &v);
    return view_node(&v, node_id);
}

static void on_timer(void *arg) {
    struct effort *ef = arg;
    ef->timer = NULL;
    try_round(ef);
}

static int64_t now_ms(const struct effort *ef) {
    struct host *h = ef->re->room->host;
    return h->now_ms(h->impl);
}

/* Sooner counts. */
static void again_in(struct effort *ef, uint64_t delay_ms) {
    struct host *h = ef->re->room->host;
    int64_t due_ms = now_ms(ef) + (int64_t)delay_ms;
    if (ef->timer && ef->due_ms <= due_ms)
        return;
    h->timer_stop(h->impl, ef->timer);
    ef->due_ms = due_ms;
    ef->timer = h->timer_start(h->impl, delay_ms, on_timer, ef);
}

/* However many fail in a round, the pause doubles once. */
static void back_off(struct effort *ef) {
    if (!ef->pause_ms) {
        ef->pause_ms = ef->wait_ms;
        ef->wait_ms = MIN(ef->wait_ms * 2, (uint64_t)RETRY_MOST_MS);
    }
    again_in(ef, ef->pause_ms);
}

/* Whether a refused proposal is worth making again: not when the state has gone on, or we don't lead. */
static bool is_worth_repeating(int code) {
    return code && code != E_STALE && code != E_NOT_LEADER && code != E_STOPPING;
}

/* ---- launching ---- */

struct node_call {
    struct effort *ef;
    uint32_t index; /* of the node in the job */
    uint32_t node_id;
};

static void on_outcome(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct effort *ef = arg;
    if (!effort_back(ef))
        return;
    ef->is_proposed = false;
    if (!is_worth_repeating(code)) {
        effort_drop(ef);
        return;
    }
    log_warn("job %u start %u: its %s was refused, will be tried again: %s", ef->job_id, ef->start_no,
             ef->failure ? "failure" : "start", why ? why->text : err_sentence(code));
    back_off(ef);
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
    const struct job *j = job_of(ef);
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

static bool is_transport(int code) {
    return code == E_UNREACHABLE || code == E_DEADLINE || code == E_BUSY || code == E_CANCELLED || code == E_STOPPING;
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
            try_round(ef);
        return;
    }
    if (is_transport(code)) {
        back_off(ef);
        return;
    }
    const struct node *node = node_of(ef, node_id);
    char text[ERR_TEXT_MAX + 300];
    snprintf(text, sizeof(text), "%s: %s", node ? node->name : "?", why ? why->text : err_sentence(code));
    give_up_launch(ef, text);
}

static void launch_on(struct effort *ef, const struct job *j, uint32_t index) {
    struct room *r = ef->re->room;
    const struct node *node = node_of(ef, j->nodes[index].node_id);
    if (!node)
        return;
    const struct rconf *conf = room_rconf(r);
    struct launch_request req = {
        .job_id = j->id,
        .start_no = j->start_no,
        .spec = j->spec,
        .nodes = j->nodes,
        .n_nodes = j->n_nodes,
        .node_index = index,
        .script = index ? NULL : ef->script.p,
        .n_script = index ? 0 : (uint32_t)ef->script.n,
        .env = index ? NULL : ef->env.p,
        .n_env = index ? 0 : (uint32_t)ef->env.n,
        .time_limit_min = j->time_limit_min,
        .start_unix = j->start_ms / 1000,
        .cluster_name = conf->cluster_name,
        .sluid = j->sluid,
        .partition = j->partition,
        .kill_wait_secs = conf->kill_wait_secs,
        .restarts = j->restarts,
        .batch_host = j->nodes[0].name,
        .node_name = node->name,
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
    return ef->begun_ms + most_ms - now_ms(ef);
}

static void ask_nodes(struct effort *ef, const struct job *j) {
    ef->pause_ms = 0;
    for (uint32_t i = 1; i < j->n_nodes; i++)
        if (!ef->confirmed[i])
            launch_on(ef, j, i);
    /* The first one runs the script: last, so that nothing has run of a start that must be undone. */
    if (is_confirmed_from(ef, 1))
        launch_on(ef, j, 0);
}

static void launch_round(struct effort *ef, const struct job *j) {
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
    int64_t left_ms = launch_left_ms(ef);
    if (left_ms <= 0) {
        ef->is_late = !ef->loads;
        give_up_launch(ef, "the nodes could not be reached in time");
        return;
    }
    again_in(ef, (uint64_t)left_ms);
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
        try_round(ef);
}

static void on_script(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct effort *ef = arg;
    blob_back(ef, &ef->script, code, why, p, n);
}

static void on_env(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct effort *ef = arg;
    blob_back(ef, &ef->env, code, why, p, n);
}

static void load_blobs(struct effort *ef, const struct job *j) {
    struct host *h = ef->re->room->host;
    if (j->spec->n_script_hash != 32 || j->spec->n_env_hash != 32) {
        give_up_launch(ef, "the job has no script");
        return;
    }
    ef->out += 2;
    ef->loads += 2;
    h->load(h->impl, j->spec->script_hash, on_script, ef);
    h->load(h->impl, j->spec->env_hash, on_env, ef);
}

/* ---- ending ---- */

static void on_done_proposed(void *arg, int code, const struct err *why, uint64_t index, const void *answer,
                             size_t n) {
    struct effort *ef = arg;
    if (effort_back(ef) && is_worth_repeating(code))
        back_off(ef);
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
    again_in(ef, ENDING_AGAIN_MS);
    if (code == E_NOT_FOUND || code == E_JOB_ID) {
        report_for(ef, node_id);
        return;
    }
    if (code && !is_transport(code))
        log_warn("job %u start %u: terminate refused: %s", ef->job_id, ef->start_no, why ? why->text : "?");
    if (!code)
        return;
    back_off(ef);
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
    const struct node *node = node_of(ef, jn->node_id);
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

static void ending_round(struct effort *ef, const struct job *j) {
    if (!j || !j->completing) {
        effort_drop(ef);
        return;
    }
    if (ef->calls) { /* one round at a time */
        again_in(ef, ef->wait_ms);
        return;
    }
    ef->pause_ms = 0;
    for (uint32_t i = 0; i < j->n_nodes; i++)
        if (!j->nodes[i].is_done)
            terminate_on(ef, j, &j->nodes[i]);
}

/* ---- both ---- */

static void try_round(struct effort *ef) {
    if (ef->is_ending)
        ending_round(ef, job_of(ef));
    else
        launch_round(ef, job_of(ef));
}

static void begin_effort(struct react *re, const struct job *j, bool is_ending) {
    struct effort *old = map64_get(&re->efforts, j->id);
    if (old && old->start_no == j->start_no && old->is_ending == is_ending) {
        try_round(old);
        return;
    }
    if (old)
        effort_drop(old);
    struct effort *ef = xnew(struct effort);
    *ef = (struct effort){
        .re = re,
        .job_id = j->id,
        .start_no = j->start_no,
        .is_ending = is_ending,
        .n_nodes = j->n_nodes,
        .confirmed = xcalloc(j->n_nodes + 1, sizeof(bool)),
        .begun_ms = re->room->host->now_ms(re->room->host->impl),
        .wait_ms = RETRY_FIRST_MS,
    };
    map64_put(&re->efforts, j->id, ef);
    ef->out++; /* it may come to its end while it begins */
    if (!is_ending)
        load_blobs(ef, j);
    if (effort_back(ef))
        try_round(ef);
}

static void derive(struct react *re, const struct job *j) {
    if (j->completing)
        begin_effort(re, j, true);
    else if (j->configuring)
        begin_effort(re, j, false);
}

void react_begin(struct react *re) {
    struct view v;
    const struct job *j;
    state_peek(re->room->state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        derive(re, j);
}

void react_on_event(struct react *re, const struct event *ev) {
    struct view v;
    state_peek(re->room->state, &v);
    const struct job *j = ev->job_id ? view_job(&v, ev->job_id) : NULL;
    struct effort *ef = ev->job_id ? map64_get(&re->efforts, ev->job_id) : NULL;
    if (ev->kind == EV_JOB_STARTED || ev->kind == EV_JOB_ENDING) {
        if (j && j->start_no == ev->start_no)
            derive(re, j);
    } else if (ef && (!j || !job_holds_nodes(j))) {
        effort_drop(ef);
    }
}

static void on_signalled(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    if (code)
        log_info("signal not delivered: %s", why ? why->text : err_sentence(code));
}

void react_signal(struct react *re, const struct job *j, uint32_t signal, bool batch_only) {
    struct view v;
    state_peek(re->room->state, &v);
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        const struct node *node = view_node(&v, j->nodes[i].node_id);
        if (!node || j->nodes[i].is_done || (batch_only && i))
            continue;
        struct signal_request req = {j->id, j->start_no, signal, batch_only, node->name, j->spec->uid};
        react_call(re->room, node, WIRE_Agent_Signal, &req, j->id, j->start_no, j->spec->uid, on_signalled, NULL);
    }
}

struct react_stats react_stats(const struct react *re) {
    struct react_stats st = re->stats;
    st.in_flight = re->efforts.n;
    return st;
}
