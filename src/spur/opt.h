/* SPDX-License-Identifier: Apache-2.0
 *
 * The option engine. A command has one table of its options; from it come parsing (getopt_long's rules and messages),
 * the variables of the environment, --help, --usage and docs/compatibility.md.
 *
 * Reading goes in two steps, because a batch job's options come from three places that override each other: opt_scan
 * turns words into items, opt_apply sets them one after the other. Nothing is printed here: texts are handed back.
 */
#ifndef SPUR_SPUR_OPT_H
#define SPUR_SPUR_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"

enum opt_kind {
    OPT_BOOL,    /* sets the bool at `off` */
    OPT_TEXT,    /* sets the const char * at `off`; borrowed from the words */
    OPT_COUNT,   /* adds 1 to the uint32_t at `off` */
    OPT_CALL,    /* calls `set` */
    OPT_CLUSTERS, /* -M: sets `clusters` of the run (cli.h checks it) */
    OPT_STALE,   /* --stale: sets `stale` of the run */
    OPT_NOT_YET, /* Slurm's, known here and refused by name; `set` (may be NULL) looks at the value first */
    OPT_HELP,
    OPT_USAGE,
    OPT_VERSION,
};

enum {
    OPT_MAYBE = 1,  /* the argument may be left out (then value is NULL); it must be joined: --x=v, -xv */
    OPT_NEXT = 8,   /* with OPT_MAYBE: it may be the next word too, if that is no option (squeue -j 12) */
    OPT_HIDDEN = 2, /* not in --help: another spelling */
    OPT_WHOLE = 16, /* ours alone: no beginning of it counts, so that Slurm's own may be cut as they are there */
    OPT_ENV_ALL = 4, /* `env` counts with every prefix, else with the first only: SPUR_… may be a running job's own */
};

/* What `set` of an OPT_NOT_YET says of a value that asks for nothing: it is taken. 0: refused by name. */
#define OPT_NOTHING 1

struct opt_run;
struct opt_row {
    const char *name; /* long name; NULL: only a letter */
    char letter;      /* 0: none */
    const char *arg;  /* how --help calls the argument; NULL: takes none */
    enum opt_kind kind;
    uint32_t flags;
    size_t off;
    int (*set)(struct opt_run *r, const struct opt_row *o, const char *value);
    const char *env;  /* name behind the prefix: "PARTITION" for SBATCH_PARTITION; NULL: none */
    const char *help;
};

/* Rows that many tables have, each in its place by name. */
#define OPT_ROW_HELP {"help", 'h', NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help"}
#define OPT_ROW_HELP_LONG {"help", 0, NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help"} /* where -h is something else */
#define OPT_ROW_STALE                                                                                                  \
    {"stale", 0, NULL, OPT_STALE, OPT_WHOLE, 0, NULL, NULL,                                                            \
     "what the asked controller knows will do, even where it finds no leader"}
#define OPT_ROW_USAGE {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "show a short usage"}
#define OPT_ROW_VERSION {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "show the version"}

struct opt_table {
    const char *usage; /* first line of --help, behind "Usage: NAME " */
    const char *brief; /* --usage, behind the same */
    const struct opt_row *row; /* by long name: the order of "possibilities" and of --help */
    size_t n;
    int usage_exit;    /* exit code of a wrong option */
    bool stop_at_word; /* the first word that is no option ends the options (sbatch: the script's own follow) */
    const char *env_prefix[3]; /* the first one that is set counts; NULL ends */
    const char *note;  /* end of --help; may be NULL */
    const char *words; /* what stands behind the options, for completion (complete.h): "jobs"; NULL: nothing is known */
};

struct opt_item {
    const struct opt_row *row;
    const char *value; /* NULL: none */
    uint32_t line;     /* of the script; 0: command line */
    const char *env;   /* name of the variable it came from; NULL */
};

/* What came of a step. exit_code < 0: go on. Else print `out` to stdout and `err` to stderr and exit. */
struct opt_run {
    const struct opt_table *table;
    const char *prog; /* as messages begin */
    void *ctx;        /* of setters */
    VEC(struct opt_item) items;
    VEC(const char *) words; /* that are no options */
    const char *clusters;    /* OPT_CLUSTERS; NULL: not given */
    bool stale;              /* OPT_STALE */
    struct str out, err;
    int exit_code;
};

void opt_init(struct opt_run *r, const struct opt_table *t, const char *prog, void *ctx);
void opt_fini(struct opt_run *r);

/* Words of a command line (without the program's name). Adds to items and words. false: stop, see exit_code. */
bool opt_scan(struct opt_run *r, int n, const char *const *word);
/* Words of #SBATCH lines, with the line of each. A word that is no option is an error there. */
bool opt_scan_script(struct opt_run *r, uint32_t n, const char *const *word, const uint32_t *line);
/* The variables of the environment. `get` is getenv; tests give their own. */
void opt_scan_env(struct opt_run *r, const char *(*get)(const char *name));

/* Sets items [from, to) in order. false: stop. */
bool opt_apply(struct opt_run *r, size_t from, size_t to);

/* For setters: `return opt_bad(r, exit code, …)`: an error line "PROG: error: …". Returns -1. */
int opt_bad(struct opt_run *r, int exit_code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same for a value that the option's parser refuses: "Invalid --NAME specification", the table's usage_exit. */
int opt_bad_value(struct opt_run *r, const struct opt_row *o);

/* The last item of an option; NULL: not given. */
const struct opt_item *opt_find(const struct opt_run *r, const char *name);

void opt_help(const struct opt_table *t, const char *prog, struct str *out);

#endif
