/* SPDX-License-Identifier: Apache-2.0
 *
 * The real world behind struct host (base/host.h), as both daemons need it: the loop, a pool, one channel an address.
 *
 * There is no log to propose to and no bulk store in it: a controller sets those three functions of host_loop_host
 * itself and finds what belongs to them by host_loop_more(impl).
 */
#ifndef SPUR_IO_HOST_LOOP_H
#define SPUR_IO_HOST_LOOP_H

#include "base/clock.h"
#include "base/host.h"

struct loop;
struct pool;
struct tls;
struct host_loop;

/* `tls`: of what is sent; borrowed; NULL: off. `more` is the caller's; may be NULL. */
struct host_loop *host_loop_new(struct loop *l, struct pool *p, const struct clock *c, struct tls *tls, void *more);
void host_loop_free(struct host_loop *hl); /* takes NULL; open calls end with E_CANCELLED before it returns */
struct host *host_loop_host(struct host_loop *hl);
void *host_loop_more(void *impl); /* of a struct host */

#endif
