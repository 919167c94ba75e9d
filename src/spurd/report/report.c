/* SPDX-License-Identifier: Apache-2.0
 *
 *     AWAY ── Register answered ──► THERE: heartbeats, reports
 *      ▲                              │
 *      └── "register again", an error that says that we are not known, several calls without answer
 *
 * Nothing is lost while the controllers are away: what ended waits in the table, and on disk.
 *
 * Any controller will do: it hands on what is said, and the channel (io/rpc) leaves one that hangs or finds no leader for
 * the next. A new leader has the nodes in its state, so agents that go on with heartbeats need not register anew. All
 * that is said is spread in time: each agent's interval is a little shorter than it was told, by chance.
 */
#include "spurd/report/report.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "spurd/report/sign.h"
#include "wire/methods.h"

#define RETRY_MIN_MS 50
#define RETRY_MAX_MS 3000
#define HEARTBEAT_MS 10000 /* when the controller doesn't say */
#define TIMEOUT_MS 10000
#define IN_FLIGHT_MAX 64

struct report {
    struct host *host;
    struct table *table;
    struct report_conf conf;
    bool is_there, stopped;
    bool calling;               /* a Register or Heartbeat is under way */
    struct host_timer *timer;   /* of the next one */
    struct host_timer *retry;   /* of reports that failed */
    uint32_t retry_ms, failures;
    uint32_t heartbeat_ms;
    uint64_t runs_told;         /* hash of the runs that the controller has heard of */
    bool send_runs;
    uint32_t in_flight;
    bool was_away_logged, was_removed;
    bool says_goodbye;          /* the controller wants to know when we stop */
    void (*on_left)(void *arg);
};

static void on_timer(void *arg);
static void send_reports(struct report *r);

static void call(struct report *r, enum wire_method m, const void *record, uint64_t timeout_ms, host_reply_fn fn,
                 void *arg) {
    const struct wire_method_info *info = wire_method(m);
    struct buf body = {0};
    auto_str metadata = {0};
    rec_encode(info->request(), record, &body);
    sign_call(r->host, r->conf.key, r->conf.node->name, info->path, body.p, body.n, &metadata);
    r->host->send(r->host->impl, r->conf.controllers, info->path, metadata.p, body, timeout_ms, fn, arg);
}

static void set_timer(struct report *r, uint64_t delay_ms) {
    if (r->stopped)
        return;
    r->host->timer_stop(r->host->impl, r->timer);
    r->timer = r->host->timer_start(r->host->impl, delay_ms, on_timer, r);
}

/* Doubled each time, and spread so that ten thousand agents don't come back in one moment. */
static uint64_t next_delay(struct report *r) {
    r->retry_ms = MIN(MAX(r->retry_ms * 2, RETRY_MIN_MS), RETRY_MAX_MS);
    return r->retry_ms / 2 + r->host->random(r->host->impl) % (r->retry_ms / 2 + 1);
}

/* Ten thousand that were thrown together by one event drift apart again. */
static uint64_t until_next(const struct report *r) {
    return r->heartbeat_ms - r->host->random(r->host->impl) % (r->heartbeat_ms / 8 + 1);
}

/* ---- registration ---- */

static void away(struct report *r, const struct err *why) {
    r->is_there = false;
    if (!r->was_away_logged)
        log_warn("the controller at %s does not take us: %s; trying again", r->conf.controllers, why->text);
    r->was_away_logged = true;
    set_timer(r, next_delay(r));
}

static void registered(struct report *r, const struct register_reply *reply) {
    r->is_there = true;
    r->says_goodbye = reply->goodbye;
    r->was_removed = false;
    r->was_away_logged = false;
    r->failures = 0;
    r->retry_ms = 0;
    r->heartbeat_ms = reply->heartbeat_ms ? reply->heartbeat_ms : HEARTBEAT_MS;
    log_info("registered as node %s (id %u) of cluster %s", r->conf.node->name, reply->node_id,
             reply->cluster_name ? reply->cluster_name : "?");
    table_end_strays(r->table, reply->end, reply->n_end);
    r->conf.on_registered(r->conf.arg, reply);
    set_timer(r, until_next(r));
    send_reports(r);
}

static void on_register(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct report *r = arg;
    auto_arena a = {0};
    struct register_reply got;
    struct err e;
    r->calling = false;
    if (r->stopped)
        return;
    if (!code)
        code = rec_decode(register_reply_rec(), reply, n, &a, &got, &e);
    else
        e = *why;
    if (!code)
        code = r->conf.on_key(r->conf.arg, got.controller_key, got.n_controller_key, &e);
    if (!code && got.removed) {
        table_end_strays(r->table, got.end, got.n_end);
        r->was_away_logged &= r->was_removed; /* it is another reason than the one that may have been told */
        r->was_removed = true;
        code = err_set(&e, E_ADMISSION, "this node was removed from the cluster; it joins again when spurd is started anew");
    }
    if (code)
        away(r, &e);
    else
        registered(r, &got);
}

static void send_register(struct report *r) {
    auto_arena a = {0};
    struct register_request q = {.node = r->conf.node, .join_token = r->conf.join_token};
    q.n_runs = table_refs(r->table, &a, &q.runs);
    r->runs_told = table_refs_hash(r->table);
    r->calling = true;
    call(r, WIRE_Registry_Register, &q, TIMEOUT_MS, on_register, r);
}

/* ---- heartbeats ---- */

/* Errors that mean: this controller doesn't know us. */
static bool is_unknown(int code) {
    return code == E_NOT_FOUND || code == E_NODE_KEY || code == E_NO_PROOF || code == E_BAD_PROOF;
}

static void heartbeat_failed(struct report *r, int code, const struct err *why) {
    r->runs_told = 0;
    if (is_unknown(code)) {
        away(r, why);
        return;
    }
    if (++r->failures == 3)
        log_warn("the controller at %s does not answer: %s", r->conf.controllers, why->text);
    set_timer(r, MIN(next_delay(r), r->heartbeat_ms));
}

static void on_heartbeat(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct report *r = arg;
    auto_arena a = {0};
    struct heartbeat_reply got;
    struct err e;
    r->calling = false;
    if (r->stopped)
        return;
    if (!code) {
        code = rec_decode(heartbeat_reply_rec(), reply, n, &a, &got, &e);
        why = &e;
    }
    if (code) {
        heartbeat_failed(r, code, why);
        return;
    }
    r->failures = 0;
    r->retry_ms = 0;
    r->send_runs = got.send_runs;
    table_end_strays(r->table, got.end, got.n_end);
    if (got.register_again) {
        r->is_there = false;
        set_timer(r, 0);
        return;
    }
    set_timer(r, got.send_runs ? 0 : until_next(r));
    send_reports(r);
}

static void send_heartbeat(struct report *r) {
    auto_arena a = {0};
    struct heartbeat_request q = {.name = r->conf.node->name,
                                  .boot_id = r->conf.node->boot_id,
                                  .agent_start_unix = r->conf.node->agent_start_unix,
                                  .runs_hash = table_refs_hash(r->table)};
    r->conf.sample(r->conf.arg, &q.cpu_load_hundredths, &q.free_mem_mb);
    q.has_runs = r->send_runs || q.runs_hash != r->runs_told;
    if (q.has_runs)
        q.n_runs = table_refs(r->table, &a, &q.runs);
    r->runs_told = q.runs_hash;
    r->calling = true;
    call(r, WIRE_Registry_Heartbeat, &q, TIMEOUT_MS, on_heartbeat, r);
}

static void on_timer(void *arg) {
    struct report *r = arg;
    r->timer = NULL;
    if (r->calling || r->stopped)
        return;
    if (r->is_there)
        send_heartbeat(r);
    else
        send_register(r);
}

/* ---- ends of runs ---- */

struct sent {
    struct report *r;
    uint64_t key;
    bool stays;
};

/* Whether asking again can't change the answer. A controller that doesn't know the run has no use for its end. */
static bool is_final(int code) {
    return !code || code == E_STALE || code == E_JOB_ID || code == E_JOB_DONE || code == E_JOB_STATE ||
           code == E_EXISTS || code == E_STEP_ID || code == E_METHOD;
}

static void on_retry(void *arg) {
    struct report *r = arg;
    r->retry = NULL;
    send_reports(r);
}

static void on_reported(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct sent *s = arg;
    struct report *r = s->r;
    uint64_t key = s->key;
    bool stays = s->stays;
    (void)reply, (void)n;
    free(s);
    r->in_flight--;
    struct table_ended *en = r->stopped ? NULL : table_find_ended(r->table, key); /* stopped: the table may be gone */
    if (!en || en->stays != stays) /* of a run that stayed, and is over by now: that is another report */
        return;
    en->in_flight = false;
    if (is_final(code)) {
        if (code)
            log_warn("%s: the controller has no use for its end: %s", run_name(key).text, why->text);
        (stays ? table_told_stay : table_reported)(r->table, key);
        send_reports(r);
        return;
    }
    if (is_unknown(code) && r->is_there) {
        r->is_there = false;
        set_timer(r, 0);
    } else if (!r->retry) {
        r->retry = r->host->timer_start(r->host->impl, next_delay(r), on_retry, r);
    }
}

static void call_report(struct report *r, struct table_ended *en, enum wire_method m, const void *q) {
    struct sent *s = xnew(struct sent);
    *s = (struct sent){r, en->key, en->stays};
    en->in_flight = true;
    r->in_flight++;
    call(r, m, q, TIMEOUT_MS, on_reported, s);
}

static void send_one(struct report *r, struct table_ended *en) {
    const struct step_result *res = en->result;
    struct run_report q = {.name = r->conf.node->name,
                           .job_id = run_job(en->key),
                           .start_no = run_start_no(en->key),
                           .wait_status = res->wait_status,
                           .out_of_memory = res->out_of_memory,
                           .never_started = res->never_started,
                           .text = res->text,
                           .start_ms = res->start_ms,
                           .end_ms = res->end_ms,
                           .max_rss_kb = res->max_rss_kb,
                           .user_cpu_us = res->user_cpu_us,
                           .sys_cpu_us = res->sys_cpu_us,
                           .drain_node = res->drain_node,
                           .node_failed = res->node_failed,
                           .stays = en->stays};
    call_report(r, en, WIRE_Registry_Report, &q);
}

static void send_step(struct report *r, struct table_ended *en) {
    const struct step_result *res = en->result;
    struct step_report q = {.name = r->conf.node->name,
                            .job_id = run_job(en->key),
                            .start_no = run_start_no(en->key),
                            .step_id = run_step(en->key) - 1,
                            .wait_status = res->wait_status,
                            .out_of_memory = res->out_of_memory,
                            .never_started = res->never_started,
                            .text = res->text,
                            .start_ms = res->start_ms,
                            .end_ms = res->end_ms,
                            .max_rss_kb = res->max_rss_kb,
                            .user_cpu_us = res->user_cpu_us,
                            .sys_cpu_us = res->sys_cpu_us};
    call_report(r, en, WIRE_Registry_StepReport, &q);
}

/* Whether a step's end is yet to be taken by the controller: of this run, or of any (0). */
static bool owes_step(struct report *r, uint64_t run) {
    size_t cursor = 0;
    struct table_ended *en;
    while ((en = table_next_ended(r->table, &cursor)))
        if (run_step(en->key) &&
            (!run || (run_job(en->key) == run_job(run) && run_start_no(en->key) == run_start_no(run))))
            return true;
    return false;
}

/* The end of a job ends what it has of steps: theirs are told first, as their own exit codes would be lost. */
static void send_reports(struct report *r) {
    size_t cursor = 0;
    struct table_ended *en;
    if (r->stopped || !r->is_there || r->retry)
        return;
    bool any_step = owes_step(r, 0);
    while (r->in_flight < IN_FLIGHT_MAX && (en = table_next_ended(r->table, &cursor))) {
        if (en->in_flight)
            continue;
        if (run_step(en->key))
            send_step(r, en);
        else if (!any_step || !owes_step(r, en->key))
            send_one(r, en);
    }
}

/* ---- life ---- */

struct report *report_new(struct host *h, struct table *t, const struct report_conf *conf) {
    struct report *r = xnew(struct report);
    r->host = h;
    r->table = t;
    r->conf = *conf;
    r->heartbeat_ms = HEARTBEAT_MS;
    return r;
}

void report_start(struct report *r) {
    set_timer(r, 0);
}

void report_changed(struct report *r) {
    send_reports(r);
}

static void on_left(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct report *r = arg;
    (void)code, (void)why, (void)reply, (void)n;
    r->on_left(r->conf.arg);
}

bool report_leave(struct report *r, void (*done)(void *arg)) {
    struct leave_request q = {.name = r->conf.node->name,
                              .boot_id = r->conf.node->boot_id,
                              .agent_start_unix = r->conf.node->agent_start_unix};
    if (r->stopped || !r->is_there || !r->says_goodbye)
        return false;
    r->on_left = done;
    call(r, WIRE_Registry_Leave, &q, TIMEOUT_MS, on_left, r);
    return true;
}

void report_stop(struct report *r) {
    r->stopped = true;
    r->host->timer_stop(r->host->impl, r->timer);
    r->host->timer_stop(r->host->impl, r->retry);
    r->timer = r->retry = NULL;
}

void report_free(struct report *r) {
    free(r);
}
