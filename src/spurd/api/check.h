/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a call is the controller's, for this node, this run and this moment (wire/proof.h).
 */
#ifndef SPUR_SPURD_API_CHECK_H
#define SPUR_SPURD_API_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "io/cred/cred.h"

struct check_call {
    const char *path;   /* of the method */
    const char *header; /* value of spur-launch; NULL: there was none */
    const char *node;   /* whom the message says it is for */
    uint32_t job_id, start_no, uid;
    const void *body;
    size_t n_body;
};

/* 0, E_CREDENTIAL or E_CRED_EXPIRED. `key` NULL: the controller's key is not known yet. */
int check_credential(const struct check_call *c, const char *own_node, const struct cred_public *key,
                     int64_t now_unix, struct err *e);

/* Calls whose repeat would harm (a signal, a suspend) count once: their credentials are remembered while they are good. */
struct once;
struct once *once_new(void);
void once_free(struct once *o);
/* After check_credential. 0, E_CRED_REPLAY, or E_BUSY when more came than can be remembered. */
int check_once(struct once *o, const struct check_call *c, int64_t now_unix, struct err *e);

#endif
