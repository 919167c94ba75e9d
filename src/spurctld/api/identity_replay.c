/* SPDX-License-Identifier: Apache-2.0
 *
 * Two generations of nonces. New ones go into the young one; when it is half a minute old it becomes the old one, and
 * the old one before it is forgotten. From then on whatever is not newer than the newest message of the forgotten
 * generation is refused:
 *
 *     taken  ⇔  sent > floor, and in neither generation
 *     every message that ever was taken is in a generation, or its time is ≤ floor
 *
 * A generation with messages from the future (a node's clock that is ahead) is kept until our clock has passed them:
 * else the node would be refused when its clock is put right.
 */
#include "spurctld/api/identity_replay.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

struct generation {
    struct map64 nonces;
    int64_t newest_ms; /* of its messages */
};

struct replay {
    struct generation young, old;
    int64_t young_since_ms, floor_ms;
    bool has_begun;
};

struct replay *replay_new(void) {
    struct replay *r = xnew(struct replay);
    r->floor_ms = r->young.newest_ms = r->old.newest_ms = INT64_MIN;
    return r;
}

void replay_free(struct replay *r) {
    if (!r)
        return;
    map64_fini(&r->young.nonces);
    map64_fini(&r->old.nonces);
    free(r);
}

static void turn(struct replay *r, int64_t now_ms) {
    r->floor_ms = MAX(r->floor_ms, r->old.newest_ms);
    map64_fini(&r->old.nonces);
    r->old = r->young;
    r->young = (struct generation){.newest_ms = INT64_MIN};
    r->young_since_ms = now_ms;
}

static void maybe_turn(struct replay *r, int64_t now_ms, int64_t unix_ms) {
    bool is_full = r->young.nonces.n >= REPLAY_MOST / 2;
    bool is_late = now_ms - r->young_since_ms >= REPLAY_KEEP_MS;
    bool is_ahead = r->old.nonces.n && r->old.newest_ms > unix_ms - REPLAY_KEEP_MS;
    if (is_full || (is_late && !is_ahead))
        turn(r, now_ms);
}

bool replay_seen(struct replay *r, uint64_t nonce, int64_t sent_ms, int64_t now_ms, int64_t unix_ms) {
    if (!r->has_begun)
        r->young_since_ms = now_ms;
    r->has_begun = true;
    maybe_turn(r, now_ms, unix_ms);
    if (sent_ms <= r->floor_ms || map64_get(&r->young.nonces, nonce) || map64_get(&r->old.nonces, nonce))
        return true;
    map64_put(&r->young.nonces, nonce, r);
    r->young.newest_ms = MAX(r->young.newest_ms, sent_ms);
    return false;
}
