/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata line that proves a call to be this node's.
 */
#ifndef SPUR_SPURD_SIGN_H
#define SPUR_SPURD_SIGN_H

#include "base/host.h"
#include "base/str.h"
#include "io/cred/cred.h"

void sign_call(struct host *h, const struct cred_key *key, const char *node, const char *path, const void *body,
               size_t n, struct str *out_metadata);

#endif
