/* SPDX-License-Identifier: Apache-2.0 */
#include "io/rpc/guard.h"

#include "base/mem.h"

void guard_init(struct guard *g, uint64_t now_ms) {
    g->left = GUARD_BURST;
    g->last_ms = now_ms;
}

bool guard_take(struct guard *g, uint64_t now_ms, uint32_t cost) {
    uint64_t back = (now_ms - g->last_ms) * GUARD_PER_S / 1000;
    if (back) { /* else the part of a token would be lost */
        g->left = (uint32_t)MIN(g->left + back, (uint64_t)GUARD_BURST);
        g->last_ms = now_ms;
    }
    if (g->left < cost) {
        g->left = 0;
        return false;
    }
    g->left -= cost;
    return true;
}

uint32_t guard_cost(const nghttp2_frame_hd *hd) {
    switch (hd->type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_WINDOW_UPDATE: /* answered by nothing; one comes for every few packets that we send */
        return 0;
    case NGHTTP2_CONTINUATION: /* nghttp2 counts those of one block */
        return 1;
    case NGHTTP2_DATA:
        return hd->length == 0 && !(hd->flags & NGHTTP2_FLAG_END_STREAM);
    default:
        return 1;
    }
}
