/* SPDX-License-Identifier: Apache-2.0
 *
 * salloc, in parts: options, the environment of its command, the command itself. The allocation is srun's too
 * (srun_alloc.c).
 */
#ifndef SPUR_SPUR_SALLOC_H
#define SPUR_SPUR_SALLOC_H

#include "spur/srun.h"

struct salloc {
    struct srun run; /* first: its setters work on this one too */
    bool no_shell;
    uint32_t kill_signal; /* + 1; 1: the usual one; 0: the command is left alone */
};

/* ---- cmd_salloc.c ---- */
int salloc_ask_kill(struct opt_run *r, const struct opt_row *o, const char *value); /* the setter of --kill-command */

/* ---- salloc_env.c ---- */
/* NULL-terminated, in the command's arena: what there is, without an outer job's own, and what the job's says. */
char *const *salloc_env(const struct salloc *s, const struct job *j, const char *cluster_name, char *const *environ_);

/* ---- salloc_command.c ---- */
/* Runs the command until it ends (or the allocation does); the job is over then. The exit code. */
int salloc_command(struct salloc *s, struct srun_alloc *a, char *const *env);

#endif
