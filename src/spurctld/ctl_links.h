/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls to other controllers: a channel each, over connections that went through the hand-shake of io/peer.
 */
#ifndef SPUR_SPURCTLD_CTL_LINKS_H
#define SPUR_SPURCTLD_CTL_LINKS_H

#include "base/host.h"

struct loop;
struct peer;

struct ctl_links;
struct ctl_links *ctl_links_new(struct loop *l, struct peer *p);
void ctl_links_free(struct ctl_links *k); /* takes NULL; open calls end with E_CANCELLED before it returns */
/* Where member `id` is reached from now on, at the next connect. */
void ctl_links_set(struct ctl_links *k, uint32_t id, const char *address);
void ctl_links_send(struct ctl_links *k, uint64_t id, const char *method, struct buf message, uint64_t timeout_ms,
                    host_reply_fn fn, void *arg);

#endif
