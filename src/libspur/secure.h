/* SPDX-License-Identifier: Apache-2.0
 *
 * [tls] of spur.conf, as daemons and as commands have it.
 */
#ifndef SPUR_LIBSPUR_SECURE_H
#define SPUR_LIBSPUR_SECURE_H

#include "base/tree.h"
#include "core/model/config.h"
#include "io/tls/tls.h"

/* A daemon's, which has its notices in the log; texts are borrowed. */
struct tls_conf secure_conf(const struct conf *c);

/* A daemon's, to be called so often: warns in the log when our own certificate has run out, or is in the last quarter of its
 * life and in its last two weeks. */
#define SECURE_LOOK_MS (3600u * 1000)
void secure_look(struct tls *t);

/* A command's, which has no certificate of its own: from SPUR_CONF, or the default file where it exists. The file is read
 * without the checks that daemons make. *out is NULL where mode is off. */
int secure_client(struct tls **out, struct err *e);
/* What a parsed spur.conf says, for secure_client; texts are borrowed. */
int secure_from_tree(const struct tree *root, struct tls_conf *out, struct err *e);

#endif
