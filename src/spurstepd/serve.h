/* SPDX-License-Identifier: Apache-2.0
 *
 * The socket of a step daemon: a few clients at a time, of root and of the daemon's own user alone.
 */
#ifndef SPUR_SPURSTEPD_SERVE_H
#define SPUR_SPURSTEPD_SERVE_H

#include <poll.h>
#include <stdbool.h>

#include "spurstepd/run.h"

#define SERVE_CLIENTS 8
struct viewers;
struct client {
    int fd; /* -1: free */
    int passed; /* a descriptor that came with a request; -1 */
    struct buf in, out;
    bool subscribed, was_told;
};
struct server {
    int listen_fd;
    struct client clients[SERVE_CLIENTS];
    bool acknowledged;
    struct viewers *viewers; /* of a step; else NULL */
};

int serve_open(struct server *s, struct err *e); /* in the current directory */
void serve_close(struct server *s);              /* removes the socket */
#define SERVE_POLLS (SERVE_CLIENTS + 1)
void serve_poll(const struct server *s, struct pollfd out[SERVE_POLLS]);
void serve_handle(struct server *s, struct run *r, const struct pollfd polled[SERVE_POLLS]);
/* Once the run has ended: tells those who asked to be told. */
void serve_tell_end(struct server *s, const struct run *r);
/* Nobody is left who was told and has not answered yet. */
bool serve_is_done(const struct server *s);

#endif
