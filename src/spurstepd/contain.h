/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeping hold of all processes of a run, so that none outlives it: a cgroup of version 2 or 1 where one can be made,
 * else the process tree below this daemon, which is a subreaper (so that double forks and setsid lead back to it).
 *
 * Layout below the root of each hierarchy that is used:
 *   spur/NAME          the job's share of this node: its memory limit, what is suspended; NAME is in the plan
 *   spur/NAME/batch    the processes of its batch script
 *   spur/NAME/step_N   those of a step, with the step's memory limit
 *   spur/daemons       the step daemons, so that whoever kills spurd's cgroup doesn't kill them
 */
#ifndef SPUR_SPURSTEPD_CONTAIN_H
#define SPUR_SPURSTEPD_CONTAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "spurstepd/step.h"

#define CONTAIN_PATH 512

struct contain {
    enum step_containment kind; /* what was made; never AUTO */
    char dir[CONTAIN_PATH];     /* "": none */
    char whole[CONTAIN_PATH];   /* what is suspended: of a batch run the group that its steps are in as well */
    char devices[CONTAIN_PATH]; /* "": none */
    char memory[CONTAIN_PATH];  /* of these processes, wherever the limit is. "": none; equals dir where one hierarchy does both */
    bool memory_is_v2;
    bool dir_is_freezer;
    int dir_fd;     /* of dir, version 2: to be born into; else -1 */
    int daemons_fd; /* of spur/daemons, version 2; else -1 */
    char text[64];  /* "cgroup v2 with memory", "cgroup v1 freezer", "process tree" */
};

/* Makes the run's cgroups. What was asked for and can't be had is an error; AUTO takes the best there is. */
int contain_open(struct contain *c, const struct step_plan *plan, struct err *e);
/* For a run whose daemon is gone: from what its log says. */
void contain_reopen(struct contain *c, const struct step_entry *daemon);
void contain_fini(struct contain *c); /* forgets, removes nothing */

/* fork(2); the child is born in the daemons' cgroup, out of spurd's. */
pid_t contain_fork_daemon(const struct contain *c);
/* Version 1 has no birth into a cgroup: moves this process to the daemons' groups. Best effort. */
void contain_move_daemon(const struct contain *c);
/* fork(2) into the run's cgroups; `out_e` when the child could not be put there (it is dead then). The child must do
 * nothing before the parent says so. */
pid_t contain_fork_job(const struct contain *c, struct err *e);

/* Sends a signal to every process of the run once. */
void contain_signal(const struct contain *c, int signo);
/* Stands still, or goes on: by the freezer, else by SIGSTOP and SIGCONT. */
void contain_freeze(const struct contain *c, bool freeze);
/* One round of killing all. To be repeated until contain_is_empty. */
void contain_kill(const struct contain *c);
bool contain_is_empty(const struct contain *c);
uint32_t contain_count(const struct contain *c);
/* Up to `n` pids, for messages. */
uint32_t contain_pids(const struct contain *c, pid_t *out, uint32_t n);
uint64_t contain_oom_kills(const struct contain *c);
uint64_t contain_peak_kb(const struct contain *c); /* 0: not known */
/* Removes the run's cgroups; false: one is still busy. */
bool contain_remove(const struct contain *c);

/* The same for a run whose daemon was gone before it could say what it made. */
void contain_remove_planned(const struct step_plan *plan);

/* Kills what carries SPUR_RUN_ID=run_id in its environment, wherever it is. Returns how many there were. */
uint32_t contain_kill_marked(const char *run_id);

#endif
