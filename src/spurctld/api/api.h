/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's gRPC surface: bytes to values and back, who asks, whether the row of rpc.def lets them. What is
 * asked is decided elsewhere (admit, query).
 */
#ifndef SPUR_SPURCTLD_API_H
#define SPUR_SPURCTLD_API_H

#include "io/rpc/rpc.h"
#include "spurctld/room.h"
#include "wire/messages.h"
#include "wire/methods.h"

struct api;

/* What the controller as a whole answers for; ctl implements them. */
struct api_ctl {
    void *ctx;
    void (*ping)(void *ctx, struct ping_reply *out, struct arena *a);
    void (*diag)(void *ctx, bool reset, struct diag_reply *out, struct arena *a);
    /* Reads the file again and offers it; done's reply is a reconfigure_reply. */
    void (*config)(void *ctx, struct config_reply *out, struct arena *a);
    void (*reconfigure)(void *ctx, void (*done)(void *arg, int code, const struct err *why, const void *reply),
                        void *arg);
};

struct api *api_new(struct loop *l, struct room *r, const struct api_ctl *ctl);
void api_free(struct api *a);
int api_listen(struct api *a, const char *address, uint16_t *out_port, struct err *e);
void api_set_serving(struct api *a, bool serving);
void api_drain(struct api *a, uint64_t grace_ms, void (*done)(void *arg), void *arg);

struct api_method_stats {
    uint64_t calls, failed, total_us, max_us;
};
/* Requests by user; the i-th user of those that asked since the start, the first 1,000 of them. false: no more. */
struct api_user_stats {
    uint32_t uid;
    uint64_t calls, total_us;
};
bool api_user_stats(const struct api *a, uint32_t i, struct api_user_stats *out);
struct api_method_stats api_method_stats(const struct api *a, enum wire_method m);
uint64_t api_in_flight(const struct api *a);
void api_stats_reset(struct api *a);

#endif
