/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of io/tls share.
 */
#ifndef SPUR_IO_TLS_INSIDE_H
#define SPUR_IO_TLS_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "io/tls/crypto.h"
#include "io/tls/tls.h"

struct tls_stamp { /* of a file, as it was read */
    struct timespec changed;
    uint64_t inode, size;
};

struct tls {
    _Atomic(enum tls_mode) mode;
    atomic_uint generation;
    pthread_mutex_t lock; /* guards what follows */
    enum tls_verify verify;
    char *cert, *key, *ca;
    void (*notice)(void *arg, bool is_problem, const char *text);
    void *arg;
    SSL_CTX *server, *client; /* NULL while off */
    struct tls_stamp stamp[3];
    int64_t looked_ms;
    struct tls_wrap *wraps; /* all that live */
};

/* One session of a new connection, with memory BIOs: what came from the peer goes into its rbio, and what is for it
 * comes out of its wbio. NULL for a server that has no certificate, and where TLS was switched off in the meantime. */
SSL *tls_session(struct tls *t, bool is_server, bool is_mutual, const char *host);

/* What went wrong in OpenSSL, in its words; clears its queue. */
int tls_err(struct err *e, int code, const char *what);

void wrap_free(struct tls_wrap *w); /* its loop is gone */

#endif
