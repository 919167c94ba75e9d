/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a node's devices a job or step has, and what it has not.
 */
#ifndef SPUR_SPURD_LAUNCH_GPUS_H
#define SPUR_SPURD_LAUNCH_GPUS_H

#include "base/arena.h"
#include "core/model/job.h"
#include "core/model/node.h"

uint64_t gpus_count(const struct gres_held *held, uint32_t n);
const char *gpus_list(struct arena *a, const struct gres_held *held, uint32_t n); /* "0,3": indexes */
/* Those of one task of a step that asked for GPUs of each task; `index`: among the node's tasks. NULL: it did not, or they
 * can't be told apart: each sees all. */
const char *gpus_of_task(struct arena *a, const struct gres_ask *asks, uint32_t n_asks, const struct gres_held *held,
                         uint32_t n, uint32_t index);
/* Files of the node's devices that are not among those held. */
uint32_t gpus_denied(struct arena *a, const struct gres *node, uint32_t n_node, const struct gres_held *held, uint32_t n,
                     const char *const **out);

#endif
