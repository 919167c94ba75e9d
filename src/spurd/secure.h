/* SPDX-License-Identifier: Apache-2.0
 *
 * [tls] of this agent: one `struct tls` for its port and for whom it connects to.
 */
#ifndef SPUR_SPURD_SECURE_H
#define SPUR_SPURD_SECURE_H

#include "spurd/api/api.h"
#include "spurd/options.h"

struct secure;

int secure_new(struct loop *l, const struct options *o, struct secure **out, struct err *e);
struct tls *secure_tls(const struct secure *s);
/* SIGHUP: what spur.conf says of TLS and of the log's level counts from now on. */
void secure_reread(struct secure *s, struct api *api);
void secure_free(struct secure *s); /* after the loop; takes NULL */

#endif
