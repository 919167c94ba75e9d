/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates and keys: read, checked, and read again when they change.
 */
#include <arpa/inet.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "io/tls/inside.h"

#define LOOK_MS 1000 /* files are looked at so often at most */

int tls_err(struct err *e, int code, const char *what) {
    unsigned long n = C(ERR_get_error)();
    const char *reason = n ? C(ERR_reason_error_string)(n) : NULL;
    C(ERR_clear_error)();
    return err_set(e, code, "%s: %s", what, reason ? reason : "not usable");
}

/* gRPC's clients insist on "h2" being agreed upon. Others of ours ask for nothing. */
static const uint8_t alpn_h2[] = {2, 'h', '2'};

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n_out, const unsigned char *in, unsigned n_in,
                           void *arg) {
    unsigned char *chosen;
    if (C(SSL_select_next_proto)(&chosen, n_out, alpn_h2, sizeof(alpn_h2), in, n_in) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *context_new(void) {
    SSL_CTX *ctx = C(SSL_CTX_new)(C(TLS_method)());
    must(ctx);
    C(SSL_CTX_ctrl)(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    C(SSL_CTX_ctrl)(ctx, SSL_CTRL_MODE,
                    SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS, NULL);
    C(SSL_CTX_ctrl)(ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    C(SSL_CTX_set_options)(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    return ctx;
}

static int load_own(const struct tls_conf *t, SSL_CTX *ctx, struct err *e) {
    if (!t->cert)
        return 0;
    if (C(SSL_CTX_use_certificate_chain_file)(ctx, t->cert) != 1)
        return tls_err(e, E_CONFIG, t->cert);
    if (C(SSL_CTX_use_PrivateKey_file)(ctx, t->key, SSL_FILETYPE_PEM) != 1)
        return tls_err(e, E_CONFIG, t->key);
    if (C(SSL_CTX_check_private_key)(ctx) != 1)
        return tls_err(e, E_CONFIG, t->key);
    return 0;
}

static int load_ca(const struct tls_conf *t, SSL_CTX *ctx, struct err *e) {
    if (!t->ca)
        return C(SSL_CTX_set_default_verify_paths)(ctx) == 1 ? 0 : tls_err(e, E_CONFIG, "the machine's certificates");
    return C(SSL_CTX_load_verify_locations)(ctx, t->ca, NULL) == 1 ? 0 : tls_err(e, E_CONFIG, t->ca);
}

static int make(const struct tls_conf *t, bool is_server, SSL_CTX **out, struct err *e) {
    SSL_CTX *ctx = context_new();
    int rc = load_own(t, ctx, e);
    if (!rc)
        rc = load_ca(t, ctx, e);
    if (rc) {
        C(SSL_CTX_free)(ctx);
        return rc;
    }
    if (is_server) {
        C(SSL_CTX_set_alpn_select_cb)(ctx, choose_protocol, NULL);
    } else {
        must(C(SSL_CTX_set_alpn_protos)(ctx, alpn_h2, sizeof(alpn_h2)) == 0);
        C(SSL_CTX_set_verify)(ctx, SSL_VERIFY_PEER, NULL);
    }
    *out = ctx;
    return 0;
}

/* ---- files that change ---- */

static struct tls_stamp stamp_of(const char *path) {
    struct stat st;
    if (!path || stat(path, &st) != 0)
        return (struct tls_stamp){0};
    return (struct tls_stamp){st.st_mtim, st.st_ino, (uint64_t)st.st_size};
}

static void stamps(const struct tls_conf *c, struct tls_stamp out[3]) {
    const char *const path[] = {c->cert, c->key, c->ca};
    memset(out, 0, 3 * sizeof(*out)); /* they are compared as bytes */
    for (size_t i = 0; i < ARRAY_LEN(path); i++)
        out[i] = stamp_of(path[i]);
}

struct contexts {
    SSL_CTX *server, *client;
    struct tls_stamp stamp[3];
};

static int load(const struct tls_conf *c, struct contexts *out, struct err *e) {
    stamps(c, out->stamp); /* before they are read: what changes in between is read once more */
    int rc = c->cert ? make(c, true, &out->server, e) : 0; /* a command needs none, and it costs a millisecond */
    if (!rc)
        rc = make(c, false, &out->client, e);
    if (rc && out->server)
        C(SSL_CTX_free)(out->server);
    return rc;
}

/* Under the lock. Sessions that live keep the contexts that they were made with. */
static void use(struct tls *t, const struct contexts *c) {
    if (t->server)
        C(SSL_CTX_free)(t->server);
    if (t->client)
        C(SSL_CTX_free)(t->client);
    t->server = c->server;
    t->client = c->client;
    memcpy(t->stamp, c->stamp, sizeof(t->stamp));
}

static int64_t now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Under the lock. */
static void refresh(struct tls *t) {
    int64_t now = now_ms();
    if (!t->client || now < t->looked_ms + LOOK_MS)
        return;
    t->looked_ms = now;
    struct tls_conf conf = {.verify = t->verify, .cert = t->cert, .key = t->key, .ca = t->ca};
    struct contexts fresh = {0};
    struct tls_stamp files[3];
    stamps(&conf, files);
    if (memcmp(files, t->stamp, sizeof(files)) == 0)
        return;
    struct err e;
    int rc = load(&conf, &fresh, &e);
    if (rc) {
        memcpy(t->stamp, files, sizeof(files)); /* told once */
        err_wrap(&e, "the changed certificate is not taken, the one of before stays");
    } else {
        use(t, &fresh);
    }
    if (t->notice)
        t->notice(t->arg, rc != 0, rc ? e.text : "the certificate has changed and is in use");
}

/* ---- life ---- */

static void replace(char **at, const char *text) {
    char *old = *at;
    *at = xstrdup(text);
    free(old);
}

int tls_set(struct tls *t, const struct tls_conf *conf, struct err *e) {
    struct contexts fresh = {0};
    int rc = 0;
    if (conf->cert && !conf->key)
        return err_set(e, E_CONFIG, "a certificate needs its key");
    if (conf->mode != TLS_OFF) {
        rc = crypto_load(e);
        if (!rc)
            rc = load(conf, &fresh, e);
        if (rc)
            return rc;
    }
    pthread_mutex_lock(&t->lock);
    use(t, &fresh);
    replace(&t->cert, conf->cert);
    replace(&t->key, conf->key);
    replace(&t->ca, conf->ca);
    t->verify = conf->verify;
    t->notice = conf->notice;
    t->arg = conf->arg;
    t->looked_ms = now_ms();
    if (t->mode != conf->mode)
        t->generation++;
    t->mode = conf->mode;
    pthread_mutex_unlock(&t->lock);
    return 0;
}

int tls_new(const struct tls_conf *conf, struct tls **out, struct err *e) {
    struct tls *t = xnew(struct tls);
    pthread_mutex_init(&t->lock, NULL);
    int rc = tls_set(t, conf, e);
    if (rc) {
        tls_free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void tls_free(struct tls *t) {
    if (!t)
        return;
    while (t->wraps)
        wrap_free(t->wraps);
    use(t, &(struct contexts){0});
    pthread_mutex_destroy(&t->lock);
    free(t->cert);
    free(t->key);
    free(t->ca);
    free(t);
}

enum tls_mode tls_mode(const struct tls *t) {
    return t ? t->mode : TLS_OFF;
}

unsigned tls_generation(const struct tls *t) {
    return t ? t->generation : 0;
}

static long long seconds_between(const ASN1_TIME *from, const ASN1_TIME *to) {
    int days = 0, secs = 0;
    return C(ASN1_TIME_diff)(&days, &secs, from, to) == 1 ? days * 86400ll + secs : INT64_MAX;
}

long long tls_expires_in(struct tls *t, long long *out_life) {
    if (!t)
        return INT64_MAX;
    pthread_mutex_lock(&t->lock);
    refresh(t);
    const X509 *own = t->server ? C(SSL_CTX_get0_certificate)(t->server) : NULL;
    long long left = own ? seconds_between(NULL, C(X509_get0_notAfter)(own)) : INT64_MAX;
    if (own && out_life)
        *out_life = seconds_between(C(X509_get0_notBefore)(own), C(X509_get0_notAfter)(own));
    pthread_mutex_unlock(&t->lock);
    return left;
}

bool tls_is_hello(const void *p, size_t n) {
    return n && *(const uint8_t *)p == 0x16; /* a record of the handshake; a text or HTTP/2 begins with a letter */
}

/* ---- a session ---- */

static bool is_address(const char *host) {
    struct in6_addr any;
    return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

static void expect_host(SSL *ssl, const char *host, bool is_checked) {
    bool address = is_address(host);
    if (!address)
        C(SSL_ctrl)(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (void *)(uintptr_t)host);
    if (!is_checked)
        return;
    X509_VERIFY_PARAM *param = C(SSL_get0_param)(ssl);
    C(X509_VERIFY_PARAM_set_hostflags)(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    int ok = address ? C(X509_VERIFY_PARAM_set1_ip_asc)(param, host) : C(X509_VERIFY_PARAM_set1_host)(param, host, 0);
    must(ok == 1);
}

SSL *tls_session(struct tls *t, bool is_server, bool is_mutual, const char *host) {
    pthread_mutex_lock(&t->lock);
    refresh(t);
    SSL_CTX *ctx = is_server ? t->server : t->client;
    SSL *ssl = ctx ? C(SSL_new)(ctx) : NULL;
    enum tls_verify verify = t->verify;
    pthread_mutex_unlock(&t->lock);
    if (!ssl)
        return NULL;
    BIO *in = C(BIO_new)(C(BIO_s_mem)()), *out = C(BIO_new)(C(BIO_s_mem)());
    must(in && out);
    C(SSL_set_bio)(ssl, in, out);
    if (is_server) {
        if (is_mutual)
            C(SSL_set_verify)(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        C(SSL_set_accept_state)(ssl);
    } else {
        C(SSL_set_connect_state)(ssl);
        expect_host(ssl, host, verify == TLS_VERIFY_FULL);
    }
    return ssl;
}
