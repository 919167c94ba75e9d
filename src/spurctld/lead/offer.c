/* SPDX-License-Identifier: Apache-2.0
 *
 * When a member offers its configuration file.
 */
#include <string.h>

#include "base/mem.h"
#include "spurctld/lead/inside.h"
#include "wire/messages.h"

static const struct member *member_of(const struct cluster *c, uint32_t id) {
    for (uint32_t i = 0; i < c->n_members; i++)
        if (c->members[i].id == id)
            return &c->members[i];
    return NULL;
}

static bool same_hash(const uint8_t *a, uint32_t n_a, const uint8_t *b, uint32_t n_b) {
    return n_a == n_b && (!n_a || memcmp(a, b, n_a) == 0);
}

/* The rule of the design: a member offers its file at its start only when that differs from the one it started with
 * last, and from what is in force; so a rolling restart onto a new file, or back, doesn't flap. With which one it started
 * is noted in any case: else it would offer an old file at some later fail-over. */
enum offer { OFFER_NOTHING, OFFER_NOTE, OFFER_FILE };

static enum offer what_to_offer(const struct lead *l) {
    struct view v;
    state_peek(l->room->state, &v);
    const struct rconf *mine = &l->room->conf->rep;
    const struct member *last = member_of(v.cluster, l->room->member_id);
    if (!v.cluster->conf)
        return OFFER_FILE;
    if (last && same_hash(last->hash, last->n_hash, mine->hash, mine->n_hash))
        return OFFER_NOTHING;
    bool is_in_force = same_hash(v.cluster->conf->hash, v.cluster->conf->n_hash, mine->hash, mine->n_hash);
    return is_in_force ? OFFER_NOTE : OFFER_FILE;
}

void lead_offer_config(struct lead *l, bool force, host_proposed_fn done, void *arg) {
    enum offer offer = force ? OFFER_FILE : what_to_offer(l);
    if (offer == OFFER_NOTHING) {
        done(arg, 0, NULL, 0, NULL, 0);
        return;
    }
    const struct rconf *mine = &l->room->conf->rep;
    struct cmd_config_set cmd = {.conf = offer == OFFER_FILE ? mine : NULL,
                                 .member_id = l->room->member_id,
                                 .hash = mine->hash,
                                 .n_hash = mine->n_hash};
    room_propose(l->room, CMD_CONFIG_SET, &cmd, 0, NULL, done, arg);
}

bool lead_has_offer(const struct lead *l, struct offer_request *out) {
    enum offer offer = what_to_offer(l);
    const struct rconf *mine = &l->room->conf->rep;
    *out = (struct offer_request){.conf = offer == OFFER_FILE ? mine : NULL, .hash = mine->hash, .n_hash = mine->n_hash};
    return offer != OFFER_NOTHING;
}

void lead_take_offer(struct lead *l, uint32_t member_id, const struct offer_request *req, host_proposed_fn done, void *arg) {
    struct cmd_config_set cmd = {.conf = req->conf, .member_id = member_id, .hash = req->hash, .n_hash = req->n_hash};
    room_propose(l->room, CMD_CONFIG_SET, &cmd, 0, NULL, done, arg);
}
