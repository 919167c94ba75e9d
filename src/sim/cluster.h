/* SPDX-License-Identifier: Apache-2.0
 *
 * A life of three or five controllers, some agents and clients, from one seed.
 */
#ifndef SPUR_SIM_CLUSTER_H
#define SPUR_SIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

struct cluster_conf {
    uint64_t seed;
    uint32_t members, steps; /* members: that found it */
    bool changes;            /* members come and go, and lose their disks */
    const char *dir; /* for histories; exists */
    bool is_loud;    /* prints the trace */
};
struct cluster_result {
    uint64_t hash; /* of the trace */
    uint64_t entries, terms, crashes, restores, snapshots, virtual_ms;
    uint32_t jobs, runs, reads, changes;
};
/* Ends the process where something is wrong (judge_fail). */
void cluster_live(const struct cluster_conf *conf, struct cluster_result *out);

#endif
