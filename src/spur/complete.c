/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/complete.h"

#include <string.h>

#include "base/mem.h"

const char *complete_name(const struct command *cmd) {
    return cmd->slurm ? cmd->slurm : cmd->verb;
}

bool complete_is_shown(const struct opt_row *o) {
    return o->kind != OPT_NOT_YET && !(o->flags & OPT_HIDDEN);
}

/* "append|truncate" is a choice when all of it is small letters and digits. */
static const char *choice(const char *arg, struct arena *a) {
    if (!strchr(arg, '|') || arg[strspn(arg, "abcdefghijklmnopqrstuvwxyz0123456789|-")])
        return NULL;
    char *words = arena_printf(a, "words:%s", arg);
    for (char *c = words; *c; c++)
        *c = *c == '|' ? ' ' : *c;
    return words;
}

const char *complete_kind(const struct command *cmd, const struct opt_row *o, struct arena *a) {
    static const struct {
        const char *arg, *kind;
    } kinds[] = {
        {"partition", "partitions"}, {"partition(s)", "partitions"}, {"hosts", "nodes"},      {"hostlist", "nodes"},
        {"nodes", "nodes"},          {"job(s)", "jobs"},             {"job", "jobs"},         {"id", "jobs"},
        {"step(s)", "jobs"},         {"user", "users"},              {"user(s)", "users"},    {"state", "states"},
        {"state(s)", "states"},      {"states", "node-states"},      {"err", "files"},        {"out", "files"},
        {"in", "files"},             {"file", "files"},              {"path", "files"},       {"directory", "directories"},
        {"name|number", "signals"},  {"signal", "signals"},          {"rlimits", "rlimits"},
    };
    if (!o->arg)
        return NULL;
    if (str_eq(o->arg, "format")) /* -o of squeue and sinfo is letters, -O and sacct's names */
        return o->letter == 'O' || str_eq(cmd->slurm, "sacct") ? "fields" : "letters";
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_eq(o->arg, kinds[i].arg))
            return str_eq(o->name, "uid") || str_eq(o->name, "gid") ? NULL : kinds[i].kind;
    return choice(o->arg, a);
}

static bool is_joined(const struct opt_row *o) {
    return (o->flags & OPT_MAYBE) && !(o->flags & OPT_NEXT);
}

/* Every name under which a command is called behind `spur`, with blanks or another separator between them. */
static void add_verbs(const struct command *cmd, const char *separator, struct str *out) {
    str_add(out, cmd->verb);
    if (cmd->slurm)
        str_addf(out, "%s%s", separator, cmd->slurm);
    for (size_t i = 0; i < command_alias_count(); i++)
        if (str_eq(command_alias_of(i), cmd->verb))
            str_addf(out, "%s%s", separator, command_alias_name(i));
}

static void add_links(struct str *out) {
    for (size_t i = 0; i < command_count(); i++)
        if (command_at(i)->slurm)
            str_addf(out, " %s", command_at(i)->slurm);
}

/* 'text' in single quotes; `quote`: how a quote is written inside of them, `more`: what has a backslash before it. */
static void quoted(const char *text, const char *quote, const char *more, struct str *out) {
    for (; *text; text++) {
        if (*text == '\'') {
            str_add(out, quote);
            continue;
        }
        if (strchr(more, *text))
            str_addc(out, '\\');
        str_addc(out, *text);
    }
}

/* ---- bash ---- */

static const char bash_head[] =
    "# Completion of spur and of Slurm's commands for bash, printed by `spur completion bash`.\n"
    "# shellcheck shell=bash\n\n";

static const char bash_tail[] =
    "_spur_values() {\n"
    "    case $1 in\n"
    "    '') ;;\n"
    "    files) compgen -f -- \"$3\" ;;\n"
    "    directories) compgen -d -- \"$3\" ;;\n"
    "    commands) compgen -c -- \"$3\" ;;\n"
    "    words:*) compgen -W \"${1#words:}\" -- \"$3\" ;;\n"
    "    *)\n"
    "        local head=\n"
    "        [[ $3 == *,* ]] && head=${3%,*},\n"
    "        compgen -P \"$head\" -W \"$(command spur completion --values \"$1\" \"$2\" 2>/dev/null)\" -- \"${3##*,}\" ;;\n"
    "    esac\n"
    "}\n\n"
    "_spur() {\n"
    "    local command=${COMP_WORDS[0]##*/} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local option= kind= joined=\n"
    "    COMPREPLY=()\n"
    "    if [[ $command == spur ]]; then\n"
    "        if ((COMP_CWORD == 1)); then\n"
    "            mapfile -t COMPREPLY < <(compgen -W \"$_spur_verbs\" -- \"$cur\")\n"
    "            return\n"
    "        fi\n"
    "        command=${COMP_WORDS[1]}\n"
    "    fi\n"
    "    command=$(_spur_command \"$command\")\n"
    "    if [[ $cur == --*=* ]]; then\n"
    "        option=${cur%%=*} joined=1 cur=${cur#*=}\n"
    "    elif [[ $cur == = ]]; then\n"
    "        option=$prev joined=1 cur=\n"
    "    elif [[ $prev == = ]]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD-2]} joined=1\n"
    "    elif [[ $prev == -* ]]; then\n"
    "        option=$prev\n"
    "    fi\n"
    "    if [[ -n $option ]]; then\n"
    "        kind=$(_spur_kind \"$command $option\")\n"
    "        [[ -z $joined && $kind == =* ]] && kind=\n"
    "        kind=${kind#=}\n"
    "    fi\n"
    "    if [[ -n $kind ]]; then\n"
    "        mapfile -t COMPREPLY < <(_spur_values \"$kind\" \"$command\" \"$cur\")\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$(_spur_options \"$command\")\" -- \"$cur\")\n"
    "        [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
    "    elif [[ -z $joined ]]; then\n"
    "        mapfile -t COMPREPLY < <(_spur_values \"$(_spur_words \"$command\")\" \"$command\" \"$cur\")\n"
    "    fi\n"
    "    return 0\n"
    "}\n\n"
    "complete -F _spur spur";

static void bash_names(struct str *out) {
    str_add(out, "_spur_verbs='help version");
    for (size_t i = 0; i < command_count(); i++) {
        str_addc(out, ' ');
        add_verbs(command_at(i), " ", out);
    }
    str_add(out, "'\n\n_spur_command() {\n    case $1 in\n");
    for (size_t i = 0; i < command_count(); i++) {
        str_add(out, "    ");
        add_verbs(command_at(i), "|", out);
        str_addf(out, ") echo %s ;;\n", complete_name(command_at(i)));
    }
    str_add(out, "    esac\n}\n\n");
}

static void bash_options(struct str *out) {
    str_add(out, "_spur_options() {\n    case $1 in\n");
    for (size_t i = 0; i < command_count(); i++) {
        const struct opt_table *t = command_at(i)->options();
        str_addf(out, "    %s) echo '", complete_name(command_at(i)));
        for (size_t k = 0; k < t->n; k++) {
            const struct opt_row *o = &t->row[k];
            if (complete_is_shown(o) && o->name)
                str_addf(out, "--%s%s ", o->name, o->arg && !(o->flags & OPT_MAYBE) ? "=" : "");
            if (complete_is_shown(o) && o->letter)
                str_addf(out, "-%c ", o->letter);
        }
        str_add(out, "' ;;\n");
    }
    str_add(out, "    esac\n}\n\n");
}

static void bash_kinds(struct str *out) {
    auto_arena a = {0};
    str_add(out, "_spur_kind() {\n    case $1 in\n");
    for (size_t i = 0; i < command_count(); i++) {
        const struct opt_table *t = command_at(i)->options();
        const char *name = complete_name(command_at(i));
        for (size_t k = 0; k < t->n; k++) {
            const struct opt_row *o = &t->row[k];
            const char *kind = complete_is_shown(o) ? complete_kind(command_at(i), o, &a) : NULL;
            if (!kind)
                continue;
            str_addf(out, "    '%s --%s'", name, o->name);
            if (o->letter)
                str_addf(out, "|'%s -%c'", name, o->letter);
            str_addf(out, ") echo '%s%s' ;;\n", is_joined(o) ? "=" : "", kind);
        }
    }
    str_add(out, "    esac\n}\n\n_spur_words() {\n    case $1 in\n");
    for (size_t i = 0; i < command_count(); i++)
        if (command_at(i)->options()->words)
            str_addf(out, "    %s) echo '%s' ;;\n", complete_name(command_at(i)), command_at(i)->options()->words);
    str_add(out, "    esac\n}\n\n");
}

void complete_bash(struct str *out) {
    str_add(out, bash_head);
    bash_names(out);
    bash_options(out);
    bash_kinds(out);
    str_add(out, bash_tail);
    add_links(out);
    str_addc(out, '\n');
}

/* ---- zsh ---- */

static void zsh_action(const char *kind, const char *name, struct str *out) {
    if (!kind)
        str_addc(out, ' ');
    else if (str_eq(kind, "files"))
        str_add(out, "_files");
    else if (str_eq(kind, "directories"))
        str_add(out, "_files -/");
    else if (str_eq(kind, "commands"))
        str_add(out, "_command_names");
    else if (str_starts(kind, "words:"))
        str_addf(out, "(%s)", kind + strlen("words:"));
    else
        str_addf(out, " _spur_values %s %s", kind, name); /* the blank: without arguments of _arguments' own */
}

static void zsh_row(const struct command *cmd, const struct opt_row *o, const char *dash, const char *word, bool is_long,
                    struct arena *a, struct str *out) {
    str_addf(out, "            '%s%s", dash, word);
    if (o->arg)
        str_add(out, is_long ? "=" : "+");
    if (o->arg && is_joined(o))
        str_addc(out, '-');
    str_addc(out, '[');
    quoted(o->help ? o->help : "", "'\\''", "[]\\", out);
    str_addc(out, ']');
    if (o->arg) {
        str_add(out, o->flags & OPT_MAYBE ? "::" : ":");
        quoted(o->arg, "'\\''", ":[]\\", out);
        str_addc(out, ':');
        zsh_action(complete_kind(cmd, o, a), complete_name(cmd), out);
    }
    str_add(out, "'\n");
}

static void zsh_command(const struct command *cmd, struct str *out) {
    auto_arena a = {0};
    const struct opt_table *t = cmd->options();
    str_add(out, "    ");
    add_verbs(cmd, "|", out);
    str_add(out, ")\n        specs=(\n");
    for (size_t k = 0; k < t->n; k++) {
        const struct opt_row *o = &t->row[k];
        char letter[2] = {o->letter, 0};
        if (complete_is_shown(o) && o->name)
            zsh_row(cmd, o, "--", o->name, true, &a, out);
        if (complete_is_shown(o) && o->letter)
            zsh_row(cmd, o, "-", letter, false, &a, out);
    }
    if (t->words) {
        str_add(out, "            '*: :");
        zsh_action(t->words, complete_name(cmd), out);
        str_add(out, "'\n");
    }
    str_add(out, "        )\n        ;;\n");
}

void complete_zsh(struct str *out) {
    str_add(out, "#compdef spur");
    add_links(out);
    str_add(out,
            "\n# Completion of spur and of Slurm's commands for zsh, printed by `spur completion zsh`.\n\n"
            "_spur_values() {\n"
            "    local -a found\n"
            "    found=(${(f)\"$(command spur completion --values $1 $2 2>/dev/null)\"})\n"
            "    compset -P '*,'\n"
            "    compadd -a found\n"
            "}\n\n"
            "_spur_specs() {\n    case $1 in\n");
    for (size_t i = 0; i < command_count(); i++)
        zsh_command(command_at(i), out);
    str_add(out, "    esac\n}\n\n"
                 "_spur() {\n"
                 "    local -a specs verbs\n"
                 "    if [[ $service != spur ]]; then\n"
                 "        _spur_specs $service\n"
                 "        _arguments -s -S : $specs\n"
                 "        return\n"
                 "    fi\n"
                 "    if ((CURRENT == 2)); then\n"
                 "        verbs=(\n");
    for (size_t i = 0; i < command_count(); i++) {
        str_addf(out, "            '%s:", command_at(i)->verb);
        quoted(command_at(i)->doc, "'\\''", ":\\", out);
        str_add(out, "'\n");
    }
    str_add(out, "        )\n"
                 "        _describe 'verb' verbs\n"
                 "        return\n"
                 "    fi\n"
                 "    _spur_specs $words[2]\n"
                 "    shift words\n"
                 "    ((CURRENT--))\n"
                 "    _arguments -s -S : $specs\n"
                 "}\n\n"
                 "_spur \"$@\"\n");
}

/* ---- fish ---- */

static void fish_values(const char *kind, const char *name, struct str *out) {
    if (!kind)
        str_add(out, " -f");
    else if (str_eq(kind, "files") || str_eq(kind, "commands"))
        return;
    else if (str_eq(kind, "directories"))
        str_add(out, " -f -a '(__fish_complete_directories)'");
    else if (str_starts(kind, "words:"))
        str_addf(out, " -f -a '%s'", kind + strlen("words:"));
    else
        str_addf(out, " -f -a '(__spur_values %s %s)'", kind, name);
}

static void fish_row(const struct command *cmd, const struct opt_row *o, const char *of, struct arena *a, struct str *out) {
    str_addf(out, "complete %s", of);
    if (o->letter)
        str_addf(out, " -s %c", o->letter);
    if (o->name)
        str_addf(out, " -l %s", o->name);
    if (o->arg) {
        str_add(out, o->flags & OPT_MAYBE ? "" : " -r");
        fish_values(complete_kind(cmd, o, a), complete_name(cmd), out);
    }
    str_add(out, " -d '");
    quoted(o->help ? o->help : "", "\\'", "\\", out);
    str_add(out, "'\n");
}

static void fish_command(const struct command *cmd, struct str *out) {
    auto_arena a = {0};
    auto_str verbs = {0};
    const struct opt_table *t = cmd->options();
    add_verbs(cmd, " ", &verbs);
    const char *const of[] = {arena_printf(&a, "-c spur -n '__spur_is %s'", str_text(&verbs)),
                              cmd->slurm ? arena_printf(&a, "-c %s", cmd->slurm) : NULL};
    str_addf(out, "\n# %s\n", complete_name(cmd));
    str_addf(out, "complete -c spur -f -n '__spur_is_first' -a %s -d '", cmd->verb);
    quoted(cmd->doc, "\\'", "\\", out);
    str_add(out, "'\n");
    for (size_t i = 0; i < ARRAY_LEN(of) && of[i]; i++) {
        if (t->words) {
            str_addf(out, "complete %s", of[i]);
            fish_values(t->words, complete_name(cmd), out);
            str_addc(out, '\n');
        } else {
            str_addf(out, "complete %s -f\n", of[i]);
        }
        for (size_t k = 0; k < t->n; k++)
            if (complete_is_shown(&t->row[k]))
                fish_row(cmd, &t->row[k], of[i], &a, out);
    }
}

void complete_fish(struct str *out) {
    str_add(out, "# Completion of spur and of Slurm's commands for fish, printed by `spur completion fish`.\n\n"
                 "function __spur_is_first\n"
                 "    test (count (commandline -opc)) -eq 1\n"
                 "end\n\n"
                 "function __spur_is\n"
                 "    set -l words (commandline -opc)\n"
                 "    test (count $words) -gt 1; and contains -- $words[2] $argv\n"
                 "end\n\n"
                 "# Values of lists: what stands before the last comma goes along.\n"
                 "function __spur_values\n"
                 "    set -l head (string match -r '^.*,' -- (commandline -ct | string replace -r '^--[a-zA-Z-]+=' ''))\n"
                 "    for value in (command spur completion --values $argv 2>/dev/null)\n"
                 "        echo -- \"$head$value\"\n"
                 "    end\n"
                 "end\n");
    for (size_t i = 0; i < command_count(); i++)
        fish_command(command_at(i), out);
}
