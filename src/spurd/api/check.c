/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/api/check.h"

#include <inttypes.h>

#include "base/str.h"
#include "wire/proof.h"

/* No controller signs for longer; a run is remembered for longer than this after its end (spurd/table). */
#define EXPIRY_MOST_SECS 600

int check_credential(const struct check_call *c, const char *own_node, const struct cred_public *key,
                     int64_t now_unix, struct err *e) {
    uint8_t sig[PROOF_SIGNATURE_SIZE], hash[32];
    int64_t expires;
    if (!c->header)
        return err_set(e, E_CREDENTIAL, "the call carries no credential");
    if (!key)
        return err_set(e, E_CREDENTIAL, "node %s knows no controller's key yet", own_node);
    if (proof_launch_parse(c->header, &expires, sig))
        return err_set(e, E_CREDENTIAL, "the credential can't be read");
    if (!str_eq(c->node, own_node))
        return err_set(e, E_CREDENTIAL, "the call is for node %s, this is %s", c->node ? c->node : "?", own_node);
    auto_str text = {0};
    cred_hash(c->body, c->n_body, hash);
    proof_launch_text(c->path, own_node, c->job_id, c->start_no, c->uid, expires, hash, &text);
    if (!cred_verify(key, text.p, text.n, sig))
        return err_set(e, E_CREDENTIAL, "the credential is not the controller's, or for another call");
    if (expires < now_unix)
        return err_set(e, E_CRED_EXPIRED, "the credential expired %" PRId64 " s ago; do the clocks of %s and its controller agree?",
                       now_unix - expires, own_node);
    if (expires > now_unix + EXPIRY_MOST_SECS)
        return err_set(e, E_CREDENTIAL, "the credential is good for %" PRId64 " s; do the clocks of %s and its controller agree?",
                       expires - now_unix, own_node);
    return 0;
}
