/* SPDX-License-Identifier: Apache-2.0
 *
 * The one port among controllers, and its hand-shake: who is there proves that it holds the cluster's key before
 * anything else is read from it. What follows on the connection is for others: RAFT (libraft) or CALLS (gRPC).
 *
 *     dialler                                   listener
 *        ── hello {version, use, from, to, cluster, nonce} ──►
 *        ◄── hello {version, code, from, nonce} ──
 *        ── proof with each key it has (one or two) ──►      checked before one more byte is read
 *        ◄── code, proof with the key that fitted ──         checked before one byte of use is sent
 *
 * A proof is a keyed BLAKE2b over both hellos and the side's name, so nothing recorded is good for a second time. The
 * dialler proves first: to who merely connects, nothing is shown that a key could be guessed from.
 *
 * It has a thread and loop of its own: floods, half-open connections and slow names delay neither the journal nor the
 * state. Names are looked up at each connect, on threads of its own.
 */
#ifndef SPUR_IO_PEER_H
#define SPUR_IO_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/secret.h"

struct loop;
struct peer;
struct peer_dial;
struct tls;

enum peer_use { PEER_RAFT = 1, PEER_CALLS = 2, PEER_N_USES };

#define PEER_KEYS_MAX 2
#define PEER_WAITING_MAX 128     /* connections in their hand-shake; one more takes the place of the oldest */
#define PEER_HANDSHAKE_MS 2000
#define PEER_CONNECT_MS 1000

struct peer_conf {
    const char *cluster; /* its name: others' members are told apart by it, and not by key alone */
    uint32_t id;
    const char *listen;        /* "[::]:6821"; port 0: any */
    const struct secret *keys; /* of [auth]: what is used is derived from them. None: from the cluster's name */
    size_t n_keys;
    struct tls *tls; /* borrowed, until peer_free; NULL: off. Both sides need certificates then */
    /* Something that an operator should read, on any thread. At most one a second of each kind. */
    void (*on_notice)(void *arg, bool is_problem, const char *text);
    void *arg;
};

/* Listens at once. */
int peer_new(const struct peer_conf *conf, struct peer **out, struct err *e);
/* Who dialled gets an answer (E_STOPPING) before; nothing is called back afterwards. */
void peer_free(struct peer *p);
uint16_t peer_port(const struct peer *p);
/* Any thread: from now on these count, for connections to come. */
void peer_set_keys(struct peer *p, const struct secret *keys, size_t n_keys);

/* TLS is required from now on: connections that left here in plain are broken off, so that they are made anew. Any thread. */
void peer_retire_plain(struct peer *p);

/* Connections that others make for this use, on loop `l`: a descriptor that does not block, its owner's from then on. fn
 * NULL: none are taken any more (they are refused). After it returned, an fn of before is not called again if it is
 * called on that loop's thread. */
typedef void (*peer_accept_fn)(void *arg, int fd, uint32_t id, const char *address);
void peer_on_accept(struct peer *p, enum peer_use use, struct loop *l, peer_accept_fn fn, void *arg);

/* Connects to member `id` at "host:port". fn once, on loop `l`, never before this returned: a descriptor, or -1 and why:
 * E_UNREACHABLE (nobody there, no such name yet), E_BAD_PROOF (it or we hold no key of this cluster), E_VERSION,
 * E_CONFIG (another cluster, another id than the one that was dialled), E_NO_PROOF (its certificate, or ours), E_TLS. */
typedef void (*peer_dialled_fn)(void *arg, int fd, const struct err *why);
struct peer_dial *peer_dial(struct peer *p, enum peer_use use, uint32_t id, const char *address, struct loop *l,
                            peer_dialled_fn fn, void *arg);
/* On `l`'s thread, before fn was called: it won't be. */
void peer_dial_cancel(struct peer_dial *d);

struct peer_stats {
    uint64_t accepted, refused, dialled, failed;
};
struct peer_stats peer_stats(struct peer *p);

#endif
