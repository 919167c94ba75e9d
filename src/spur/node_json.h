/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a row of sinfo --json. Rows are struct node_row.
 */
#ifndef SPUR_SPUR_NODE_JSON_H
#define SPUR_SPUR_NODE_JSON_H

#include "spur/json.h"
#include "spur/spur.h"

#define NODE_OWN(F)                                                                                                   \
    F(port) F(state) F(nodes) F(cpus) F(sockets) F(cores) F(threads) F(disk) F(memory) F(weight) F(features) F(gres)  \
    F(reason) F(partition)
#define NODE_WRITE(name) void node_json_##name(struct json *w, const char *key, const void *row, const void *env);
NODE_OWN(NODE_WRITE)
#undef NODE_WRITE

/* As an object of its own; scontrol show partition has the same. */
void part_json(struct json *w, const char *key, const struct part *p, const char *cluster);

#endif
