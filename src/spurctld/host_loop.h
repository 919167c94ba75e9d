/* SPDX-License-Identifier: Apache-2.0
 *
 * The real world behind struct host: the loop, a pool, the journal, the blob store, one channel an agent.
 */
#ifndef SPUR_SPURCTLD_HOST_LOOP_H
#define SPUR_SPURCTLD_HOST_LOOP_H

#include "base/clock.h"
#include "base/host.h"

struct loop;
struct pool;
struct journal;
struct blob_store;

struct host_loop;
struct host_loop *host_loop_new(struct loop *l, struct pool *p, const struct clock *c, struct blob_store *blobs);
void host_loop_set_journal(struct host_loop *hl, struct journal *j); /* NULL: proposals are refused */
void host_loop_free(struct host_loop *hl); /* open sends end with E_STOPPING */
struct host *host_loop_host(struct host_loop *hl);

/* A proposal's outcome, from the journal's callbacks: `tag` is what the journal carried. */
void host_loop_proposed(void *tag, int code, const struct err *why, uint64_t index, const void *answer, size_t n);

#endif
