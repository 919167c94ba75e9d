/* SPDX-License-Identifier: Apache-2.0
 *
 * A submission: check it (submit_check.c); then put script and environment beside the log, and only when both are on disk
 * propose the entry that names them. A repeat of one that is in the state gets its first answer, whatever the checks
 * would say today. An interactive job has neither.
 */
#include <string.h>

#include "base/mem.h"
#include "core/model/policy.h"
#include "core/sched/sched.h"
#include "spurctld/admit/submission.h"
#include "spurctld/lead/lead.h"

#define ID_TRIES 8u

static void finish(struct submission *sub, int code, const struct err *why, const struct submit_reply *reply) {
    sub->done(sub->arg, code, why, reply);
    arena_fini(&sub->arena);
    free(sub);
}

static void propose(struct submission *sub);

static void on_proposed(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct submission *sub = arg;
    struct answer a = {0};
    struct err e;
    if (code == E_EXISTS && sub->n_ids < ID_TRIES) { /* an earlier leader had given that number away */
        propose(sub);
        return;
    }
    if (!code)
        code = rec_decode(answer_rec(), answer, n, &sub->arena, &a, &e);
    struct submit_reply reply = {
        .job_id = a.job_id, .sluid = a.sluid, .warnings = sub->warnings, .n_warnings = sub->n_warnings};
    finish(sub, code, why, &reply);
}

static void propose(struct submission *sub) {
    char sluid[SLUID_SIZE];
    lead_new_sluid(sub->room, sluid);
    struct err e;
    uint32_t id = lead_take_job_id(sub->room);
    sub->n_ids++;
    if (!id) {
        err_set(&e, E_ID_SPACE, NULL);
        finish(sub, E_ID_SPACE, &e, NULL);
        return;
    }
    if (!job_spec_more(&sub->spec)->interactive) {
        sub->spec.script_hash = sub->script_hash;
        sub->spec.env_hash = sub->env_hash;
        sub->spec.n_script_hash = sub->spec.n_env_hash = 32;
    }
    struct cmd_submit cmd = {.job_id = id, .sluid = sluid, .spec = &sub->spec};
    const struct job_more *more = job_spec_more(&sub->spec);
    if (more->n_array_ranges && policy_of(room_rconf(sub->room)->flavor)->raw_task_ids)
        cmd.first_task_id = lead_take_ids_behind(sub->room, array_count(more->array_ranges, more->n_array_ranges));
    room_propose(sub->room, CMD_SUBMIT, &cmd, sub->uid, sub->has_token ? sub->token : NULL, on_proposed, sub);
}

static void one_stored(struct submission *sub, int code, const struct err *why) {
    if (code && !sub->failed) {
        sub->failed = code;
        sub->why = *why;
    }
    if (--sub->waiting)
        return;
    if (sub->failed) {
        room_complain(sub->room, "a job was refused because its script could not be stored: %s", sub->why.text);
        finish(sub, sub->failed, &sub->why, NULL);
    } else {
        propose(sub);
    }
}

static void on_script_stored(void *arg, int code, const struct err *why, const uint8_t hash[32]) {
    struct submission *sub = arg;
    if (!code)
        memcpy(sub->script_hash, hash, 32);
    one_stored(sub, code, why);
}

static void on_env_stored(void *arg, int code, const struct err *why, const uint8_t hash[32]) {
    struct submission *sub = arg;
    if (!code)
        memcpy(sub->env_hash, hash, 32);
    one_stored(sub, code, why);
}

static void past_known(void *sub) {
    one_stored(sub, 0, NULL);
}

static void propose_past(void *sub) {
    propose(sub);
}

static bool look_back(struct submission *sub, void (*done)(void *sub)) {
    struct dep *deps = arena_memdup(&sub->arena, sub->spec.deps, sub->spec.n_deps * sizeof(*deps));
    sub->spec.deps = deps;
    return deps_past(sub->room, deps, sub->spec.n_deps, done, sub);
}

/* When and where it would start; on a worker, since that may take a plan. Nothing is kept. */
struct trial {
    struct submission *sub;
    struct view view;
    int64_t now_unix;
    struct sched_would would;
    int code;
    struct err why;
};

static void try_it(void *arg) {
    struct trial *t = arg;
    struct job j = {.spec = &t->sub->spec, .nice = t->sub->spec.nice, .submit_ms = t->now_unix * 1000};
    t->code = sched_would_start(&t->view, &j, t->now_unix, &t->sub->arena, &t->would, &t->why);
}

static void on_tried(void *arg) {
    struct trial *t = arg;
    struct submission *sub = t->sub;
    struct submit_reply reply = {.job_id = lead_next_job_id(sub->room),
                                 .warnings = sub->warnings,
                                 .n_warnings = sub->n_warnings,
                                 .start_unix = t->would.start_unix,
                                 .n_cpus = t->would.n_cpus,
                                 .partition = arena_strdup(&sub->arena, t->would.partition)};
    const char **names = arena_calloc(&sub->arena, t->would.n_nodes + 1, sizeof(*names));
    for (uint32_t i = 0; !t->code && i < t->would.n_nodes; i++) {
        const struct node *n = view_node(&t->view, t->would.nodes[i].node_id);
        if (n)
            names[reply.n_nodes++] = arena_strdup(&sub->arena, n->name);
    }
    reply.nodes = names;
    state_view_end(&t->view);
    finish(sub, t->code, &t->why, &reply);
    free(t);
}

static void test_only(struct submission *sub) {
    struct host *h = sub->room->host;
    struct trial *t = xnew(struct trial);
    t->sub = sub;
    t->now_unix = room_now_unix(sub->room);
    state_view(sub->room->state, &t->view);
    h->work(h->impl, try_it, on_tried, t);
}

static void store_blobs(struct submission *sub, const struct submit_request *req) {
    struct host *h = sub->room->host;
    struct buf script = {0}, env = {0};
    buf_add(&script, req->script, req->n_script);
    buf_add(&env, req->env, req->n_env);
    sub->waiting = 3; /* one is ours, so that a store that answers at once does not finish before the other began */
    sub->waiting += look_back(sub, past_known);
    h->store(h->impl, script, on_script_stored, sub);
    h->store(h->impl, env, on_env_stored, sub);
    one_stored(sub, 0, NULL);
}

/* A copy of the request's spec that outlives it. */
static void copy_spec(struct submission *sub, const struct job_spec *spec) {
    auto_buf bytes = {0};
    rec_encode(job_spec_rec(), spec, &bytes);
    sub->n_spec = bytes.n;
    must(rec_decode(job_spec_rec(), bytes.p, bytes.n, &sub->arena, &sub->spec, NULL) == 0);
}

void admit_submit(struct room *r, const struct who *who, const struct submit_request *req, admit_fn done, void *arg) {
    struct submission *sub = xnew(struct submission);
    sub->room = r;
    sub->done = done;
    sub->arg = arg;
    sub->uid = who->uid;
    sub->warnings = arena_calloc(&sub->arena, SUBMIT_WARNINGS_MAX, sizeof(*sub->warnings));
    copy_spec(sub, req->spec ? req->spec : &(struct job_spec){0});
    sub->has_token = req->n_token == TOKEN_SIZE;
    if (sub->has_token)
        memcpy(sub->token, req->token, TOKEN_SIZE);
    struct err e = {0};
    int rc = submission_check(sub, who, req, &e);
    const void *answer;
    size_t n;
    if (sub->has_token && state_answered(r->state, sub->token, sub->uid, &answer, &n))
        on_proposed(sub, 0, NULL, 0, answer, n);
    else if (rc)
        finish(sub, rc, &e, NULL);
    else if (req->test_only)
        test_only(sub);
    else if (job_spec_more(&sub->spec)->interactive && !look_back(sub, propose_past))
        propose(sub);
    else if (!job_spec_more(&sub->spec)->interactive)
        store_blobs(sub, req);
}
