/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/agent.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "spurd/api/check.h"
#include "spurd/report/report.h"

#define START_MOST_MS 40u
#define TERM_MOST_MS 300u

/* ---- runs ---- */

struct run {
    struct vagent *agent;
    uint64_t key;
    uint32_t uid, cpus, kill_wait_ms;
    uint32_t wait_status; /* when it ends by itself */
    bool is_batch, is_live, is_ended, is_stopped;
    uint32_t timer_no; /* of the event that counts */
    uint32_t known;    /* life of the agent that has heard of its start, or found it */
    struct step_result result;
    int64_t forgotten_unix;
};

struct vagent {
    struct vworld *world;
    char *name, *address;
    struct node node;
    struct cred_key key;
    struct cred_public controller;
    bool has_controller, is_up, is_cut;
    uint32_t boots, lives;
    char boot_id[32];
    struct vhost *host;
    struct table *table;
    struct report *report;
    struct steps steps;
    struct map64 runs; /* on its disk: key → struct run */
    uint32_t cpus_now, cpus_most;
    vagent_ran_fn ran;
    void *ran_arg;
};

/* What is to happen to a run later, wherever the agent is by then. */
struct later {
    struct vagent *agent;
    uint64_t key;
    uint32_t timer_no;
    uint32_t wait_status;
    uint32_t life; /* of the agent, for what only that one waits for */
    steps_started_fn fn;
    void *arg;
};

static struct run *run_of(const struct vagent *a, uint64_t key) {
    return map64_get(&a->runs, key);
}

static void end_run(struct run *r, uint32_t wait_status) {
    struct vagent *a = r->agent;
    if (!r->is_live)
        return;
    r->is_live = false;
    r->is_ended = true;
    a->cpus_now -= r->cpus;
    r->result.wait_status = r->is_batch ? wait_status : 0;
    r->result.end_ms = VWORLD_BEGIN_UNIX_MS + vworld_now_ms(a->world);
    if (a->is_up && r->known == a->lives) {
        struct steps_events ev = table_events(a->table);
        ev.ended(ev.arg, r->key, &r->result);
    }
}

static void on_end(void *arg) {
    struct later *l = arg;
    struct run *r = run_of(l->agent, l->key);
    if (r && r->timer_no == l->timer_no) {
        struct vagent *a = r->agent;
        if (a->ran && r->is_live && (l->wait_status & 0x7f) == 0)
            a->ran(a->ran_arg, a, VRAN_FINISHED, run_job(r->key), run_start_no(r->key), r->is_batch, l->wait_status);
        end_run(r, l->wait_status);
    }
    free(l);
}

static void end_in(struct run *r, uint64_t ms, uint32_t wait_status) {
    struct later *l = xnew(struct later);
    *l = (struct later){.agent = r->agent, .key = r->key, .timer_no = ++r->timer_no, .wait_status = wait_status};
    vworld_later(r->agent->world, ms, on_end, free, l);
}

static void steps_find(void *impl, void (*fn)(void *arg, const struct steps_found *found), void *arg) {
    struct vagent *a = impl;
    size_t cursor = 0;
    void *v;
    while (map64_next(&a->runs, &cursor, NULL, &v)) {
        struct run *r = v;
        r->known = a->lives;
        struct steps_found f = {.key = r->key, .uid = r->uid, .pid = 77, .kill_wait_ms = r->kill_wait_ms,
                                .forgotten_unix = r->forgotten_unix};
        fn(arg, &f);
    }
}

/* Ends of runs that were found are told afterwards. */
static void tell_found(void *arg) {
    struct later *l = arg;
    struct run *r = run_of(l->agent, l->key);
    if (r && r->is_ended && !r->forgotten_unix && l->agent->is_up && l->agent->lives == l->life) {
        struct steps_events ev = table_events(l->agent->table);
        ev.ended(ev.arg, r->key, &r->result);
    }
    free(l);
}

static void on_started(void *arg) {
    struct later *l = arg;
    struct vagent *a = l->agent;
    struct run *r = run_of(a, l->key);
    if (!a->is_up || a->lives != l->life || !r) {
        free(l); /* whoever waited for it is gone */
        return;
    }
    r->known = a->lives;
    l->fn(l->arg, 0, NULL, 77, r->kill_wait_ms);
    free(l);
    if (r->is_ended) {
        struct steps_events ev = table_events(a->table);
        ev.ended(ev.arg, r->key, &r->result);
    }
}

static void read_script(struct run *r, const struct launch_request *q) {
    unsigned ms = 1000, code = 0;
    autofree char *text = q->n_script ? xstrndup((const char *)q->script, q->n_script) : NULL;
    const char *line = text ? strstr(text, "# run ") : NULL;
    if (line)
        sscanf(line, "# run %u exit %u", &ms, &code);
    if (q->node_index == 0)
        end_in(r, ms, code << 8);
}

static void steps_start(void *impl, uint64_t key, struct buf request, steps_started_fn fn, void *arg) {
    struct vagent *a = impl;
    auto_arena arena = {0};
    struct launch_request q;
    must(rec_decode(launch_request_rec(), request.p, request.n, &arena, &q, NULL) == 0);
    must(!run_of(a, key)); /* whatever was sent twice or late: a run is begun once on a node */
    struct run *r = xnew(struct run);
    *r = (struct run){.agent = a, .key = key, .uid = q.spec->uid, .cpus = q.nodes[q.node_index].cpus,
                      .kill_wait_ms = q.kill_wait_secs * 1000, .is_batch = q.node_index == 0, .is_live = true};
    r->result.start_ms = VWORLD_BEGIN_UNIX_MS + vworld_now_ms(a->world);
    map64_put(&a->runs, key, r);
    a->cpus_now += r->cpus;
    a->cpus_most = MAX(a->cpus_most, a->cpus_now);
    if (a->ran)
        a->ran(a->ran_arg, a, VRAN_BEGAN, q.job_id, q.start_no, r->is_batch, 0);
    read_script(r, &q);
    buf_fini(&request);
    struct later *l = xnew(struct later);
    *l = (struct later){.agent = a, .key = key, .life = a->lives, .fn = fn, .arg = arg};
    vworld_later(a->world, vworld_below(a->world, START_MOST_MS), on_started, free, l);
}

static int steps_signal(void *impl, uint64_t key, const struct step_signal *s) {
    const struct run *r = run_of(impl, key);
    return r && r->is_live ? 0 : E_NOT_FOUND;
}

static int steps_terminate(void *impl, uint64_t key, const struct step_terminate *t) {
    struct vagent *a = impl;
    struct run *r = run_of(a, key);
    if (r && r->is_live) /* one in ten doesn't listen */
        end_in(r, vworld_chance(a->world, 100) ? t->kill_wait_ms : vworld_below(a->world, TERM_MOST_MS), 15);
    return 0;
}

static int steps_suspend(void *impl, uint64_t key, bool resume) {
    struct run *r = run_of(impl, key);
    if (!r || !r->is_live)
        return E_NOT_FOUND;
    r->is_stopped = !resume;
    return 0;
}

static void steps_forget(void *impl, uint64_t key) {
    struct vagent *a = impl;
    struct run *r = run_of(a, key);
    if (!r) { /* never was here, and must not come any more */
        r = xnew(struct run);
        *r = (struct run){.agent = a, .key = key};
        map64_put(&a->runs, key, r);
    }
    must(!r->is_live);
    r->forgotten_unix = (VWORLD_BEGIN_UNIX_MS + vworld_now_ms(a->world)) / 1000;
}

static void steps_purge(void *impl, uint64_t key) {
    struct vagent *a = impl;
    free(map64_del(&a->runs, key));
}

/* ---- the agent ---- */

static void on_changed(void *arg) {
    struct vagent *a = arg;
    if (a->report)
        report_changed(a->report);
}

static void on_sample(void *arg, uint32_t *out_load, uint64_t *out_free_mb) {
    *out_load = 101;
    *out_free_mb = 1000;
}

static int on_key(void *arg, const uint8_t *key, uint32_t n, struct err *e) {
    struct vagent *a = arg;
    must(n == CRED_PUBLIC_SIZE);
    must(!a->has_controller || memcmp(a->controller.b, key, n) == 0);
    memcpy(a->controller.b, key, n);
    a->has_controller = true;
    return 0;
}

static void on_registered(void *arg, const struct register_reply *reply) {
}

static void on_launched(void *arg, int code, const struct err *why, uint32_t pid) {
    struct launch_reply reply = {.pid = pid};
    auto_buf bytes = {0};
    rec_encode(launch_reply_rec(), &reply, &bytes);
    vrequest_reply(arg, code, why ? why->text : NULL, bytes.p, bytes.n);
}

/* The credential, as spurd/api checks it. */
static int check(struct vagent *a, const struct vrequest *rq, const char *node, uint32_t job_id, uint32_t start_no,
                 uint32_t uid, struct err *e) {
    char header[400];
    struct check_call c = {.path = rq->method,
                           .header = vrequest_header(rq, "spur-launch", header, sizeof(header)),
                           .node = node,
                           .job_id = job_id,
                           .start_no = start_no,
                           .uid = uid,
                           .body = rq->message.p,
                           .n_body = rq->message.n};
    return check_credential(&c, a->name, a->has_controller ? &a->controller : NULL,
                            (VWORLD_BEGIN_UNIX_MS + vworld_now_ms(a->world)) / 1000, e);
}

static void serve(void *ctx, struct vrequest *rq) {
    struct vagent *a = ctx;
    auto_arena arena = {0};
    struct err e;
    int code = 0;
    if (strcmp(rq->method, wire_method(WIRE_Agent_Launch)->path) == 0) {
        struct launch_request q;
        must(rec_decode(launch_request_rec(), rq->message.p, rq->message.n, &arena, &q, NULL) == 0);
        code = check(a, rq, q.node_name, q.job_id, q.start_no, q.spec->uid, &e);
        if (!code) {
            table_launch(a->table, &q, rq->message.p, rq->message.n, on_launched, rq);
            return;
        }
    } else if (strcmp(rq->method, wire_method(WIRE_Agent_Terminate)->path) == 0) {
        struct terminate_request q;
        must(rec_decode(terminate_request_rec(), rq->message.p, rq->message.n, &arena, &q, NULL) == 0);
        code = check(a, rq, q.node_name, q.job_id, q.start_no, q.uid, &e);
        if (!code)
            code = table_terminate(a->table, &q, &e);
    } else if (strcmp(rq->method, wire_method(WIRE_Agent_Suspend)->path) == 0) {
        struct suspend_run_request q;
        must(rec_decode(suspend_run_request_rec(), rq->message.p, rq->message.n, &arena, &q, NULL) == 0);
        code = check(a, rq, q.node_name, q.job_id, q.start_no, q.uid, &e);
        if (!code)
            code = table_suspend(a->table, &q, &e);
    } else {
        struct signal_request q;
        must(rec_decode(signal_request_rec(), rq->message.p, rq->message.n, &arena, &q, NULL) == 0);
        code = check(a, rq, q.node_name, q.job_id, q.start_no, q.uid, &e);
        if (!code)
            code = table_signal(a->table, &q, &e);
    }
    vrequest_reply(rq, code, code ? e.text : NULL, NULL, 0);
}

struct vagent *vagent_new(struct vworld *w, const char *name, uint32_t cpus, uint64_t mem_mb) {
    struct vagent *a = xnew(struct vagent);
    a->world = w;
    a->name = xstrdup(name);
    a->address = xasprintf("%s:6818", name);
    struct secret seed = {0};
    uint8_t seed_bytes[32] = {0}; /* its own, and the same in each run of a seed */
    memcpy(seed_bytes, name, MIN(strlen(name), sizeof(seed_bytes)));
    secret_set(&seed, seed_bytes, sizeof(seed_bytes));
    cred_key_derive(&seed, "spur node key 1", &a->key);
    secret_fini(&seed);
    a->node = (struct node){.name = a->name, .address = a->name, .port = 6818, .cpus = cpus, .mem_mb = mem_mb,
                            .sockets = 1, .cores_per_socket = cpus, .threads_per_core = 1,
                            .public_key = a->key.pub.b, .n_public_key = CRED_PUBLIC_SIZE, .boot_id = a->boot_id};
    a->steps = (struct steps){.impl = a,
                              .find = steps_find,
                              .start = steps_start,
                              .signal = steps_signal,
                              .terminate = steps_terminate,
                              .suspend = steps_suspend,
                              .forget = steps_forget,
                              .purge = steps_purge};
    snprintf(a->boot_id, sizeof(a->boot_id), "boot-%u", a->boots++);
    return a;
}

void vagent_start(struct vagent *a) {
    struct vhost_conf hc = {.address = a->address};
    struct table_conf tc = {.boot = node_boot(&a->node), .changed = on_changed, .arg = a};
    struct report_conf rc = {.controllers = "ctl", .node = &a->node, .key = &a->key, .arg = a, .sample = on_sample,
                             .on_key = on_key, .on_registered = on_registered};
    must(!a->is_up);
    a->is_up = true;
    a->lives++;
    a->node.agent_start_unix = (VWORLD_BEGIN_UNIX_MS + vworld_now_ms(a->world)) / 1000;
    a->host = vhost_new(a->world, &hc);
    a->table = table_new(vhost_host(a->host), &tc);
    table_adopt(a->table, &a->steps);
    a->report = report_new(vhost_host(a->host), a->table, &rc);
    report_start(a->report);
    size_t cursor = 0;
    uint64_t key;
    void *v;
    while (map64_next(&a->runs, &cursor, &key, &v)) {
        struct later *l = xnew(struct later);
        *l = (struct later){.agent = a, .key = key, .life = a->lives};
        vworld_later(a->world, 1 + vworld_below(a->world, 20), tell_found, free, l);
    }
    vnet_listen(a->world, a->address, serve, a);
}

void vagent_stop(struct vagent *a) {
    if (!a->is_up)
        return;
    vnet_listen(a->world, a->address, NULL, NULL);
    a->is_up = false;
    report_stop(a->report);
    table_stop(a->table);
    vhost_finish_work(a->host);
    struct report *report = a->report;
    a->report = NULL;
    table_free(a->table);
    vhost_free(a->host);
    report_free(report);
    a->host = NULL;
}

void vagent_reboot(struct vagent *a, bool forget) {
    size_t cursor = 0;
    void *v;
    vagent_stop(a);
    snprintf(a->boot_id, sizeof(a->boot_id), "boot-%u", a->boots++);
    while (map64_next(&a->runs, &cursor, NULL, &v)) {
        struct run *r = v;
        if (!r->is_live)
            continue;
        r->timer_no++;
        end_run(r, 9);
        r->result.node_failed = true;
        r->result.text = "node rebooted";
    }
    if (!forget)
        return;
    a->has_controller = false;
    for (cursor = 0; map64_next(&a->runs, &cursor, NULL, &v);)
        free(v);
    map64_fini(&a->runs);
}

void vagent_free(struct vagent *a) {
    size_t cursor = 0;
    void *v;
    vagent_stop(a);
    while (map64_next(&a->runs, &cursor, NULL, &v))
        free(v);
    map64_fini(&a->runs);
    cred_key_fini(&a->key);
    free(a->name);
    free(a->address);
    free(a);
}

void vagent_cut(struct vagent *a, bool is_cut) {
    a->is_cut = is_cut;
    vnet_cut(a->world, a->address, is_cut);
}

bool vagent_is_up(const struct vagent *a) {
    return a->is_up;
}

const char *vagent_name(const struct vagent *a) {
    return a->name;
}

uint32_t vagent_live(const struct vagent *a) {
    uint32_t n = 0;
    size_t cursor = 0;
    void *v;
    while (map64_next(&a->runs, &cursor, NULL, &v))
        n += ((struct run *)v)->is_live;
    return n;
}

uint32_t vagent_known(const struct vagent *a) {
    return a->is_up ? (uint32_t)table_count(a->table) : 0;
}

uint32_t vagent_most_cpus(const struct vagent *a) {
    return a->cpus_most;
}

void vagent_watch(struct vagent *a, vagent_ran_fn fn, void *arg) {
    a->ran = fn;
    a->ran_arg = arg;
}

bool vagent_runs_batch(const struct vagent *a, uint32_t job_id, uint32_t *out_start_no) {
    size_t cursor = 0;
    void *v;
    while (map64_next(&a->runs, &cursor, NULL, &v)) {
        const struct run *r = v;
        if (r->is_live && r->is_batch && run_job(r->key) == job_id) {
            *out_start_no = run_start_no(r->key);
            return true;
        }
    }
    return false;
}
