/* SPDX-License-Identifier: Apache-2.0
 *
 * Random small clusters on which everything may be asked for, from a seed. Each world has some of the themes only, so that
 * what goes wrong has few facts.
 */
#ifndef SPUR_TESTS_RICH_WORLD_H
#define SPUR_TESTS_RICH_WORLD_H

#include "random_world.h"

#define RICH_NODES 5
#define RICH_KINDS 3 /* gpu:a with device files, gpu:b a bare count, fpga without a type */

enum theme {
    T_GRES = 1,
    T_FEATURES = 2,
    T_SHARE = 4,
    T_PARTS = 8,
    T_LICENCES = 16,
    T_ARRAYS = 32,
    T_DEPS = 64,
    T_MEMORY = 128,
    T_TIMES = 256,
    T_WEIGHTS = 512,
    T_ILL = 1024,
    T_LISTS = 2048,
};
#define T_ALL 4095u

/* What -C says, as bits of features: each node has all bits of one of `each`, all nodes those of the same one of `alt`,
 * `count` nodes those of `group`. */
struct rich_wish {
    const char *text;
    unsigned each[2], alt[2], group[3], count[3];
};
const struct rich_wish *rich_wish(const char *text);
unsigned rich_features(const struct node *n);
int rich_kind(const char *name, const char *type);

void rich_cluster(struct dice *d, unsigned themes, struct world *w);
uint32_t rich_job(struct dice *d, unsigned themes, struct world *w, int64_t now);
/* In plain lines, for whom a case is shown. */
void rich_print(struct world *w, int64_t now, struct str *out);

#endif
