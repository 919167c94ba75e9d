/* SPDX-License-Identifier: Apache-2.0
 *
 * The directories of runs below STATE: runs/JOB.START, of steps runs/JOB.START.STEP (see spurstepd/step.h), and
 * ended/JOB.START[.STEP], an empty file for each that was reported, so that its launch can't be played again. All functions block; any thread.
 */
#ifndef SPUR_SPURD_RUNDIR_H
#define SPUR_SPURD_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "spurstepd/step.h"

int rundir_init(const char *state_dir, struct err *e); /* makes runs/ and ended/ */
char *rundir_path(const char *state_dir, uint64_t key); /* the caller frees */

/* Writes all that the step daemon needs. On disk when it returns 0 (a step's may be lost with the machine, as the step
 * is then); nothing is left when it fails. `script` NULL: none. */
int rundir_create(const char *state_dir, uint64_t key, const struct step_plan *plan, const void *script,
                  size_t n_script, struct err *e);
int rundir_read_plan(const char *state_dir, uint64_t key, struct arena *a, struct step_plan *out, struct err *e);
int rundir_read_log(const char *state_dir, uint64_t key, struct arena *a, struct step_history *out, struct err *e);
/* Whether a step daemon (or a sweep) holds the run. */
bool rundir_is_held(const char *state_dir, uint64_t key);
void rundir_remove(const char *state_dir, uint64_t key);
void rundir_forget(const char *state_dir, uint64_t key); /* rundir_remove, and the mark that it was */
void rundir_purge(const char *state_dir, uint64_t key);

/* fn for each run that is there, then for each that is forgotten (with the time of that). */
void rundir_each(const char *state_dir, void (*fn)(void *arg, uint64_t key, int64_t forgotten_unix), void *arg);

#endif
