/* SPDX-License-Identifier: Apache-2.0
 *
 * A backup of the directory of a controller that is stopped: `spurctld --backup`.
 */
#ifndef SPUR_SPURCTLD_OFFLINE_H
#define SPUR_SPURCTLD_OFFLINE_H

#include "spurctld/ctl.h"

/* A controller that nobody can reach runs on a copy of the log and the history, until it has everything that the log says, and writes the
 * backup. The directory stays as it is. Prints what was written. */
int offline_backup(const struct ctl_options *o, const char *file, struct err *e);

#endif
