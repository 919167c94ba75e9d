/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion for shells, printed from the commands' tables.
 */
#ifndef SPUR_SPUR_COMPLETE_H
#define SPUR_SPUR_COMPLETE_H

#include "base/str.h"
#include "spur/command.h"

/* What the argument of an option is, by what its row calls it:
 * "partitions", "nodes", "jobs", "users", "states", "node-states", "fields", "letters": lists that `spur completion --values`
 * prints; "files", "directories": the shell's; "words:a b c": these; NULL: nothing is known. The text is the table's, or in `a`. */
const char *complete_kind(const struct command *cmd, const struct opt_row *o, struct arena *a);
const char *complete_name(const struct command *cmd); /* as the scripts call it: Slurm's name, else the verb */
bool complete_is_shown(const struct opt_row *o);      /* a row that works and is not another spelling */

void complete_bash(struct str *out);
void complete_zsh(struct str *out);
void complete_fish(struct str *out);

#endif
