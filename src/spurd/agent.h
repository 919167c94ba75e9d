/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent: its parts, made in order and ended in reverse.
 */
#ifndef SPUR_SPURD_AGENT_H
#define SPUR_SPURD_AGENT_H

#include "spurd/options.h"

/* Runs until SIGTERM or SIGINT. 0, or an error at the start. Running steps are left alone. */
int agent_run(const struct options *o, struct err *e);

#endif
