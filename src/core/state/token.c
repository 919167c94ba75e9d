/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens: a client's repeat is answered with the first answer. Kept for ten minutes of the state's own time, and at
 * most TOKEN_KEEP_MAX of them; the oldest go first, a few with each new one, so that no apply does much at once.
 */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/state/inside.h"

/* A token is its owner's: another user's equal token is another token. */
uint64_t token_scope(const uint8_t *token, uint32_t uid) {
    return hash_sip(uid, 0x746f6b656eu, token, COMMAND_TOKEN_SIZE);
}

const struct token_rec *token_find(const struct state *s, const uint8_t *token, uint32_t uid) {
    uint64_t number = (uint64_t)(uintptr_t)map64_get(&s->token_at, token_scope(token, uid));
    const struct token_rec *t = number ? cow_get(s->tokens.root, number - 1) : NULL;
    return t && t->uid == uid && memcmp(t->token, token, COMMAND_TOKEN_SIZE) == 0 ? t : NULL;
}

bool state_answered(const struct state *s, const uint8_t token[COMMAND_TOKEN_SIZE], uint32_t uid, const void **out,
                    size_t *out_n) {
    const struct token_rec *t = token_find(s, token, uid);
    if (!t)
        return false;
    *out = t->answer;
    *out_n = t->n_answer;
    return true;
}

static void forget(struct state *s, uint64_t number, const struct token_rec *t) {
    uint64_t scope = token_scope(t->token, t->uid);
    if ((uint64_t)(uintptr_t)map64_get(&s->token_at, scope) == number + 1)
        map64_del(&s->token_at, scope);
    cow_del(&s->tokens, number);
}

void token_remember(struct apply *ap) {
    struct state *s = ap->s;
    const struct buf *answer = &ap->out->answer;
    struct token_rec t = {
        .token = ap->head->token,
        .n_token = COMMAND_TOKEN_SIZE,
        .uid = ap->head->uid,
        .at_ms = ap->now_ms,
        /* A long list of results is not worth its memory: a repeat gets an empty one, "all of it was done". */
        .answer = answer->p,
        .n_answer = answer->n <= TOKEN_ANSWER_MAX ? (uint32_t)answer->n : 0,
    };
    uint64_t number = s->counters.next_token_no++;
    cow_put(&s->tokens, number, rec_pack(token_rec_rec(), &t));
    map64_put(&s->token_at, token_scope(t.token, t.uid), (void *)(uintptr_t)(number + 1));
    for (int i = 0; i < 4; i++) {
        uint64_t oldest = 0;
        const struct token_rec *old = cow_next(s->tokens.root, &oldest);
        if (!old || (s->tokens.n <= TOKEN_KEEP_MAX && old->at_ms + TOKEN_KEEP_MS > ap->now_ms))
            break;
        forget(s, oldest, old);
    }
}
