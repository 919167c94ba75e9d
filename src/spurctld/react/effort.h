/* SPDX-License-Identifier: Apache-2.0
 *
 * An *effort* is what we are doing about one run: launching it on all its nodes, or ending it on those that are not
 * clean; at most one of these a job, an ending replaces a launch. Beside it there may be one that ends a step of it, and
 * one that stops or continues it. Every round looks the job up again: what it finds decides, and an effort whose run is
 * not in that state any more just goes. One goes on until the state says that it is over: a proposal that was refused (a
 * full disk) is made again.
 *
 * For the files of this folder.
 */
#ifndef SPUR_SPURCTLD_REACT_EFFORT_H
#define SPUR_SPURCTLD_REACT_EFFORT_H

#include "base/log.h"
#include "base/map.h"
#include "spurctld/react/react.h"

enum effort_kind { EFFORT_LAUNCH, EFFORT_ENDING, EFFORT_STEP_ENDING, EFFORT_SUSPEND };

struct effort {
    struct react *re;
    uint32_t job_id, start_no, step_id;
    enum effort_kind kind;
    bool is_dead; /* replaced or done, but callbacks are still to come */
    unsigned out;   /* callbacks that will still come */
    unsigned calls; /* those of agents among them */
    unsigned loads; /* those of the blob store */
    uint32_t n_nodes;
    bool *confirmed; /* launch, suspend: per node of the job, in its order */
    bool is_stop;    /* suspend: what is confirmed is that it was stopped; else that it goes on */
    bool may_run;    /* launch: the script's node was asked, perhaps by an earlier leader */
    char *failure;   /* launch: why it is to be undone */
    char *excuse;    /* launch: a refusal that may pass */
    bool is_late;     /* launch: it failed because nodes did not answer */
    bool is_proposed; /* launch: its outcome is on its way into the log */
    int64_t begun_ms;
    uint64_t wait_ms;  /* before the next round, when this one fails */
    uint64_t pause_ms; /* not 0: this one has failed, and the next is so far off */
    struct host_timer *timer;
    int64_t due_ms; /* of the timer */
    struct buf script, env;
    struct log_about about; /* the request that began it */
};

struct react {
    struct room *room;
    struct map64 efforts; /* effort_key → struct effort */
    struct map64 stopped; /* job id → itself: those that agents were told to stop */
    struct react_stats stats;
};

/* A call to an agent. */
struct node_call {
    struct effort *ef;
    uint32_t index; /* of the node in the job */
    uint32_t node_id;
};

uint64_t effort_key(enum effort_kind kind, uint32_t job_id, uint32_t step_id);
struct effort *effort_new(struct react *re, const struct job *j, enum effort_kind kind, uint32_t step_id);
void effort_drop(struct effort *ef); /* out of the table; freed when the last callback is back */
/* A callback came back: false when the effort is gone and nothing more may be done with it. */
bool effort_back(struct effort *ef);
void effort_round(struct effort *ef); /* looks what there is to do; the effort may be gone afterwards */
void effort_again_in(struct effort *ef, uint64_t delay_ms); /* a round; sooner counts */
void effort_back_off(struct effort *ef); /* however many fail in a round, the pause doubles once */
int64_t effort_now_ms(const struct effort *ef);
const struct job *effort_job(const struct effort *ef); /* NULL: this run of it is no more */
const struct node *effort_node(const struct effort *ef, uint32_t node_id);

/* Whether a refused proposal is worth making again: not when the state has gone on, or we don't lead. */
bool effort_is_worth_repeating(int code);
bool effort_is_transport(int code); /* the agent said nothing: it may or may not have heard */

/* How a run, or a step of it, is to end. */
struct ending {
    const char *why; /* told to the job */
    int64_t asked_ms;
    uint32_t step_plus_1; /* 0: all of the run */
    bool at_once;
};
void effort_terminate(struct effort *ef, const struct job *j, uint32_t node_id, const struct ending *how);

void launch_load(struct effort *ef, const struct job *j); /* script and environment; the effort may be gone afterwards */
void launch_round(struct effort *ef, const struct job *j);
void ending_round(struct effort *ef, const struct job *j);
void step_ending_round(struct effort *ef, const struct job *j);
void suspend_round(struct effort *ef, const struct job *j);

#endif
