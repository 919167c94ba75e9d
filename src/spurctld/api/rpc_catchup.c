/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of rpc.def by which a controller gets what it lacks from another one, and an administrator a backup.
 */
#include "spurctld/api/request.h"
#include "spurctld/catchup/catchup.h"

/* Whether this program has it at all. */
static struct catchup *catchup_of(struct request *rq) {
    if (!rq->room->catchup)
        api_fail(rq, E_STOPPING, NULL);
    return rq->room->catchup;
}

void rpc_member_manifest(struct request *rq) {
    struct catchup *c = catchup_of(rq);
    if (c)
        catchup_manifest(c, rq->message, api_on_bytes, rq);
}

void rpc_member_history(struct request *rq) {
    struct catchup *c = catchup_of(rq);
    if (c)
        catchup_history(c, rq->message, api_on_bytes, rq);
}

void rpc_member_file(struct request *rq) {
    struct catchup *c = catchup_of(rq);
    if (c)
        catchup_piece(c, rq->message, api_on_bytes, rq);
}

void rpc_member_blobs(struct request *rq) {
    struct catchup *c = catchup_of(rq);
    if (c)
        catchup_give_blobs(c, rq->message, api_on_bytes, rq);
}

void rpc_member_store_blobs(struct request *rq) {
    struct catchup *c = catchup_of(rq);
    if (c)
        catchup_take_blobs(c, rq->message, api_on_bytes, rq);
}

void rpc_member_digest(struct request *rq) {
    struct catchup *c = catchup_of(rq);
    struct digest_reply reply;
    if (!c)
        return;
    catchup_compare(c, rq->message, &reply);
    api_reply(rq, &reply);
}

void rpc_backup(struct request *rq) {
    struct catchup *c = catchup_of(rq);
    if (c)
        catchup_backup_ask(c, rq->message, api_on_bytes, rq);
}

void rpc_backup_piece(struct request *rq) {
    struct catchup *c = catchup_of(rq);
    if (c)
        catchup_backup_piece(c, rq->message, api_on_bytes, rq);
}
