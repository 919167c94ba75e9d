/* SPDX-License-Identifier: Apache-2.0 */
#include "libspur/secure.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "libspur/target.h"

static void on_notice(void *arg, bool is_problem, const char *text) {
    log_line(is_problem ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "tls: %s", text);
}

struct tls_conf secure_conf(const struct conf *c) {
    _Static_assert(TLS_OFF == 0 && TLS_ACCEPT == 1 && TLS_REQUIRE == 2 && TLS_VERIFY_FULL == 0 && TLS_VERIFY_CA == 1,
                   "the order of config.def's words");
    return (struct tls_conf){.mode = (enum tls_mode)c->tls_mode, .verify = (enum tls_verify)c->tls_verify,
                             .cert = c->tls_cert, .key = c->tls_key, .ca = c->tls_ca, .notice = on_notice};
}

void secure_look(struct tls *t) {
    const long long day = 86400;
    long long life = INT64_MAX, left = tls_expires_in(t, &life);
    if (left >= MIN(14 * day, life / 4))
        return;
    if (left < 0)
        log_warn("tls: the certificate (cert_file) has run out: nobody believes it any more");
    else
        log_warn("tls: the certificate (cert_file) runs out in %lld days and %lld hours", left / day, left % day / 3600);
}

static int word_of(const struct tree *tls, const char *key, const char *const *words, size_t n, int *out, struct err *e) {
    const struct tree *t = target_child(tls, key);
    if (!t)
        return 0;
    for (size_t i = 0; i < n && t->kind == TREE_STRING; i++) {
        if (str_eq(t->string, words[i])) {
            *out = (int)i;
            return 0;
        }
    }
    return err_set(e, E_CONFIG, "line %u: tls.%s: what it says is not known to this command", t->line, key);
}

int secure_from_tree(const struct tree *root, struct tls_conf *out, struct err *e) {
    static const char *const modes[] = {"off", "accept", "require"}, *const verifies[] = {"full", "ca"};
    const struct tree *tls = target_child(root, "tls"), *ca = target_child(tls, "ca_file");
    int mode = TLS_OFF, verify = TLS_VERIFY_FULL;
    int rc = word_of(tls, "mode", modes, ARRAY_LEN(modes), &mode, e);
    if (!rc)
        rc = word_of(tls, "verify", verifies, ARRAY_LEN(verifies), &verify, e);
    if (!rc)
        *out = (struct tls_conf){.mode = (enum tls_mode)mode, .verify = (enum tls_verify)verify,
                                 .ca = ca && ca->kind == TREE_STRING && *ca->string ? ca->string : NULL};
    return rc;
}

int secure_client(struct tls **out, struct err *e) {
    auto_arena a = {0};
    struct tree *root = NULL;
    const char *path;
    struct tls_conf conf = {0};
    struct err why = {0};
    *out = NULL;
    int rc = target_read_conf(&a, &root, &path, e);
    if (rc || !root)
        return rc;
    rc = secure_from_tree(root, &conf, &why);
    if (!rc && conf.mode != TLS_OFF)
        rc = tls_new(&conf, out, &why);
    return rc ? err_set(e, rc, "%s: %s", path, why.text) : 0;
}
