/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that admit nodes: made, listed and revoked by administrators, and shown by an agent that registers.
 */
#ifndef SPUR_SPURCTLD_ADMIT_TOKEN_H
#define SPUR_SPURCTLD_ADMIT_TOKEN_H

#include "spurctld/admit/admit.h"

void admit_join_token(struct room *r, const struct who *who, const struct join_token_request *req, admit_fn done,
                      void *arg);

/* Whether a token admits a node now: the one of the first start (STATE/join.token), or one that was made since. 0, or
 * E_ADMISSION with why. `token` may be NULL. */
int admit_check_join_token(struct room *r, const char *node, const char *token, struct err *e);

#endif
