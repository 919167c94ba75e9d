/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of rpc.def: each hands its message to the room that answers.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurctld/admit/admit.h"
#include "spurctld/admit/token.h"
#include "spurctld/api/request.h"
#include "spurctld/query/query.h"

#define TOKEN_DEFAULT_SECS 1800u
#define TOKEN_MOST_SECS (366u * 86400u)

void rpc_submit_job(struct request *rq) {
    admit_submit(rq->room, &rq->who, rq->message, api_on_record, rq);
}

void rpc_cancel_job(struct request *rq) {
    admit_cancel(rq->room, &rq->who, rq->message, api_on_record, rq);
}

void rpc_hold_job(struct request *rq) {
    admit_hold(rq->room, &rq->who, rq->message, api_on_record, rq);
}

void rpc_requeue_job(struct request *rq) {
    admit_requeue(rq->room, &rq->who, rq->message, api_on_record, rq);
}

void rpc_suspend_job(struct request *rq) {
    admit_suspend(rq->room, &rq->who, rq->message, api_on_record, rq);
}

void rpc_update_job(struct request *rq) {
    admit_update(rq->room, &rq->who, rq->message, api_on_record, rq);
}

void rpc_update_node(struct request *rq) {
    admit_update_node(rq->room, &rq->who, rq->message, api_on_record, rq);
}

void rpc_start_step(struct request *rq) {
    admit_step_start(rq->room, &rq->who, rq->message, api_on_record, rq);
}

void rpc_attach_step(struct request *rq) {
    admit_attach(rq->room, &rq->who, rq->message, api_on_record, rq);
}

/* An answer that waits for a job ends with its client, so that clients that come and go fill no bound. */
static void on_gone(struct rpc_call *c, void *data) {
    struct request *rq = data;
    query_leave(rq->room->query, rq->waits_for, rq);
}

static void leave_with_client(struct request *rq, uint32_t job_id) {
    rq->waits_for = job_id;
    rpc_set_data(rq->call, rq);
    rpc_on_cancel(rq->call, on_gone);
}

void rpc_attend_job(struct request *rq) {
    leave_with_client(rq, ((const struct attend_request *)rq->message)->job_id);
    query_attend(rq->room->query, &rq->who, rq->message, api_on_bytes, rq);
}

void rpc_get_jobs(struct request *rq) {
    query_jobs(rq->room, &rq->who, rq->message, api_on_bytes, rq);
}

void rpc_wait_job(struct request *rq) {
    const struct wait_request *req = rq->message;
    leave_with_client(rq, req->job_id);
    query_wait(rq->room->query, &rq->who, req->job_id, api_on_bytes, rq);
}

void rpc_get_nodes(struct request *rq) {
    query_nodes(rq->room, api_on_bytes, rq);
}

void rpc_get_history(struct request *rq) {
    query_history(rq->room, &rq->who, rq->message, api_on_bytes, rq);
}

void rpc_ping_ctl(struct request *rq) {
    const struct api_ctl *ctl = api_ctl_of(rq->api);
    struct ping_reply reply = {0};
    ctl->ping(ctl->ctx, &reply, &rq->arena);
    api_reply(rq, &reply);
}

void rpc_get_diag(struct request *rq) {
    const struct api_ctl *ctl = api_ctl_of(rq->api);
    const struct diag_request *req = rq->message;
    struct diag_reply reply = {0};
    if (req->reset && !rq->who.is_admin) {
        api_fail(rq, E_DENIED, NULL);
        return;
    }
    ctl->diag(ctl->ctx, req->reset, &reply, &rq->arena);
    api_reply(rq, &reply);
}

/* A token of one's own; an administrator may make one for anybody. Only for those who proved who they are. */
void rpc_make_token(struct request *rq) {
    const struct token_request *req = rq->message;
    struct err e;
    const char *user = req->user && *req->user ? req->user : rq->who.user;
    if (!rq->who.is_proven || (!str_eq(user, rq->who.user) && !rq->who.is_admin)) {
        api_fail(rq, E_DENIED, NULL);
        return;
    }
    if (!rq->room->jwt.n) {
        err_set(&e, E_UNSUPPORTED, "this controller has no [auth] jwt_key to sign tokens with");
        api_fail(rq, E_UNSUPPORTED, &e);
        return;
    }
    uint32_t secs = req->lifespan_secs ? req->lifespan_secs : TOKEN_DEFAULT_SECS;
    struct cred_claims claims = {.uid = -1, .issued = room_now_unix(rq->room)};
    if (secs > TOKEN_MOST_SECS || strlen(user) >= sizeof(claims.user)) {
        err_set(&e, E_SYNTAX, "a token can't live longer than %u s", TOKEN_MOST_SECS);
        api_fail(rq, E_SYNTAX, &e);
        return;
    }
    memcpy(claims.user, user, strlen(user) + 1);
    if (str_eq(user, rq->who.user))
        claims.uid = rq->who.uid;
    claims.expires = claims.issued + secs;
    autofree char *jwt = cred_jwt_make(&claims, &rq->room->jwt);
    struct token_reply reply = {jwt};
    api_reply(rq, &reply);
}

void rpc_join_token(struct request *rq) {
    admit_join_token(rq->room, &rq->who, rq->message, api_on_record, rq);
}

void rpc_reconfigure_ctl(struct request *rq) {
    const struct api_ctl *ctl = api_ctl_of(rq->api);
    ctl->reconfigure(ctl->ctx, api_on_record, rq);
}

void rpc_register_node(struct request *rq) {
    admit_register(rq->room, rq->message, api_on_record, rq);
}

void rpc_leave_node(struct request *rq) {
    admit_leave(rq->room, rq->message, api_on_record, rq);
}

void rpc_heartbeat_node(struct request *rq) {
    admit_heartbeat(rq->room, rq->message, api_on_record, rq);
}

void rpc_report_run(struct request *rq) {
    admit_report(rq->room, rq->message, api_on_record, rq);
}

void rpc_report_step(struct request *rq) {
    admit_step_report(rq->room, rq->message, api_on_record, rq);
}
