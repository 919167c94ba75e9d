/* SPDX-License-Identifier: Apache-2.0
 *
 * A bound on frames that cost the receiver more than the sender: pings, settings, resets, priorities, empty data, broken
 * ones. (Frames of unknown types are thrown away by nghttp2 and don't get here.) A bucket of tokens for each connection; whoever empties it is sent away. What
 * nghttp2 bounds itself (queued acknowledgements, entries of one SETTINGS, continuations, its own rate of resets) comes
 * on top. Internal to io/rpc.
 */
#ifndef SPUR_IO_RPC_GUARD_H
#define SPUR_IO_RPC_GUARD_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

enum { GUARD_BURST = 1000, GUARD_PER_S = 200 };

struct guard {
    uint32_t left;
    uint64_t last_ms;
};

void guard_init(struct guard *g, uint64_t now_ms);
/* Takes `cost` tokens. false: there are none left. */
bool guard_take(struct guard *g, uint64_t now_ms, uint32_t cost);
/* What the arrival of such a frame costs: 0 for those that carry a call forward. */
uint32_t guard_cost(const nghttp2_frame_hd *hd);

#endif
