/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the leader's clock, for the files of this folder.
 */
#ifndef SPUR_SPURCTLD_LEAD_INSIDE_H
#define SPUR_SPURCTLD_LEAD_INSIDE_H

#include "base/map.h"
#include "base/vec.h"
#include "spurctld/lead/lead.h"

struct soft_node {
    int64_t heard_ms; /* host's now_ms */
    int64_t heard_unix;
    uint32_t cpu_load_hundredths;
    uint64_t free_mem_mb;
    uint64_t runs_hash;
    bool knows_runs;
    int64_t shunned_ms; /* until then */
};

struct over {
    uint32_t job_id;
    int64_t end_ms;
};

struct lead {
    struct room *room;
    struct host_timer *timer;
    uint32_t next_job_id;
    struct map64 nodes;   /* node id → struct soft_node */
    struct map64 holding;  /* job id → itself: jobs that hold nodes */
    struct map64 suspects; /* hash of a run and its node → when it was first missed, as a pointer */
    VEC(struct over) over; /* in the order in which they ended, from `first` on */
    size_t first;
    VEC(struct over) going; /* proposed to go; the outcome is still to come */
    bool is_purging;
    struct map64 steps;     /* step_key → itself: steps that are not over */
    struct map64 deadlines; /* job id → itself: jobs that wait and have a deadline */
    struct map64 attended;  /* attend_key → struct attended: what must be attended to */
};

struct attended {
    uint32_t job_id, step_id; /* step_id: + 1; 0: the job */
    int64_t seen_ms;          /* host's now_ms */
};

/* limits.c: what the clock ends. */
void limits_begin(struct lead *l, const struct view *v);
void limits_on_event(struct lead *l, const struct view *v, const struct event *ev);
void limits_end(struct lead *l);
void limits_tick(struct lead *l, const struct view *v);

/* attend.c */
void attend_begin(struct lead *l, const struct view *v);
void attend_on_event(struct lead *l, const struct view *v, const struct event *ev);
void attend_end(struct lead *l);
void attend_tick(struct lead *l, const struct view *v);

/* purge.c: what is old enough leaves the state. */
void purge_begin(struct lead *l, const struct view *v);
void purge_note(struct lead *l, const struct job *j); /* is over */
void purge_end(struct lead *l);
void purge_tick(struct lead *l);

#endif


