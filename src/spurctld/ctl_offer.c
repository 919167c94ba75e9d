/* SPDX-License-Identifier: Apache-2.0
 *
 * A member that doesn't lead offers its configuration file too, once, when it has started: by the same rule as a leader
 * (lead/offer.c), through the leader.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "spurctld/ctl_inside.h"
#include "spurctld/member/member.h"

#define OFFER_MS 10000

static void on_offered(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct ctl *c = arg;
    if (c->is_stopping || !c->journal || !code)
        return;
    if (code != E_NOT_LEADER && code != E_UNREACHABLE && code != E_CANCELLED && code != E_DEADLINE)
        log_warn("the configuration was not taken by the leader: %s", why->text);
    else
        c->has_offered = false; /* once more, with the next leader */
}

void ctl_offer_as_follower(struct ctl *c) {
    struct offer_request req;
    struct buf bytes = {0};
    uint32_t leader = member_leader(&c->room);
    if (c->has_offered || !leader || leader == c->room.member_id || !c->links)
        return;
    c->has_offered = true;
    if (!lead_has_offer(c->room.lead, &req))
        return;
    rec_encode(offer_request_rec(), &req, &bytes);
    c->room.host->member_send(c->room.host->impl, leader, wire_method(WIRE_Member_Offer)->path, bytes, OFFER_MS, on_offered, c);
}

struct offered {
    void (*done)(void *arg, int code, const struct err *why, const void *reply);
    void *arg;
};

static void on_taken(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct offered o = *(struct offered *)arg;
    struct nothing reply = {0};
    free(arg);
    o.done(o.arg, code, why, &reply);
}

void ctl_offer(void *ctx, uint32_t member_id, const struct offer_request *req,
               void (*done)(void *arg, int code, const struct err *why, const void *reply), void *arg) {
    struct ctl *c = ctx;
    struct offered *o = xnew(struct offered);
    *o = (struct offered){done, arg};
    log_info("controller %u %s", member_id, req->conf ? "started with another configuration, which is taken" : "started with the configuration in force");
    lead_take_offer(c->room.lead, member_id, req, on_taken, o);
}
