/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL's functions, found when they are first needed: a command that speaks over a local socket starts without it.
 * Internal to io/tls.
 *
 * C(SSL_new)(ctx) calls one. Macros of openssl/ssl.h that would call one by name can't be used: their _ctrl is called.
 */
#ifndef SPUR_IO_TLS_CRYPTO_H
#define SPUR_IO_TLS_CRYPTO_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/err.h"

#define CRYPTO_FUNCTIONS(F)                                                                                            \
    F(ASN1_TIME_diff) F(BIO_ctrl) F(BIO_free) F(BIO_new) F(BIO_read) F(BIO_s_mem) F(BIO_write)                         \
    F(ERR_clear_error) F(ERR_get_error) F(ERR_reason_error_string) F(SSL_CTX_check_private_key) F(SSL_CTX_ctrl)        \
    F(SSL_CTX_free) F(SSL_CTX_get0_certificate) F(SSL_CTX_load_verify_locations) F(SSL_CTX_new)                        \
    F(SSL_CTX_set_alpn_protos) F(SSL_CTX_set_alpn_select_cb) F(SSL_CTX_set_default_verify_paths)                       \
    F(SSL_CTX_set_options) F(SSL_CTX_set_verify) F(SSL_CTX_use_PrivateKey_file)                                        \
    F(SSL_CTX_use_certificate_chain_file) F(SSL_ctrl) F(SSL_do_handshake) F(SSL_export_keying_material) F(SSL_free) F(SSL_get0_param)                \
    F(SSL_get_error) F(SSL_get_rbio) F(SSL_get_verify_result) F(SSL_get_wbio) F(SSL_new) F(SSL_read)                   \
    F(SSL_select_next_proto) F(SSL_set_accept_state) F(SSL_set_bio) F(SSL_set_connect_state) F(SSL_set_verify) F(SSL_shutdown)           \
    F(SSL_write) F(TLS_method) F(X509_VERIFY_PARAM_set1_host) F(X509_VERIFY_PARAM_set1_ip_asc)                         \
    F(X509_VERIFY_PARAM_set_hostflags) F(X509_get0_notAfter) F(X509_get0_notBefore) F(X509_verify_cert_error_string)

struct crypto {
#define F(name) __typeof__(name) *f_##name;
    CRYPTO_FUNCTIONS(F)
#undef F
};

/* Loads it once. E_UNSUPPORTED where the library isn't there: libssl.so.3 of Debian's libssl3. */
int crypto_load(struct err *e);
const struct crypto *crypto(void); /* after crypto_load */
#define C(name) crypto()->f_##name

#endif
