/* SPDX-License-Identifier: Apache-2.0
 *
 * sacct's rows and columns: a job is one row, its batch script and each of its steps another.
 */
#ifndef SPUR_SPUR_SACCT_H
#define SPUR_SPUR_SACCT_H

#include "spur/job_facts.h"
#include "spur/table.h"

struct sacct_row {
    const struct job_info *ji;
    const struct step *step; /* of a step's own row (also that of the batch script); NULL: the job's */
};

const struct table_fields *sacct_fields(void); /* the env is struct job_env */
/* Slurm's field, but there is nothing yet to show in it. */
bool sacct_field_is_later(const char *name, size_t n);

struct sacct_style {
    bool no_header;
    bool parsable;  /* -p and -P: no padding */
    bool no_ending; /* -P: no delimiter behind the last one */
    const char *delimiter;
};
/* "name%-12,name" as columns behind those of `t`. false: *bad is the name that is none. */
bool sacct_parse(struct table *t, const char *format, const char **bad, size_t *n_bad);
void sacct_head(const struct table *t, const struct sacct_style *s, struct str *out);
void sacct_line(const struct table *t, const struct sacct_style *s, const void *row, const void *env, struct str *out);

#endif
