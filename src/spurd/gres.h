/* SPDX-License-Identifier: Apache-2.0
 *
 * The generic resources of this node: from --gres, or from lines as Slurm's gres.conf has them.
 */
#ifndef SPUR_SPURD_GRES_H
#define SPUR_SPURD_GRES_H

#include "base/arena.h"
#include "base/err.h"
#include "core/model/node.h"

struct gres_list {
    struct gres *p;
    uint32_t n;
};
/* "gpu:a100:2,shards:8"; `files`: "/dev/nvidia[0-1]", device files of the first one, or NULL. */
int gres_read(const char *text, const char *files, struct arena *a, struct gres_list *out, struct err *e);
/* Lines "Name=gpu Type=a100 File=/dev/nvidia[0-1]", "Name=shards Count=8", with "NodeName=n[1-2]" in front for those
 * nodes alone. Another key is refused by name. */
int gres_config_read(const char *text, const char *node_name, struct arena *a, struct gres_list *out, struct err *e);

#endif
