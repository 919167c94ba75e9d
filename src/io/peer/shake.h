/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of the hand-shake, without a socket. docs/format/peer.md is their contract.
 */
#ifndef SPUR_IO_PEER_SHAKE_H
#define SPUR_IO_PEER_SHAKE_H

#include "io/peer/peer.h"

#define SHAKE_VERSION 1
#define SHAKE_ASK_BYTES 84    /* the dialler's hello */
#define SHAKE_REPLY_BYTES 48  /* the listener's hello */
#define SHAKE_PROOFS_BYTES 68 /* the dialler's proofs, one for each key it has */
#define SHAKE_VERDICT_BYTES 36
#define SHAKE_BYTES_MAX SHAKE_ASK_BYTES

struct shake_keys {
    uint8_t key[PEER_KEYS_MAX][32];
    uint8_t cluster[32];
    size_t n;
};
void shake_keys_make(struct shake_keys *out, const char *cluster, const struct secret *keys, size_t n);

/* One side of one hand-shake. */
struct shake {
    enum peer_use use;
    uint32_t from, to; /* dialler, listener */
    uint8_t ask[SHAKE_ASK_BYTES], reply[SHAKE_REPLY_BYTES];
    bool knows_tls;   /* this side: [tls] mode isn't off */
    bool requires_tls;
    bool is_tls;      /* the connection: `binding` is its session's, and the proofs are made over it too */
    uint8_t binding[32];
};

/* Each takes exactly the bytes of the other side's last message, and makes those of the next. 0, or why this ends here
 * (the listener's message then says so, and is sent before the connection is closed). */
void shake_ask(struct shake *s, const struct shake_keys *k, uint8_t out[SHAKE_ASK_BYTES]);
int shake_reply(struct shake *s, const struct shake_keys *k, const uint8_t in[SHAKE_ASK_BYTES],
                uint8_t out[SHAKE_REPLY_BYTES], struct err *e);
int shake_prove(struct shake *s, const struct shake_keys *k, const uint8_t in[SHAKE_REPLY_BYTES],
                uint8_t out[SHAKE_PROOFS_BYTES], struct err *e);
int shake_judge(struct shake *s, const struct shake_keys *k, const uint8_t in[SHAKE_PROOFS_BYTES],
                uint8_t out[SHAKE_VERDICT_BYTES], struct err *e);
int shake_end(struct shake *s, const struct shake_keys *k, const uint8_t in[SHAKE_VERDICT_BYTES], struct err *e);

#endif
