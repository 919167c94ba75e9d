/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS (1.2 and later, OpenSSL) around a connected socket.
 *
 * What speaks over a connection does not know of it: it gets one end of a local socket pair, and a pump on the same loop
 * carries bytes between that and the real socket. So gRPC, Raft and task streams, which want a descriptor, need no change,
 * and a descriptor may be handed on.
 *
 *     peer ◄── records ──► socket ─ pump (SSL) ─ pair ◄── plain bytes ──► whoever asked
 *
 * While a cluster is being moved to TLS its members differ; [tls] mode says what one of them does:
 *
 *     mode      a peer connects in plain    connecting
 *     off       is taken                    plain
 *     accept    is taken                    TLS; plain to who knows no TLS
 *     require   is turned away              TLS
 *
 * so off → accept everywhere → require everywhere loses no connection. Local (unix) sockets are never wrapped.
 *
 * OpenSSL is loaded when the first `struct tls` that is not off is made: a command that needs no TLS doesn't pay for it.
 *
 * Threads: a `struct tls` may be used on any thread; a wrapping belongs to its loop's.
 */
#ifndef SPUR_IO_TLS_H
#define SPUR_IO_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
struct tls;

enum tls_mode { TLS_OFF, TLS_ACCEPT, TLS_REQUIRE };
enum tls_verify { TLS_VERIFY_FULL, TLS_VERIFY_CA }; /* of whom we connect to: chain and name; chain */

struct tls_conf {
    enum tls_mode mode;
    enum tls_verify verify;
    const char *cert; /* PEM, with its chain; NULL: we have none and can only connect */
    const char *key;  /* PEM, not encrypted; with cert */
    const char *ca;   /* PEM: whom we believe; NULL: the machine's own list */
    /* A file that changed is read again, at the next connection at least a second after. What can't be used is told here
     * (any thread) and what was in use before stays. May be NULL. */
    void (*notice)(void *arg, bool is_problem, const char *text);
    void *arg;
};

/* E_CONFIG: which file, what is wrong. With mode TLS_OFF no file is read and OpenSSL isn't loaded. NULL is off everywhere
 * here. */
int tls_new(const struct tls_conf *conf, struct tls **out, struct err *e);
/* From now on, for connections to come; all files are read. On failure all stays as it was. */
int tls_set(struct tls *t, const struct tls_conf *conf, struct err *e);
/* When no loop that it was used with runs any more. Takes NULL. */
void tls_free(struct tls *t);
enum tls_mode tls_mode(const struct tls *t);
/* Grows with each tls_set that changed the mode: what was connected in plain before may look again. */
unsigned tls_generation(const struct tls *t);
/* Seconds until our own certificate runs out, negative when it has; INT64_MAX: there is none. *out_life: from its beginning to
 * its end; may be NULL. */
long long tls_expires_in(struct tls *t, long long *out_life);

/* Whether a connection that began with these bytes (one is enough) is TLS. No protocol of ours begins so. */
bool tls_is_hello(const void *p, size_t n);

/* What came of a wrapping: a descriptor of plain bytes, non-blocking, the caller's; or -1 and why (E_UNREACHABLE: the peer
 * went away, E_TLS: it speaks no TLS, or none that we speak, E_NO_PROOF: it did not prove itself, or we did not, E_DEADLINE: 10 s went by). Never called
 * before the function that began it returned. */
typedef void (*tls_fn)(void *arg, int fd, const struct err *why);
struct tls_wrap;

/* Takes the descriptor. `first`: what was read from it already. `is_mutual`: who connects needs a certificate too, signed by
 * whom we believe, or is turned away. */
struct tls_wrap *tls_accept(struct tls *t, struct loop *l, int fd, const void *first, size_t n_first, bool is_mutual, tls_fn fn,
                            void *arg);
/* `host` is what the certificate must be for (a name, or an address in its text form). */
struct tls_wrap *tls_connect(struct tls *t, struct loop *l, int fd, const char *host, tls_fn fn, void *arg);
/* Before fn was called: it won't be. */
void tls_cancel(struct tls_wrap *w);


/* Bytes that both ends of this session know and nobody between them can: a proof that is made over them can't be carried on
 * from one session into another. Only inside fn. */
#define TLS_BINDING_BYTES 32
void tls_binding(const struct tls_wrap *w, uint8_t out[TLS_BINDING_BYTES]);

/* Whether some wrapping has bytes that its peer was not sent yet: a program that ends would lose them. On the loop's thread. */
bool tls_has_unsent(struct tls *t);

#endif
