/* SPDX-License-Identifier: Apache-2.0
 *
 * What agents say: I am here, I live, a run is over. Who speaks was proven before (api/identity); here it is decided
 * whether it may, and what it means.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/model/policy.h"
#include "spurctld/admit/admit.h"
#include "spurctld/admit/token.h"
#include "spurctld/lead/lead.h"

#define NODE_CPUS_MAX 65536u
#define NODE_TEXT_MAX 255u
#define NODE_FEATURES_MAX 256u
#define RUNS_MAX 65536u
#define REPORT_TEXT_MAX 1024u
#define HEARTBEAT_MS 5000u
#define STEP_ARRIVES_MS 60000 /* a step's client has brought it to its nodes by then */
#define WAIT_STATUS_KILLED 9u

struct pending {
    struct room *room;
    struct arena arena;
    struct register_request req;
    admit_fn done;
    void *arg;
};

static void finish(struct pending *p, int code, const struct err *why, const void *reply) {
    p->done(p->arg, code, why, reply);
    arena_fini(&p->arena);
    free(p);
}

/* All that a node says stays in the state and in each snapshot. */
static bool is_too_long(const struct node *n) {
    const char *const texts[] = {n->address, n->hostname, n->arch, n->os, n->version, n->boot_id};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i] && strlen(texts[i]) > NODE_TEXT_MAX)
            return true;
    for (uint32_t i = 0; i < n->n_features && i < NODE_FEATURES_MAX; i++)
        if (strlen(n->features[i]) > NODE_TEXT_MAX)
            return true;
    for (uint32_t i = 0; i < n->n_labels && i < NODE_FEATURES_MAX; i++)
        if (!label_key_ok(n->labels[i].key) || !label_value_ok(n->labels[i].value))
            return true;
    return n->n_features > NODE_FEATURES_MAX || n->n_labels > NODE_FEATURES_MAX;
}

static int check_node(const struct node *n, struct err *e) {
    if (!n || !n->name || !*n->name || strlen(n->name) > 255 || strpbrk(n->name, " ,[]\t\n"))
        return err_set(e, E_NODE_NAME, "%s", err_sentence(E_NODE_NAME));
    if (!n->cpus || n->cpus > NODE_CPUS_MAX)
        return err_set(e, E_SYNTAX, "node %s says it has %u CPUs", n->name, n->cpus);
    if (n->n_public_key != CRED_PUBLIC_SIZE)
        return err_set(e, E_NODE_KEY, "node %s registers without its key", n->name);
    if (!n->address || !*n->address || !n->port || n->port > 65535)
        return err_set(e, E_SYNTAX, "node %s registers without an address", n->name);
    if (is_too_long(n))
        return err_set(e, E_TOO_BIG, "node %s says too much of itself", n->name);
    return 0;
}

/* A node that is known by its key may always come back. Nobody takes the name of a node that lives, whatever they show:
 * a join token lies on every node. A new node, or a new key, needs the token where [admission] asks for it. */
static int check_admission(struct room *r, const struct register_request *req, struct err *e) {
    const struct node *old = state_find_node(r->state, req->node->name);
    if (old && old->n_public_key == CRED_PUBLIC_SIZE &&
        memcmp(old->public_key, req->node->public_key, CRED_PUBLIC_SIZE) == 0)
        return 0;
    if (old && old->base == NODE_UP && !old->not_responding)
        return err_set(e, E_ADMISSION, "node %s may not join: another agent of that name is up, with another key",
                       req->node->name);
    return room_rconf(r)->admission_token ? admit_check_join_token(r, req->node->name, req->join_token, e) : 0;
}

static const struct run_ref *find_run(const struct run_ref *runs, uint32_t n, uint32_t job_id, uint32_t start_no,
                                      uint32_t step_plus_1) {
    for (uint32_t i = 0; i < n; i++)
        if (runs[i].job_id == job_id && runs[i].start_no == start_no && runs[i].step_id == step_plus_1)
            return &runs[i];
    return NULL;
}

static bool step_is_on(const struct step *st, uint32_t node_id) {
    for (uint32_t i = 0; i < st->n_nodes; i++)
        if (st->nodes[i].node_id == node_id)
            return !st->nodes[i].is_done;
    return false;
}

/* Whether the state has it there: a run, or a step of one. */
static bool is_known_run(const struct view *v, uint32_t node_id, const struct run_ref *run) {
    const struct job *j = view_job(v, run->job_id);
    if (!j || j->start_no != run->start_no || !job_holds_nodes(j) || !job_held_on(j, node_id))
        return false;
    if (!run->step_id)
        return true;
    const struct step *st = view_step(v, run->job_id, run->step_id - 1);
    return st && st->start_no == run->start_no && !step_is_over(st) && step_is_on(st, node_id);
}

/* Runs and steps that the agent has and the state does not know: they must go. Whether there is one that lives: its share was
 * given back when the node was given up, and nothing else may run there until it is really free. */
static bool strangers(struct room *r, uint32_t node_id, const struct run_ref *runs, uint32_t n, struct arena *a,
                      const struct run_ref **out, uint32_t *out_n) {
    struct view v;
    state_peek(r->state, &v);
    struct run_ref *end = arena_calloc(a, n + 1, sizeof(*end));
    uint32_t n_end = 0;
    bool any_lives = false;
    for (uint32_t i = 0; i < n; i++) {
        if (is_known_run(&v, node_id, &runs[i]))
            continue;
        end[n_end++] = runs[i];
        any_lives |= runs[i].state != RUN_ENDED;
    }
    *out = end;
    *out_n = n_end;
    return any_lives;
}

typedef VEC(struct cmd_step_done) step_ends;

/* The same of a run's steps. One that was begun not long ago may still be on its way: its client brings it. */
static void find_lost_steps(struct room *r, const struct view *v, const struct job *j, uint32_t node_id,
                            const struct run_ref *runs, uint32_t n, step_ends *out) {
    int64_t now_ms = r->host->unix_ms(r->host->impl);
    const struct step *st;
    if (!job_rare_of(j)->next_step_id)
        return;
    for (uint64_t k = step_key(j->id, 0); (st = view_next_step(v, &k)) && st->job_id == j->id; k++) {
        if (step_is_over(st) || st->start_no != j->start_no || !step_is_on(st, node_id))
            continue;
        if (find_run(runs, n, j->id, j->start_no, st->id + 1)) {
            lead_listed(r->lead, j->id, j->start_no, st->id + 1, node_id);
        } else if (now_ms - st->start_ms > STEP_ARRIVES_MS &&
                   lead_suspect(r->lead, j->id, j->start_no, st->id + 1, node_id)) {
            struct cmd_step_done cmd = {.job_id = j->id,
                                        .start_no = j->start_no,
                                        .step_id = st->id,
                                        .node_id = node_id,
                                        .wait_status = WAIT_STATUS_KILLED,
                                        .text = "the node has lost the step",
                                        .end_ms = now_ms};
            vec_push(out, cmd);
        }
    }
}

/* Runs that the state has on this node and the agent's list does not: lost, if a second list says so too. The list may
 * have been written before the launch that it lacks. */
static void report_lost(struct room *r, uint32_t node_id, const struct run_ref *runs, uint32_t n) {
    struct view v;
    state_peek(r->state, &v);
    VEC(struct cmd_node_done) lost = {0};
    step_ends lost_steps = {0};
    size_t cursor = 0;
    uint32_t id;
    while (lead_next_holding(r->lead, &cursor, &id)) {
        const struct job *j = view_job(&v, id);
        if (!j || !job_holds_nodes(j) || j->configuring || !job_held_on(j, node_id))
            continue;
        if (find_run(runs, n, j->id, j->start_no, 0)) {
            lead_listed(r->lead, j->id, j->start_no, 0, node_id);
            find_lost_steps(r, &v, j, node_id, runs, n, &lost_steps);
        } else if (lead_suspect(r->lead, j->id, j->start_no, 0, node_id)) {
            struct cmd_node_done cmd = {.job_id = j->id,
                                        .start_no = j->start_no,
                                        .node_id = node_id,
                                        .node_failed = true,
                                        .text = "the node came back without the job",
                                        .end_ms = r->host->unix_ms(r->host->impl)};
            vec_push(&lost, cmd);
        }
    }
    for (size_t i = 0; i < lost.n; i++) {
        char sluid[SLUID_SIZE];
        lead_new_sluid(r, sluid);
        lost.p[i].new_sluid = sluid;
        room_propose_quietly(r, CMD_NODE_DONE, &lost.p[i]);
    }
    for (size_t i = 0; i < lost_steps.n; i++)
        room_propose_quietly(r, CMD_STEP_DONE, &lost_steps.p[i]);
    vec_fini(&lost);
    vec_fini(&lost_steps);
}

static void on_registered(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct pending *p = arg;
    struct answer a = {0};
    struct err e;
    struct register_reply reply = {.heartbeat_ms = HEARTBEAT_MS,
                                   .goodbye = policy_of(room_rconf(p->room)->flavor)->agents_say_goodbye};
    if (!code)
        code = rec_decode(answer_rec(), answer, n, &p->arena, &a, &e);
    if (code) {
        finish(p, code, why, NULL);
        return;
    }
    reply.node_id = a.node_id;
    reply.controller_key = p->room->launch_key.pub.b;
    reply.n_controller_key = CRED_PUBLIC_SIZE;
    reply.cluster_name = room_rconf(p->room)->cluster_name;
    lead_heard(p->room->lead, a.node_id, 0, 0);
    strangers(p->room, a.node_id, p->req.runs, p->req.n_runs, &p->arena, &reply.end, &reply.n_end);
    report_lost(p->room, a.node_id, p->req.runs, p->req.n_runs);
    log_info("node %s registered: id %u, %u CPUs, %llu MiB, at %s:%u", p->req.node->name, a.node_id,
             p->req.node->cpus, (unsigned long long)p->req.node->mem_mb, p->req.node->address, p->req.node->port);
    finish(p, 0, NULL, &reply);
}

/* "Nothing changed" costs no log entry: an agent that registers again as it was, on a node that is up. */
static uint32_t unchanged(struct room *r, const struct node *said) {
    const struct node *old = state_find_node(r->state, said->name);
    if (!old || old->base != NODE_UP || old->not_responding)
        return 0;
    struct node_said before = node_said(old), now = node_said(said);
    struct node same = *old;
    same.port = said->port;
    same.agent_start_unix = said->agent_start_unix;
    same.boot_unix = said->boot_unix;
    same.version = said->version;
    same.boot_id = said->boot_id;
    same.os = said->os;
    same.arch = said->arch;
    same.hostname = said->hostname;
    now.has_shape = before.has_shape;
    if (before.has_shape) { /* the file says otherwise */
        now.sockets = said->sockets, now.cores_per_socket = said->cores_per_socket;
        now.threads_per_core = said->threads_per_core, now.tmp_disk_mb = said->tmp_disk_mb;
    } else {
        same.sockets = said->sockets, same.cores_per_socket = said->cores_per_socket;
        same.threads_per_core = said->threads_per_core, same.tmp_disk_mb = said->tmp_disk_mb;
    }
    return rec_same(node_rec(), old, &same) && rec_same(node_said_rec(), &before, &now) ? old->id : 0;
}

/* The agent of a node that was removed: it ends what it has, and stays out. */
static bool was_removed(struct room *r, const struct register_request *req, admit_fn done, void *arg) {
    struct view v;
    state_peek(r->state, &v);
    const struct removed_node *gone = cluster_removed(v.cluster, req->node->name);
    if (!gone || !removed_is_same(gone, req->node) || state_find_node(r->state, req->node->name))
        return false;
    struct register_reply reply = {.heartbeat_ms = HEARTBEAT_MS,
                                   .controller_key = r->launch_key.pub.b,
                                   .n_controller_key = CRED_PUBLIC_SIZE,
                                   .end = req->runs,
                                   .n_end = req->n_runs,
                                   .removed = true};
    done(arg, 0, NULL, &reply);
    return true;
}

void admit_register(struct room *r, const struct register_request *req, admit_fn done, void *arg) {
    struct err e = {0};
    int rc = check_node(req->node, &e);
    if (!rc && req->n_runs > RUNS_MAX)
        rc = err_set(&e, E_TOO_BIG, "node %s lists more than %u runs", req->node->name, RUNS_MAX);
    if (!rc && was_removed(r, req, done, arg))
        return;
    if (!rc)
        rc = check_admission(r, req, &e);
    if (rc) {
        done(arg, rc, &e, NULL);
        return;
    }
    struct pending *p = xnew(struct pending);
    p->room = r;
    p->done = done;
    p->arg = arg;
    auto_buf bytes = {0};
    rec_encode(register_request_rec(), req, &bytes);
    must(rec_decode(register_request_rec(), bytes.p, bytes.n, &p->arena, &p->req, NULL) == 0);
    struct node node = *p->req.node;
    node.said = NULL; /* ours, not an agent's to say */
    node.label_changes = NULL;
    node.n_label_changes = 0;
    p->req.node = arena_memdup(&p->arena, &node, sizeof(node));
    const struct node *old = state_find_node(r->state, node.name);
    const struct run_ref *end;
    uint32_t n_end;
    bool has_strangers = strangers(r, old ? old->id : 0, p->req.runs, p->req.n_runs, &p->arena, &end, &n_end);
    uint32_t same = has_strangers ? 0 : unchanged(r, p->req.node);
    if (same) {
        struct answer a = {.node_id = same};
        auto_buf answer = {0};
        rec_encode(answer_rec(), &a, &answer);
        on_registered(p, 0, NULL, 0, answer.p, answer.n);
        return;
    }
    struct cmd_node_register cmd = {.node = p->req.node, .has_strangers = has_strangers};
    room_propose(r, CMD_NODE_REGISTER, &cmd, 0, NULL, on_registered, p);
}

void admit_heartbeat(struct room *r, const struct heartbeat_request *req, admit_fn done, void *arg) {
    const struct node *n = state_find_node(r->state, req->name);
    struct heartbeat_reply reply = {0};
    auto_arena a = {0};
    struct err e;
    if (req->n_runs > RUNS_MAX) {
        done(arg, err_set(&e, E_TOO_BIG, "node %s lists more than %u runs", req->name, RUNS_MAX), &e, NULL);
        return;
    }
    bool is_known = n && (n->base == NODE_UP || n->down_set) && str_eq(n->boot_id, req->boot_id) &&
                    n->agent_start_unix == req->agent_start_unix;
    if (!is_known || (n->not_responding && !lead_is_shunned(r->lead, n->id))) {
        reply.register_again = true;
    } else {
        lead_heard(r->lead, n->id, req->cpu_load_hundredths, req->free_mem_mb);
        reply.send_runs = lead_runs_changed(r->lead, n->id, req->runs_hash, req->has_runs);
        if (req->has_runs) {
            reply.register_again = strangers(r, n->id, req->runs, req->n_runs, &a, &reply.end, &reply.n_end);
            report_lost(r, n->id, req->runs, req->n_runs);
        }
    }
    done(arg, 0, NULL, &reply);
}

static void on_left(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct pending *p = arg;
    struct nothing reply = {0};
    finish(p, code, why, &reply);
}

/* A node whose agent stops goes with it where the policy says so, unless jobs run there: they go on without it. */
void admit_leave(struct room *r, const struct leave_request *req, admit_fn done, void *arg) {
    const struct node *n = state_find_node(r->state, req->name);
    struct nothing reply = {0};
    bool is_this = n && str_eq(n->boot_id, req->boot_id) && n->agent_start_unix == req->agent_start_unix;
    if (!is_this || n->n_jobs || !policy_of(room_rconf(r)->flavor)->agents_say_goodbye) {
        done(arg, 0, NULL, &reply);
        return;
    }
    struct pending *p = xnew(struct pending);
    *p = (struct pending){.room = r, .done = done, .arg = arg};
    struct cmd_node_update cmd = {.node_ids = &n->id, .n_node_ids = 1, .op = NODE_OP_DELETE};
    log_info("node %s leaves: its agent stops", n->name);
    room_propose(r, CMD_NODE_UPDATE, &cmd, 0, NULL, on_left, p);
}

struct report {
    admit_fn done;
    void *arg;
    uint32_t node_id;
    bool has_text;
    char text[REPORT_TEXT_MAX + 1];
};

/* NULL: nobody knows the node, which was answered. */
static struct report *report_begin(struct room *r, const char *name, const char *text, admit_fn done, void *arg) {
    struct err e;
    const struct node *n = state_find_node(r->state, name);
    if (!n) {
        err_set(&e, E_NODE_NAME, "%s", err_sentence(E_NODE_NAME));
        done(arg, E_NODE_NAME, &e, NULL);
        return NULL;
    }
    struct report *rp = xnew(struct report);
    *rp = (struct report){.done = done, .arg = arg, .node_id = n->id, .has_text = text};
    snprintf(rp->text, sizeof(rp->text), "%s", text ? text : "");
    return rp;
}

static void on_reported(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct report *rp = arg;
    struct nothing reply = {0};
    rp->done(rp->arg, code, why, &reply);
    free(rp);
}

void admit_report(struct room *r, const struct run_report *req, admit_fn done, void *arg) {
    struct report *rp = report_begin(r, req->name, req->text, done, arg);
    if (!rp)
        return;
    char sluid[SLUID_SIZE];
    lead_new_sluid(r, sluid);
    struct cmd_node_done cmd = {
        .job_id = req->job_id,
        .new_sluid = req->node_failed ? sluid : NULL,
        .start_no = req->start_no,
        .node_id = rp->node_id,
        .wait_status = req->wait_status,
        .out_of_memory = req->out_of_memory,
        .never_started = req->never_started,
        .node_failed = req->node_failed,
        .text = rp->has_text ? rp->text : NULL,
        .end_ms = req->end_ms,
        .max_rss_kb = req->max_rss_kb,
        .user_cpu_us = req->user_cpu_us,
        .sys_cpu_us = req->sys_cpu_us,
        .drain_node = req->drain_node,
        .stays = req->stays,
    };
    room_propose(r, CMD_NODE_DONE, &cmd, 0, NULL, on_reported, rp);
}

void admit_step_report(struct room *r, const struct step_report *req, admit_fn done, void *arg) {
    struct report *rp = report_begin(r, req->name, req->text, done, arg);
    if (!rp)
        return;
    struct cmd_step_done cmd = {
        .job_id = req->job_id,
        .start_no = req->start_no,
        .step_id = req->step_id,
        .node_id = rp->node_id,
        .wait_status = req->wait_status,
        .out_of_memory = req->out_of_memory,
        .never_started = req->never_started,
        .text = rp->has_text ? rp->text : NULL,
        .end_ms = req->end_ms,
        .max_rss_kb = req->max_rss_kb,
        .user_cpu_us = req->user_cpu_us,
        .sys_cpu_us = req->sys_cpu_us,
    };
    room_propose(r, CMD_STEP_DONE, &cmd, 0, NULL, on_reported, rp);
}
