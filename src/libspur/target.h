/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the controllers are: option, environment, spur.conf, default, in this order. The rules are in spur/spur.h.
 */
#ifndef SPUR_LIBSPUR_TARGET_H
#define SPUR_LIBSPUR_TARGET_H

#include <stdbool.h>

#include "base/err.h"
#include "base/tree.h"

#define TARGET_DEFAULT_PORT 6817
#define TARGET_CONF_PATH "/etc/spur/spur.conf"

/* `asked` may be NULL. The caller frees *out: "unix:/path,host:port,…". */
int target_find(const char *asked, char **out, struct err *e);

/* What a parsed spur.conf says; used by target_find. `exists` answers whether the local socket is there. */
int target_from_tree(const struct tree *root, bool (*exists)(const char *path), char **out, struct err *e);

/* Whether a list has an address that isn't a unix socket, so that we have to say who we are. */
bool target_has_tcp(const char *targets);

#endif
