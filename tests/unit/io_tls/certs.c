/* SPDX-License-Identifier: Apache-2.0 */
#include "certs.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "base/mem.h"

static FILE *file(const char *dir, const char *stem, const char *end, const char *mode) {
    autofree char *path = xasprintf("%s/%s.%s", dir, stem, end);
    FILE *f = fopen(path, mode);
    must(f);
    return f;
}

static void extend(X509 *cert, X509 *issuer, int nid, const char *value) {
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    must(x && X509_add_ext(cert, x, -1) == 1);
    X509_EXTENSION_free(x);
}

static void save(const char *dir, const char *stem, X509 *cert, EVP_PKEY *key) {
    FILE *f = file(dir, stem, "pem", "w");
    must(PEM_write_X509(f, cert) == 1);
    fclose(f);
    f = file(dir, stem, "key", "w");
    must(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1);
    fclose(f);
}

static void load(const char *dir, const char *stem, X509 **cert, EVP_PKEY **key) {
    FILE *f = file(dir, stem, "pem", "r");
    *cert = PEM_read_X509(f, NULL, NULL, NULL);
    fclose(f);
    f = file(dir, stem, "key", "r");
    *key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
    fclose(f);
    must(*cert && *key);
}

void certs_make(const char *dir, const char *stem, const char *ca, const struct certs *what) {
    static long serial = 1;
    EVP_PKEY *key = EVP_EC_gen("P-256"), *signer = key;
    X509 *cert = X509_new(), *issuer = cert;
    if (ca)
        load(dir, ca, &issuer, &signer);
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), what->secs);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC, (const unsigned char *)what->name, -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(issuer));
    extend(cert, issuer, NID_basic_constraints, ca ? "critical,CA:FALSE" : "critical,CA:TRUE");
    autofree char *names = what->ip ? xasprintf("DNS:%s,IP:%s", what->name, what->ip) : xasprintf("DNS:%s", what->name);
    extend(cert, issuer, NID_subject_alt_name, names);
    must(X509_sign(cert, signer, EVP_sha256()) > 0);
    save(dir, stem, cert, key);
    if (ca) {
        X509_free(issuer);
        EVP_PKEY_free(signer);
    }
    X509_free(cert);
    EVP_PKEY_free(key);
}
