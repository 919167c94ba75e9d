/* SPDX-License-Identifier: Apache-2.0
 *
 * One binary: `sbatch`, `squeue` … are links to it, `spur VERB` is the same command.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/near.h"
#include "spur/cli.h"
#include "spur/command.h"
#include "spur/columns.h"
#include "spur/compat.h"
#include "spur/version.h"

/* The controller's answers are shown as they came: what a reader that went away leaves unread ends the command as it
 * would end any other. Written output that was lost is an error. */
static int finish(struct cli *c, int exit_code) {
    spur_close(c->client);
    arena_fini(&c->arena);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return exit_code;
    if (errno == EPIPE) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    fprintf(stderr, "%s: error: can't write to stdout: %s\n", c->prog, strerror(errno));
    return exit_code ? exit_code : 1;
}

static int run(const struct command *cmd, const char *prog, int argc, char **argv, int skip) {
    struct cli c = {.prog = prog, .typed = argv, .n_typed = argc, .argv = argv + skip, .argc = argc - skip};
    return finish(&c, cmd->run(&c));
}

static void list_group(FILE *to, const char *group) {
    fprintf(to, "\n%s\n", group);
    for (size_t i = 0; i < command_count(); i++) {
        const struct command *cmd = command_at(i);
        if (!str_eq(group, cmd->group))
            continue;
        autofree char *slurm = cmd->slurm ? xasprintf("(%s)", cmd->slurm) : xstrdup("");
        fprintf(to, "  %-10s %-11s%s\n", cmd->verb, slurm, cmd->doc);
    }
}

static bool is_first_of_group(size_t i) {
    for (size_t k = 0; k < i; k++)
        if (str_eq(command_at(k)->group, command_at(i)->group))
            return false;
    return true;
}

static int usage(FILE *to) {
    fprintf(to, "Usage: spur COMMAND [OPTIONS]\n");
    for (size_t i = 0; i < command_count(); i++)
        if (is_first_of_group(i))
            list_group(to, command_at(i)->group);
    fprintf(to, "\nOther names: Slurm's");
    for (size_t i = 0; i < command_alias_count(); i++)
        if (command_alias_of(i))
            fprintf(to, ", %s (%s)", command_alias_name(i), command_alias_of(i));
    fprintf(to, ".\n`spur show …` is `spur control show …`. `spur help COMMAND` tells a command's options.\n");
    return to == stdout ? 0 : 1;
}

static int unknown(const char *verb) {
    struct near near = near_to(verb);
    for (size_t i = 0; i < command_count(); i++) {
        near_try(&near, command_at(i)->verb);
        near_try(&near, command_at(i)->slurm);
    }
    for (size_t i = 0; i < command_alias_count(); i++)
        near_try(&near, command_alias_of(i) ? command_alias_name(i) : NULL);
    fprintf(stderr, "spur: error: unknown command: %s\n", verb);
    if (near.best)
        fprintf(stderr, "spur: did you mean '%s'?\n", near.best);
    fprintf(stderr, "Try \"spur help\" for more information\n");
    return 1;
}

/* `spur help VERB` is `spur VERB --help`. */
static int help(char *name, char *verb) {
    static char option[] = "--help";
    char *argv[] = {name, verb, option, NULL};
    bool is_keyword = false;
    const struct command *cmd = command_find(verb, &is_keyword);
    autofree char *prog = xasprintf("spur %s", cmd ? cmd->verb : verb);
    return cmd ? run(cmd, prog, 3, argv, 1) : unknown(verb);
}

static int run_verb(int argc, char **argv) {
    const char *verb = argc > 1 ? argv[1] : "";
    if (argc == 3 && (str_eq(verb, "help") || str_eq(verb, "--help")))
        return help(argv[0], argv[2]);
    if (!*verb || str_eq(verb, "help") || str_eq(verb, "--help") || str_eq(verb, "-h"))
        return usage(*verb ? stdout : stderr);
    if (str_eq(verb, "version") || str_eq(verb, "--version") || str_eq(verb, "-V"))
        return puts(SPUR_VERSION_LINE) < 0;
    if (str_eq(verb, "compat") || str_eq(verb, "columns")) {
        auto_str out = {0};
        (str_eq(verb, "compat") ? compat_page : columns_page)(&out);
        return fputs(str_text(&out), stdout) < 0;
    }
    bool is_keyword = false;
    const struct command *cmd = command_find(verb, &is_keyword);
    if (cmd) {
        autofree char *prog = xasprintf("spur %s", is_keyword ? cmd->verb : verb);
        return run(cmd, prog, argc, argv, is_keyword ? 0 : 1);
    }
    const char *later = command_not_yet(verb);
    if (later)
        fprintf(stderr, "spur: error: %s (%s) is not supported yet (see docs/compatibility.md)\n", verb, later);
    return later ? 1 : unknown(verb);
}

int main(int argc, char **argv) {
    const char *slash = argc ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc ? argv[0] : "spur";
    const struct command *cmd = command_slurm(name);
    if (cmd)
        return run(cmd, name, argc, argv, 0);
    if (command_not_yet(name)) {
        fprintf(stderr, "%s: error: %s is not supported yet (see docs/compatibility.md)\n", name, name);
        return 1;
    }
    return run_verb(argc, argv);
}
