/* SPDX-License-Identifier: Apache-2.0
 *
 * The world behind struct host in virtual time, in one process: one clock, one queue of events (by time, then by number),
 * a network with faults, a blob store in memory. Everything random comes from one seed, so that a run can be run again.
 *
 * A vhost is a process in that world. At its end what it waited for is given back to it as a stopping daemon would see it,
 * so that nothing leaks.
 */
#ifndef SPUR_SIM_WORLD_H
#define SPUR_SIM_WORLD_H

#include <stdbool.h>

#include "base/host.h"

#define VWORLD_BEGIN_UNIX_MS 1800000000000

struct vworld;
struct vhost;

/* ---- the world ---- */

struct vworld *vworld_new(uint64_t seed);
void vworld_free(struct vworld *w); /* all hosts are gone */
int64_t vworld_now_ms(const struct vworld *w);
uint64_t vworld_random(struct vworld *w);
uint64_t vworld_below(struct vworld *w, uint64_t n);          /* 0 … n - 1 */
bool vworld_chance(struct vworld *w, unsigned per_thousand);
void vworld_at(struct vworld *w, uint64_t delay_ms, void (*fn)(void *arg), void *arg); /* always happens */
/* Calls `drop` instead where the world ends before. */
void vworld_later(struct vworld *w, uint64_t delay_ms, void (*fn)(void *arg), void (*drop)(void *arg), void *arg);
/* Doesn't happen where it is unset, or the world ends before; the handle is dead once it happened. */
struct vevent;
struct vevent *vworld_set(struct vworld *w, uint64_t delay_ms, void (*fn)(void *arg), void *arg);
void vworld_unset(struct vevent *e); /* takes NULL */
void vworld_run(struct vworld *w, uint64_t ms);
/* Until `is_so`: false when that took longer than `most_ms`. */
bool vworld_run_until(struct vworld *w, bool (*is_so)(void *arg), void *arg, uint64_t most_ms);

/* ---- the network ---- */

struct vrequest {
    struct vworld *world;
    const char *address, *method, *metadata; /* metadata as it was sent; "" for none */
    struct buf message;
    struct vcall *call;
};
/* Whoever listens: answers each request once, now or later, or never (vrequest_drop). */
typedef void (*vserve_fn)(void *ctx, struct vrequest *rq);
void vrequest_reply(struct vrequest *rq, int code, const char *text, const void *reply, size_t n); /* frees it */
void vrequest_drop(struct vrequest *rq);
const char *vrequest_from(const struct vrequest *rq); /* the sender's address; NULL: it has none */
const char *vrequest_header(const struct vrequest *rq, const char *name, char *out, size_t n_out); /* NULL: none */

void vnet_listen(struct vworld *w, const char *address, vserve_fn fn, void *ctx); /* fn NULL: nobody any more */
void vnet_cut(struct vworld *w, const char *address, bool is_cut); /* nothing goes in or comes back: calls time out */

/* From one to the other, this way only: what is sent is lost, and so are answers where the way back is cut. */
void vnet_cut_way(struct vworld *w, const char *from, const char *to);
void vnet_mend(struct vworld *w); /* all that was cut one way */
bool vnet_passes(struct vworld *w, const char *from, const char *to);
uint64_t vnet_delay(struct vworld *w); /* of one message, from the faults below */

struct vfaults { /* per thousand, and milliseconds */
    unsigned lose_request, lose_reply, twice, late;
    unsigned delay_min_ms, delay_max_ms, late_ms;
};
struct vfaults vnet_faults_some(struct vworld *w); /* bad, by chance */
void vnet_faults(struct vworld *w, const struct vfaults *f);
const struct vfaults *vnet_faults_now(const struct vworld *w);

/* ---- a process ---- */

struct vhost_conf {
    const char *address; /* its own: a cut of it cuts what it sends as well; NULL: none */
    void *ctx;           /* of propose */
    void (*propose)(void *ctx, struct buf command, host_proposed_fn fn, void *arg);
    unsigned work_max_ms; /* how long work, and its way back, take at most */
};
struct vhost *vhost_new(struct vworld *w, const struct vhost_conf *conf);
struct host *vhost_host(struct vhost *h);
void vhost_clock(struct vhost *h, int64_t off_ms); /* its unix time is off by that much */
void vhost_finish_work(struct vhost *h); /* and what its return begins */
/* Answers open calls and loads with E_STOPPING. Its rooms are gone: a timer that is still set is their fault. */
void vhost_free(struct vhost *h);
/* The next `n` stores or loads fail with `code`. */
void vhost_fail_blobs(struct vhost *h, unsigned n, int code);
size_t vworld_blobs(const struct vworld *w);

#endif
