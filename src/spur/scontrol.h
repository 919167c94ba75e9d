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
#include "spur/json_doc.h"

struct scontrol {
    struct cli *c;
    bool one_line, all, details, future, json, quiet;
    uint32_t verbose;
    const char *json_version;
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

void scontrol_print_keywords(void); /* those that work, and what `show` shows, for completion */
int scontrol_run(struct scontrol *s, const char *const *word, size_t n); /* a keyword and what stands behind it */
int scontrol_prompt(struct scontrol *s); /* keywords from the input, one a line */

/* ---- scontrol_show.c ---- */
int scontrol_show_config(struct scontrol *s, const char *name);
int scontrol_show_daemons(struct scontrol *s, const char *name);
int scontrol_show_licenses(struct scontrol *s, const char *name);
int scontrol_show_reservations(struct scontrol *s, const char *name);

/* ---- scontrol_part.c ---- */
int scontrol_create(struct scontrol *s);
int scontrol_delete(struct scontrol *s);
int scontrol_update_part(struct scontrol *s);

/* ---- scontrol_resize.c ---- */
bool scontrol_resized(struct scontrol *s, uint32_t job_id); /* a run is smaller; false: said what is wrong */

/* ---- scontrol_pids.c ---- */
int scontrol_listpids(struct scontrol *s);
int scontrol_pidinfo(struct scontrol *s);

/* ---- scontrol_more.c ---- */
int scontrol_ping(struct scontrol *s);
int scontrol_token(struct scontrol *s);
int scontrol_reconfigure(struct scontrol *s);
int scontrol_write(struct scontrol *s);
int scontrol_setdebug(struct scontrol *s);
int scontrol_shutdown(struct scontrol *s);
int scontrol_errnumstr(struct scontrol *s);
int scontrol_completing(struct scontrol *s);
int scontrol_getaddrs(struct scontrol *s);

/* Slurm's for what only administrators may. */
const char *scontrol_denied(int code, const struct err *e);
bool scontrol_is(const char *text, const char *word, size_t least); /* `text` is `word`, or that many letters of it */
bool scontrol_key(const char *word, const char *key, size_t least, const char **out_value); /* "KEY=VALUE" */

/* ---- scontrol_steer.c ---- */
struct scontrol_targets {
    VEC(struct job_target) v;
    const char *bad; /* the word that is no id */
};
/* "12,13_[1-3]". false: out->bad. */
bool scontrol_targets_add(struct scontrol *s, const char *list, struct scontrol_targets *out);
/* uid NULL: of anyone. false: said so. */
bool scontrol_jobs_named(struct scontrol *s, const char *name, const uint32_t *uid, struct scontrol_targets *out);
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

/* ---- scontrol_top.c ---- */
struct top_job {
    uint32_t job_id;
    uint64_t priority;
    int64_t nice;
    bool is_first; /* one of those that go to the head, in the order in which they stand */
};
/* Gives the jobs, which are in the order in which they are to come, each a nice so that they do: nobody's gets better than
 * the best of them was. */
void top_order(struct top_job *list, size_t n);
int scontrol_top(struct scontrol *s);

/* ---- scontrol_update.c, scontrol_update_node.c ---- */
int scontrol_update_job(struct scontrol *s);
int scontrol_update_node(struct scontrol *s);
int scontrol_update_step(struct scontrol *s); /* scontrol_step.c */

/* The texts alone, for tests: one record, with its blank line or as one line. */
void scontrol_job_text(const struct job_info *ji, int64_t now_unix, bool one_line, bool details, struct str *out);
void scontrol_step_text(const struct job_info *ji, const struct step *st, bool one_line, struct str *out);
void scontrol_node_text(const struct node_info *ni, bool one_line, bool details, struct str *out);
void scontrol_part_text(const struct part *p, const struct nodes_reply *all, bool one_line, struct str *out);

/* ---- scontrol_json.c ---- */
void scontrol_node_json(struct json *j, const struct node_info *ni, const char *cluster);
void scontrol_part_json(struct json *j, const struct part *p, const struct nodes_reply *all);
void scontrol_step_json(struct json *j, const struct job_info *ji, const struct step *st, int64_t now_unix);

struct part_totals {
    const struct node **node; /* the reader frees the list */
    uint32_t nodes, cpus;
    uint64_t mem_mb;
};
struct part_totals part_totals(const struct part *p, const struct nodes_reply *all, struct str *names);

/* A record's line break: "\n   ", or a blank on one line. */
#define RECORD_BREAK(one_line) ((one_line) ? " " : "\n   ")
#define RECORD_END(one_line) ((one_line) ? "\n" : "\n\n")

#endif
