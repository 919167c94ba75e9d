/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection to one step daemon, on the loop.
 */
#ifndef SPUR_SPURD_CONN_H
#define SPUR_SPURD_CONN_H

#include "base/err.h"
#include "spurstepd/step.h"

struct loop;
struct conn;

struct conn_events {
    void (*ended)(void *arg, const struct step_result *result); /* borrowed */
    void (*lost)(void *arg, const char *why);                   /* no more comes of this connection */
};

/* Connects to the socket in `dir` and subscribes. Exactly one of the events comes, later, unless conn_free is called
 * first; conn_free is due in any case. With `stays` an end is not acknowledged, and `lost` comes behind it, when the
 * daemon goes. */
int conn_new(struct loop *l, const char *dir, bool stays, const struct conn_events *events, void *arg,
             struct conn **out, struct err *e);
void conn_free(struct conn *c); /* takes NULL; not from an event */
/* Hands a descriptor to the daemon in `dir` over a connection of its own, and waits for its answer. Blocks. */
int conn_pass(const char *dir, int fd, const struct step_stream *s, struct err *e);
void conn_send(struct conn *c, enum step_frame type, const struct rec_desc *d, const void *rec);

#endif
