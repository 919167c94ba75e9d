/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration file: read, parsed, checked, hashed.
 */
#ifndef SPUR_SPURCTLD_CONFIG_FILE_H
#define SPUR_SPURCTLD_CONFIG_FILE_H

#include "base/arena.h"
#include "base/secret.h"
#include "base/str.h"
#include "core/model/config.h"

#define CONFIG_DEFAULT_PATH "/etc/spur/spur.conf"

/* path NULL: the default one where it exists, else built-in defaults. `problems` gets a line each. The hash of the replicated part is filled in. */
int config_file_load(const char *path, struct arena *a, struct conf *out, struct str *problems, struct err *e);
/* The keys of tokens that the configuration names, inline or as files: the one in use, and the one of before. Empty
 * where there is none. On failure none is set. */
int config_file_jwt(const struct conf *c, struct secret *out, struct secret *out_old, struct err *e);

#endif
