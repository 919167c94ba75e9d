/* SPDX-License-Identifier: Apache-2.0
 *
 * Random small clusters and jobs, from a seed.
 */
#ifndef SPUR_TESTS_RANDOM_WORLD_H
#define SPUR_TESTS_RANDOM_WORLD_H

#include "make_view.h"

struct dice {
    uint64_t state;
};
uint32_t roll(struct dice *d, uint32_t sides); /* 0 … sides - 1 */
static inline bool chance(struct dice *d, uint32_t percent) {
    return roll(d, 100) < percent;
}

struct kind { /* of world */
    uint32_t max_nodes;   /* at most 9 */
    uint32_t max_cpus, max_mem;
    uint32_t max_parts;   /* at most 3 */
    uint32_t max_minutes; /* of jobs */
    bool one_weight;
    bool ill_nodes; /* some are down, silent or drained */
    bool odd_parts; /* some are down, inactive, limited */
};

void random_cluster(struct dice *d, const struct kind *k, struct world *w);
/* A pending job that may or may not be possible. */
uint32_t random_job(struct dice *d, const struct kind *k, struct world *w, int64_t now);
/* For a test's first line of output on failure, and to repeat it: SPUR_PROPERTY_SEED, SPUR_PROPERTY_CASES. */
uint64_t property_seed(void);
uint32_t property_cases(uint32_t usual);

#endif
