/* SPDX-License-Identifier: Apache-2.0
 *
 * The Agent service: bytes to values, the check of the credential, and back.
 */
#ifndef SPUR_SPURD_API_H
#define SPUR_SPURD_API_H

#include <stdint.h>

#include "base/host.h"
#include "io/cred/cred.h"
#include "spurd/table/table.h"

struct loop;
struct tls;
struct rpc_peer;
struct api;

struct api_conf {
    const char *node_name; /* borrowed */
    const void *descriptors; /* for gRPC reflection; NULL: none */
    size_t n_descriptors;
    /* A connection that began with STREAM_MAGIC: the descriptor is the function's, with what was read behind that. */
    void (*on_stream)(void *arg, int fd, const struct rpc_peer *peer, const void *rest, size_t n_rest);
    void *stream_arg;
    struct tls *tls; /* borrowed */
};

/* Listens; *out_port is the real one. */
int api_new(struct loop *l, struct host *h, struct table *t, const struct api_conf *conf, const char *listen,
            struct api **out, uint16_t *out_port, struct err *e);
/* The controller's key is known: what it signed is taken from now on. */
void api_set_key(struct api *a, const struct cred_public *key);
/* TLS is required from now on. */
void api_retire_plain(struct api *a);
void api_free(struct api *a);

#endif
