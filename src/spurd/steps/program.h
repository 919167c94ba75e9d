/* SPDX-License-Identifier: Apache-2.0
 *
 * The step daemon's program, which is carried inside this one, and starting it.
 */
#ifndef SPUR_SPURD_PROGRAM_H
#define SPUR_SPURD_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct program;
/* Puts the program into memory that can be executed; where the machine forbids that, into STATE/spurstepd. Once, before
 * threads. */
int program_new(const char *state_dir, struct program **out, struct err *e);
void program_free(struct program *p);

/* Starts `spurstepd run DIR` and waits until it is ready: 0 with its pid; E_LAUNCH with what it said; E_DEADLINE when it
 * said nothing in time, or when program_stop was called. Blocks; any thread. */
int program_run(const struct program *p, const char *dir, uint32_t *out_pid, struct err *e);
/* `spurstepd sweep DIR`: 0 when the run has a result now, E_BUSY when a daemon lives. Blocks; any thread. */
int program_sweep(const struct program *p, const char *dir, struct err *e);
/* Starts `spurstepd copy` with the connection, and gives it its step_copy: 0 when it has that. Blocks; any thread. */
int program_copy(const struct program *p, int fd, const void *request, size_t n, struct err *e);
/* Whoever waits in program_run returns soon. */
void program_stop(struct program *p);

#endif
