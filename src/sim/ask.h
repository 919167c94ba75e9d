/* SPDX-License-Identifier: Apache-2.0
 *
 * A client in a virtual world: each request is repeated, with its token, until it has an answer that is one. What it asks for is drawn
 * from the world's seed, in an order that is the program's and not the compiler's: one draw a statement.
 */
#ifndef SPUR_SIM_ASK_H
#define SPUR_SIM_ASK_H

#include "base/vec.h"
#include "sim/world.h"
#include "wire/messages.h"
#include "wire/methods.h"

struct vclient;

struct vask {
    struct vclient *client;
    enum wire_method method;
    struct buf body;
    char uid[24];
    uint32_t job_id; /* of a submit that was answered */
    uint64_t mark;   /* the owner's */
    bool is_over, is_refused;
    unsigned tries;
};

struct vclient_conf {
    struct vworld *world;
    uint64_t call_ms;
    /* per thousand, and milliseconds */
    unsigned chance_long, long_ms, short_ms, chance_dependency, chance_hold;
    void *arg;
    const char *(*whither)(void *arg, struct vask *a); /* before each try; NULL: "ctl" */
    void (*answered)(void *arg, struct vask *a, const void *reply, size_t n); /* may be NULL */
};

struct vclient {
    struct vclient_conf conf;
    struct vhost *host;
    VEC(struct vask *) asks;
    VEC(uint32_t) jobs; /* of submits that were answered */
    uint32_t n_open;
};
void vclient_init(struct vclient *c, const struct vclient_conf *conf);
void vclient_fini(struct vclient *c);

void vclient_ask(struct vclient *c, enum wire_method m, const void *record, uint32_t uid);
void vclient_submit(struct vclient *c); /* a job or an array, maybe with a dependency */
void vclient_cancel(struct vclient *c); /* of some job: all of it, or tasks */
void vclient_hold(struct vclient *c);
void vclient_requeue(struct vclient *c);
void vclient_suspend(struct vclient *c);

#endif
