/* SPDX-License-Identifier: Apache-2.0
 *
 * The runs of this node. It answers the controller's launches, signals and terminations, and keeps what ended until the
 * controller has taken the report.
 *
 * Steps of runs are entries as well. A run is over when its own processes and all its steps on this node are: its end
 * ends them, and is told behind theirs.
 *
 *     start ──► STARTING ──► RUNNING ──► ENDED ── reported ──► forgotten (its launch is refused as a replay) ──► gone
 *
 * A room: it sees time through `host` and runs through `steps` alone.
 */
#ifndef SPUR_SPURD_TABLE_H
#define SPUR_SPURD_TABLE_H

#include "base/arena.h"
#include "base/host.h"
#include "spurd/steps/steps.h"
#include "wire/messages.h"

struct table;

struct table_conf {
    uint32_t clock_scale; /* what is in seconds becomes shorter by it, for tests; 1 */
    uint32_t boot; /* node_boot: a start that was made for an earlier one may be forgotten here; 0: not looked at */
    void (*changed)(void *arg); /* runs came, went or ended: the reporter may have something to say */
    void *arg;
};

struct table *table_new(struct host *h, const struct table_conf *conf);
void table_stop(struct table *t); /* answers launches that wait with E_STOPPING; runs are left alone */
void table_free(struct table *t);
/* The runs behind it; before anything else. table_events is what `steps` was made with. */
struct steps_events table_events(struct table *t);
void table_adopt(struct table *t, struct steps *steps);

typedef void (*table_launched_fn)(void *arg, int code, const struct err *why, uint32_t pid);
/* `fn` is called exactly once, perhaps before this returns. Of a run that is known it is the first launch's answer; of
 * a forgotten one E_CRED_REPLAY; of one that was meant for an earlier boot of the machine, and is not known, E_STALE. */
void table_launch(struct table *t, const struct launch_request *q, const void *bytes, size_t n, table_launched_fn fn,
                  void *arg);
/* A step of a run that is here, from a ticket that was checked and the bytes of its stream_open. The same; E_JOB_ID
 * where the run is not here, E_JOB_DONE where it is ending, E_DENIED where it is another user's. */
void table_step(struct table *t, const struct step_ticket *k, const void *bytes, size_t n, table_launched_fn fn,
                void *arg);
/* Whether the user's run is here and goes on: 0, or as table_step. */
int table_check_run(struct table *t, uint32_t job_id, uint32_t start_no, uint32_t uid, struct err *e);
bool table_is_forgotten(const struct table *t, uint64_t key);
/* 0, E_NOT_FOUND (nothing of the run lives here), E_DENIED (another user's), E_BUSY (it is being started). */
int table_signal(struct table *t, const struct signal_request *q, struct err *e);
int table_terminate(struct table *t, const struct terminate_request *q, struct err *e);
int table_suspend(struct table *t, const struct suspend_run_request *q, struct err *e);
/* What the controller says should not be. Unknown ones are ignored. */
void table_end_strays(struct table *t, const struct run_ref *refs, uint32_t n);

/* All runs that the controller should know of, ascending. */
uint32_t table_refs(const struct table *t, struct arena *a, const struct run_ref **out);
/* Changes when the answer of table_refs does. */
uint64_t table_refs_hash(const struct table *t);

/* Runs that ended and wait to be reported, oldest first. */
struct table_ended {
    uint64_t key;
    const struct step_result *result; /* borrowed until table_reported */
    bool in_flight;                   /* the reporter's */
    bool stays;                       /* its script is over; the run stays, for steps from the job's other nodes */
};
/* NULL at the end; *cursor starts at 0. */
struct table_ended *table_next_ended(struct table *t, size_t *cursor);
struct table_ended *table_find_ended(struct table *t, uint64_t key);
void table_reported(struct table *t, uint64_t key);
void table_told_stay(struct table *t, uint64_t key); /* the same of an end with `stays` */
size_t table_count(const struct table *t); /* runs that are not forgotten */

#endif
