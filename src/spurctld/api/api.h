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

struct tls;
struct api;

/* What the controller as a whole answers for; ctl implements them. */
struct api_ctl {
    void *ctx;
    void (*ping)(void *ctx, struct ping_reply *out, struct arena *a);
    void (*diag)(void *ctx, bool reset, struct diag_reply *out, struct arena *a);
    void (*config)(void *ctx, struct config_reply *out, struct arena *a);
    /* Reads the file again and offers it, and has the other members read theirs; done's reply is a reconfigure_reply. */
    void (*reconfigure)(void *ctx, void (*done)(void *arg, int code, const struct err *why, const void *reply),
                        void *arg);
    /* Reads this member's file again, for its local part alone; a reread_reply. */
    void (*reread)(void *ctx, void (*done)(void *arg, int code, const struct err *why, const void *reply), void *arg);
    /* Another controller with an empty directory asks what is here. */
    void (*hello)(void *ctx, const struct hello_request *req, struct hello_reply *out);
    /* The file of another controller, on the leader: is noted, and taken where it has one to offer. */
    void (*offer)(void *ctx, uint32_t member_id, const struct offer_request *req,
                  void (*done)(void *arg, int code, const struct err *why, const void *reply), void *arg);
};

/* `tls`: of connections over TCP; borrowed. */
struct api *api_new(struct loop *l, struct room *r, const struct api_ctl *ctl, struct tls *tls);
void api_free(struct api *a);
/* A connection of another controller, which has proven that it is member `member_id`; takes the descriptor. */
void api_adopt(struct api *a, int fd, uint32_t member_id, const char *address);
int api_listen(struct api *a, const char *address, uint16_t *out_port, struct err *e);
void api_set_serving(struct api *a, bool serving); /* before that requests wait, as they do where nobody leads */
void api_leader_changed(struct api *a); /* or may have */
void api_retire_plain(struct api *a); /* TLS is required from now on: who is connected in plain is to come back with it */
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
