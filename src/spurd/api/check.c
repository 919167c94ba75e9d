/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/api/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/proof.h"

/* No controller signs for longer; a run is remembered for longer than this after its end (spurd/table). */
#define EXPIRY_MOST_SECS 600
#define ONCE_MOST 65536u

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

/* Two generations, each for as long as a credential can be good: when the young one becomes the old one, all of the old
 * one has expired. */
struct once {
    struct map64 young, old; /* first 8 bytes of the signature */
    int64_t since_unix;
};

struct once *once_new(void) {
    return xnew(struct once);
}

void once_free(struct once *o) {
    if (!o)
        return;
    map64_fini(&o->young);
    map64_fini(&o->old);
    free(o);
}

int check_once(struct once *o, const struct check_call *c, int64_t now_unix, struct err *e) {
    uint8_t sig[PROOF_SIGNATURE_SIZE];
    int64_t expires;
    uint64_t key;
    if (!c->header || proof_launch_parse(c->header, &expires, sig))
        return err_set(e, E_CREDENTIAL, "the credential can't be read");
    if (now_unix - o->since_unix > EXPIRY_MOST_SECS) {
        map64_fini(&o->old);
        o->old = o->young;
        o->young = (struct map64){0};
        o->since_unix = now_unix;
    }
    memcpy(&key, sig, sizeof(key));
    if (map64_get(&o->young, key) || map64_get(&o->old, key))
        return err_set(e, E_CRED_REPLAY, "the call came before: a replay");
    if (o->young.n >= ONCE_MOST)
        return err_set(e, E_BUSY, "more than %u calls in %d s", ONCE_MOST, EXPIRY_MOST_SECS);
    map64_put(&o->young, key, o);
    return 0;
}
