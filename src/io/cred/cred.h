/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and proofs (libsodium, libjwt): signatures, tokens, random bytes. No policy: what is signed over which words is
 * decided by the callers. cred_init once before threads. Thread safe afterwards.
 */
#ifndef SPUR_IO_CRED_H
#define SPUR_IO_CRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/secret.h"

#define CRED_PUBLIC_SIZE 32
#define CRED_SIGNATURE_SIZE 64
#define CRED_SEED_SIZE 32

struct cred_public {
    uint8_t b[CRED_PUBLIC_SIZE];
};
struct cred_key { /* Ed25519 */
    struct cred_public pub;
    struct secret seed;
};

int cred_init(struct err *e);
void cred_random(void *out, size_t n);

void cred_key_new(struct cred_key *out);
/* The same seed for the same secret and purpose (BLAKE2b keyed with the secret over the purpose). */
void cred_key_derive(const struct secret *secret, const char *purpose, struct cred_key *out);
void cred_key_fini(struct cred_key *k);
/* Files hold 64 hex digits and a newline; a private one is made with mode 0600 and refused when others may read it. */
int cred_key_load_or_make(const char *path, struct cred_key *out, struct err *e);
int cred_public_parse(const char *hex, struct cred_public *out); /* 0 or E_SYNTAX */
void cred_public_print(const struct cred_public *p, char out[65]);

void cred_sign(const struct cred_key *k, const void *p, size_t n, uint8_t out[CRED_SIGNATURE_SIZE]);
bool cred_verify(const struct cred_public *pub, const void *p, size_t n, const uint8_t sig[CRED_SIGNATURE_SIZE]);
void cred_hash(const void *p, size_t n, uint8_t out[32]); /* BLAKE2b-256 */
void cred_mac(const uint8_t key[32], const void *p, size_t n, uint8_t out[32]); /* the same, keyed */
/* The same of something that comes in pieces; cred_hasher_end frees it. */
struct cred_hasher;
struct cred_hasher *cred_hasher_new(void);
void cred_hasher_add(struct cred_hasher *h, const void *p, size_t n);
void cred_hasher_end(struct cred_hasher *h, uint8_t out[32]);
bool cred_same(const void *a, const void *b, size_t n);   /* constant time */

/* JWT, HS256 only ("none" and other algorithms are refused whatever the token says). */
#define CRED_KEY_ID_SIZE 17 /* with the NUL */
#define CRED_JWT_LEEWAY_SECS 60 /* `nbf` may be so far ahead of our clock; `exp` has no leeway */

/* What names a key in a token's header (kid): the first 8 bytes of its hash, in hex. */
void cred_key_id(const struct secret *key, char out[CRED_KEY_ID_SIZE]);
struct cred_claims {
    char user[256];     /* `sun` (Slurm), else `sub` (AMD Spur) */
    int64_t uid;        /* `uid`; -1: absent */
    bool admin;         /* `admin`: true */
    int64_t expires;    /* `exp`, Unix seconds; 0: absent (refused by cred_jwt_check) */
    int64_t not_before; /* `nbf`; 0: absent */
    int64_t issued;     /* `iat` */
    char key_id[64];    /* header `kid`; "" absent */
};
/* 0, E_BAD_PROOF (signature, form, algorithm) or E_BAD_PROOF with "expired" text. */
int cred_jwt_check(const char *token, const struct secret *key, int64_t now_unix, struct cred_claims *out,
                   struct err *e);
/* With any of several keys; empty ones are passed over. Of a token of none of them the id that it gives is told. */
int cred_jwt_check_any(const char *token, const struct secret *const *keys, size_t n_keys, int64_t now_unix,
                       struct cred_claims *out, struct err *e);
/* The caller frees. Writes sun, sub, iat, exp and, where set, nbf, uid, admin; kid as given, else the key's id. NULL when
 * a name is not UTF-8. */
char *cred_jwt_make(const struct cred_claims *claims, const struct secret *key);

/* Munge, where its library is on this machine (loaded at the first use, never linked) and munged runs. `socket` NULL:
 * MUNGE_SOCKET of the environment, else the library's own. */
#define CRED_MUNGE_MAX 4096 /* bytes of a credential's text */
bool cred_munge_is_there(const char *socket); /* whether there is a socket to ask */
/* Blocks. 0, E_UNSUPPORTED, or E_BAD_PROOF: forged, expired, of another key, decoded before on this machine (a replay), or of
 * another payload. */
int cred_munge_check(const char *socket, const char *credential, const void *payload, size_t n, uint32_t *out_uid,
                     uint32_t *out_gid, struct err *e);

/* A key given in a configuration: the text itself, or the contents of the file it names. At least `least` bytes: a key
 * shorter than CRED_SECRET_MIN can be guessed. */
#define CRED_SECRET_MIN 16
int cred_secret_from(const char *inline_text, const char *file, size_t least, struct secret *out, struct err *e);

#endif
