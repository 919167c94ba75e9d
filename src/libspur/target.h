/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the controllers are: option, environment, spur.conf, default, in this order. The rules are in spur/spur.h.
 */
#ifndef SPUR_LIBSPUR_TARGET_H
#define SPUR_LIBSPUR_TARGET_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tree.h"

#define TARGET_DEFAULT_PORT 6817
#define TARGET_CONF_PATH "/etc/spur/spur.conf"

/* `asked` may be NULL. The caller frees *out: "unix:/path,host:port,…". */
int target_find(const char *asked, char **out, struct err *e);

/* SPUR_CONF, or the default file: *out is NULL where that one isn't there. *out_path is static or the environment's. */
int target_read_conf(struct arena *a, struct tree **out, const char **out_path, struct err *e);
const struct tree *target_child(const struct tree *table, const char *key); /* NULL: there is none */

/* What a parsed spur.conf says; used by target_find. `exists` answers whether the local socket is there. */
int target_from_tree(const struct tree *root, bool (*exists)(const char *path), char **out, struct err *e);

/* Whether a list has an address that isn't a unix socket, so that we have to say who we are. */
bool target_has_tcp(const char *targets);

#endif
