/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of task streams that have just come.
 */
#ifndef SPUR_SPURD_STREAM_OPEN_H
#define SPUR_SPURD_STREAM_OPEN_H

#include "base/host.h"
#include "io/cred/cred.h"
#include "spurd/steps/local.h"
#include "spurd/table/table.h"

struct streams;
struct streams_conf {
    const char *node_name; /* all borrowed */
    struct loop *loop;
    struct host *host;
    struct table *table;
    struct steps_local *steps;
};
struct streams *streams_new(const struct streams_conf *conf);
void streams_set_key(struct streams *s, const struct cred_public *key);
void streams_stop(struct streams *s); /* drops those that are being opened; before the table and the loop go */
void streams_free(struct streams *s);
/* api_conf's on_stream. */
struct rpc_peer;
void streams_take(void *streams, int fd, const struct rpc_peer *peer, const void *rest, size_t n_rest);

#endif
