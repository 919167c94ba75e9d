/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/room.h"

#include "base/log.h"
#include "base/mem.h"

void room_propose(struct room *r, enum command c, const void *record, uint32_t uid, const uint8_t *token,
                  host_proposed_fn fn, void *arg) {
    struct command_head h = {
        .command = c, .uid = uid, .now_ms = r->host->unix_ms(r->host->impl), .token = token};
    struct buf entry = {0};
    command_encode(&h, record, &entry);
    r->host->propose(r->host->impl, entry, fn, arg);
}

static void ignore(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    if (code && code != E_STALE && code != E_NOT_LEADER && code != E_STOPPING)
        log_warn("%s refused: %s", command_name((enum command)(uintptr_t)arg), why ? why->text : err_sentence(code));
}

void room_propose_quietly(struct room *r, enum command c, const void *record) {
    room_propose(r, c, record, 0, NULL, ignore, (void *)(uintptr_t)c);
}

const struct rconf *room_rconf(const struct room *r) {
    static const struct rconf none;
    struct view v;
    state_peek(r->state, &v);
    return v.cluster->conf ? v.cluster->conf : &none;
}
