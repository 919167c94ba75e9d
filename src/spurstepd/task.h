/* SPDX-License-Identifier: Apache-2.0
 *
 * One process that a run executes: its batch script, or a task of a step. From fork to its exit, with what leads to it
 * and away from it.
 */
#ifndef SPUR_SPURSTEPD_TASK_H
#define SPUR_SPURSTEPD_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "spurstepd/contain.h"
#include "spurstepd/flow.h"

struct task {
    const struct step_task *spec; /* NULL: the batch script */
    uint32_t rank;
    pid_t pid;          /* 0: not born, or reaped */
    uint32_t first_pid; /* stays */
    bool is_begun;      /* was forked, or could not be */
    bool has_exited;
    bool is_executed;
    bool out_of_memory;
    uint32_t wait_status;
    int channel; /* to the child before its exec; -1 */
    int err_fd;  /* the job's stderr, of a batch script; -1 */
    int tty;     /* our end of its terminal; -1: none. Read by out[0] */
    struct outflow out[2];
    int in_fd;      /* -1: takes no input, or none any more */
    uint64_t in_at; /* how far it has the input */
    struct task_failure {
        bool has;
        uint32_t kind; /* enum child_note_kind */
        char text[500];
    } failure;
};

void task_init(struct task *t, const struct step_task *spec);
void task_fini(struct task *t);
/* Forks and lets go. Not 0: there is no process, and `e` says why; that is not the job's fault. */
int task_begin(struct task *t, const struct step_plan *plan, const struct contain *c, size_t window, struct err *e);
/* What the child says. `copy_dir` (64 bytes) gets the place of the script's copy. */
void task_on_channel(struct task *t, char *copy_dir);
void task_window_size(struct task *t, uint32_t rows, uint32_t columns);

#endif
