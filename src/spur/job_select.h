/* SPDX-License-Identifier: Apache-2.0
 *
 * Which jobs a command means: squeue's and scancel's filters. What the request can't say is sieved here.
 */
#ifndef SPUR_SPUR_JOB_SELECT_H
#define SPUR_SPUR_JOB_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "spur/cli.h"

enum job_select_text {
    JOB_SELECT_PARTITION,
    JOB_SELECT_NAME,
    JOB_SELECT_ACCOUNT,
    JOB_SELECT_QOS,
    JOB_SELECT_LICENSE,
    JOB_SELECT_RESERVATION,
    JOB_SELECT_N,
};

struct job_select {
    struct cli *c;
    const struct job_name *names; /* jobs, arrays, tasks, steps that are asked for; */
    uint32_t n_names;
    const uint32_t *ids; /* and of which jobs they are, for the request */
    uint32_t n_ids;
    const uint32_t *uids;
    uint32_t n_uids;
    const char *one_user; /* for the request: NULL when several or all */
    uint32_t states;      /* bits of enum job_state; 1 << JOB_N_STATES: completing, the next one: configuring */
    bool with_ended;
    bool is_nothing;   /* nothing can match: no question need be asked */
    bool only_pending; /* squeue --start */
    bool not_me;
    struct {
        const char *const *word;
        uint32_t n;
        bool is_given;
    } text[JOB_SELECT_N];
    const char *const *nodes;
    uint32_t n_nodes;
};

/* Each takes NULL for "not given". false: said what is wrong, exit 1. Lists live in the command's arena. */
void job_select_init(struct job_select *s, struct cli *c);
bool job_select_ids(struct job_select *s, const char *list); /* "12", "12_3", "12.0" */
void job_select_names(struct job_select *s, const struct job_name *names, uint32_t n);
bool job_select_users(struct job_select *s, const char *list, bool me); /* unknown ones are told and left out */
bool job_select_states(struct job_select *s, const char *list);         /* NULL: those that are not over */
bool job_select_texts(struct job_select *s, enum job_select_text what, const char *list);
bool job_select_nodes(struct job_select *s, const char *list);

bool job_selected(const struct job_select *s, const struct job_info *ji);

/* The selected ones of a reply. Of an array's waiting record a row for each task that is asked for by name, with
 * `each_task` for every one. Borrows from the reply; the rest is in the command's arena. */
struct job_rows {
    VEC(struct job_info) v;
};
void job_select_rows(const struct job_select *s, const struct job_info *ji, bool each_task, struct job_rows *out);

void job_rows_sort(struct job_rows *rows, int (*compare)(const void *a, const void *b)); /* equal ones stay as they are */

/* The states of a list as bits; 0 and *out_bad for a word that is none. */
uint32_t job_states_parse(const char *list, const char **out_bad, struct cli *c);

#endif
