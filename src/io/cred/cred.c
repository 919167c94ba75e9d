/* SPDX-License-Identifier: Apache-2.0
 *
 * What keys and tokens share: random bytes, hashes, comparing without a clock to listen to, secrets of a configuration.
 */
#include "io/cred/cred.h"

#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum { SECRET_MAX = 64 * 1024 };

int cred_init(struct err *e) {
    if (sodium_init() < 0)
        return err_set(e, E_INTERNAL, "libsodium finds no source of random numbers");
    return 0;
}

void cred_random(void *out, size_t n) {
    randombytes_buf(out, n);
}

void cred_hash(const void *p, size_t n, uint8_t out[32]) {
    crypto_generichash(out, 32, p, n, NULL, 0);
}

bool cred_same(const void *a, const void *b, size_t n) {
    return n == 0 || sodium_memcmp(a, b, n) == 0;
}

static int check_length(size_t n, size_t least, const char *where, struct err *e) {
    if (n < least)
        return err_set(e, E_CONFIG, "the key in %s has %zu bytes; at least %zu are needed", where, n, least);
    if (n > SECRET_MAX)
        return err_set(e, E_CONFIG, "the key in %s has more than %d bytes", where, SECRET_MAX);
    return 0;
}

/* The bytes as they stand, a newline at the end included: Slurm reads its jwt_hs256.key so, and a token must mean the
 * same to both. */
static int secret_from_file(const char *path, size_t least, struct secret *out, struct err *e) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return err_sys(e, "cannot open the key file %s", path);
    struct stat st;
    if (fstat(fd, &st))
        return err_sys(e, "cannot look at the key file %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, E_CONFIG, "the key file %s is not a file", path);
    uint8_t bytes[SECRET_MAX + 1];
    size_t n = 0;
    while (n < sizeof(bytes)) {
        ssize_t got = read(fd, bytes + n, sizeof(bytes) - n);
        if (got < 0) {
            sodium_memzero(bytes, n);
            return err_sys(e, "cannot read the key file %s", path);
        }
        if (got == 0)
            break;
        n += (size_t)got;
    }
    int r = check_length(n, least, path, e);
    if (!r)
        secret_set(out, bytes, n);
    sodium_memzero(bytes, n);
    return r;
}

int cred_secret_from(const char *inline_text, const char *file, size_t least, struct secret *out, struct err *e) {
    bool has_text = inline_text && *inline_text, has_file = file && *file;
    if (has_text && has_file)
        return err_set(e, E_CONFIG, "a key is given both as text and as a file (%s)", file);
    if (has_file)
        return secret_from_file(file, least, out, e);
    if (!has_text)
        return err_set(e, E_CONFIG, "no key is given");
    size_t n = strlen(inline_text);
    int r = check_length(n, least, "the configuration", e);
    if (!r)
        secret_set(out, inline_text, n);
    return r;
}

void cred_mac(const uint8_t key[32], const void *p, size_t n, uint8_t out[32]) {
    must(crypto_generichash(out, 32, p, n, key, 32) == 0);
}

struct cred_hasher {
    crypto_generichash_state st;
};

struct cred_hasher *cred_hasher_new(void) {
    struct cred_hasher *h = NULL; /* libsodium asks for an alignment of 64 */
    must(posix_memalign((void **)&h, 64, sizeof(*h)) == 0);
    crypto_generichash_init(&h->st, NULL, 0, 32);
    return h;
}

void cred_hasher_add(struct cred_hasher *h, const void *p, size_t n) {
    crypto_generichash_update(&h->st, p, n);
}

void cred_hasher_end(struct cred_hasher *h, uint8_t out[32]) {
    crypto_generichash_final(&h->st, out, 32);
    free(h);
}
