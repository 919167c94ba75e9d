/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two files of the judge share: judge_room.c knows what finds room where, judge.c takes the turns.
 */
#ifndef SPUR_TESTS_JUDGE_INSIDE_H
#define SPUR_TESTS_JUDGE_INSIDE_H

#include "judge.h"

#define J_HOLDS 2000
#define J_PARTS 4
#define J_JOBS 400

struct held { /* of a job on a node, from `from` until before `to` */
    int node;
    uint32_t job, promised; /* promised: its id, where this is a promise */
    bool is_lifted;
    int64_t from, to, cpus, mem, gres[RICH_KINDS];
    uint32_t share, uid;
    int part;
};

struct judge {
    const struct view *v;
    int64_t now;
    const struct sched_plan *plan;
    struct str *why;
    uint32_t promises;
    const struct node *node[RICH_NODES];
    int n_nodes;
    const struct part *part[J_PARTS];
    int n_parts;
    struct held hold[J_HOLDS];
    int n_holds;
    uint32_t devices[RICH_NODES]; /* taken, bits */
    int64_t licence[2], kept[J_JOBS][2]; /* kept: for a job that waits */
    uint32_t n_running[J_JOBS]; /* by array */
    bool is_started[J_JOBS];   /* some of it, in this pass; by job */
    uint32_t tasks_left[J_JOBS];
    uint32_t n_promises[J_PARTS];
    bool is_blocked[J_PARTS];
    uint32_t told[J_JOBS];
    bool has_promise[J_JOBS];
    uint32_t cursor; /* in the plan's starts */
    bool is_out_of_sight;
};

struct wish { /* of a job, in one partition */
    const struct job *job;
    int part;
    uint32_t tasks, cpus, min, max, want, limit, time_min, share;
    uint64_t node_mem, task_mem;
    bool all_mem, named;
    const char *features; /* asked for, or preferred */
};

struct wish wish_of(const struct judge *g, const struct job *j, int part, const char *features);
uint32_t limit_of(const struct judge *g, const struct job *j, int part);
int64_t secs_of(uint32_t limit);
/* The least number of nodes that hold it from `from` for `secs` (the most, where it wants many); 0: none do. `empty`: as if
 * nothing ran; `ill`: on nodes that take no work as well. */
uint32_t best_set(const struct judge *g, const struct wish *w, int64_t from, int64_t secs, bool empty, bool ill);
/* Whether these nodes, with these numbers of tasks and what goes with them, are right for it. */
bool nodes_right(struct judge *g, const struct wish *w, const struct job_node *jn, uint32_t n, int64_t from, int64_t secs);
int judge_node(const struct judge *g, uint32_t id);
/* Nodes of a job as holds. */
void put_holds(struct judge *g, const struct job *j, const struct job_node *jn, uint32_t n, int part, int64_t from, int64_t to,
               uint32_t promised);
bool judge_wrong(struct judge *g, const struct job *j, const char *what);

#endif
