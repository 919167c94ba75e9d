/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the pass share: plan.c takes the turns, collect.c finds who takes part, write.c writes the plan.
 */
#ifndef SPUR_CORE_SCHED_PASS_H
#define SPUR_CORE_SCHED_PASS_H

#include "core/sched/backfill.h"
#include "core/sched/gate.h"
#include "core/sched/license.h"
#include "core/sched/priority.h"
#include "core/sched/sched.h"

struct sched {
    struct sched_params params;
    struct grid grid;
    struct timeline timeline;
    struct arena scratch;
};

struct array_use { /* of one array */
    uint32_t n_running, max_running; /* 0: no bound */
};

struct waiting { /* a pending job, or what is left of an array */
    const struct job *job;
    uint64_t priority;
    int64_t expected;
    uint32_t reason;
    const struct ask *told; /* whose reason it is; NULL: its own */
    struct array_use *use;  /* NULL: no array with a bound */
    uint32_t range, task;   /* of an array: the next task, and in which range of `pending` it is */
    bool is_array;
    bool is_started; /* all of it */
    bool is_single; /* its singleton dependency is still to be judged */
    struct license_take kept;   /* licences that are kept from those behind it */
    const struct ask *promised; /* NULL: it has no promise */
    struct seat *seat;          /* of the promise */
    struct claim *claim;
    uint32_t n_seats;
};

struct entry { /* a job in the queue of a tier */
    struct waiting *w;
    struct ask **ask, **preferred; /* preferred: tried before the others, and nothing is promised by them */
    uint32_t n_asks, n_preferred;
    uint32_t tier;
};

struct queue_state { /* of one partition */
    uint32_t n_promises;
    bool is_blocked; /* a job of it had to wait */
};

struct pass {
    struct sched *s;
    const struct view *v;
    int64_t now;
    struct arena *out, *scratch;
    struct board board;
    struct select select;
    struct asks asks;
    struct licenses licenses;
    struct priority_scale scale;
    struct maps names; /* struct part_names by text */
    struct map64 arrays; /* struct array_use by the array's id */
    struct singletons *singletons;
    struct queue_state *queue; /* by partition */
    struct waiting *waiting;
    uint32_t n_waiting;
    struct entry *entry;
    uint32_t n_entries;
    uint32_t epoch;
    uint64_t **taken; /* by rank: indexes of devices that are given away, by slot; NULL: not looked at yet */
    struct sched_plan *plan;
    struct why_look *look; /* at one job: see why.h; NULL: at none */
    size_t starts_cap;
};

/* Who waits, who is kept from looking, and in how many turns the others look. */
void pass_collect(struct pass *p);
/* The partitions that a list names, in order: each once, in the arena. An empty list is the default one. */
struct part_names {
    uint32_t *part;
    uint32_t n;
    uint32_t first; /* the one that is tried first */
};
void pass_part_names(const struct grid *g, const char *text, struct arena *a, struct part_names *out);

/* sched_plan, with a look at a job where one is given. */
void pass_run(struct sched *s, const struct view *v, int64_t now_unix, struct arena *a, struct sched_plan *out,
              struct why_look *look);

/* A start of what s->pick and s->claim say. */
void pass_write_start(struct pass *p, const struct waiting *w, const struct ask *a, const struct license_take *lic);
void pass_write_notes(struct pass *p);

#endif
