/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of rpc.def that controllers call on each other, and what changes who they are.
 */
#include "spurctld/api/request.h"
#include "spurctld/member/member.h"

void rpc_member_confirm(struct request *rq) {
    struct confirm_reply reply;
    member_confirm(rq->room, rpc_peer(rq->call)->member_id, rq->message, &reply);
    api_reply(rq, &reply);
}

static void on_index(void *arg, int code, const struct err *why, uint64_t index, uint64_t term) {
    struct read_index_reply reply = {.index = index, .term = term};
    api_on_record(arg, code, why, &reply);
}

void rpc_member_read_index(struct request *rq) {
    member_read_index(rq->room, on_index, rq);
}

void rpc_member_hello(struct request *rq) {
    const struct api_ctl *ctl = api_ctl_of(rq->api);
    struct hello_reply reply = {0};
    ctl->hello(ctl->ctx, rq->message, &reply);
    api_reply(rq, &reply);
}

static void on_done(void *arg, int code, const struct err *why) {
    struct nothing reply = {0};
    api_on_record(arg, code, why, &reply);
}

void rpc_member_join(struct request *rq) {
    const struct join_request *req = rq->message;
    member_join(rq->room, rpc_peer(rq->call)->member_id, req->address, on_done, rq);
}

void rpc_member_offer(struct request *rq) {
    const struct api_ctl *ctl = api_ctl_of(rq->api);
    ctl->offer(ctl->ctx, rpc_peer(rq->call)->member_id, rq->message, api_on_record, rq);
}

void rpc_member_reread(struct request *rq) {
    const struct api_ctl *ctl = api_ctl_of(rq->api);
    ctl->reread(ctl->ctx, api_on_record, rq);
}

void rpc_change_controller(struct request *rq) {
    member_change(rq->room, rq->message, on_done, rq);
}
