/* SPDX-License-Identifier: Apache-2.0
 *
 * A token is ID.SECRET in hex. The state keeps its hash, so its text is shown once, to whoever made it.
 *
 * The secret is not random but derived from the cluster's own key and the token of the request: a request that is
 * repeated after a broken connection is answered with the same text, as every repeat is.
 */
#include "spurctld/admit/token.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/policy.h"

#define ID_BYTES 3
#define TEXT_MAX 200u
#define TTL_MOST_SECS (10u * 366u * 86400u)
#define PURPOSE "spur join token 1"

/* ---- what an agent shows ---- */

static void hash_hex(const char *text, char out[65]) {
    struct cred_public hash;
    cred_hash(text, strlen(text), hash.b);
    cred_public_print(&hash, out);
}

/* The part that may be shown. A text without one is of the first start's form, or nobody's. */
static int id_of(const char *token, char out[2 * ID_BYTES + 1]) {
    if (strspn(token, "0123456789abcdef") != 2 * ID_BYTES || token[2 * ID_BYTES] != '.')
        return E_NOT_FOUND;
    memcpy(out, token, 2 * ID_BYTES);
    out[2 * ID_BYTES] = 0;
    return 0;
}

int admit_check_join_token(struct room *r, const char *node, const char *token, struct err *e) {
    struct view v;
    char hex[65], id[2 * ID_BYTES + 1];
    int64_t now = room_now_unix(r);
    state_peek(r->state, &v);
    if (!token || !*token)
        return err_set(e, E_ADMISSION, "node %s may not join: a join token is required (spurd --token)", node);
    hash_hex(token, hex);
    for (uint32_t i = 0; i < v.cluster->n_join_tokens; i++)
        if (strlen(v.cluster->join_tokens[i]) == 64 && cred_same(hex, v.cluster->join_tokens[i], 64))
            return 0;
    for (uint32_t i = 0; i < v.cluster->n_tokens; i++) {
        const struct join_token *t = &v.cluster->tokens[i];
        if (!t->hash || strlen(t->hash) != 64 || !cred_same(hex, t->hash, 64))
            continue;
        if (!t->until_unix || t->until_unix > now)
            return 0;
        return err_set(e, E_ADMISSION, "node %s may not join: its join token %s expired %" PRId64 " s ago", node, t->id,
                       now - t->until_unix);
    }
    if (id_of(token, id))
        return err_set(e, E_ADMISSION, "node %s may not join: its join token is not one of this cluster's", node);
    return err_set(e, E_ADMISSION,
                   "node %s may not join: its join token %s is not one of this cluster's, or was revoked", node, id);
}

/* ---- what an administrator does ---- */

struct making {
    struct room *room;
    struct arena arena;
    struct join_token made; /* its id is NULL where one is revoked */
    const char *text, *revoked, *user;
    admit_fn done;
    void *arg;
};

static void on_done(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct making *m = arg;
    struct join_token_reply reply = {0};
    if (!code && m->made.id) {
        m->made.hash = NULL;
        reply = (struct join_token_reply){.text = m->text, .tokens = &m->made, .n_tokens = 1};
        log_info("join token %s was made by %s", m->made.id, m->user);
    } else if (!code) {
        log_info("join token %s was revoked by %s", m->revoked, m->user);
    }
    m->done(m->arg, code, why, &reply);
    arena_fini(&m->arena); /* with the text */
    free(m);
}

/* All of them, without what would let them be guessed at. */
static void list(struct room *r, admit_fn done, void *arg) {
    struct view v;
    auto_arena a = {0};
    state_peek(r->state, &v);
    struct join_token *all = arena_calloc(&a, v.cluster->n_tokens + 1, sizeof(*all));
    for (uint32_t i = 0; i < v.cluster->n_tokens; i++) {
        all[i] = v.cluster->tokens[i];
        all[i].hash = NULL;
    }
    struct join_token_reply reply = {.tokens = all, .n_tokens = v.cluster->n_tokens};
    done(arg, 0, NULL, &reply);
}

static void make_text(struct making *m, const uint8_t *request_token, uint32_t uid) {
    auto_str purpose = {0};
    struct cred_key k;
    char id[65], secret[65], hash[65];
    str_addf(&purpose, PURPOSE " %u ", uid);
    for (size_t i = 0; i < TOKEN_SIZE; i++)
        str_addf(&purpose, "%02x", request_token[i]);
    cred_key_derive(&m->room->launch_key.seed, purpose.p, &k);
    struct cred_public bytes;
    memcpy(bytes.b, k.seed.bytes, sizeof(bytes.b));
    cred_public_print(&bytes, secret);
    hash_hex(secret, id);
    m->text = arena_printf(&m->arena, "%.*s.%s", 2 * ID_BYTES, id, secret);
    hash_hex(m->text, hash);
    m->made.id = arena_printf(&m->arena, "%.*s", 2 * ID_BYTES, id);
    m->made.hash = arena_strdup(&m->arena, hash);
    cred_key_fini(&k);
    explicit_bzero(&bytes, sizeof(bytes));
    explicit_bzero(secret, sizeof(secret));
}

static int check(const struct join_token_request *req, struct err *e) {
    if (req->create && req->revoke)
        return err_set(e, E_SYNTAX, "make a token or revoke one, not both");
    if (req->n_token && req->n_token != TOKEN_SIZE)
        return err_set(e, E_SYNTAX, "the request's token must have %d bytes", TOKEN_SIZE);
    if (req->ttl_secs > TTL_MOST_SECS)
        return err_set(e, E_SYNTAX, "a join token can't live longer than %u s", TTL_MOST_SECS);
    if (req->create && req->create->text && strlen(req->create->text) > TEXT_MAX)
        return err_set(e, E_TOO_BIG, "a join token's description has at most %u bytes", TEXT_MAX);
    if (req->revoke && strlen(req->revoke) > TEXT_MAX)
        return err_set(e, E_NOT_FOUND, "there is no such token");
    return 0;
}

/* Administrators; under one policy everybody who is let in at all. */
static bool may(const struct room *r, const struct who *who) {
    return who->is_admin || (policy_of(room_rconf(r)->flavor)->anybody_makes_tokens && r->conf->auth_mode != AUTH_REQUIRED);
}

void admit_join_token(struct room *r, const struct who *who, const struct join_token_request *req, admit_fn done,
                      void *arg) {
    struct err e;
    uint8_t token[TOKEN_SIZE];
    int rc = may(r, who) ? check(req, &e) : err_set(&e, E_DENIED, NULL);
    if (rc) {
        done(arg, rc, &e, NULL);
        return;
    }
    if (!req->create && !req->revoke) {
        list(r, done, arg);
        return;
    }
    if (req->n_token)
        memcpy(token, req->token, sizeof(token));
    else
        cred_random(token, sizeof(token));
    struct making *m = xnew(struct making);
    m->room = r;
    m->done = done;
    m->arg = arg;
    m->user = arena_strdup(&m->arena, who->user);
    struct cmd_join_token cmd = {0};
    if (req->create) {
        make_text(m, token, who->uid);
        m->made.text = req->create->text ? arena_strdup(&m->arena, req->create->text) : NULL;
        m->made.created_unix = room_now_unix(r);
        m->made.until_unix = req->ttl_secs ? m->made.created_unix + req->ttl_secs : 0;
        m->made.uid = who->uid;
        cmd.add = &m->made;
    } else {
        cmd.revoke = m->revoked = arena_strdup(&m->arena, req->revoke);
    }
    room_propose(r, CMD_JOIN_TOKEN, &cmd, who->uid, token, on_done, m);
}
