/* SPDX-License-Identifier: Apache-2.0
 *
 * The user's token: of the environment, else of a file of the user's own.
 */
#ifndef SPUR_LIBSPUR_BEARER_H
#define SPUR_LIBSPUR_BEARER_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* SPUR_JWT, SLURM_JWT, SPUR_AUTH_TOKEN; else, for a connection over TCP, the file ~/.spur/token, which counts only where it is the
 * user's and nobody else may read or change it. Adds the header line to the metadata. E_BAD_PROOF: what is there is no token. */
int bearer_add(struct str *metadata, bool has_tcp, bool *out_has_token, struct err *e);

#endif
