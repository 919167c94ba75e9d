/* SPDX-License-Identifier: Apache-2.0
 *
 * One manual page on stdout, made from a command's table and its prose:
 *
 *   gen_man sbatch docs/man           the page sbatch.1, with docs/man/sbatch.roff where that is there
 *   gen_man spur docs/man             spur.1: all commands
 *
 * In the prose the line "@OPTIONS@" stands where the options go; without it they come last.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/complete.h"

#define DATE "2026-12-02"
#define MARK "@OPTIONS@\n"

/* Text for roff: no hyphen that is broken at, nothing that begins a request. */
static void text(const char *s, struct str *out) {
    for (; *s; s++) {
        if (*s == '\\')
            str_add(out, "\\e");
        else if (*s == '-')
            str_add(out, "\\-");
        else if (str_starts(s, "…")) {
            str_add(out, "...");
            s += strlen("…") - 1;
        } else if ((*s == '.' || *s == '\'') && (!out->n || out->p[out->n - 1] == '\n'))
            str_addf(out, "\\&%c", *s);
        else
            str_addc(out, *s);
    }
}

static void upper(const char *s, struct str *out) {
    for (; *s; s++)
        str_addc(out, *s >= 'a' && *s <= 'z' ? (char)(*s - 32) : *s);
}

static void head(const char *name, const char *doc, struct str *out) {
    str_add(out, ".\\\" Made from the command's own table: do not edit.\n.TH ");
    upper(name, out);
    str_addf(out, " 1 \"" DATE "\" \"spur " SPUR_VERSION "\" \"Spur\"\n.SH NAME\n%s \\- ", name);
    text(doc, out);
    str_addc(out, '\n');
}

static void option_name(const struct opt_row *o, struct str *out) {
    str_add(out, ".TP\n\\fB");
    if (o->letter)
        str_addf(out, "\\-%c\\fR%s", o->letter, o->name ? ", \\fB" : "");
    if (o->name) {
        str_add(out, "\\-\\-");
        text(o->name, out);
        str_add(out, "\\fR");
    }
    if (o->arg) {
        str_add(out, o->flags & OPT_MAYBE ? "[" : "");
        str_add(out, o->name ? "=\\fI" : " \\fI");
        text(o->arg, out);
        str_add(out, o->flags & OPT_MAYBE ? "\\fR]" : "\\fR");
    }
    str_addc(out, '\n');
}

static void option_variables(const struct opt_table *t, const struct opt_row *o, struct str *out) {
    for (size_t i = 0; o->env && i < ARRAY_LEN(t->env_prefix) && t->env_prefix[i] && (!i || o->flags & OPT_ENV_ALL); i++)
        str_addf(out, "%s\\fB%s%s\\fR", i ? ", " : "\nVariable: ", t->env_prefix[i], o->env);
    str_add(out, o->env ? ".\n" : "\n");
}

static void refused(const struct opt_table *t, struct str *out) {
    const char *before = "";
    for (size_t i = 0; i < t->n; i++) {
        if (t->row[i].kind != OPT_NOT_YET || t->row[i].flags & OPT_HIDDEN)
            continue;
        if (!*before)
            str_add(out, ".SS \"Options of Slurm that are refused by name\"\n");
        str_addf(out, "%s\\fB", before);
        if (t->row[i].name) {
            str_add(out, "\\-\\-");
            text(t->row[i].name, out);
        } else {
            str_addf(out, "\\-%c", t->row[i].letter);
        }
        str_add(out, "\\fR");
        before = ",\n";
    }
    str_add(out, *before ? ".\n" : "");
}

static void options(const struct opt_table *t, struct str *out) {
    str_add(out, ".SH OPTIONS\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct opt_row *o = &t->row[i];
        if (!complete_is_shown(o))
            continue;
        option_name(o, out);
        text(*o->help ? o->help : "Another spelling.", out);
        option_variables(t, o, out);
    }
    refused(t, out);
    if (t->note) {
        str_add(out, ".SH NOTES\n.nf\n");
        text(t->note, out);
        str_add(out, t->note[strlen(t->note) - 1] == '\n' ? ".fi\n" : "\n.fi\n");
    }
}

/* The prose; empty where there is none. */
static void read_prose(const char *directory, const char *name, struct str *out) {
    autofree char *path = xasprintf("%s/%s.roff", directory, name);
    FILE *f = fopen(path, "r");
    char line[4096];
    while (f && fgets(line, sizeof(line), f))
        if (!str_starts(line, ".\\\""))
            str_add(out, line);
    if (f)
        fclose(f);
}

static void command_page(const struct command *cmd, const char *name, const char *directory, struct str *out) {
    auto_str prose = {0};
    const struct opt_table *t = cmd->options();
    read_prose(directory, name, &prose);
    head(name, cmd->doc, out);
    str_add(out, ".SH SYNOPSIS\n.nf\n\\fB");
    text(cmd->slurm ? cmd->slurm : "spur ", out);
    text(cmd->slurm ? "" : cmd->verb, out);
    str_add(out, "\\fR ");
    text(t->usage, out);
    if (cmd->slurm)
        str_addf(out, "\n\\fBspur %s\\fR ...", cmd->verb);
    str_add(out, "\n.fi\n");
    const char *mark = strstr(str_text(&prose), MARK);
    str_addn(out, str_text(&prose), mark ? (size_t)(mark - prose.p) : prose.n);
    options(t, out);
    str_add(out, mark ? mark + strlen(MARK) : "");
    str_add(out, ".SH SEE ALSO\n.BR spur (1)\n");
}

static void spur_page(const char *directory, struct str *out) {
    auto_str prose = {0};
    read_prose(directory, "spur", &prose);
    head("spur", "a workload manager, and each of its commands", out);
    str_add(out, ".SH SYNOPSIS\n\\fBspur\\fR \\fIVERB\\fR [OPTIONS...]\n");
    const char *mark = strstr(str_text(&prose), MARK);
    str_addn(out, str_text(&prose), mark ? (size_t)(mark - prose.p) : prose.n);
    str_add(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < command_count(); i++) {
        const struct command *cmd = command_at(i);
        str_addf(out, ".TP\n\\fBspur %s\\fR", cmd->verb);
        if (cmd->slurm)
            str_addf(out, ", \\fB%s\\fR(1)\n", cmd->slurm);
        else
            str_addf(out, ", \\fBspur\\-%s\\fR(1)\n", cmd->verb);
        text(cmd->doc, out);
        str_add(out, ".\n");
    }
    str_add(out, mark ? mark + strlen(MARK) : "");
}

static const struct command *find(const char *name) {
    for (size_t i = 0; i < command_count(); i++) {
        const struct command *cmd = command_at(i);
        if (cmd->slurm ? str_eq(cmd->slurm, name) : str_starts(name, "spur-") && str_eq(cmd->verb, name + 5))
            return cmd;
    }
    return NULL;
}

int main(int argc, char **argv) {
    auto_str out = {0};
    const struct command *cmd = argc == 3 ? find(argv[1]) : NULL;
    if (argc == 3 && str_eq(argv[1], "spur"))
        spur_page(argv[2], &out);
    else if (cmd)
        command_page(cmd, argv[1], argv[2], &out);
    else {
        fprintf(stderr, "usage: gen_man COMMAND DIRECTORY\n");
        return 2;
    }
    return fputs(str_text(&out), stdout) < 0 || fflush(stdout);
}
