/* SPDX-License-Identifier: Apache-2.0
 *
 * One run, from its plan to its result. Driven by the loop in main.c: descriptors that are ready, and time.
 */
#ifndef SPUR_SPURSTEPD_RUN_H
#define SPUR_SPURSTEPD_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "spurstepd/contain.h"
#include "spurstepd/step.h"
#include "spurstepd/task.h"

struct run {
    struct step_plan plan; /* in the arena */
    struct arena arena;
    int log_fd;   /* locked */
    struct contain contain;
    enum step_state state;
    struct task *task; /* one of a batch script; none of a run that only holds its allocation */
    uint32_t n_tasks, n_begun, n_exited;
    bool is_step;
    size_t window;     /* bytes of one stream that are kept */
    uint32_t wait_status;
    int64_t start_ms, end_ms;

    bool is_terminating;
    int64_t kill_at_ms;       /* when SIGKILL is due; INT64_MAX: not */
    int64_t others_at_ms;     /* when the other tasks are to be ended, as one is over; INT64_MAX: not */
    int64_t round_at_ms;      /* next round of killing; INT64_MAX: none */
    int64_t give_up_at_ms;    /* when what can't be killed is told */
    uint32_t rounds;
    uint64_t oom_seen;

    char copy_dir[64]; /* of the script, where the user could not reach it; "": none */
    struct step_result result;
    char result_text[600];
    bool unsaved; /* the disk didn't take the result: tried again until it does, or somebody takes it from us */

    /* Where a step's client is told: a task was executed, or is over; a line for people. NULL: nobody listens. */
    void (*on_task)(void *arg, const struct task *t);
    void (*on_text)(void *arg, const char *text);
    void *arg;
};

/* Reads the plan and locks the log in the current directory. E_EXISTS: another daemon has this run, or had it. */
int run_load(struct run *r, struct err *e);
/* In the daemon, after the fork: notes itself in the log, then makes the children. Failures end the run with a result. */
void run_start(struct run *r);
void run_on_channel(struct run *r, struct task *t); /* readable */
void run_on_child(struct run *r);   /* SIGCHLD */
void run_on_time(struct run *r);    /* now and then, at run_next_ms at the latest */
int64_t run_next_ms(const struct run *r); /* CLOCK_BOOTTIME; INT64_MAX: nothing to wait for */

int run_signal(struct run *r, const struct step_signal *s, struct err *e);
int run_terminate(struct run *r, const struct step_terminate *t, struct err *e);
void run_suspend(struct run *r, bool resume);
/* Counting processes may mean to look at all of the machine's. */
void run_status(const struct run *r, bool count, struct step_status *out);

/* Appends one entry to a log; with `sync` it is on disk afterwards. 0 or an error. */
int log_append(int log_fd, const struct step_entry *entry, bool sync, struct err *e);

/* For a run whose daemon is gone: kills what is left and writes the result. 0 also when there is one already; E_BUSY
 * while a daemon lives. In the current directory. */
int sweep(struct err *e);

#endif
