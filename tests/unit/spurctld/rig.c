/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#define BEAT_MS 5000u

static bool is_leading(void *arg) {
    return ((struct rig *)arg)->c->room.is_leader;
}

void rig_run(struct rig *g, uint64_t ms) {
    vworld_run(g->w, ms);
}

static struct register_request registration(const struct vscript *s, struct node *n) {
    *n = (struct node){.name = s->name, .address = s->name, .port = 6818, .cpus = s->cpus, .mem_mb = s->mem_mb,
                       .public_key = (const uint8_t *)s->address, .n_public_key = CRED_PUBLIC_SIZE, .boot_id = s->boot};
    return (struct register_request){.node = n, .runs = s->runs, .n_runs = s->n_runs};
}

/* A heartbeat of one node, and again with its runs if it is asked to. */
struct beat {
    struct rig *g;
    struct vscript *s;
};

static void send_beat(struct rig *g, struct vscript *s, bool has_runs);

static void end_runs(struct rig *g, struct vscript *s, const struct run_ref *end, uint32_t n) {
    g->n_told_to_end += n;
    for (uint32_t i = 0; i < n && !g->ends_slowly; i++)
        vscript_forget(s, end[i].job_id, end[i].start_no);
}

static void on_registered(void *arg, int code, const struct err *why, const void *reply) {
    const struct register_reply *r = reply;
    struct beat b = *(struct beat *)arg;
    free(arg);
    if (!code)
        end_runs(b.g, b.s, r->end, r->n_end);
}

static void send_registration(struct rig *g, struct vscript *s) {
    struct node node;
    struct register_request reg = registration(s, &node);
    struct beat *b = xnew(struct beat);
    *b = (struct beat){g, s};
    admit_register(&g->c->room, &reg, on_registered, b);
}

static void on_beat(void *arg, int code, const struct err *why, const void *reply) {
    const struct heartbeat_reply *r = reply;
    struct beat b = *(struct beat *)arg;
    free(arg);
    if (code)
        return;
    end_runs(b.g, b.s, r->end, r->n_end);
    if (r->register_again)
        send_registration(b.g, b.s);
    else if (r->send_runs)
        send_beat(b.g, b.s, true);
}

static void send_beat(struct rig *g, struct vscript *s, bool has_runs) {
    struct heartbeat_request hb = {.name = s->name, .boot_id = s->boot, .runs_hash = 1 + s->n_runs, .has_runs = has_runs,
                                   .runs = s->runs, .n_runs = has_runs ? s->n_runs : 0};
    struct beat *b = xnew(struct beat);
    *b = (struct beat){g, s};
    admit_heartbeat(&g->c->room, &hb, on_beat, b);
}

static void beat(void *arg) {
    struct rig *g = arg;
    vworld_at(g->w, BEAT_MS, beat, g);
    if (!g->c || !g->c->room.is_leader)
        return;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (!g->is_silent[i])
            send_beat(g, &g->node[i], false);
}

static void lead(struct rig *g) {
    vctl_elect(g->c);
    assert_true(vworld_run_until(g->w, is_leading, g, 1000));
}

void rig_make_dir(char *out, size_t n) {
    snprintf(out, n, "%s/spur-rooms-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(out));
}

void rig_init(struct rig *g, void (*fill)(struct rconf *conf, struct arena *a)) {
    *g = (struct rig){.w = vworld_new(1)};
    log_set_level(LOG_LEVEL_ERROR);
    rig_make_dir(g->dir, sizeof(g->dir));
    g->log = vlog_new(g->w);
    g->conf = (struct vctl_conf){.dir = g->dir, .member_id = 1, .fill = fill, .work_max_ms = 2};
    g->c = vctl_start(g->w, g->log, &g->conf);
    lead(g);
    vworld_at(g->w, BEAT_MS, beat, g);
}

void rig_remove_dir(const char *path) {
    DIR *d = opendir(path);
    struct dirent *en;
    while (d && (en = readdir(d)))
        if (en->d_name[0] != '.')
            unlinkat(dirfd(d), en->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}

void rig_fini(struct rig *g) {
    vlog_check_replay(g->log, g->c);
    vctl_stop(g->c);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        vscript_fini(&g->node[i]);
    vlog_free(g->log);
    vworld_free(g->w);
    arena_fini(&g->arena);
    rig_remove_dir(g->dir);
}

void rig_restart(struct rig *g, bool kill) {
    if (kill)
        vctl_kill(g->c);
    else
        vctl_stop(g->c);
    g->c = vctl_start(g->w, g->log, &g->conf);
    lead(g);
}

/* ---- requests ---- */

static void keep_reply(struct rig *g, int code, const struct err *why, const struct rec_desc *d, const void *reply,
                       const void **out) {
    auto_buf bytes = {0};
    g->is_answered = true;
    g->code = code;
    snprintf(g->text, sizeof(g->text), "%s", why && code ? why->text : "");
    if (code || !d)
        return;
    rec_encode(d, reply, &bytes);
    arena_reset(&g->arena);
    void *copy = arena_alloc(&g->arena, d->size);
    assert_int_equal(rec_decode(d, bytes.p, bytes.n, &g->arena, copy, NULL), 0);
    *out = copy;
}

static void on_submitted(void *arg, int code, const struct err *why, const void *reply) {
    struct rig *g = arg;
    const void *copy = NULL;
    keep_reply(g, code, why, submit_reply_rec(), reply, &copy);
    g->submitted = copy;
    g->job_id = copy ? g->submitted->job_id : 0;
}

static void on_results(void *arg, int code, const struct err *why, const void *reply) {
    struct rig *g = arg;
    const void *copy = NULL;
    keep_reply(g, code, why, results_rec(), reply, &copy);
    g->results = copy;
}

static void on_done(void *arg, int code, const struct err *why, const void *reply) {
    keep_reply(arg, code, why, NULL, reply, NULL);
}

static bool is_answered(void *arg) {
    return ((struct rig *)arg)->is_answered;
}

static void wait_answer(struct rig *g) {
    assert_true(vworld_run_until(g->w, is_answered, g, 60000));
}

uint32_t rig_submit_spec(struct rig *g, uint32_t uid, const struct job_spec *spec, const char *script) {
    struct submit_request rq = {.spec = spec,
                                .script = (const uint8_t *)script,
                                .n_script = script ? (uint32_t)strlen(script) : 0,
                                .env = script ? (const uint8_t *)"A=b" : NULL,
                                .n_env = script ? 4 : 0};
    struct who who = vctl_user(uid);
    g->is_answered = false;
    admit_submit(&g->c->room, &who, &rq, on_submitted, g);
    wait_answer(g);
    return g->code ? 0 : g->job_id;
}

static void answer_ask(struct rig_ask *a, int code, const struct err *why, const void *bytes, size_t n) {
    a->is_answered = true;
    a->code = code;
    snprintf(a->text, sizeof(a->text), "%s", why && code ? why->text : "");
    if (code)
        return;
    void *copy = arena_alloc(&a->arena, a->desc->size);
    assert_int_equal(rec_decode(a->desc, bytes, n, &a->arena, copy, NULL), 0);
    a->reply = copy;
}

static void on_asked_bytes(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    answer_ask(arg, code, why, reply, n);
}

static void on_asked(void *arg, int code, const struct err *why, const void *reply) {
    struct rig_ask *a = arg;
    auto_buf bytes = {0};
    if (!code)
        rec_encode(a->desc, reply, &bytes);
    answer_ask(a, code, why, bytes.p, bytes.n);
}

void rig_ask_fini(struct rig_ask *a) {
    arena_fini(&a->arena);
    *a = (struct rig_ask){0};
}

static bool ask_is_answered(void *arg) {
    return ((struct rig_ask *)arg)->is_answered;
}

bool rig_answered(struct rig *g, struct rig_ask *a, uint64_t most_ms) {
    return vworld_run_until(g->w, ask_is_answered, a, most_ms);
}

void rig_step_start(struct rig *g, uint32_t uid, uint32_t job_id, const struct step_spec *s, struct rig_ask *out) {
    rig_step_request(g, uid, &(struct step_request){.job_id = job_id, .spec = s}, out);
}

void rig_step_request(struct rig *g, uint32_t uid, const struct step_request *rq, struct rig_ask *out) {
    struct who who = vctl_user(uid);
    *out = (struct rig_ask){.desc = step_reply_rec()};
    admit_step_start(&g->c->room, &who, rq, on_asked, out);
}

void rig_attend(struct rig *g, uint32_t uid, const struct attend_request *rq, struct rig_ask *out) {
    struct who who = vctl_user(uid);
    *out = (struct rig_ask){.desc = attend_reply_rec()};
    query_attend(g->c->room.query, &who, rq, on_asked_bytes, out);
}

int64_t rig_step(struct rig *g, uint32_t job_id, const struct step_spec *s) {
    struct rig_ask a;
    rig_step_start(g, 1000, job_id, s, &a);
    assert_true(rig_answered(g, &a, 30000));
    int64_t id = a.code ? a.code : (int64_t)((const struct step_reply *)a.reply)->step->id;
    rig_ask_fini(&a);
    return id;
}

int rig_step_report(struct rig *g, const struct vscript *node, uint32_t job_id, uint32_t start_no, uint32_t step_id,
                    uint32_t wait_status) {
    struct step_report r = {.name = node->name, .job_id = job_id, .start_no = start_no, .step_id = step_id,
                            .wait_status = wait_status, .end_ms = VWORLD_BEGIN_UNIX_MS + vworld_now_ms(g->w)};
    g->is_answered = false;
    admit_step_report(&g->c->room, &r, on_done, g);
    wait_answer(g);
    return g->code;
}

const struct step *rig_get_step(const struct rig *g, uint32_t job_id, uint32_t step_id) {
    struct view v;
    state_peek(g->c->room.state, &v);
    return view_step(&v, job_id, step_id);
}

uint32_t rig_submit(struct rig *g, const struct rig_job *j) {
    const char *script = j->script ? j->script : "#!/bin/sh\n";
    const char *const req[] = {j->req_node}, *const exc[] = {j->exc_node};
    struct job_spec spec = {.name = j->name, .n_tasks = j->n_tasks, .n_tasks_given = j->n_tasks,
                            .min_nodes = j->min_nodes, .cpus_per_task = j->cpus_per_task,
                            .time_limit_min = j->time_limit_min, .partition = j->partition,
                            .dependency = j->dependency, .nice = j->nice, .hold = j->hold, .work_dir = "/tmp",
                            .no_requeue = !j->requeue,
                            .req_nodes = req, .n_req_nodes = j->req_node != NULL, .exc_nodes = exc,
                            .n_exc_nodes = j->exc_node != NULL};
    struct submit_request rq = {.token = j->token, .n_token = j->token ? TOKEN_SIZE : 0, .spec = &spec,
                                .script = (const uint8_t *)script, .n_script = (uint32_t)strlen(script),
                                .env = (const uint8_t *)"A=b", .n_env = 4};
    struct who who = vctl_user(j->uid ? j->uid : 1000);
    g->is_answered = false;
    admit_submit(&g->c->room, &who, &rq, on_submitted, g);
    wait_answer(g);
    return g->code ? 0 : g->job_id;
}

static int first_result(struct rig *g) {
    wait_answer(g);
    return g->code ? g->code : g->results->n_results ? -(int)g->results->results[0].error : 0;
}

void rig_cancel_all(struct rig *g, const struct who *who, const struct cancel_request *rq) {
    g->is_answered = false;
    admit_cancel(&g->c->room, who, rq, on_results, g);
    wait_answer(g);
}

int rig_cancel(struct rig *g, uint32_t uid, uint32_t job_id) {
    struct who who = vctl_user(uid);
    struct cancel_request rq = {.job_ids = &job_id, .n_job_ids = 1};
    rig_cancel_all(g, &who, &rq);
    return first_result(g);
}

int rig_hold_all(struct rig *g, uint32_t uid, const struct hold_request *rq) {
    struct who who = vctl_user(uid);
    g->is_answered = false;
    admit_hold(&g->c->room, &who, rq, on_results, g);
    return first_result(g);
}

int rig_hold(struct rig *g, uint32_t uid, uint32_t job_id, enum hold_op op) {
    return rig_hold_all(g, uid, &(struct hold_request){.job_ids = &job_id, .n_job_ids = 1, .op = op});
}

int rig_requeue(struct rig *g, uint32_t uid, const struct requeue_request *rq) {
    struct who who = vctl_user(uid);
    g->is_answered = false;
    admit_requeue(&g->c->room, &who, rq, on_results, g);
    return first_result(g);
}

int rig_suspend(struct rig *g, uint32_t uid, const struct suspend_request *rq) {
    struct who who = vctl_user(uid);
    g->is_answered = false;
    admit_suspend(&g->c->room, &who, rq, on_results, g);
    return first_result(g);
}

int rig_update(struct rig *g, uint32_t uid, const struct update_request *rq) {
    struct who who = vctl_user(uid);
    g->is_answered = false;
    admit_update(&g->c->room, &who, rq, on_results, g);
    return first_result(g);
}

int rig_update_node(struct rig *g, uint32_t uid, const struct node_update_request *rq) {
    struct who who = vctl_user(uid);
    g->is_answered = false;
    admit_update_node(&g->c->room, &who, rq, on_done, g);
    wait_answer(g);
    return g->code;
}

void rig_jobs(struct rig *g, uint32_t uid, const struct jobs_request *rq, struct rig_ask *out) {
    struct who who = vctl_user(uid);
    *out = (struct rig_ask){.desc = jobs_reply_rec()};
    query_jobs(&g->c->room, &who, rq, on_asked_bytes, out);
}

void rig_wait(struct rig *g, uint32_t uid, uint32_t job_id, struct rig_ask *out) {
    struct who who = vctl_user(uid);
    *out = (struct rig_ask){.desc = wait_reply_rec()};
    query_wait(g->c->room.query, &who, job_id, on_asked_bytes, out);
}

void rig_try(struct rig *g, uint32_t uid, const struct job_spec *spec, struct rig_ask *out) {
    struct who who = vctl_user(uid);
    struct submit_request rq = {.spec = spec, .test_only = true, .script = (const uint8_t *)"#!/bin/sh\n", .n_script = 10};
    *out = (struct rig_ask){.desc = submit_reply_rec()};
    admit_submit(&g->c->room, &who, &rq, on_asked, out);
}

void rig_beat(struct rig *g, const struct heartbeat_request *hb) {
    g->is_answered = false;
    admit_heartbeat(&g->c->room, hb, on_done, g);
    wait_answer(g);
    assert_int_equal(g->code, 0);
}

int rig_report_all(struct rig *g, const struct run_report *r) {
    g->is_answered = false;
    admit_report(&g->c->room, r, on_done, g);
    wait_answer(g);
    for (uint32_t i = 0; !g->code && i < g->n_nodes; i++)
        if (str_eq(g->node[i].name, r->name))
            vscript_forget(&g->node[i], r->job_id, r->start_no);
    return g->code;
}

int rig_report(struct rig *g, const struct vscript *node, uint32_t job_id, uint32_t start_no, uint32_t wait_status) {
    struct run_report r = {.name = node->name, .job_id = job_id, .start_no = start_no, .wait_status = wait_status,
                           .end_ms = VWORLD_BEGIN_UNIX_MS + vworld_now_ms(g->w)};
    return rig_report_all(g, &r);
}

struct vscript *rig_node(struct rig *g, const char *name, vscript_fn fn, void *ctx) {
    assert_true(g->n_nodes < RIG_NODES_MAX);
    struct vscript *s = &g->node[g->n_nodes++];
    struct node node;
    vscript_init(s, g->w, name, fn ? fn : rig_takes_all, ctx);
    struct register_request reg = registration(s, &node);
    g->is_answered = false;
    admit_register(&g->c->room, &reg, on_done, g);
    wait_answer(g);
    assert_int_equal(g->code, 0);
    return s;
}

struct vanswer rig_takes_all(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    return (struct vanswer){0};
}

/* ---- looking ---- */

const struct job *rig_job(const struct rig *g, uint32_t id) {
    return vctl_job(g->c, id);
}

struct until {
    struct rig *g;
    uint32_t id;
    const char *state;
};

static bool is_there(void *arg) {
    const struct until *u = arg;
    const struct job *j = rig_job(u->g, u->id);
    return j && str_eq(job_shown_state(j), u->state);
}

void rig_until(struct rig *g, uint32_t id, const char *shown_state, uint64_t most_ms) {
    struct until u = {g, id, shown_state};
    if (vworld_run_until(g->w, is_there, &u, most_ms))
        return;
    const struct job *j = rig_job(g, id);
    fail_msg("job %u is %s after %llu ms, not %s", id, j ? job_shown_state(j) : "gone", (unsigned long long)most_ms,
             shown_state);
}

bool rig_is_free(const struct rig *g) {
    struct view v;
    const struct node *n;
    state_peek(g->c->room.state, &v);
    for (uint64_t k = 0; (n = view_next_node(&v, &k)); k++)
        if (n->alloc_cpus || n->alloc_mem_mb || n->n_jobs || n->n_completing)
            return false;
    return true;
}
