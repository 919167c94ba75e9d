/* SPDX-License-Identifier: Apache-2.0
 *
 * A leader whose own disk does not keep up, or refuses, hands the lead on.
 *
 * Slow is: the others have stored entries that this one has not (so they are committed without it), and its disk has finished
 * nothing for SLOW_MS. Where all disks are as slow nothing is handed on, since nobody would do better. It goes on asking while it
 * leads; the one that takes over is whoever has most.
 */
#include "io/journal/inside.h"

#define SLOW_MS 400
#define AGAIN_MS 500

static void nobody_asks(void *arg, int code, const struct err *why) {
}

static bool has_others(const struct raft *r) {
    unsigned voters = 0;
    for (unsigned i = 0; i < r->configuration.n; i++)
        voters += r->configuration.servers[i].role == RAFT_VOTER;
    return voters > 1;
}

static bool is_slow(struct journal *j, uint64_t now) {
    struct yielding *y = &j->yield;
    const struct raft *r = &j->inst->raft;
    if (r->last_stored != y->stored || raft_commit_index(r) <= r->last_stored) {
        y->stored = r->last_stored;
        y->since_ms = now;
    }
    return now - y->since_ms > SLOW_MS;
}

void yield_tick(struct journal *j) {
    struct yielding *y = &j->yield;
    struct instance *in = j->inst;
    uint64_t now = (uint64_t)loop_now_ms(j->loop);
    if (!in || in->broken || in->closing || j->stopping || raft_state(&in->raft) != RAFT_LEADER || !in->ready || !has_others(&in->raft)) {
        y->since_ms = now;
        return;
    }
    bool slow = is_slow(j, now);
    if ((!slow && j->trouble.code == 0) || j->change || (y->asked_ms && now - y->asked_ms < AGAIN_MS))
        return;
    y->asked_ms = now;
    out_notice(j->out, true, "this disk %s: the lead is handed on", slow ? "is too slow" : "takes no entries");
    change_yield(j, nobody_asks);
}
