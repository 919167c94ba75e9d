/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ask.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define TASKS_MOST 6u

/* ---- one request ---- */

static void send_ask(void *arg);

static bool is_transport(int code) {
    return code == E_DEADLINE || code == E_UNREACHABLE || code == E_NOT_LEADER || code == E_STOPPING || code == E_FULL;
}

static void on_answer(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct vask *a = arg;
    struct vclient *c = a->client;
    auto_arena arena = {0};
    struct submit_reply r;
    if (is_transport(code)) {
        vworld_at(c->conf.world, 50 + vworld_below(c->conf.world, 500), send_ask, a);
        return;
    }
    a->is_over = true;
    a->is_refused = code != 0;
    c->n_open--;
    if (!code && a->method == WIRE_Controller_Submit) {
        must(rec_decode(submit_reply_rec(), reply, n, &arena, &r, NULL) == 0 && r.job_id);
        a->job_id = r.job_id;
        vec_push(&c->jobs, r.job_id);
    }
    if (c->conf.answered)
        c->conf.answered(c->conf.arg, a, reply, n);
}

static void send_ask(void *arg) {
    struct vask *a = arg;
    struct vclient *c = a->client;
    struct host *h = vhost_host(c->host);
    struct buf body = {0};
    const char *address = c->conf.whither ? c->conf.whither(c->conf.arg, a) : "ctl";
    a->tries++;
    buf_add(&body, a->body.p, a->body.n);
    h->send(h->impl, address, wire_method(a->method)->path, a->uid, body, c->conf.call_ms, on_answer, a);
}

void vclient_ask(struct vclient *c, enum wire_method m, const void *record, uint32_t uid) {
    struct vask *a = xnew(struct vask);
    *a = (struct vask){.client = c, .method = m};
    snprintf(a->uid, sizeof(a->uid), "uid: %u\n", uid);
    rec_encode(wire_method(m)->request(), record, &a->body);
    vec_push(&c->asks, a);
    c->n_open++;
    send_ask(a);
}

void vclient_init(struct vclient *c, const struct vclient_conf *conf) {
    *c = (struct vclient){.conf = *conf};
    c->host = vhost_new(conf->world, &(struct vhost_conf){.address = "client"});
}

void vclient_fini(struct vclient *c) {
    vhost_free(c->host);
    for (size_t i = 0; i < c->asks.n; i++) {
        buf_fini(&c->asks.p[i]->body);
        free(c->asks.p[i]);
    }
    vec_fini(&c->asks);
    vec_fini(&c->jobs);
}

/* ---- what is asked ---- */

static uint32_t below(struct vclient *c, uint32_t n) {
    return (uint32_t)vworld_below(c->conf.world, n);
}

static bool chance(struct vclient *c, unsigned per_thousand) {
    return vworld_chance(c->conf.world, per_thousand);
}

static void new_token(struct vclient *c, uint8_t out[TOKEN_SIZE]) {
    for (size_t i = 0; i < TOKEN_SIZE; i += 8) {
        uint64_t x = vworld_random(c->conf.world);
        memcpy(out + i, &x, 8);
    }
}

static uint32_t some_job(struct vclient *c) {
    return c->jobs.n ? c->jobs.p[c->jobs.n - 1 - below(c, (uint32_t)MIN(c->jobs.n, 30))] : 1;
}

static struct array_range some_range(struct vclient *c, uint32_t first_most) {
    struct array_range r = {.first = below(c, first_most)};
    r.last = r.first + below(c, TASKS_MOST - r.first);
    return r;
}

/* How long a script runs and how it ends: agent.c reads it. */
static void write_script(struct vclient *c, char *out, size_t n) {
    bool is_long = chance(c, c->conf.chance_long);
    uint32_t ms = below(c, is_long ? c->conf.long_ms : c->conf.short_ms);
    uint32_t code = below(c, 3);
    snprintf(out, n, "#!/bin/sh\n# run %u exit %u\n", ms, code);
}

static void write_dependency(struct vclient *c, char *out, size_t n) {
    static const char *const kinds[] = {"after", "afterany", "afterok", "afternotok", "aftercorr"};
    const char *kind = kinds[below(c, ARRAY_LEN(kinds))];
    snprintf(out, n, "%s:%u", kind, some_job(c));
}

void vclient_submit(struct vclient *c) {
    uint8_t token[TOKEN_SIZE];
    char script[80], dep[40];
    struct array_range range = some_range(c, 2);
    struct job_more more = {.array = "some", .array_ranges = &range, .n_array_ranges = 1};
    struct job_spec spec = {.work_dir = "/", .min_nodes = 1};
    struct submit_request rq = {.spec = &spec, .token = token, .n_token = TOKEN_SIZE, .script = (uint8_t *)script};
    new_token(c, token);
    write_script(c, script, sizeof(script));
    write_dependency(c, dep, sizeof(dep));
    rq.n_script = (uint32_t)strlen(script);
    more.array_max_running = below(c, 3);
    if (chance(c, 250))
        spec.min_nodes = 1 + below(c, 3);
    spec.n_tasks = spec.min_nodes + below(c, 2);
    spec.time_limit_min = 1 + below(c, 2);
    spec.dependency = chance(c, c->conf.chance_dependency) && c->jobs.n ? dep : NULL;
    spec.hold = chance(c, c->conf.chance_hold);
    spec.nice = below(c, 50);
    spec.more = chance(c, 150) ? &more : NULL;
    spec.no_requeue = chance(c, 500);
    vclient_ask(c, WIRE_Controller_Submit, &rq, 1000 + below(c, 2));
}

/* All of a job or array, or some tasks of it; where it is no array they name nothing. */
struct aim {
    struct array_range range;
    struct job_target target;
    uint8_t token[TOKEN_SIZE];
    uint32_t uid;
};

static void take_aim(struct vclient *c, struct aim *out) {
    *out = (struct aim){.target.job_id = some_job(c)};
    out->range = some_range(c, TASKS_MOST);
    out->target.tasks = &out->range;
    out->target.n_tasks = chance(c, 300);
    out->uid = chance(c, 500) ? 0 : 1000;
    new_token(c, out->token);
}

void vclient_cancel(struct vclient *c) {
    struct aim a;
    take_aim(c, &a);
    struct cancel_request rq = {.targets = &a.target, .n_targets = 1, .token = a.token, .n_token = TOKEN_SIZE};
    vclient_ask(c, WIRE_Controller_Cancel, &rq, a.uid);
}

void vclient_hold(struct vclient *c) {
    struct aim a;
    take_aim(c, &a);
    struct hold_request rq = {.targets = &a.target, .n_targets = 1, .token = a.token, .n_token = TOKEN_SIZE,
                              .op = chance(c, 300) ? HOLD_OP_HOLD : HOLD_OP_RELEASE};
    vclient_ask(c, WIRE_Controller_Hold, &rq, 0);
}

void vclient_requeue(struct vclient *c) {
    struct aim a;
    take_aim(c, &a);
    struct requeue_request rq = {.targets = &a.target, .n_targets = 1, .token = a.token, .n_token = TOKEN_SIZE,
                                 .hold = chance(c, 150)};
    vclient_ask(c, WIRE_Controller_Requeue, &rq, a.uid);
}

void vclient_suspend(struct vclient *c) {
    struct aim a;
    take_aim(c, &a);
    struct suspend_request rq = {.targets = &a.target, .n_targets = 1, .token = a.token, .n_token = TOKEN_SIZE,
                                 .resume = chance(c, 450)};
    vclient_ask(c, WIRE_Controller_Suspend, &rq, 0);
}
