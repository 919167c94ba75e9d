/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/report/sign.h"

#include <string.h>

#include "wire/proof.h"

void sign_call(struct host *h, const struct cred_key *key, const char *node, const char *path, const void *body,
               size_t n, struct str *out_metadata) {
    auto_str text = {0};
    uint8_t hash[32], sig[CRED_SIGNATURE_SIZE], nonce[PROOF_NONCE_SIZE];
    uint64_t random = h->random(h->impl);
    int64_t sent_ms = h->unix_ms(h->impl);
    _Static_assert(sizeof(nonce) == sizeof(random), "one random number is the nonce");
    memcpy(nonce, &random, sizeof(nonce));
    cred_hash(body, n, hash);
    proof_node_text(path, node, sent_ms, nonce, hash, &text);
    cred_sign(key, text.p, text.n, sig);
    str_add(out_metadata, "spur-node: ");
    proof_node_print(node, sent_ms, nonce, sig, out_metadata);
    str_addc(out_metadata, '\n');
}
