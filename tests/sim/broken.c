/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts a broken product under the simulator: linked with --wrap, so that these stand before the product's own functions. Each breaks at
 * its fault point only (spur-sim --fault NAME); without one, all is as it should be.
 */
#include "base/buf.h"
#include "base/fault.h"
#include "core/state/inside.h"
#include "io/journal/outbox.h"

const struct token_rec *__real_token_find(const struct state *s, const uint8_t *token, uint32_t uid);
const struct token_rec *__wrap_token_find(const struct state *s, const uint8_t *token, uint32_t uid);
bool __real_state_answered(const struct state *s, const uint8_t *token, uint32_t uid, const void **out, size_t *out_n);
bool __wrap_state_answered(const struct state *s, const uint8_t *token, uint32_t uid, const void **out, size_t *out_n);
void __real_out_entry(struct outbox *o, uint64_t index, uint64_t term, const void *p, size_t n, void *tag);
void __wrap_out_entry(struct outbox *o, uint64_t index, uint64_t term, const void *p, size_t n, void *tag);

/* The table of tokens is not there. */
const struct token_rec *__wrap_token_find(const struct state *s, const uint8_t *token, uint32_t uid) {
    return FAULT("tokens.none") ? NULL : __real_token_find(s, token, uid);
}

bool __wrap_state_answered(const struct state *s, const uint8_t *token, uint32_t uid, const void **out, size_t *out_n) {
    return !FAULT("tokens.none") && __real_state_answered(s, token, uid, out, out_n);
}

/* An entry is handed over behind the next one, in its place: two applies are swapped. */
void __wrap_out_entry(struct outbox *o, uint64_t index, uint64_t term, const void *p, size_t n, void *tag) {
    static struct {
        struct outbox *out;
        uint64_t index, term;
        struct buf bytes;
        void *tag;
    } held;
    if (held.out == o && held.index + 1 == index) {
        __real_out_entry(o, held.index, term, p, n, tag);
        __real_out_entry(o, index, held.term, held.bytes.p, held.bytes.n, held.tag);
        held.out = NULL;
        return;
    }
    if (!FAULT("apply.swap")) {
        __real_out_entry(o, index, term, p, n, tag);
        return;
    }
    held.out = o;
    held.index = index;
    held.term = term;
    held.tag = tag;
    buf_clear(&held.bytes);
    buf_add(&held.bytes, p, n);
}
