/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a ticket is the controller's, for this node and this moment (wire/proof.h).
 */
#ifndef SPUR_SPURD_STREAM_TICKET_H
#define SPUR_SPURD_STREAM_TICKET_H

#include "base/arena.h"
#include "io/cred/cred.h"
#include "wire/messages.h"
#include "wire/stream.h"

/* Decodes and checks. 0, E_CREDENTIAL or E_CRED_EXPIRED; the latter with *out filled: a client that comes back to a
 * step that it has started may be late. `key` NULL: the controller's key is not known yet. */
int ticket_check(const struct stream_open *open, const char *own_node, const struct cred_public *key, int64_t now_unix,
                 struct arena *a, struct step_ticket *out, struct err *e);

#endif
