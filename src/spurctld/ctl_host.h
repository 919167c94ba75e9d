/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's struct host: io/host's, with the journal to propose to and the blob store for bulk.
 */
#ifndef SPUR_SPURCTLD_CTL_HOST_H
#define SPUR_SPURCTLD_CTL_HOST_H

#include "base/clock.h"
#include "base/host.h"

struct loop;
struct pool;
struct tls;
struct journal;
struct ctl_links;

struct ctl_host;
struct ctl_host *ctl_host_new(struct loop *l, struct pool *p, const struct clock *c, struct tls *tls);
void ctl_host_set_journal(struct ctl_host *h, struct journal *j); /* NULL: proposals are refused */
void ctl_host_set_links(struct ctl_host *h, struct ctl_links *k); /* for whoever sets the host's member_send */
struct ctl_links *ctl_host_links(void *impl);
struct catchup;
void ctl_host_set_catchup(struct ctl_host *h, struct catchup *c); /* who stores and loads for the whole cluster */
void ctl_host_free(struct ctl_host *h);
struct host *ctl_host_host(struct ctl_host *h);

/* A proposal's outcome, from the journal's callbacks: `tag` is what the journal carried. */
void ctl_host_proposed(void *tag, int code, const struct err *why, uint64_t index, const void *answer, size_t n);
/* The request for whose sake it was proposed (base/log.h), while the tag is good; "" or NULL: none. */
const char *ctl_host_about(const void *tag);

#endif
