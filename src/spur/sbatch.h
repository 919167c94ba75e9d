/* SPDX-License-Identifier: Apache-2.0
 *
 * sbatch, in parts: its options, the script, the environment that goes with the job, and what is sent.
 */
#ifndef SPUR_SPUR_SBATCH_H
#define SPUR_SPUR_SBATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "spur/job_ask.h"

struct sbatch {
    union {
        struct job_ask ask;
        struct {
            JOB_ASK_FIELDS
        };
    };
    const char *wrap;
    const char *export;    /* --export; NULL: ALL */
    const char *export_file; /* --export-file */
    const char *cwd;       /* where the command was started */
    bool wait, parsable, ignore_pbs, test_only;
    uint32_t verbose;
};

/* ---- sbatch_pbs.c ---- */

/* Sets the options of #PBS lines, `line` of each word. Those that are not honoured are told on stderr. false: see
 * r->exit_code. */
bool sbatch_pbs(struct sbatch *s, struct opt_run *r, uint32_t n, const char *const *word, const uint32_t *line);

/* ---- sbatch_wait.c ---- */

/* Waits for the end of the job, or of all tasks of the array. The exit code. */
int sbatch_wait(struct sbatch *s, uint32_t job_id);

/* ---- sbatch_script.c ---- */

/* The whole text of the script: of --wrap, of the file that the first word names, or of stdin. Also sets the spec's
 * command, args and (if it has none) name. `words`: what stood behind the options. 0 or an error in Slurm's words,
 * lines separated by \n. */
int sbatch_script(struct sbatch *s, const char *const *words, size_t n_words, struct buf *out, struct err *e);

/* ---- sbatch_env.c ---- */

/* "NAME=value\0…" of `environ_` by the rules of --export. Sets spec.env_minimal. */
void sbatch_env(struct sbatch *s, const char *const *environ_, struct buf *out);
/* Those of --export-file, in the place of others of their names. false: said why not. */
bool sbatch_env_file(struct sbatch *s, struct buf *env);
/* Inside a job: whether a variable belongs to it, and not to the user. */
bool sbatch_env_is_outer(const char *name, size_t n);

/* ---- sbatch_facts.c ---- */

/* What the job inherits from this process: directory, umask, limits, host, session, command line. */
int sbatch_facts(struct sbatch *s, struct err *e);

#endif
