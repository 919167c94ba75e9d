/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/stream/ticket.h"

#include "base/str.h"
#include "wire/proof.h"

int ticket_check(const struct stream_open *open, const char *own_node, const struct cred_public *key, int64_t now_unix,
                 struct arena *a, struct step_ticket *out, struct err *e) {
    uint8_t hash[32];
    auto_str text = {0};
    if (!key)
        return err_set(e, E_CREDENTIAL, "node %s knows no controller's key yet", own_node);
    if (open->n_signature != CRED_SIGNATURE_SIZE || !open->n_ticket)
        return err_set(e, E_CREDENTIAL, "a stream without ticket");
    cred_hash(open->ticket, open->n_ticket, hash);
    proof_ticket_text(own_node, hash, &text);
    if (!cred_verify(key, text.p, text.n, open->signature))
        return err_set(e, E_CREDENTIAL, "the ticket is not the controller's for node %s", own_node);
    if (rec_decode(step_ticket_rec(), open->ticket, open->n_ticket, a, out, NULL))
        return err_set(e, E_CREDENTIAL, "the ticket can't be read");
    if (out->use != TICKET_LAUNCH && out->use != TICKET_ATTACH && out->use != TICKET_COPY)
        return err_set(e, E_CREDENTIAL, "the ticket is for a use that is not known here");
    if (out->expires_unix > now_unix + 2 * PROOF_TICKET_SECS)
        return err_set(e, E_CREDENTIAL, "the ticket is good for %lld s; do the clocks of %s and its controller agree?",
                       (long long)(out->expires_unix - now_unix), own_node);
    if (out->expires_unix < now_unix)
        return err_set(e, E_CRED_EXPIRED, "the ticket expired %lld s ago; do the clocks of %s and its controller agree?",
                       (long long)(now_unix - out->expires_unix), own_node);
    return 0;
}
