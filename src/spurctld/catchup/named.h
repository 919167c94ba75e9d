/* SPDX-License-Identifier: Apache-2.0
 *
 * The bulk that jobs name: scripts and environments, by their hashes, each once, ascending. For a worker: as long as there are jobs.
 */
#ifndef SPUR_SPURCTLD_CATCHUP_NAMED_H
#define SPUR_SPURCTLD_CATCHUP_NAMED_H

#include "base/vec.h"
#include "core/model/view.h"
#include "io/blob/blob.h"

struct named {
    VEC(struct blob_hash) v;
};
void named_collect(struct named *n, const struct view *v);
void named_fini(struct named *n);

#endif
