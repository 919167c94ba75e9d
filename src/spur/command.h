/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands (commands.def) as data.
 */
#ifndef SPUR_SPUR_COMMAND_H
#define SPUR_SPUR_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "spur/cli.h"
#include "spur/opt.h"

struct command {
    const char *verb, *slurm, *group, *doc; /* slurm NULL: it is a verb of `spur` alone */
    int (*run)(struct cli *c); /* returns the exit code */
    const struct opt_table *(*options)(void);
};

size_t command_count(void);
const struct command *command_at(size_t i);
const struct command *command_slurm(const char *name); /* "sbatch"; NULL: none */
/* Verb, alias, keyword or Slurm's name; NULL: none. */
const struct command *command_find(const char *verb, bool *out_is_keyword);
size_t command_alias_count(void); /* other verbs: */
const char *command_alias_name(size_t i);
const char *command_alias_of(size_t i); /* the verb that it stands for; NULL: it is none but a keyword of a command */
const char *command_not_yet(const char *name); /* the other name of a command that is not there yet; NULL */

#define COMMAND(verb, slurm, group, descriptor, doc)                                                                   \
    int cmd_##descriptor(struct cli *c);                                                                               \
    const struct opt_table *cmd_##descriptor##_options(void);
#define OWN(verb, group, descriptor, doc) COMMAND(verb, , group, descriptor, doc)
#define ALIAS(name, verb)
#define KEYWORD(name, verb)
#define NOT_YET(verb, slurm)
#include "spur/commands.def"
#undef COMMAND
#undef OWN
#undef ALIAS
#undef KEYWORD
#undef NOT_YET

#endif
