/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON web tokens and keys from strangers. The first byte says how the rest is taken: as a token; as header and claims (one
 * line each) that are signed well, so that what the library reads of them is reached; as a public key. Nothing that is not
 * signed with the key is taken.
 */
#include <sodium.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/cred/cred.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char key_text[] = "0123456789abcdef0123456789abcdef";

static void add_base64(struct str *out, const void *p, size_t n) {
    size_t room = sodium_base64_ENCODED_LEN(n, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    autofree char *text = xcalloc(1, room);
    sodium_bin2base64(text, room, p, n, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    str_add(out, text);
}

static void signed_well(const uint8_t *p, size_t n, struct str *out) {
    const uint8_t *line = memchr(p, '\n', n);
    size_t head = line ? (size_t)(line - p) : 0;
    static const char usual[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    if (head)
        add_base64(out, p, head);
    else
        add_base64(out, usual, sizeof(usual) - 1);
    str_addc(out, '.');
    size_t from = line ? head + 1 : 0;
    add_base64(out, p + from, n - from);
    uint8_t mac[32];
    crypto_auth_hmacsha256_state st;
    crypto_auth_hmacsha256_init(&st, (const uint8_t *)key_text, sizeof(key_text) - 1);
    crypto_auth_hmacsha256_update(&st, (const uint8_t *)out->p, out->n);
    crypto_auth_hmacsha256_final(&st, mac);
    str_addc(out, '.');
    add_base64(out, mac, sizeof(mac));
}

static void check(const char *token, bool may_be_good) {
    struct secret key = {0};
    secret_set(&key, key_text, sizeof(key_text) - 1);
    struct cred_claims c;
    struct err e = {0};
    int rc = cred_jwt_check(token, &key, 1764604124, &c, &e);
    if (rc)
        must(rc == E_BAD_PROOF && *e.text);
    else
        must(may_be_good && c.expires > 1764604124 && *c.user && memchr(c.user, 0, sizeof(c.user)));
    secret_fini(&key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static bool begun;
    if (!begun)
        must(!cred_init(NULL));
    begun = true;
    if (n < 1 || n > 4096)
        return 0;
    auto_arena a = {0};
    auto_str token = {0};
    struct cred_public key;
    const char *text = arena_strndup(&a, (const char *)data + 1, n - 1);
    switch (data[0] % 3) {
    case 0:
        check(text, false);
        break;
    case 1:
        signed_well(data + 1, n - 1, &token);
        check(str_text(&token), true);
        break;
    default:
        if (!cred_public_parse(text, &key)) {
            char again[65];
            cred_public_print(&key, again);
            must(strncasecmp(again, text, 64) == 0);
        }
    }
    return 0;
}
