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
/* Files of the node's devices that are not among those held. */
uint32_t gpus_denied(struct arena *a, const struct gres *node, uint32_t n_node, const struct gres_held *held, uint32_t n,
                     const char *const **out);

#endif
