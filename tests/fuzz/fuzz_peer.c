/* SPDX-License-Identifier: Apache-2.0
 *
 * The hand-shake of controllers, fed by a stranger: the first byte says which message is changed and whether the connection is TLS,
 * the second where its bytes are replaced by the rest of the input. Proofs that are not the honest ones are never taken.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "io/cred/cred.h"
#include "io/peer/shake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Whether bytes differ that say something: places for a second key, and padding, do not. */
static bool differs(unsigned turn, const uint8_t *a, const uint8_t *b) {
    return memcmp(a + 4, b + 4, 32) != 0 || (turn == 3 && memcmp(a, b, 3) != 0);
}

static void refused(int rc, const struct err *e) {
    must(rc < 0 && *e->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static struct shake_keys k;
    struct err e = {0};
    if (!k.n) {
        struct secret key = {0};
        must(!cred_init(NULL));
        secret_set(&key, "0123456789abcdef0123456789abcdef", 32);
        shake_keys_make(&k, "c", &key, 1);
        secret_fini(&key);
    }
    if (n < 2)
        return 0;
    uint8_t ask[SHAKE_ASK_BYTES], reply[SHAKE_REPLY_BYTES], proofs[SHAKE_PROOFS_BYTES], verdict[SHAKE_VERDICT_BYTES];
    struct {
        uint8_t *p;
        size_t n;
    } const said[] = {{ask, sizeof(ask)}, {reply, sizeof(reply)}, {proofs, sizeof(proofs)}, {verdict, sizeof(verdict)}};
    unsigned turn = data[0] % 4, at = data[1];
    struct shake dials = {.use = PEER_CALLS, .from = 1, .to = 2}, listens = {.to = 2};
    dials.is_tls = listens.is_tls = data[0] & 4;
    listens.knows_tls = data[0] & 8;
    listens.requires_tls = data[0] & 16;
    shake_ask(&dials, &k, ask);
    for (unsigned t = 0; t < 4; t++) {
        bool changed = false;
        if (t == turn) {
            uint8_t honest[SHAKE_BYTES_MAX];
            at %= said[t].n;
            memcpy(honest, said[t].p, said[t].n);
            memcpy(said[t].p + at, data + 2, MIN(n - 2, said[t].n - at));
            changed = t >= 2 && differs(t, honest, said[t].p);
        }
        int rc = t == 0   ? shake_reply(&listens, &k, ask, reply, &e)
                 : t == 1 ? shake_prove(&dials, &k, reply, proofs, &e)
                 : t == 2 ? shake_judge(&listens, &k, proofs, verdict, &e)
                          : shake_end(&dials, &k, verdict, &e);
        if (changed) { /* hellos prove nothing: what was changed in them shows in the proofs */
            refused(rc, &e);
            return 0;
        }
        if (rc) {
            must(*e.text && (t >= turn || (listens.requires_tls && !listens.is_tls)));
            return 0;
        }
    }
    must(turn != 0 || memcmp(dials.ask, listens.ask, sizeof(dials.ask)) == 0);
    return 0;
}
