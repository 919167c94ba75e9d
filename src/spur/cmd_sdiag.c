/* SPDX-License-Identifier: Apache-2.0
 *
 * sdiag: Slurm's head, then the controller's counters, group by group.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/command.h"

struct sdiag {
    bool all, reset;
};

#define AT(field) offsetof(struct sdiag, field)
static const struct opt_row rows[] = {
    {"all", 'a', NULL, OPT_BOOL, 0, AT(all), NULL, NULL, "all of it (as without it)"},
    {"cluster", 'M', "name", OPT_NOT_YET},
    {"help", 'h', NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help"},
    {"json", 0, "version", OPT_NOT_YET, OPT_MAYBE},
    {"reset", 'r', NULL, OPT_BOOL, 0, AT(reset), NULL, NULL, "start counting anew"},
    {"sort-by-id", 'i', NULL, OPT_NOT_YET},
    {"sort-by-time", 't', NULL, OPT_NOT_YET},
    {"sort-by-time2", 'T', NULL, OPT_NOT_YET},
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "show a short usage"},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "show the version"},
    {"yaml", 0, "version", OPT_NOT_YET, OPT_MAYBE},
};

const struct opt_table *cmd_sdiag_options(void) {
    static const struct opt_table t = {.usage = "[OPTIONS]", .brief = "[-ar]", .row = rows, .n = ARRAY_LEN(rows),
                                       .usage_exit = 1};
    return &t;
}

static void moment(const char *what, int64_t unix_secs, struct str *out) {
    str_add(out, what);
    cli_date(unix_secs, out);
    str_addf(out, " (%lld)\n", (long long)unix_secs);
}

static void print(const struct diag_reply *reply) {
    static const char line[] = "*******************************************************\n";
    auto_str out = {0};
    const char *group = NULL;
    str_add(&out, line);
    moment("sdiag output at ", reply->now_unix, &out);
    moment("Data since      ", reply->since_unix, &out);
    str_add(&out, line);
    for (uint32_t i = 0; i < reply->n_counters; i++) {
        const struct counter *c = &reply->counters[i];
        if (!str_eq(group, c->group))
            str_addf(&out, "%s%s\n", i ? "\n" : "", c->group ? c->group : "");
        group = c->group;
        const char *unit = c->unit ? c->unit : "";
        str_addf(&out, "\t%s: %llu%s%s\n", c->name ? c->name : "", (unsigned long long)c->value, *unit ? " " : "", unit);
    }
    cli_out(&out);
}

int cmd_sdiag(struct cli *c) {
    struct sdiag s = {0};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_sdiag_options(), &s, &r, false, &exit_code)) {
        struct diag_request request = {.reset = s.reset};
        struct diag_reply reply = {0};
        struct err e = {0};
        exit_code = 255; /* as Slurm's */
        if (cli_call(c, WIRE_Controller_Diag, &request, &reply, &e)) {
            fprintf(stderr, s.reset ? "slurm_reset_statistics: %s\n" : "slurm_get_statistics: %s\n", e.text);
        } else {
            if (s.reset)
                puts("Reset scheduling statistics");
            else
                print(&reply);
            exit_code = 0;
        }
    }
    opt_fini(&r);
    return exit_code;
}
