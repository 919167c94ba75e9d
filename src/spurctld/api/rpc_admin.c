/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of rpc.def that serve scontrol alone.
 */
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "spurctld/admit/admit.h"
#include "spurctld/api/request.h"
#include "spurctld/query/query.h"

void rpc_update_partition(struct request *rq) {
    admit_partition(rq->room, &rq->who, rq->message, api_on_record, rq);
}

void rpc_get_script(struct request *rq) {
    query_script(rq->room, &rq->who, ((const struct script_request *)rq->message)->job_id, api_on_bytes, rq);
}

void rpc_why(struct request *rq) {
    query_why(rq->room, rq->message, api_on_bytes, rq);
}

void rpc_get_config(struct request *rq) {
    const struct api_ctl *ctl = api_ctl_of(rq->api);
    struct config_reply reply = {0};
    ctl->config(ctl->ctx, &reply, &rq->arena);
    api_reply(rq, &reply);
}

void rpc_set_log_level(struct request *rq) {
    const struct log_level_request *req = rq->message;
    struct nothing reply = {0};
    enum log_level level;
    struct err e;
    if (!req->level || log_level_parse(req->level, &level)) {
        err_set(&e, E_SYNTAX, "invalid debug level: %s", req->level ? req->level : "");
        api_fail(rq, E_SYNTAX, &e);
        return;
    }
    log_set_level(level);
    api_reply(rq, &reply);
}

/* As if the system had asked: what is in flight, this answer too, is finished first. */
void rpc_shutdown_ctl(struct request *rq) {
    struct nothing reply = {0};
    log_info("%s asks this controller to stop", rq->who.user ? rq->who.user : "an administrator");
    api_reply(rq, &reply);
    kill(getpid(), SIGTERM);
}
