/* SPDX-License-Identifier: Apache-2.0
 *
 * What sdiag's text and its JSON both read out of the controller's counters.
 */
#ifndef SPUR_SPUR_SDIAG_H
#define SPUR_SPUR_SDIAG_H

#include "spur/cli.h"
#include "spur/json_doc.h"

#define SDIAG_REQUESTS 1200u /* kinds or users at most */

struct sdiag_request {
    uint32_t id; /* of the kind, or the user's */
    const char *name;
    uint64_t count, total_us;
};

uint64_t sdiag_counter(const struct diag_reply *reply, const char *key); /* 0: there is none */
size_t sdiag_requests(const struct diag_reply *reply, const char *kind, struct sdiag_request *out, size_t most);
void sdiag_request_name(const struct sdiag_request *r, bool is_user, char out[40]);
void sdiag_json(const struct cli *c, const struct diag_reply *reply);

#endif
