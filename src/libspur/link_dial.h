/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPUR_LIBSPUR_LINK_DIAL_H
#define SPUR_LIBSPUR_LINK_DIAL_H

#include "base/err.h"
#include "wire/messages.h"

/* Begins to connect to a node's agent: *out_fd is non-blocking, and writable when it stands or failed. */
int link_dial(const struct node_place *place, int *out_fd, struct err *e);
/* What a node that is alive answers within a second must be answered within six: the step is over, and nobody waits for
 * a machine that is gone. */
void link_hurry(int fd);
/* Of our end of a connection; 0: it has none. */
uint32_t link_local_port(int fd);

#endif
