/* SPDX-License-Identifier: Apache-2.0
 *
 * What a peer may send: the bytes of any request or reply, and the proofs beside them. What is taken is the same after
 * it was written and read again; its printed form is finite.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "wire/messages.h"
#include "wire/methods.h"
#include "wire/proof.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void one_record(const struct rec_desc *d, const uint8_t *p, size_t n) {
    auto_arena a = {0};
    struct err e = {0};
    void *rec = arena_calloc(&a, 1, d->size), *again = arena_calloc(&a, 1, d->size);
    if (rec_decode(d, p, n, &a, rec, &e)) {
        must(e.code < 0 && *e.text);
        return;
    }
    auto_buf first = {0}, second = {0};
    rec_encode(d, rec, &first);
    must(rec_decode(d, first.p, first.n, &a, again, &e) == 0);
    rec_encode(d, again, &second);
    must(first.n == second.n && (first.n == 0 || memcmp(first.p, second.p, first.n) == 0));
    must(rec_same(d, rec, again) && rec_print(d, rec, &a));
    void *packed = rec_pack(d, rec);
    must(rec_same(d, rec, packed));
    rec_free(packed);
}

static void proofs(const uint8_t *p, size_t n) {
    auto_arena a = {0};
    const char *text = arena_strndup(&a, (const char *)p, n);
    struct proof_node node;
    int64_t expires;
    uint8_t sig[PROOF_SIGNATURE_SIZE];
    auto_str printed = {0};
    if (!proof_node_parse(text, &node)) {
        proof_node_print(node.name, node.sent_ms, node.nonce, node.sig, &printed);
        struct proof_node again;
        must(proof_node_parse(str_text(&printed), &again) == 0 && str_eq(node.name, again.name) && node.sent_ms == again.sent_ms);
    }
    if (!proof_launch_parse(text, &expires, sig))
        must(expires >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    unsigned which = data[0];
    if (which >= 2 * WIRE_N_METHODS) {
        proofs(data + 1, size - 1);
        return 0;
    }
    const struct wire_method_info *m = wire_method((enum wire_method)(which / 2));
    one_record(which % 2 ? m->reply() : m->request(), data + 1, size - 1);
    return 0;
}
