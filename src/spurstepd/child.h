/* SPDX-License-Identifier: Apache-2.0
 *
 * The process of a batch script or of a task, from fork to exec: identity, limits, directory, files, environment.
 */
#ifndef SPUR_SPURSTEPD_CHILD_H
#define SPUR_SPURSTEPD_CHILD_H

#include <stddef.h>
#include <stdint.h>

#include "spurstepd/step.h"

/* What the child tells its parent over the channel (SOCK_SEQPACKET); the end of the channel is a successful exec, or
 * death. */
enum child_note_kind {
    CHILD_STDERR = 1,  /* the job's stderr comes with it (SCM_RIGHTS) */
    CHILD_NO_FILE = 2, /* an input or output file could not be opened: the job's mistake */
    CHILD_NO_EXEC = 3, /* the script could not be run: the job's mistake; the exit code is errno */
    CHILD_BROKEN = 4,  /* this node's mistake */
    CHILD_COPY = 5,    /* text: a directory that the user's copy of the script was put into; to be removed at the end */
};
struct child_note {
    uint32_t kind;
    char text[500];
};

/* What a task has instead of files; -1: the file that its step_task (or the plan, of a batch script) names. */
struct child_ends {
    int in, out, err;
    int tty; /* of a terminal, for all three */
};

/* In the child. Waits for one byte on the channel, then never returns. `task` NULL: the batch script. */
void child_run(const struct step_plan *plan, const struct step_task *task, const struct child_ends *ends, int channel)
    __attribute__((noreturn));

/* Removes the directory of a CHILD_COPY: if it is `uid`'s, and no link. */
void child_remove_copy(const char *dir, uint32_t uid);

/* A line as the job's stderr gets it: "[2026-12-01T22:37:18.131] error: text". Never blocks. */
void stamped_line(char *out, size_t n, const char *text);
void stderr_line(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
