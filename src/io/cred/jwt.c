/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON web tokens, HS256 and nothing else.
 *
 * A token is checked from the outside in: its form, then its signature over the bytes as they came, and only then is
 * anything of what it says looked at. The algorithm is ours, never the token's: its header is only asked whether it
 * agrees. Which key it was made with is found by trying: the id in its header (kid) is a help for people, and no word
 * of a token counts before its signature does. Times are Unix seconds. What makes a token end has no leeway; what makes
 * it begin has some, since its maker's clock may be a little ahead.
 */
#include <errno.h>
#include <inttypes.h>
#include <jwt.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/cred/cred.h"

enum { TOKEN_MAX = 16 * 1024, MAC_SIZE = crypto_auth_hmacsha256_BYTES };

AUTO_FREE(jwt_t, jwt_free)

/* Two dots, three parts that aren't empty, letters of base64url only. Leaves the lengths of "header.claims" and of
 * the whole. */
static int check_form(const char *token, size_t *n_signed, size_t *n_all, struct err *e) {
    size_t n = strnlen(token, TOKEN_MAX + 1), dots = 0, last = 0;
    if (n > TOKEN_MAX)
        return err_set(e, E_BAD_PROOF, "the token is longer than %d bytes", TOKEN_MAX);
    for (size_t i = 0; i < n; i++) {
        char c = token[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                      c == '_';
        if (c == '.' && i + 1 < n && i > (dots ? last + 1 : 0)) {
            dots++;
            last = i;
        } else if (!letter) {
            return err_set(e, E_BAD_PROOF, "the token is not in the form of a JSON web token");
        }
    }
    if (dots != 2)
        return err_set(e, E_BAD_PROOF, "the token is not in the form of a JSON web token");
    *n_signed = last;
    *n_all = n;
    return 0;
}

static bool signature_holds(const char *token, size_t n_signed, size_t n_all, const struct secret *key) {
    uint8_t given[MAC_SIZE], right[MAC_SIZE];
    size_t n;
    if (sodium_base642bin(given, sizeof(given), token + n_signed + 1, n_all - n_signed - 1, NULL, &n, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) ||
        n != sizeof(given))
        return false;
    crypto_auth_hmacsha256_state st;
    crypto_auth_hmacsha256_init(&st, key->bytes, key->n);
    crypto_auth_hmacsha256_update(&st, (const uint8_t *)token, n_signed);
    crypto_auth_hmacsha256_final(&st, right);
    sodium_memzero(&st, sizeof(st));
    return sodium_memcmp(given, right, sizeof(given)) == 0;
}

/* A time of the token: an integer, or a number with a fraction (which RFC 7519 allows and some makers write). */
static int read_time(jwt_t *t, const char *name, int64_t *out, struct err *e) {
    *out = 0;
    autofree char *text = jwt_get_grants_json(t, name);
    if (!text)
        return 0;
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= 0 && v < 9e15))
        return err_set(e, E_BAD_PROOF, "the token's \"%s\" is not a time", name);
    *out = (int64_t)v;
    return 0;
}

static int read_uid(jwt_t *t, int64_t *out, struct err *e) {
    *out = -1;
    autofree char *text = jwt_get_grants_json(t, "uid");
    if (!text)
        return 0;
    uint64_t v;
    if (str_to_u64(text, UINT32_MAX - 1, &v)) /* (uid_t)-1 means nobody to the system */
        return err_set(e, E_BAD_PROOF, "the token's \"uid\" is not a user id");
    *out = (int64_t)v;
    return 0;
}

/* The claim's text, NULL when it is not there. One of another type, or of `max` bytes or more, is refused. */
static int read_text(jwt_t *t, const char *name, size_t max, const char **out, struct err *e) {
    autofree char *json = jwt_get_grants_json(t, name);
    *out = jwt_get_grant(t, name);
    if (json && (!*out || strlen(*out) >= max))
        return err_set(e, E_BAD_PROOF, "the token's \"%s\" is not a name", name);
    return 0;
}

static int read_claims(jwt_t *t, struct cred_claims *c, struct err *e) {
    const char *sun, *sub;
    int r = read_text(t, "sun", sizeof(c->user), &sun, e);
    if (!r)
        r = read_text(t, "sub", sizeof(c->user), &sub, e);
    if (!r)
        r = read_uid(t, &c->uid, e);
    if (!r)
        r = read_time(t, "exp", &c->expires, e);
    if (!r)
        r = read_time(t, "nbf", &c->not_before, e);
    if (!r)
        r = read_time(t, "iat", &c->issued, e);
    if (r)
        return r;
    snprintf(c->user, sizeof(c->user), "%s", sun ? sun : sub ? sub : "");
    if (!c->user[0])
        return err_set(e, E_BAD_PROOF, "the token names no user");
    autofree char *admin = jwt_get_grants_json(t, "admin");
    c->admin = str_eq(admin, "true");
    const char *kid = jwt_get_header(t, "kid");
    if (kid && strlen(kid) < sizeof(c->key_id))
        snprintf(c->key_id, sizeof(c->key_id), "%s", kid);
    return 0;
}

static int check_times(const struct cred_claims *c, int64_t now, struct err *e) {
    if (!c->expires)
        return err_set(e, E_BAD_PROOF, "the token has no time of expiry (exp)");
    if (c->expires <= now)
        return err_set(e, E_BAD_PROOF, "the token expired %" PRId64 " seconds ago", now - c->expires);
    if (c->not_before > now + CRED_JWT_LEEWAY_SECS)
        return err_set(e, E_BAD_PROOF, "the token is not valid yet: it begins in %" PRId64 " seconds",
                       c->not_before - now);
    return 0;
}

void cred_key_id(const struct secret *key, char out[CRED_KEY_ID_SIZE]) {
    uint8_t hash[32];
    cred_hash(key->bytes, key->n, hash);
    sodium_bin2hex(out, CRED_KEY_ID_SIZE, hash, (CRED_KEY_ID_SIZE - 1) / 2);
}

/* The token is of no key of ours. What its header says of its key is shown, and believed in nothing. */
static int refuse_signature(const char *token, struct err *e) {
    auto_call(jwt_free_auto) jwt_t *t = NULL;
    if (jwt_decode(&t, token, NULL, 0))
        return err_set(e, E_BAD_PROOF, "the token's signature is wrong");
    const char *kid = jwt_get_header(t, "kid");
    bool is_plain = kid && *kid && strlen(kid) < sizeof(((struct cred_claims *)0)->key_id);
    for (const char *p = kid; is_plain && *p; p++)
        is_plain = *p > ' ' && *p <= '~';
    if (!is_plain)
        return err_set(e, E_BAD_PROOF, "the token's signature is wrong");
    return err_set(e, E_BAD_PROOF, "the token's signature is wrong: it names the key %s", kid);
}

static int read_token(const char *token, const struct secret *key, int64_t now, struct cred_claims *out,
                      struct err *e) {
    auto_call(jwt_free_auto) jwt_t *t = NULL;
    if (jwt_decode(&t, token, key->bytes, (int)key->n) || jwt_get_alg(t) != JWT_ALG_HS256)
        return err_set(e, E_BAD_PROOF, "the token is not a JSON web token of the algorithm HS256");
    autofree char *crit = jwt_get_headers_json(t, "crit");
    if (crit)
        return err_set(e, E_BAD_PROOF, "the token has critical extensions (crit); none is known here");
    struct cred_claims c = {0};
    int r = read_claims(t, &c, e);
    if (!r)
        r = check_times(&c, now, e);
    if (!r)
        *out = c;
    return r;
}

int cred_jwt_check_any(const char *token, const struct secret *const *keys, size_t n_keys, int64_t now_unix,
                       struct cred_claims *out, struct err *e) {
    size_t n_signed = 0, n_all = 0;
    bool has_key = false;
    int r = check_form(token, &n_signed, &n_all, e);
    if (r)
        return r;
    for (size_t i = 0; i < n_keys; i++) {
        if (!keys[i] || !keys[i]->n) /* libjwt takes "no key" as "don't verify" */
            continue;
        has_key = true;
        if (signature_holds(token, n_signed, n_all, keys[i]))
            return read_token(token, keys[i], now_unix, out, e);
    }
    return has_key ? refuse_signature(token, e)
                   : err_set(e, E_BAD_PROOF, "there is no key to check a token with");
}

int cred_jwt_check(const char *token, const struct secret *key, int64_t now_unix, struct cred_claims *out,
                   struct err *e) {
    return cred_jwt_check_any(token, &key, 1, now_unix, out, e);
}

static int write_claims(jwt_t *t, const struct cred_claims *c, const char *key_id) {
    int r = jwt_add_header(t, "kid", key_id);
    if (!r)
        r = jwt_add_grant(t, "sun", c->user);
    if (!r)
        r = jwt_add_grant(t, "sub", c->user);
    if (!r)
        r = jwt_add_grant_int(t, "iat", c->issued);
    if (!r)
        r = jwt_add_grant_int(t, "exp", c->expires);
    if (!r && c->not_before)
        r = jwt_add_grant_int(t, "nbf", c->not_before);
    if (!r && c->uid >= 0)
        r = jwt_add_grant_int(t, "uid", c->uid);
    if (!r && c->admin)
        r = jwt_add_grant_bool(t, "admin", 1);
    return r;
}

char *cred_jwt_make(const struct cred_claims *claims, const struct secret *key) {
    must(key->n > 0 && key->n <= INT32_MAX);
    auto_call(jwt_free_auto) jwt_t *t = NULL;
    must(jwt_new(&t) == 0);
    must(jwt_set_alg(t, JWT_ALG_HS256, key->bytes, (int)key->n) == 0);
    char key_id[CRED_KEY_ID_SIZE];
    cred_key_id(key, key_id);
    if (write_claims(t, claims, claims->key_id[0] ? claims->key_id : key_id)) /* jansson takes UTF-8 only */
        return NULL;
    char *text = jwt_encode_str(t);
    must(text);
    return text;
}
