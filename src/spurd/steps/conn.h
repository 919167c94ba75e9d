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
    void (*ended)(void *arg, const struct step_result *result); /* borrowed; acknowledged already */
    void (*lost)(void *arg, const char *why);                   /* no more comes of this connection */
};

/* Connects to the socket in `dir` and subscribes. Exactly one of the events comes, later, unless conn_free is called
 * first; conn_free is due in any case. */
int conn_new(struct loop *l, const char *dir, const struct conn_events *events, void *arg, struct conn **out,
             struct err *e);
void conn_free(struct conn *c); /* takes NULL; not from an event */
void conn_send(struct conn *c, enum step_frame type, const struct rec_desc *d, const void *rec);

#endif
