/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/json_doc.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/version.h"

#define DATA_PARSER "data_parser/v0.0.45"
#define FLUSH_BYTES 65536

bool json_doc_version(const struct cli *c, const char *version, int *exit_code) {
    *exit_code = 0;
    if (!version || !*version || strcasecmp(version, "v0.0.45") == 0 || strcasecmp(version, DATA_PARSER) == 0)
        return true;
    if (strcasecmp(version, "list") == 0) {
        fputs("Possible data_parser plugins:\n", stderr);
        puts(DATA_PARSER);
        return false;
    }
    cli_error(c, "%s is no version of --json that there is: " DATA_PARSER, version);
    *exit_code = 1;
    return false;
}

void json_doc_begin(struct json *w) {
    json_open(w, NULL, '{');
}

static void who(struct json *w) {
    struct passwd *pw = getpwuid(geteuid());
    struct group *gr = getgrgid(getegid());
    json_open(w, "client", '{');
    json_text(w, "source", ttyname(STDOUT_FILENO));
    json_text(w, "user", pw ? pw->pw_name : "");
    json_text(w, "group", gr ? gr->gr_name : "");
    json_close(w, '}');
}

static void command(struct json *w, const struct cli *c) {
    json_open(w, "command", '[');
    for (int i = 0; i < c->n_typed; i++)
        json_text(w, NULL, c->typed[i]);
    json_close(w, ']');
}

static void release(struct json *w, const char *cluster) {
    json_open(w, "slurm", '{');
    json_open(w, "version", '{');
    json_text(w, "major", SLURM_MAJOR);
    json_text(w, "micro", SLURM_MICRO);
    json_text(w, "minor", SLURM_MINOR);
    json_close(w, '}');
    json_text(w, "release", SLURM_MAJOR "." SLURM_MINOR "." SLURM_MICRO);
    json_text(w, "cluster", cluster);
    json_close(w, '}');
}

void json_doc_end(struct json *w, const struct cli *c, const char *cluster) {
    json_open(w, "meta", '{');
    json_open(w, "plugin", '{');
    json_text(w, "type", "");
    json_text(w, "name", "");
    json_text(w, "data_parser", DATA_PARSER);
    json_text(w, "accounting_storage", "");
    json_close(w, '}');
    who(w);
    command(w, c);
    release(w, cluster);
    json_close(w, '}');
    json_empty(w, "errors", "[]");
    json_empty(w, "warnings", "[]");
    json_close(w, '}');
    str_addc(w->out, '\n');
    cli_out(w->out);
    str_clear(w->out);
}

void json_doc_flush(struct json *w) {
    if (w->out->n < FLUSH_BYTES)
        return;
    cli_out(w->out);
    str_clear(w->out);
}
