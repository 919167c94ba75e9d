/* SPDX-License-Identifier: Apache-2.0
 *
 * Generic resources of nodes, such as GPUs, as they are written: "gpu:a100:4", "gpu:2", "shard".
 */
#ifndef SPUR_CORE_MODEL_GRES_H
#define SPUR_CORE_MODEL_GRES_H

#include "base/arena.h"
#include "base/err.h"
#include "core/model/node.h"

#define GRES_COUNT_MAX ((uint64_t)1 << 40) /* of one kind on a node: sums of them never overflow */

/* NAME[:TYPE][:COUNT], with K, M or G behind the count (times 1024); 1 where none is given. E_GRES. */
int node_gres_parse(const char *s, struct arena *a, struct gres *out, struct err *e);
/* Takes list[*n], just parsed, into the list of *n kinds: sets its first index. False: the kind is there already. */
bool node_gres_add(struct gres *list, uint32_t *n);

#endif
