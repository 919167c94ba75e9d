/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol, in parts: the keywords, and what `show` shows.
 */
#ifndef SPUR_SPUR_SCONTROL_H
#define SPUR_SPUR_SCONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "spur/cli.h"

struct scontrol {
    struct cli *c;
    bool one_line, all;
    const char *const *word; /* behind the keyword */
    size_t n;
};

/* Each returns the exit code. `name`: NULL or "" for all. */
int scontrol_show_job(struct scontrol *s, const char *name);
int scontrol_show_node(struct scontrol *s, const char *name);
int scontrol_show_partition(struct scontrol *s, const char *name);
int scontrol_show_hostnames(struct scontrol *s, const char *list);
int scontrol_show_hostlist(struct scontrol *s, const char *list, bool sorted);

int scontrol_show_step(struct scontrol *s, const char *name);

/* ---- scontrol_steer.c ---- */
struct scontrol_targets {
    VEC(struct job_target) v;
    const char *bad; /* the word that is no id */
};
/* "12,13_[1-3]". false: out->bad. */
bool scontrol_targets_add(struct scontrol *s, const char *list, struct scontrol_targets *out);
bool scontrol_jobs_named(struct scontrol *s, const char *name, struct scontrol_targets *out); /* false: said so */
/* "TEXT for job N" for each that failed. The last text; NULL: all is well. */
const char *scontrol_tell(const struct results *reply);
int scontrol_hold(struct scontrol *s);
int scontrol_uhold(struct scontrol *s);
int scontrol_release(struct scontrol *s);
int scontrol_suspend(struct scontrol *s);
int scontrol_resume(struct scontrol *s);
int scontrol_requeue(struct scontrol *s);
int scontrol_requeuehold(struct scontrol *s);
int scontrol_wait_job(struct scontrol *s);

/* ---- scontrol_update.c, scontrol_update_node.c ---- */
int scontrol_update_job(struct scontrol *s);
int scontrol_update_node(struct scontrol *s);

/* The texts alone, for tests: one record, with its blank line or as one line. */
void scontrol_job_text(const struct job_info *ji, int64_t now_unix, bool one_line, struct str *out);
void scontrol_step_text(const struct job_info *ji, const struct step *st, bool one_line, struct str *out);
void scontrol_node_text(const struct node_info *ni, bool one_line, struct str *out);
void scontrol_part_text(const struct part *p, const struct nodes_reply *all, bool one_line, struct str *out);

/* A record's line break: "\n   ", or a blank on one line. */
#define RECORD_BREAK(one_line) ((one_line) ? " " : "\n   ")
#define RECORD_END(one_line) ((one_line) ? "\n" : "\n\n")

#endif
