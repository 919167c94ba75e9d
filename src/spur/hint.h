/* SPDX-License-Identifier: Apache-2.0
 *
 * A hint behind an error: the name that was perhaps meant. One line "PROG: did you mean 'debug'?" on stderr.
 */
#ifndef SPUR_SPUR_HINT_H
#define SPUR_SPUR_HINT_H

#include "base/near.h"
#include "spur/cli.h"
#include "spur/table.h"

/* Nothing where nothing is near enough. */
void hint_near(const struct cli *c, const struct near *n);
/* A name that is no column, as written (NAME:WIDTH too). */
void hint_field(const struct cli *c, const struct table_fields *f, const char *word, size_t n);
/* A partition that is none of these. */
void hint_partition(const struct cli *c, const struct nodes_reply *all, const char *asked);
/* What the controller refused a job for: unknown partitions and nodes of it are looked up among those that there are. */
void hint_refused_job(struct cli *c, int code, const struct job_spec *s);

#endif
