/* SPDX-License-Identifier: Apache-2.0
 *
 * What is free on each node, now and later. The drawing is in timeline.c.
 *
 * `struct timeline` is what running jobs hold; it is kept between passes and fed by what changed. `struct board` lies
 * on top of it for one pass: the starts of this pass and the promises to jobs that wait.
 */
#ifndef SPUR_CORE_SCHED_TIMELINE_H
#define SPUR_CORE_SCHED_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"
#include "core/model/view.h"
#include "core/sched/grid.h"

#define UNLIMITED_SECS ((int64_t)365 * 86400) /* how long a job without a limit is taken to run, as Slurm takes it */

struct claim { /* what a job takes of a node */
    int64_t cpus, mem_mb;
    uint64_t *gres; /* by slot of the node; NULL: none */
    uint32_t part;  /* index in the grid; GRID_NONE */
    uint32_t uid;
    uint32_t share; /* enum job_share: what others may do there meanwhile */
};

struct share { /* of one job on one node, until its expected end */
    int64_t end_unix;
    uint32_t job_id;
    struct claim c; /* gres: malloc'd */
};

struct lane { /* of one node */
    VEC(struct share) share; /* ascending by end, then job */
    int64_t cpus, mem_mb;    /* sums */
    uint32_t n_special;      /* shares other than SHARE_CORES */
};

struct run { /* a job that holds nodes */
    uint64_t hash; /* of its record: the same hash means that nothing changed */
    int64_t end_unix;
    uint32_t job_id;
    uint32_t n_ranks;
    uint32_t *rank; /* nodes of which it has a share */
};

struct timeline {
    struct lane *lane; /* by rank */
    uint32_t n_lanes;
    VEC(struct run) run; /* ascending by job */
    VEC(struct run) next; /* being made */
};

void timeline_fini(struct timeline *t);
void timeline_reset(struct timeline *t, uint32_t n_lanes); /* forgets all: ranks have changed */
void timeline_sync(struct timeline *t, const struct grid *g, const struct view *v);
bool timeline_same(const struct timeline *a, const struct timeline *b);

struct room { /* may be negative: a node that came back smaller than its jobs */
    int64_t cpus, mem_mb;
};

struct board {
    const struct grid *grid;
    const struct timeline *timeline;
    struct arena *scratch;
    int64_t now;
    struct room *now_free; /* by rank: what running jobs and this pass's starts leave */
    uint64_t *open;        /* nodes that take work and have a CPU free now, by rank */
    uint64_t *lasting;     /* those of them that have one beside every promise on them */
    uint64_t *special;     /* nodes on which some job has, or is promised, more than its CPUs: see fit.h */
    int64_t last_promise;  /* no promise begins later: who runs beyond it needs a lasting one */
    struct extra **extra;
    struct block **block;
};

void board_init(struct board *b, const struct grid *g, const struct timeline *t, int64_t now, struct arena *scratch);
/* The least that is free on a node from now (from `from`) until before `to`. */
struct room board_room_now(const struct board *b, uint32_t rank, int64_t to);
struct room board_room(const struct board *b, uint32_t rank, int64_t from, int64_t to);
/* Claims with generic resources live as long as the board. */
void board_start(struct board *b, uint32_t rank, int64_t end, const struct claim *c);
void board_promise(struct board *b, uint32_t rank, uint32_t job_id, int64_t from, int64_t to, const struct claim *c);
void board_withdraw(struct board *b, uint32_t rank, uint32_t job_id);
/* Calls `see` with each claim on a node that holds at a moment; the moments in [from, to) at which the room may be least are
 * `from` and those at which promises begin. */
typedef void (*board_see_fn)(void *arg, const struct claim *c);
void board_see(const struct board *b, uint32_t rank, int64_t x, board_see_fn see, void *arg);
/* The next promise on a node that begins in (from, to): cursor NULL at first; false: no more. */
bool board_next_begin(const struct board *b, uint32_t rank, int64_t from, int64_t to, const struct block **cursor,
                      int64_t *out);
uint32_t board_promised_to(const struct block *b); /* the job */
/* The moments after now at which something becomes free on any of these nodes: ascending, each once. */
size_t board_moments(const struct board *b, const uint64_t *ranks, struct arena *a, int64_t **out);
/* The moments at which promises on these nodes begin: ascending, each once. */
size_t board_promised(const struct board *b, const uint64_t *ranks, struct arena *a, int64_t **out);

#endif
