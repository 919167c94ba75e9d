/* SPDX-License-Identifier: Apache-2.0 */
#include "controller.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/proof.h"

#define PATIENCE_MS 30000

/* ---- Registry ---- */

static void *received(struct controller *c, enum wire_method m, const void *message, size_t n, void *out) {
    struct err e;
    uint8_t *copy = arena_memdup(&c->arena, message, n);
    if (rec_decode(wire_method(m)->request(), copy, n, &c->arena, out, &e))
        fail_msg("%s: %s", wire_method(m)->name, e.text);
    return out;
}

/* The proof of a call, with the key that the node itself brought. */
static void check_proof(struct controller *c, struct rpc_call *call, enum wire_method m, const void *message,
                        size_t n, const char *name) {
    struct proof_node p;
    uint8_t hash[32];
    auto_str text = {0};
    const char *header = rpc_metadata(call, "spur-node");
    bool ok = header && c->has_agent_key && !proof_node_parse(header, &p) && str_eq(p.name, name);
    if (ok) {
        cred_hash(message, n, hash);
        proof_node_text(wire_method(m)->path, p.name, p.sent_ms, p.nonce, hash, &text);
        ok = cred_verify(&c->agent_key, text.p, text.n, p.sig) &&
             llabs(p.sent_ms - (int64_t)time(NULL) * 1000) < PROOF_NODE_SKEW_MS;
    }
    c->saw_bad_proof = c->saw_bad_proof || !ok;
}

static void answer(struct rpc_call *call, const struct rec_desc *d, const void *record) {
    auto_buf bytes = {0};
    rec_encode(d, record, &bytes);
    rpc_reply(call, bytes.p, bytes.n);
}

static bool refuse(struct rpc_call *call, int code) {
    struct err e;
    if (code) {
        err_set(&e, code, NULL);
        rpc_fail(call, &e);
    }
    return code != 0;
}

static void connect_agent(struct controller *c) {
    char address[128];
    struct err e;
    snprintf(address, sizeof(address), "%s:%u", c->registered.node->address, c->registered.node->port);
    rpc_channel_free(c->channel);
    struct rpc_channel_conf conf = {.targets = address};
    if (rpc_channel_new(c->loop, &conf, &c->channel, &e))
        fail_msg("%s", e.text);
}

static void on_register(void *ctx, struct rpc_call *call, const void *message, size_t n) {
    struct controller *c = ctx;
    received(c, WIRE_Registry_Register, message, n, &c->registered);
    assert_int_equal(c->registered.node->n_public_key, CRED_PUBLIC_SIZE);
    memcpy(c->agent_key.b, c->registered.node->public_key, CRED_PUBLIC_SIZE);
    c->has_agent_key = true;
    check_proof(c, call, WIRE_Registry_Register, message, n, c->registered.node->name);
    if (refuse(call, c->refuse_register))
        return;
    struct register_reply reply = {.node_id = 1, .controller_key = c->key.pub.b, .n_controller_key = CRED_PUBLIC_SIZE,
                                   .heartbeat_ms = c->heartbeat_ms, .cluster_name = "test", .end = &c->end,
                                   .n_end = c->end.job_id ? 1 : 0};
    answer(call, register_reply_rec(), &reply);
    c->n_registered++;
    connect_agent(c);
}

static void on_heartbeat(void *ctx, struct rpc_call *call, const void *message, size_t n) {
    struct controller *c = ctx;
    struct heartbeat_request q;
    received(c, WIRE_Registry_Heartbeat, message, n, &q);
    check_proof(c, call, WIRE_Registry_Heartbeat, message, n, q.name);
    struct heartbeat_reply reply = {.register_again = c->register_again};
    c->register_again = false;
    c->n_heartbeats++;
    answer(call, heartbeat_reply_rec(), &reply);
}

static void on_report(void *ctx, struct rpc_call *call, const void *message, size_t n) {
    struct controller *c = ctx;
    struct run_report q;
    struct nothing reply = {0};
    received(c, WIRE_Registry_Report, message, n, &q);
    check_proof(c, call, WIRE_Registry_Report, message, n, q.name);
    if (refuse(call, c->refuse_reports)) {
        c->n_reports_refused++;
        return;
    }
    assert_true(c->n_reports < REPORTS_MAX);
    c->reports[c->n_reports++] = q;
    answer(call, nothing_rec(), &reply);
}

void controller_listen(struct controller *c) {
    static struct rpc_method methods[3];
    struct err e;
    methods[0] = (struct rpc_method){.path = wire_method(WIRE_Registry_Register)->path, .start = on_register};
    methods[1] = (struct rpc_method){.path = wire_method(WIRE_Registry_Heartbeat)->path, .start = on_heartbeat};
    methods[2] = (struct rpc_method){.path = wire_method(WIRE_Registry_Report)->path, .start = on_report};
    struct rpc_server_conf conf = {.methods = methods, .n_methods = 3, .ctx = c};
    c->server = rpc_server_new(c->loop, &conf);
    snprintf(c->address, sizeof(c->address), "127.0.0.1:%u", c->port);
    if (rpc_server_listen(c->server, c->address, &c->port, &e))
        fail_msg("%s", e.text);
    snprintf(c->address, sizeof(c->address), "127.0.0.1:%u", c->port);
}

void controller_close(struct controller *c) {
    rpc_server_free(c->server);
    c->server = NULL;
}

void controller_begin(struct controller *c, const char *program) {
    *c = (struct controller){.heartbeat_ms = 200};
    snprintf(c->root, sizeof(c->root), "/tmp/spurd-test-XXXXXX");
    assert_non_null(mkdtemp(c->root));
    chmod(c->root, 0711);
    c->program = xstrdup(program);
    cred_key_new(&c->key);
    c->loop = loop_new("controller");
    controller_listen(c);
}

void controller_end(struct controller *c) {
    assert_false(c->saw_bad_proof);
    if (c->agent)
        agent_kill(c, SIGTERM);
    rpc_channel_free(c->channel);
    if (c->server)
        controller_close(c);
    loop_free(c->loop);
    cred_key_fini(&c->key);
    arena_fini(&c->arena);
    pid_t pid = fork();
    if (!pid)
        execlp("rm", "rm", "-rf", c->root, NULL);
    waitpid(pid, NULL, 0);
    free(c->program);
}

/* ---- the agent's process ---- */

void agent_start(struct controller *c, const char *const *more) {
    char controller[100], state[300];
    const char *argv[32] = {c->program, "--controller", controller, "--listen", "127.0.0.1:0", "-N", "n1",
                            "--state-dir", state, "--cpus", "4", "--memory-mb", "4000", "--features", "a,b"};
    size_t n = 15;
    snprintf(controller, sizeof(controller), "http://%s", c->address);
    snprintf(state, sizeof(state), "%s/state", c->root);
    while (more && *more)
        argv[n++] = *more++;
    c->agent = fork();
    assert_true(c->agent >= 0);
    if (!c->agent) {
        execv(c->program, (char **)argv);
        _exit(127);
    }
}

static bool is_gone(void *arg) {
    struct controller *c = arg;
    if (c->agent && waitpid(c->agent, &c->agent_status, WNOHANG) == c->agent)
        c->agent = 0;
    return !c->agent;
}

void agent_kill(struct controller *c, int signo) {
    kill(c->agent, signo);
    wait_until(c, is_gone, c, "the agent to end");
    if (signo == SIGTERM) /* a sanitizer's complaint shows here */
        assert_int_equal(c->agent_status, 0);
}

void wait_until(struct controller *c, bool (*done)(void *arg), void *arg, const char *what) {
    int64_t until = loop_now_ms(c->loop) + PATIENCE_MS;
    while (!loop_run_until(c->loop, done, arg, 10)) { /* what it looks at may be no event of the loop */
        if (loop_now_ms(c->loop) > until)
            fail_msg("waited in vain: %s", what);
    }
}

struct registrations {
    struct controller *c;
    unsigned n;
};

static bool has_registered(void *arg) {
    struct registrations *r = arg;
    return r->c->n_registered >= r->n;
}

void agent_wait_registered(struct controller *c, unsigned n) {
    struct registrations r = {c, n};
    wait_until(c, has_registered, &r, "registration");
}

/* ---- calls ---- */

struct call {
    struct controller *c;
    bool is_over;
    int code;
    struct err why;
    const struct rec_desc *d;
    void *reply;
};

static void on_called(void *arg, int code, const struct err *why, const void *message, size_t n) {
    struct call *k = arg;
    k->is_over = true;
    k->code = code;
    if (code)
        k->why = *why;
    else if (k->reply)
        assert_int_equal(rec_decode(k->d, arena_memdup(&k->c->arena, message, n), n, &k->c->arena, k->reply, NULL), 0);
}

static bool is_over(void *arg) {
    return ((struct call *)arg)->is_over;
}

static void add_credential(struct controller *c, enum wire_method m, const struct buf *body, uint32_t job_id,
                           uint32_t start_no, uint32_t uid, enum forgery forgery, struct str *out) {
    auto_str text = {0};
    uint8_t hash[32], sig[CRED_SIGNATURE_SIZE];
    struct cred_key other = {0};
    int64_t expires = (int64_t)time(NULL) + (forgery == EXPIRED ? -1 : 60);
    cred_hash(body->p, forgery == OTHER_BODY ? body->n - 1 : body->n, hash);
    const char *path = wire_method(forgery == OTHER_METHOD ? WIRE_Registry_Report : m)->path;
    proof_launch_text(path, forgery == OTHER_NODE ? "n2" : "n1", job_id + (forgery == OTHER_JOB),
                      start_no + (forgery == OTHER_START), uid + (forgery == OTHER_UID), expires, hash, &text);
    if (forgery == OTHER_KEY)
        cred_key_new(&other);
    cred_sign(forgery == OTHER_KEY ? &other : &c->key, text.p, text.n, sig);
    str_add(out, "spur-launch: ");
    proof_launch_print(expires, sig, out);
    str_addc(out, '\n');
    if (forgery == OTHER_KEY)
        cred_key_fini(&other);
}

int agent_call(struct controller *c, enum wire_method m, const void *request, uint32_t job_id, uint32_t start_no,
               uint32_t uid, enum forgery forgery, void *reply, struct err *e) {
    auto_buf body = {0};
    auto_str header = {0};
    struct call k = {.c = c, .d = wire_method(m)->reply(), .reply = reply};
    rec_encode(wire_method(m)->request(), request, &body);
    if (forgery != NO_HEADER)
        add_credential(c, m, &body, job_id, start_no, uid, forgery, &header);
    rpc_send(c->channel, wire_method(m)->path, header.p, body.p, body.n, 0, on_called, &k);
    wait_until(c, is_over, &k, wire_method(m)->name);
    if (e)
        *e = k.why;
    return k.code;
}

void launch_fill(struct controller *c, struct launch *l, uint32_t job_id, const char *script) {
    *l = (struct launch){0};
    snprintf(l->out, sizeof(l->out), "%s/out.%u", c->root, job_id);
    snprintf(l->work_dir, sizeof(l->work_dir), "%s", c->root);
    l->spec = (struct job_spec){.name = "job", .uid = geteuid(), .gid = getegid(), .user = "root", .n_tasks = 1,
                                .work_dir = l->work_dir, .std_out = l->out, .submit_host = "here"};
    l->node = (struct job_node){.node_id = 1, .name = "n1", .cpus = 1, .n_tasks = 1};
    l->q = (struct launch_request){.job_id = job_id, .start_no = 1, .nodes = &l->node, .n_nodes = 1,
                                   .script = (const uint8_t *)script, .n_script = (uint32_t)strlen(script),
                                   .time_limit_min = 5, .start_unix = time(NULL), .cluster_name = "test",
                                   .sluid = "s0000000000001", .partition = "debug", .kill_wait_secs = 30,
                                   .batch_host = "n1", .node_name = "n1"};
}

int launch_send(struct controller *c, struct launch *l, enum forgery forgery, uint32_t *out_pid, struct err *e) {
    struct launch_reply reply = {0};
    l->q.spec = &l->spec;
    l->q.nodes = &l->node;
    l->spec.work_dir = l->work_dir;
    int code = agent_call(c, WIRE_Agent_Launch, &l->q, l->q.job_id, l->q.start_no, l->spec.uid, forgery, &reply, e);
    if (out_pid)
        *out_pid = reply.pid;
    return code;
}

static void ignore_answer(void *arg, int code, const struct err *why, const void *message, size_t n) {
}

void launch_send_unanswered(struct controller *c, struct launch *l) {
    auto_buf body = {0};
    auto_str header = {0};
    l->q.spec = &l->spec;
    l->q.nodes = &l->node;
    l->spec.work_dir = l->work_dir;
    l->spec.std_out = l->out;
    rec_encode(launch_request_rec(), &l->q, &body);
    add_credential(c, WIRE_Agent_Launch, &body, l->q.job_id, l->q.start_no, l->spec.uid, TRUE_CALL, &header);
    rpc_send(c->channel, wire_method(WIRE_Agent_Launch)->path, header.p, body.p, body.n, 0, ignore_answer, NULL);
}

int terminate_send(struct controller *c, uint32_t job_id, uint32_t uid, uint32_t kill_wait_secs, const char *why) {
    struct terminate_request q = {.job_id = job_id, .start_no = 1, .kill_wait_secs = kill_wait_secs, .why = why,
                                  .node_name = "n1", .uid = uid, .at_unix = time(NULL)};
    return agent_call(c, WIRE_Agent_Terminate, &q, job_id, 1, uid, TRUE_CALL, NULL, NULL);
}

/* ---- what came of it ---- */

const struct run_report *report_of(struct controller *c, uint32_t job_id) {
    for (unsigned i = 0; i < c->n_reports; i++) {
        if (c->reports[i].job_id == job_id)
            return &c->reports[i];
    }
    return NULL;
}

struct waiting {
    struct controller *c;
    uint32_t job_id;
    const char *text;
};

static bool has_report(void *arg) {
    struct waiting *w = arg;
    return report_of(w->c, w->job_id) != NULL;
}

const struct run_report *wait_report(struct controller *c, uint32_t job_id) {
    struct waiting w = {c, job_id, NULL};
    wait_until(c, has_report, &w, "a run's report");
    return report_of(c, job_id);
}

char *output_of(struct controller *c, uint32_t job_id) {
    char path[300];
    snprintf(path, sizeof(path), "%s/out.%u", c->root, job_id);
    FILE *f = fopen(path, "re");
    char *text = arena_calloc(&c->arena, 1, 65536);
    if (f) {
        (void)!fread(text, 1, 65535, f);
        fclose(f);
    }
    return text;
}

static bool has_output(void *arg) {
    struct waiting *w = arg;
    return strstr(output_of(w->c, w->job_id), w->text) != NULL;
}

void wait_output(struct controller *c, uint32_t job_id, const char *text) {
    struct waiting w = {c, job_id, text};
    wait_until(c, has_output, &w, text);
}
