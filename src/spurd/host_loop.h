/* SPDX-License-Identifier: Apache-2.0
 *
 * The real world behind struct host, as the agent's rooms need it: the loop, a pool, channels. There is no log to
 * propose to and no bulk store: those functions are NULL.
 */
#ifndef SPUR_SPURD_HOST_LOOP_H
#define SPUR_SPURD_HOST_LOOP_H

#include "base/clock.h"
#include "base/host.h"

struct loop;
struct pool;
struct host_loop;

struct host_loop *host_loop_new(struct loop *l, struct pool *p, const struct clock *c);
struct host *host_loop_host(struct host_loop *hl);
void host_loop_free(struct host_loop *hl); /* open calls end with E_CANCELLED before it returns */

#endif
