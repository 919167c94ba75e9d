/* SPDX-License-Identifier: Apache-2.0
 *
 * spur completion: the scripts for shells, and the values that those scripts ask for while somebody types.
 */
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/complete.h"
#include "spur/job_fields.h"
#include "spur/node_fields.h"
#include "spur/sacct.h"
#include "spur/scontrol.h"

#define ASK_MS 1500 /* somebody waits for the key that was pressed */

struct completion {
    struct cli *c;
    const char *values;
};

#define AT(field) offsetof(struct completion, field)
static const struct opt_row rows[] = {
    {"help", 'h', NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help"},
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "show a short usage"},
    {"values", 0, "kind", OPT_TEXT, 0, AT(values), NULL, NULL, "what there is of a kind, for the scripts: partitions, nodes, jobs …"},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "show the version"},
};

const struct opt_table *cmd_completion_options(void) {
    static const struct opt_table t = {
        .usage = "bash | zsh | fish", .brief = "bash | zsh | fish", .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 1,
        .words = "words:bash zsh fish",
        .note = "As in: source <(spur completion bash)\n"
                "    spur completion zsh > ~/.zfunc/_spur          with ~/.zfunc in fpath\n"
                "    spur completion fish > ~/.config/fish/completions/spur.fish, and links sbatch.fish … to it"};
    return &t;
}

static void print_words(const char *const *word, size_t n) {
    for (size_t i = 0; i < n; i++)
        puts(word[i]);
}

/* ---- asked of the controller: nothing where it is away ---- */

static bool ask(struct cli *c, enum wire_method m, const void *request, void *reply) {
    struct spur_options options = {.timeout_ms = ASK_MS};
    struct err e = {0};
    return !spur_open(&options, &c->client, &e) && !cli_call(c, m, request, reply, &e);
}

static void print_partitions(struct cli *c) {
    struct nodes_reply all = {0};
    if (ask(c, WIRE_Controller_Nodes, &(struct nothing){0}, &all))
        for (uint32_t i = 0; i < all.n_parts; i++)
            puts(all.parts[i].name);
}

static void print_nodes(struct cli *c) {
    struct nodes_reply all = {0};
    if (ask(c, WIRE_Controller_Nodes, &(struct nothing){0}, &all))
        for (uint32_t i = 0; i < all.n_nodes; i++)
            if (all.nodes[i].node)
                puts(all.nodes[i].node->name);
}

static void print_jobs(struct cli *c) {
    struct jobs_reply all = {0};
    if (!ask(c, WIRE_Controller_Jobs, &(struct jobs_request){0}, &all))
        return;
    for (uint32_t i = 0; i < all.n_jobs; i++) {
        const struct job *j = all.jobs[i].job;
        auto_str id = {0};
        if (!j || job_is_over(j))
            continue;
        if (job_is_group(j))
            str_addf(&id, "%u", j->id);
        else
            job_print_id(j, &id);
        puts(str_text(&id));
    }
}

/* ---- known here ---- */

static void print_users(void) {
    setpwent();
    for (struct passwd *pw; (pw = getpwent());)
        puts(pw->pw_name);
    endpwent();
}

static void print_states(void) {
    for (uint32_t i = 0; i < JOB_N_STATES; i++)
        puts(job_state_name(i));
    puts("COMPLETING\nCONFIGURING\nSTOPPED\nSPECIAL_EXIT\nall");
}

static void print_signals(void) {
    static const char *const names[] = {"HUP", "INT", "QUIT", "KILL", "USR1", "USR2", "TERM", "CONT", "STOP", "TSTP"};
    print_words(names, ARRAY_LEN(names));
}

static const struct table_fields *fields_of(const char *command) {
    if (str_eq(command, "squeue"))
        return job_fields();
    if (str_eq(command, "sinfo"))
        return node_fields();
    return str_eq(command, "sacct") ? sacct_fields() : NULL;
}

static void print_fields(const char *command, bool are_letters) {
    const struct table_fields *f = fields_of(command);
    for (size_t i = 0; f && i < f->n; i++)
        if (are_letters && f->row[i].letter)
            printf("%%%c\n", f->row[i].letter);
        else if (!are_letters && f->row[i].name)
            puts(f->row[i].name);
}

static int print_values(struct completion *s, const char *command) {
    static const char *const node_states[] = {"alloc", "comp", "down", "drain", "drained", "draining", "fail", "idle", "maint", "mix",
                                              "resv", "unk"};
    static const char *const rlimits[] = {"ALL", "NONE", "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS",
                                          "STACK"};
    const char *kind = s->values;
    if (str_eq(kind, "partitions"))
        print_partitions(s->c);
    else if (str_eq(kind, "keywords"))
        scontrol_print_keywords();
    else if (str_eq(kind, "nodes"))
        print_nodes(s->c);
    else if (str_eq(kind, "jobs"))
        print_jobs(s->c);
    else if (str_eq(kind, "users"))
        print_users();
    else if (str_eq(kind, "states"))
        print_states();
    else if (str_eq(kind, "node-states"))
        print_words(node_states, ARRAY_LEN(node_states));
    else if (str_eq(kind, "signals"))
        print_signals();
    else if (str_eq(kind, "rlimits"))
        print_words(rlimits, ARRAY_LEN(rlimits));
    else if (str_eq(kind, "fields") || str_eq(kind, "letters"))
        print_fields(command, str_eq(kind, "letters"));
    else
        return 1;
    return 0;
}

static int print_script(struct cli *c, const char *shell) {
    auto_str out = {0};
    if (str_eq(shell, "bash"))
        complete_bash(&out);
    else if (str_eq(shell, "zsh"))
        complete_zsh(&out);
    else if (str_eq(shell, "fish"))
        complete_fish(&out);
    else {
        cli_error(c, "for which shell? bash, zsh or fish");
        return 1;
    }
    cli_out(&out);
    return 0;
}

int cmd_completion(struct cli *c) {
    struct completion s = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_completion_options(), &s, &r, true, &exit_code))
        exit_code = s.values ? print_values(&s, r.words.n ? r.words.p[0] : "") : print_script(c, r.words.n == 1 ? r.words.p[0] : NULL);
    opt_fini(&r);
    return exit_code;
}
