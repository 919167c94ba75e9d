/* SPDX-License-Identifier: Apache-2.0
 *
 * What only the daemons' programs can do is done by them: by the one beside this program, else by the one on the path.
 */
#ifndef SPUR_SPUR_DAEMON_H
#define SPUR_SPUR_DAEMON_H

#include "spur/cli.h"

/* Becomes `spurctld --VERB=FILE [--state-dir=DIR] [--config=FILE]`. Returns, with an exit code, when there is none. */
int daemon_run(struct cli *c, const char *verb, const char *file, const char *state_dir, const char *config);

#endif
