/* SPDX-License-Identifier: Apache-2.0
 *
 * Ed25519 keys. A private key is its seed of 32 bytes; libsodium's 64-byte form (seed, then public key) is put together
 * where something is signed and cleared right after.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/cred/cred.h"

_Static_assert(CRED_PUBLIC_SIZE == crypto_sign_PUBLICKEYBYTES, "Ed25519 public key");
_Static_assert(CRED_SIGNATURE_SIZE == crypto_sign_BYTES, "Ed25519 signature");
_Static_assert(CRED_SEED_SIZE == crypto_sign_SEEDBYTES, "Ed25519 seed");

enum { HEX = 2 * CRED_SEED_SIZE };

static void key_from_seed(const uint8_t seed[CRED_SEED_SIZE], struct cred_key *out) {
    uint8_t full[crypto_sign_SECRETKEYBYTES];
    struct cred_key k = {0};
    must(crypto_sign_seed_keypair(k.pub.b, full, seed) == 0);
    sodium_memzero(full, sizeof(full));
    secret_set(&k.seed, seed, CRED_SEED_SIZE);
    *out = k;
}

void cred_key_new(struct cred_key *out) {
    uint8_t seed[CRED_SEED_SIZE];
    randombytes_buf(seed, sizeof(seed));
    key_from_seed(seed, out);
    sodium_memzero(seed, sizeof(seed));
}

void cred_key_derive(const struct secret *secret, const char *purpose, struct cred_key *out) {
    must(secret->n > 0);
    uint8_t squeezed[crypto_generichash_BYTES_MAX], seed[CRED_SEED_SIZE];
    const uint8_t *key = secret->bytes;
    size_t n = secret->n;
    if (n < crypto_generichash_KEYBYTES_MIN || n > crypto_generichash_KEYBYTES_MAX) {
        crypto_generichash(squeezed, sizeof(squeezed), key, n, NULL, 0);
        key = squeezed;
        n = sizeof(squeezed);
    }
    must(crypto_generichash(seed, sizeof(seed), (const uint8_t *)purpose, strlen(purpose), key, n) == 0);
    key_from_seed(seed, out);
    sodium_memzero(seed, sizeof(seed));
    sodium_memzero(squeezed, sizeof(squeezed));
}

void cred_key_fini(struct cred_key *k) {
    secret_fini(&k->seed);
    *k = (struct cred_key){0};
}

/* Exactly 64 digits, and one newline or none. */
static int parse_hex(const char *text, size_t n, uint8_t out[32]) {
    uint8_t bytes[32];
    size_t got;
    if (n == HEX + 1 && text[HEX] == '\n')
        n = HEX;
    if (n != HEX || sodium_hex2bin(bytes, sizeof(bytes), text, n, NULL, &got, NULL) || got != sizeof(bytes))
        return E_SYNTAX;
    memcpy(out, bytes, sizeof(bytes));
    sodium_memzero(bytes, sizeof(bytes));
    return 0;
}

int cred_public_parse(const char *hex, struct cred_public *out) {
    return parse_hex(hex, strlen(hex), out->b);
}

void cred_public_print(const struct cred_public *p, char out[65]) {
    sodium_bin2hex(out, 65, p->b, sizeof(p->b));
}

/* Group bits alone are borne when the group is one of ours: Kubernetes gives every file of a volume to the pod's
 * fsGroup and makes it group-readable at each mount. */
static bool is_our_group(gid_t gid) {
    gid_t groups[256];
    int n = getgroups(ARRAY_LEN(groups), groups);
    for (int i = 0; i < n; i++)
        if (groups[i] == gid)
            return true;
    return gid == getegid();
}

static int load(const char *path, struct cred_key *out, struct err *e) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? E_NOT_FOUND : err_sys(e, "cannot open the private key %s", path);
    struct stat st;
    if (fstat(fd, &st))
        return err_sys(e, "cannot look at the private key %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, E_CONFIG, "the private key %s is not a file", path);
    if ((st.st_mode & 07) || ((st.st_mode & 070) && !is_our_group(st.st_gid)))
        return err_set(e, E_CONFIG, "others may read the private key %s (mode %04o): make it 0600", path,
                       (unsigned)(st.st_mode & 07777));
    char text[HEX + 2];
    ssize_t n = read(fd, text, sizeof(text));
    if (n < 0)
        return err_sys(e, "cannot read the private key %s", path);
    uint8_t seed[CRED_SEED_SIZE];
    int r = parse_hex(text, (size_t)n, seed);
    sodium_memzero(text, sizeof(text));
    if (r)
        return err_set(e, E_CONFIG, "the private key %s is not 64 hex digits and a newline", path);
    key_from_seed(seed, out);
    sodium_memzero(seed, sizeof(seed));
    return 0;
}

static int sync_dir_of(const char *path, struct err *e) {
    autofree char *copy = xstrdup(path);
    return dir_sync(dirname(copy), e);
}

static int write_key(int fd, const struct cred_key *k) {
    char text[HEX + 2];
    sodium_bin2hex(text, HEX + 1, k->seed.bytes, k->seed.n);
    text[HEX] = '\n';
    ssize_t n = write(fd, text, HEX + 1);
    sodium_memzero(text, sizeof(text));
    if (n >= 0 && n != HEX + 1)
        errno = ENOSPC;
    return n == HEX + 1 && fsync(fd) == 0 ? 0 : -1;
}

/* The file appears under its name with all its bytes on disk, or not at all; of two that make it at once one wins and
 * E_EXISTS tells the other. */
static int make(const char *path, struct cred_key *out, struct err *e) {
    autofree char *temporary = xasprintf("%s.XXXXXX", path);
    autoclose int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return err_sys(e, "cannot make the private key %s", path);
    struct cred_key k;
    cred_key_new(&k);
    int r = 0;
    if (write_key(fd, &k))
        r = err_sys(e, "cannot write the private key %s", path);
    else if (link(temporary, path))
        r = errno == EEXIST ? E_EXISTS : err_sys(e, "cannot make the private key %s", path);
    unlink(temporary);
    if (!r)
        r = sync_dir_of(path, e);
    if (r)
        cred_key_fini(&k);
    else
        *out = k;
    return r;
}

int cred_key_load_or_make(const char *path, struct cred_key *out, struct err *e) {
    int r = load(path, out, e);
    if (r != E_NOT_FOUND)
        return r;
    r = make(path, out, e);
    if (r != E_EXISTS)
        return r;
    r = load(path, out, e);
    return r == E_NOT_FOUND ? err_set(e, r, "the private key %s vanished", path) : r;
}

void cred_sign(const struct cred_key *k, const void *p, size_t n, uint8_t out[CRED_SIGNATURE_SIZE]) {
    must(k->seed.n == CRED_SEED_SIZE);
    uint8_t full[crypto_sign_SECRETKEYBYTES];
    memcpy(full, k->seed.bytes, CRED_SEED_SIZE);
    memcpy(full + CRED_SEED_SIZE, k->pub.b, CRED_PUBLIC_SIZE);
    must(crypto_sign_detached(out, NULL, p, n, full) == 0);
    sodium_memzero(full, sizeof(full));
}

bool cred_verify(const struct cred_public *pub, const void *p, size_t n, const uint8_t sig[CRED_SIGNATURE_SIZE]) {
    return crypto_sign_verify_detached(sig, p, n, pub->b) == 0;
}
