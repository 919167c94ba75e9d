/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding somebody to talk to among several addresses. Internal to io/rpc.
 *
 * Addresses are tried in order, starting with a given one; the next is begun when one fails, or after DIAL_STAGGER_MS
 * without news, so that a host that swallows packets delays nobody for long. The first that connects wins. When all
 * have failed they are tried once more after DIAL_AGAIN_MS: a daemon that is being restarted is back by then.
 *
 * Numeric addresses, unix sockets and "localhost" need no look-up. Other names are looked up by uv_getaddrinfo, on a
 * thread of libuv's (only then are there any): loop_free waits for a look-up that is still running.
 */
#ifndef SPUR_IO_RPC_DIAL_H
#define SPUR_IO_RPC_DIAL_H

#include "io/loop/address.h"
#include "io/rpc/conn.h"

enum { DIAL_STAGGER_MS = 300, DIAL_AGAIN_MS = 100 };

struct dial;
struct tls;

/* Exactly one of sock (the caller's then) and why is NULL. `which`: index of the address; `is_tls`: it is one end of a local
 * pair, and TLS is on the way. The dial is gone. */
typedef void (*dial_fn)(void *arg, struct sock *sock, size_t which, bool is_tls, const struct err *why);

/* `addresses` is borrowed until fn is called, which never happens before this returned. `tls`: for those over TCP; NULL: off.
 * The hand-shake is a part of connecting: who doesn't come to its end delays nobody longer than who swallows packets. */
struct dial *dial_start(struct loop *l, const struct address *addresses, size_t n, size_t first, struct tls *tls,
                        uint64_t timeout_ms, dial_fn fn, void *arg);
void dial_cancel(struct dial *d); /* takes NULL; fn won't be called */

#endif
