/* SPDX-License-Identifier: Apache-2.0
 *
 * Tickets: what the controller lets a client do on a node, signed with the key that agents know. And Attach, which makes
 * one for a step that runs.
 */
#include "base/mem.h"
#include "spurctld/admit/step.h"
#include "wire/proof.h"

static int64_t end_of(const struct job *j) {
    if (j->time_limit_min == TIME_LIMIT_NONE)
        return 0;
    return (j->start_ms + job_rare_of(j)->suspended_total_ms) / 1000 + 60 * (int64_t)j->time_limit_min;
}

static void sign(struct room *r, const uint8_t hash[32], const struct node *n, struct arena *a,
                 struct step_ticket_signed *out) {
    auto_str text = {0};
    uint8_t *sig = arena_alloc(a, CRED_SIGNATURE_SIZE);
    proof_ticket_text(n->name, hash, &text);
    cred_sign(&r->launch_key, text.p, text.n, sig);
    struct node_place place = {n->name, n->address, n->port};
    *out = (struct step_ticket_signed){.signature = sig,
                                       .n_signature = CRED_SIGNATURE_SIZE,
                                       .place = arena_memdup(a, &place, sizeof(place))};
}

void tickets_make(struct room *r, enum ticket_use use, const struct job *j, const struct step *st, struct arena *a,
                  struct step_reply *out) {
    const struct rconf *conf = room_rconf(r);
    uint32_t n = st ? st->n_nodes : j->n_nodes;
    struct step_ticket_signed *tickets = arena_calloc(a, n + 1, sizeof(*tickets));
    struct view v;
    state_peek(r->state, &v);
    struct step_ticket t = {
        .use = use,
        .job_id = j->id,
        .start_no = j->start_no,
        .step_id = st ? st->id : 0,
        .uid = j->spec->uid,
        .gid = j->spec->gid,
        .user = j->spec->user,
        .expires_unix = room_now_unix(r) + PROOF_TICKET_SECS,
        .step = st,
        .spec = j->spec,
        .job_nodes = j->nodes,
        .n_job_nodes = j->n_nodes,
        .cluster_name = conf->cluster_name,
        .kill_wait_secs = conf->kill_wait_secs,
        .complete_wait_secs = conf->complete_wait_secs,
        .partition = j->partition,
        .job_end_unix = end_of(j),
        .restarts = j->restarts,
        .array = j->array,
        .job_start_unix = j->start_ms / 1000,
    };
    auto_buf bytes = {0};
    uint8_t hash[32];
    rec_encode(step_ticket_rec(), &t, &bytes);
    cred_hash(bytes.p, bytes.n, hash);
    out->ticket = arena_memdup(a, bytes.p, bytes.n);
    out->n_ticket = (uint32_t)bytes.n;
    out->n_tickets = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct node *node = view_node(&v, st ? st->nodes[i].node_id : j->nodes[i].node_id);
        if (node)
            sign(r, hash, node, a, &tickets[out->n_tickets++]);
    }
    out->tickets = tickets;
    out->step = st;
    out->job = j;
    out->cluster_name = conf->cluster_name;
}

static int check_attach(const struct who *who, const struct job *j, const struct step *st, bool wants_step,
                        struct err *e) {
    if (!j)
        return err_set(e, E_JOB_ID, NULL);
    if (!admit_may_steer(who, j))
        return err_set(e, E_DENIED, NULL);
    if (j->state == JOB_PENDING)
        return err_set(e, E_JOB_PENDING, NULL);
    if (j->state >= JOB_COMPLETED)
        return err_set(e, E_JOB_DONE, NULL);
    if (wants_step && !st)
        return err_set(e, E_STEP_ID, NULL);
    if (wants_step && st->end_ms)
        return err_set(e, E_JOB_DONE, NULL);
    return 0;
}

void admit_attach(struct room *r, const struct who *who, const struct attach_request *req, admit_fn done, void *arg) {
    struct view v;
    struct err e = {0};
    auto_arena a = {0};
    struct step_reply reply = {0};
    state_peek(r->state, &v);
    const struct job *j = view_job(&v, req->job_id);
    const struct step *st = req->step_id ? view_step(&v, req->job_id, req->step_id - 1) : NULL;
    int rc = check_attach(who, j, st, req->step_id != 0, &e);
    if (!rc)
        tickets_make(r, st ? TICKET_ATTACH : TICKET_COPY, j, st, &a, &reply);
    done(arg, rc, &e, &reply);
}
