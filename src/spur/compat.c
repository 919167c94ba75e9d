/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/compat.h"

#include <string.h>

#include "spur/command.h"
#include "spur/flavor.h"

static void name(const struct opt_row *o, struct str *out) {
    str_addc(out, '`');
    if (o->letter)
        str_addf(out, "-%c%s", o->letter, o->name ? " " : "");
    if (o->name)
        str_addf(out, "--%s", o->name);
    if (o->arg)
        str_addf(out, o->flags & OPT_MAYBE ? "[=%s]" : "=%s", o->arg);
    str_addc(out, '`');
}

/* A | would end the cell. */
static void cell(const char *text, struct str *out) {
    for (; text && *text; text++) {
        if (*text == '|')
            str_addc(out, '\\');
        str_addc(out, *text);
    }
}

static void variables(const struct opt_table *t, const struct opt_row *o, struct str *out) {
    for (size_t i = 0; o->env && i < ARRAY_LEN(t->env_prefix) && t->env_prefix[i]; i++) {
        if (i && !(o->flags & OPT_ENV_ALL))
            break;
        str_addf(out, "%s`%s%s`", i ? ", " : "", t->env_prefix[i], o->env);
    }
}

static void command(const struct command *cmd, struct str *out) {
    const struct opt_table *t = cmd->options();
    if (cmd->slurm)
        str_addf(out, "\n## %s (`spur %s`)\n", cmd->slurm, cmd->verb);
    else
        str_addf(out, "\n## spur %s\n", cmd->verb);
    str_add(out, "\n| option | variable | what it does |\n|---|---|---|\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct opt_row *o = &t->row[i];
        if (o->kind == OPT_NOT_YET || o->flags & OPT_HIDDEN)
            continue;
        auto_str left = {0};
        name(o, &left);
        str_add(out, "| ");
        cell(left.p, out);
        str_add(out, " | ");
        variables(t, o, out);
        str_add(out, " | ");
        cell(o->help, out);
        str_add(out, " |\n");
    }
    bool any = false;
    for (size_t i = 0; i < t->n; i++) {
        if (t->row[i].kind != OPT_NOT_YET)
            continue;
        str_add(out, any ? ", " : "\nRefused by name: ");
        name(&t->row[i], out);
        any = true;
    }
    if (any)
        str_add(out, ".\n");
}

void compat_page(struct str *out) {
    str_add(out,
            "<!-- Printed by `spur compat` from the commands' own tables; a test compares. Do not edit. -->\n"
            "# Compatibility with Slurm 26.05\n\n"
            "Commands, options, formats, messages and exit codes are Slurm's. What is not there yet is refused by name, with\n"
            "exit code 1; nothing is ignored silently. Where options come from several places, the command line goes before\n"
            "the environment, and that before `#SBATCH` lines.\n\n"
            "| command | also | |\n|---|---|---|\n");
    for (size_t i = 0; i < command_count(); i++)
        str_addf(out, "| %s%s%s | `spur %s` | %s |\n", command_at(i)->slurm ? "`" : "",
                 command_at(i)->slurm ? command_at(i)->slurm : "", command_at(i)->slurm ? "`" : "", command_at(i)->verb,
                 command_at(i)->doc);
    str_add(out, "\nNot there yet: the commands that are not in this table.\n");
    for (size_t i = 0; i < command_count(); i++)
        command(command_at(i), out);
    str_add(out,
            "\n## What differs\n\n"
            "- `--version` and `scontrol version` say `slurm N.N.N`, the Slurm that this is like, and Spur's own version behind it.\n"
            "- `#PBS` lines: -A -J -N -V -e -h -o -q -r -t and of -l walltime, mem, ncpus and nodes[:ppn] are honoured, before all\n"
            "  others; the rest is told on stderr. `--ignore-pbs` skips them.\n"
            "- A job that is submitted from inside a job doesn't inherit what the outer job's environment says of it\n"
            "  (`SLURM_…`, `SPUR_…`, its GPUs). Settings of the user's (`SLURM_CONF`, `SBATCH_…`, `SQUEUE_…`, …) go along.\n"
            "- A mistake in a `#SBATCH` line is told with its line, behind Slurm's own message.\n"
            "- `sbatch --array` refuses a limit behind % that is no number, which Slurm takes for none.\n"
            "- `scontrol requeuehold state=…`, `scontrol top` and keys of `scontrol update` that change nothing\n"
            "  here are refused by name.\n"
            "- `srun`: when the reader of its stdout is gone, the step ends and srun returns 141. Its command is looked for where it\n"
            "  is called, then by PATH on the nodes. Heterogeneous jobs (`:`) are refused. A step takes no `--constraint`.\n"
            "- `sattach` shows output; input and signals stay with srun. `salloc` without `--kill-command` leaves its command alone\n"
            "  when the allocation is revoked, but for a shell on a terminal, which gets SIGHUP.\n"
            "- Accounts and QOS are kept and shown; nothing enforces them yet.\n"
            "- No mail is sent: `--mail-type` and `--mail-user` are kept and shown (`scontrol show job`, `--json`), and a site's MailProg, which\n"
            "  Slurm's controller would start, is not run. A script that ends with a command of its own that tells is not affected.\n"
            "- `--cpu-bind` binds by `rank`, `map_cpu` and `mask_cpu`; a job owns a number of CPUs and not certain ones, so `cores`, `threads`,\n"
            "  `sockets` and `ldoms` are refused. A CPU that a node doesn't have is told by the task, which runs unbound.\n"
            "- Programs that are linked against Slurm's library (PySlurm, libslurm-perl, slurm-drmaa, pam_slurm_adopt, plugins)\n"
            "  can't work: there is no such library here.\n");
    compat_suite(out);
    flavor_print(out);
    compat_amd(out);
}
