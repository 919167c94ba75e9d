/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster as the planner sees it: nodes and partitions as plain arrays and bit sets.
 *
 * A node is known by its *rank*: its place in the order of preference (lower weight first, then name, then id). What
 * changes rarely (who is there, their names and weights, which partition has whom) is kept between passes and made
 * anew only when it differs; sizes and states are read at each pass.
 */
#ifndef SPUR_CORE_SCHED_GRID_H
#define SPUR_CORE_SCHED_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "core/model/view.h"

#define GRID_NONE UINT32_MAX
#define GRID_CPUS_MAX 65535u               /* of one node; more are not used */
#define GRID_MEM_MAX ((uint64_t)1 << 44)   /* MiB, of a node or a request: sums of them never overflow */

#define GRID_SLOTS_MAX 32u /* kinds of generic resources of one node; more are not used */

#define GRID_DEVICES_MAX 65536u /* of one kind on a node that have indexes */

struct grid_kind { /* of generic resources */
    char *name, *type; /* type NULL: none */
};
struct grid_slot { /* what a node has of one kind */
    uint32_t kind;
    uint32_t first; /* index of its first device among all of that name */
    uint64_t count;
    bool has_files; /* devices with indexes, else a bare count */
    bool no_consume, is_explicit; /* as of struct gres */
};

struct grid_node {
    char *name;
    const char *const *features; /* of the view of this pass */
    struct grid_slot *slot;
    uint32_t n_features, n_slots;
    uint32_t id;
    uint32_t weight;
    uint32_t place; /* in the order of names: the order of nodes within a job */
    uint32_t cpus;
    uint64_t mem_mb;
    uint64_t tmp_disk_mb;
    uint32_t sockets, cores, threads; /* cores of a socket, threads of a core */
    bool takes_work;
    bool is_down; /* down, unknown or silent; a node that neither takes work nor is down is drained */
};

struct grid_part {
    const struct part *rec; /* of the view of this pass */
    uint64_t *bits;         /* its nodes, by rank */
    uint32_t n_nodes;
    uint32_t n_missing; /* named, and not registered yet */
};

struct grid {
    struct grid_node *node; /* by rank */
    uint32_t n_nodes;
    size_t n_words;
    struct id_rank *by_id; /* ascending by id */
    struct maps by_name;   /* rank + 1 */
    uint64_t *takes;       /* nodes that take work, by rank */
    struct grid_part *part; /* ascending by partition id */
    uint32_t n_parts;
    struct grid_kind *kind;
    uint32_t n_kinds;
    uint64_t stamp;
    uint64_t n_cpus; /* of all nodes */
    uint32_t max_factor; /* of the partitions */
};

void grid_fini(struct grid *g);
/* Brings it up to the view. True: ranks mean other nodes than before. */
bool grid_sync(struct grid *g, const struct view *v);
uint32_t grid_rank(const struct grid *g, uint32_t node_id);         /* GRID_NONE: no such node */
uint32_t grid_rank_by_name(const struct grid *g, const char *name); /* GRID_NONE */
uint32_t grid_find_part(const struct grid *g, const char *name, size_t n); /* index; GRID_NONE */

#endif
