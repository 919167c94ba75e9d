/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS for the links of a step: a thread with a loop of its own carries the bytes, so that links stay descriptors in a poll.
 */
#ifndef SPUR_LIBSPUR_LINK_TLS_H
#define SPUR_LIBSPUR_LINK_TLS_H

#include <stdbool.h>

#include "base/err.h"

struct link_tls;
struct link_shake;

/* As spur.conf says; *out is NULL where TLS is off. */
int link_tls_new(struct link_tls **out, struct err *e);
bool link_tls_may_be_plain(const struct link_tls *t);
/* All links are closed: waits, for a bounded time, until what they wrote is sent. Takes NULL. */
void link_tls_free(struct link_tls *t);

/* Takes a connection that stands. *out_fd, which is its own, is readable when the hand-shake is over. */
struct link_shake *link_tls_begin(struct link_tls *t, int fd, const char *host, int *out_fd);
/* Then: the descriptor of plain bytes, the caller's; or -1 and why, as io/tls has it. k is gone. */
int link_tls_end(struct link_shake *k, struct err *why);
void link_tls_drop(struct link_shake *k); /* nobody waits for it any more */

#endif
