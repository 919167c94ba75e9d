/* SPDX-License-Identifier: Apache-2.0
 *
 * A backup becomes a state directory: what `spurctld --restore` and `--check-backup` do, and nothing runs meanwhile.
 */
#ifndef SPUR_SPURCTLD_RESTORE_H
#define SPUR_SPURCTLD_RESTORE_H

#include "spurctld/ctl.h"

/* Reads all of it, and says what is in it. */
int restore_check(const char *file, struct err *e);
/* The file is read to its end before anything is made. The directory must be missing or empty, or left over from a restore that did
 * not end. Says what it has now. */
int restore_run(const struct ctl_options *o, const char *file, struct err *e);
/* At a start: whether a restore into this directory did not end. */
int restore_is_whole(const char *state_dir, struct err *e);

#endif
