/* SPDX-License-Identifier: Apache-2.0 */
#include "io/peer/shake.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/cred/cred.h"

#define MAGIC "SPURPEER"
#define NONCE_BYTES 32
#define FLAG_TLS 1 /* the dialler would speak TLS */

void shake_keys_make(struct shake_keys *out, const char *cluster, const struct secret *keys, size_t n) {
    autofree char *purpose = xasprintf("spur controllers 1 %s", cluster);
    *out = (struct shake_keys){0};
    cred_hash(cluster, strlen(cluster), out->cluster);
    for (size_t i = 0; i < n && out->n < PEER_KEYS_MAX; i++) {
        struct cred_key k = {0};
        if (keys[i].n == 0)
            continue;
        cred_key_derive(&keys[i], purpose, &k);
        must(k.seed.n == 32);
        memcpy(out->key[out->n++], k.seed.bytes, 32);
        cred_key_fini(&k);
    }
    if (out->n == 0) /* proves nothing, but tells clusters apart */
        cred_hash(purpose, strlen(purpose), out->key[out->n++]);
}

static void proof(const struct shake *s, const uint8_t key[32], const char *who, uint8_t out[32]) {
    enum { PLAIN_BYTES = 8 + SHAKE_ASK_BYTES + SHAKE_REPLY_BYTES };
    uint8_t text[PLAIN_BYTES + sizeof(s->binding)] = {0};
    memcpy(text, who, strlen(who));
    memcpy(text + 8, s->ask, sizeof(s->ask));
    memcpy(text + 8 + sizeof(s->ask), s->reply, sizeof(s->reply));
    memcpy(text + PLAIN_BYTES, s->binding, sizeof(s->binding));
    cred_mac(key, text, s->is_tls ? sizeof(text) : PLAIN_BYTES, out);
}

static void put(uint8_t *out, size_t room, struct buf *b) {
    must(b->n == room);
    memcpy(out, b->p, room);
}

static void put_u16(struct buf *b, uint16_t v) {
    buf_u8(b, (uint8_t)v);
    buf_u8(b, (uint8_t)(v >> 8));
}

static uint16_t get_u16(struct rd *r) {
    uint16_t low = rd_u8(r);
    return (uint16_t)(low | rd_u8(r) << 8);
}

void shake_ask(struct shake *s, const struct shake_keys *k, uint8_t out[SHAKE_ASK_BYTES]) {
    auto_buf b = {0};
    uint8_t nonce[NONCE_BYTES];
    cred_random(nonce, sizeof(nonce));
    buf_add(&b, MAGIC, 8);
    put_u16(&b, SHAKE_VERSION);
    buf_u8(&b, (uint8_t)s->use);
    buf_u8(&b, s->knows_tls ? FLAG_TLS : 0);
    buf_u32le(&b, s->from);
    buf_u32le(&b, s->to);
    buf_add(&b, k->cluster, 32);
    buf_add(&b, nonce, sizeof(nonce));
    put(out, SHAKE_ASK_BYTES, &b);
    memcpy(s->ask, out, SHAKE_ASK_BYTES);
}

static int check_ask(struct shake *s, const struct shake_keys *k, const uint8_t *in, struct err *e) {
    struct rd r = rd_of(in, SHAKE_ASK_BYTES);
    uint32_t self = s->to;
    if (memcmp(rd_take(&r, 8), MAGIC, 8) != 0)
        return err_set(e, E_PROTOCOL, "it is no controller");
    uint16_t version = get_u16(&r);
    if (version != SHAKE_VERSION)
        return err_set(e, E_VERSION, "it speaks version %u of the hand-shake, this program version %d", version, SHAKE_VERSION);
    if (!s->is_tls && s->requires_tls)
        return err_set(e, E_TLS, "it speaks no TLS, and [tls] mode = \"require\" here");
    uint8_t use = rd_u8(&r), flags = rd_u8(&r);
    s->from = rd_u32le(&r);
    s->to = rd_u32le(&r);
    if (memcmp(rd_take(&r, 32), k->cluster, 32) != 0)
        return err_set(e, E_CONFIG, "it is of another cluster (cluster_name)");
    if (use == 0 || use >= PEER_N_USES)
        return err_set(e, E_PROTOCOL, "it wants something unknown");
    if (s->to != self || s->from == self || s->from == 0)
        return err_set(e, E_CONFIG, "it calls itself controller %u and wants controller %u; this is controller %u", s->from, s->to,
                       self);
    if (!s->is_tls && s->knows_tls && (flags & FLAG_TLS)) /* under the proof, so nobody between us can clear it */
        return err_set(e, E_TLS, "both sides know TLS, and it came in plain: something between them takes TLS away, or the hand-shake broke");
    s->use = (enum peer_use)use;
    return 0;
}

int shake_reply(struct shake *s, const struct shake_keys *k, const uint8_t in[SHAKE_ASK_BYTES],
                uint8_t out[SHAKE_REPLY_BYTES], struct err *e) {
    auto_buf b = {0};
    uint8_t nonce[NONCE_BYTES];
    uint32_t self = s->to;
    memcpy(s->ask, in, SHAKE_ASK_BYTES);
    int rc = check_ask(s, k, in, e);
    cred_random(nonce, sizeof(nonce));
    buf_add(&b, MAGIC, 8);
    put_u16(&b, SHAKE_VERSION);
    put_u16(&b, (uint16_t)-rc);
    buf_u32le(&b, self);
    buf_add(&b, nonce, sizeof(nonce));
    put(out, SHAKE_REPLY_BYTES, &b);
    memcpy(s->reply, out, SHAKE_REPLY_BYTES);
    return rc;
}

/* What the listener said in its own numbers. */
static int refusal(uint16_t number, struct err *e) {
    switch (-(int)number) {
    case E_VERSION: return err_set(e, E_VERSION, "it speaks another version of the hand-shake");
    case E_CONFIG: return err_set(e, E_CONFIG, "it is of another cluster (cluster_name), or another controller than [controller] peers says");
    case E_BAD_PROOF: return err_set(e, E_BAD_PROOF, "it does not know our key ([auth] jwt_key)");
    case E_TLS: return err_set(e, E_TLS, "it takes no connection in plain ([tls] mode)");
    case E_STOPPING: return err_set(e, E_STOPPING, "it is not ready");
    default: return err_set(e, E_PROTOCOL, "it refuses");
    }
}

int shake_prove(struct shake *s, const struct shake_keys *k, const uint8_t in[SHAKE_REPLY_BYTES],
                uint8_t out[SHAKE_PROOFS_BYTES], struct err *e) {
    struct rd r = rd_of(in, SHAKE_REPLY_BYTES);
    memcpy(s->reply, in, SHAKE_REPLY_BYTES);
    if (memcmp(rd_take(&r, 8), MAGIC, 8) != 0)
        return err_set(e, E_PROTOCOL, "what is there is no controller");
    get_u16(&r);
    uint16_t code = get_u16(&r);
    if (code)
        return refusal(code, e);
    if (rd_u32le(&r) != s->to)
        return err_set(e, E_CONFIG, "another controller is there");
    memset(out, 0, SHAKE_PROOFS_BYTES);
    out[0] = (uint8_t)k->n;
    for (size_t i = 0; i < k->n; i++)
        proof(s, k->key[i], "dialler", out + 4 + 32 * i);
    return 0;
}

int shake_judge(struct shake *s, const struct shake_keys *k, const uint8_t in[SHAKE_PROOFS_BYTES],
                uint8_t out[SHAKE_VERDICT_BYTES], struct err *e) {
    memset(out, 0, SHAKE_VERDICT_BYTES);
    uint8_t mine[32];
    for (size_t i = 0; i < k->n; i++) {
        proof(s, k->key[i], "dialler", mine);
        for (size_t n = 0; n < MIN((size_t)in[0], (size_t)PEER_KEYS_MAX); n++)
            if (cred_same(mine, in + 4 + 32 * n, 32)) {
                out[2] = (uint8_t)n;
                proof(s, k->key[i], "listenr", out + 4);
                return 0;
            }
    }
    out[0] = (uint8_t)-E_BAD_PROOF;
    return err_set(e, E_BAD_PROOF, "it calls itself controller %u, but does not know the cluster's key ([auth] jwt_key)", s->from);
}

int shake_end(struct shake *s, const struct shake_keys *k, const uint8_t in[SHAKE_VERDICT_BYTES], struct err *e) {
    uint8_t theirs[32];
    if (in[0] || in[1])
        return refusal((uint16_t)(in[0] | in[1] << 8), e);
    if (in[2] < k->n) {
        proof(s, k->key[in[2]], "listenr", theirs);
        if (cred_same(theirs, in + 4, 32))
            return 0;
    }
    return err_set(e, E_BAD_PROOF, "what is there does not know the cluster's key ([auth] jwt_key)");
}
