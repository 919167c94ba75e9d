/* SPDX-License-Identifier: Apache-2.0
 *
 * What every command has: its name in messages, an arena for its life, the connection to the controllers.
 */
#ifndef SPUR_SPUR_CLI_H
#define SPUR_SPUR_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "core/model/text.h"
#include "spur/opt.h"
#include "spur/spur.h"

struct cli {
    const char *prog; /* "sbatch", or "spur submit" when it was called so */
    struct arena arena;
    struct spur_client *client; /* NULL before the first call */
    int argc; /* of the command: argv[0] is its name */
    char **argv;
    char **typed; /* the whole command line as typed, for SubmitLine */
    int n_typed;
    const char *cluster; /* asked for by -M; NULL: not */
    bool stale;          /* --stale: reads that any controller answers without asking the leader */
};

/* "PROG: error: …" on stderr. */
void cli_error(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "error: "-less lines of Slurm: "sbatch: warning: …" and the like. */
void cli_say(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_out(const struct str *s); /* to stdout */

/* Scans the command line, then applies environment and command line. A word that is no option is a mistake unless
 * words are taken. false: *exit_code is the exit code. */
bool cli_options(struct cli *c, const struct opt_table *t, void *ctx, struct opt_run *r, bool takes_words,
                 int *exit_code);
/* clusters.c: what -M names must be this cluster; sets c->cluster. cli_options does it. false: said what is wrong, with
 * Slurm's fatal line if is_fatal. */
bool cli_clusters(struct cli *c, const struct opt_run *r, bool is_fatal);
/* Prints what the engine has to say. Returns the exit code. */
int cli_stop(struct opt_run *r);

/* -v of sbatch and srun: what was given, sorted by name, the last value of each. */
void cli_defined(const struct cli *c, const struct opt_run *r);

/* Connects at the first call. The reply is in the arena of the command. */
int cli_call(struct cli *c, enum wire_method m, const void *request, void *reply, struct err *e);

/* "a,b c" into words, in the arena; empty ones are left out. */
const char *const *cli_words(struct cli *c, const char *list, const char *separators, uint32_t *out_n);

/* The id of a job, or of a step's job: "12", "12.0". false: no id. */
bool cli_job_id(const char *text, uint32_t *out);
/* Names of jobs, tasks and steps (core/model/text.h) into words: "12,13_[1,3]" are two. In the arena. */
const char *const *cli_job_words(struct cli *c, const char *list, uint32_t *out_n);
/* Of squeue and sacct: "12", "12_3", "12.0", "12.batch", also of steps there never are, such as "12.extern" (STEP_NONE).
 * `flags` as of job_name_parse. false: no id. */
#define STEP_NONE UINT32_MAX
bool cli_job_name(struct cli *c, const char *text, unsigned flags, struct job_name *out);
/* sluid.c: the text with the number of the job in the place of each second id that is known; asks the controller only where
 * there is one. NULL for NULL. */
const char *cli_sluids(struct cli *c, const char *text);
bool cli_is_sluid(const char *text); /* it begins with one */

/* Local time, for moment_parse and for printing. */
struct text_clock cli_clock(void);
/* "2026-12-01T15:58:42", or as SLURM_TIME_FORMAT says; `none` for 0. */
void cli_time(int64_t unix_secs, const char *none, struct str *out);
/* "Tue Dec 01 15:48:46 2026" */
void cli_date(int64_t unix_secs, struct str *out);

const char *cli_env(const char *name); /* getenv, as opt_scan_env wants it */

/* Seconds of --iterate. false: said what is wrong. */
bool cli_interval(const struct cli *c, const char *text, uint32_t *out_secs);

/* A user named or numbered. false: no such user. */
bool cli_user(const char *text, uint32_t *out_uid);

#endif
