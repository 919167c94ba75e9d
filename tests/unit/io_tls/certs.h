/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates for tests, made on the spot.
 */
#ifndef TESTS_CERTS_H
#define TESTS_CERTS_H

struct certs {
    const char *name;   /* of the subject: DNS name */
    const char *ip;     /* NULL: none */
    long secs;          /* how long it is valid; negative: it has run out */
};
/* Writes DIR/STEM.pem and DIR/STEM.key, signed by DIR/CA.pem and .key; `ca` NULL: by itself, and it may sign others. */
void certs_make(const char *dir, const char *stem, const char *ca, const struct certs *what);

#endif
