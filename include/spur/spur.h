/* SPDX-License-Identifier: Apache-2.0
 *
 * libspur: a client of the controllers. Blocking calls on one thread; a handle is not thread safe.
 *
 * Which controller: option, else SPUR_CONTROLLER_ADDR, else SPUR_CONTROLLER (each a list "host:port,host:port" with or
 * without http://, or "unix:/path"), else spur.conf (SPUR_CONF, else /etc/spur/spur.conf: [controller] socket, or
 * spurctld.sock in state_dir, where it exists on this machine; then hosts, or where it names none the hosts of peers, with the
 * port of listen_addr), else the defaults of these: /var/spool/spur/spurctld.sock, localhost:6817. The next one is tried when
 * one is away, hangs, or leads no cluster and finds no leader. Who we are: on a unix socket the kernel says it; over TCP the JWT in SPUR_JWT, else SLURM_JWT, else a munge credential where munged runs
 * (MUNGE_SOCKET), and a claim of our user name.
 *
 * A call that changes something is repeated with the same token after a broken connection, so that it happens once;
 * RESOURCE_EXHAUSTED is waited out (bounded).
 */
#ifndef SPUR_SPUR_H
#define SPUR_SPUR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "wire/messages.h"
#include "wire/methods.h"

struct spur_client;

struct spur_options {
    const char *controllers; /* NULL: as above */
    uint64_t timeout_ms;     /* of a call with its retries; 0: 60,000 */
    bool stale;              /* reads: what the asked controller has will do, even where it can't ask the leader. Also by SPUR_STALE=1 */
};

int spur_open(const struct spur_options *o, struct spur_client **out, struct err *e);
void spur_close(struct spur_client *c); /* takes NULL */

/* `request` is the method's request record; *reply its reply record, in the arena. 0 or the controller's own error with
 * its text; E_UNREACHABLE with Slurm's sentence after all controllers were tried. */
int spur_call(struct spur_client *c, enum wire_method m, const void *request, struct arena *a, void *reply,
              struct err *e);

void spur_token(uint8_t out[TOKEN_SIZE]); /* for requests that change something */
const char *spur_controllers(const struct spur_client *c); /* the list in use */
const char *spur_request_id(const struct spur_client *c); /* of the last call: the controller's log names it so; "": none */

#endif
