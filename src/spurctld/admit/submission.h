/* SPDX-License-Identifier: Apache-2.0
 *
 * A submission on its way, for the files of this folder.
 */
#ifndef SPUR_SPURCTLD_ADMIT_SUBMISSION_H
#define SPUR_SPURCTLD_ADMIT_SUBMISSION_H

#include "spurctld/admit/admit.h"

#define SUBMIT_WARNINGS_MAX 8u

struct submission {
    struct room *room;
    struct arena arena;
    struct job_spec spec;
    size_t n_spec; /* its bytes as it came */
    unsigned n_ids; /* tried */
    uint8_t token[TOKEN_SIZE];
    bool has_token;
    uint32_t uid;
    uint8_t script_hash[32], env_hash[32];
    unsigned waiting; /* blobs not yet durable */
    int failed;
    struct err why;
    const char **warnings;
    uint32_t n_warnings;
    admit_fn done;
    void *arg;
};

/* May they, and could it ever run? Fills in what was left out. */
int submission_check(struct submission *sub, const struct who *who, const struct submit_request *req, struct err *e);

/* submit_past.c: looks into history for those named by `deps` that have left the state. False: there are none; else `done` is
 * called, later, and deps hold what history says; they stay until then. */
bool deps_past(struct room *r, struct dep *deps, uint32_t n, void (*done)(void *arg), void *arg);

/* A dependency as it goes into the command. */
int check_dependencies(const struct view *v, const char *text, struct arena *a, const struct dep **out, uint32_t *out_n,
                       struct err *e);
/* The names of `partitions` ("a,b") are known; E_PARTITION with Slurm's sentence. */
int check_partitions(const struct view *v, const char *partitions, struct arena *a, struct err *e);
/* What is wrong with a job as a whole, in Slurm's words: what in particular, then what in general. */
int check_possible(const struct view *v, const struct job *j, struct err *e);

#endif
