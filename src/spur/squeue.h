/* SPDX-License-Identifier: Apache-2.0
 *
 * squeue's parts: what was asked for (cmd_squeue.c), the jobs (squeue_jobs.c), the steps (squeue_steps.c).
 */
#ifndef SPUR_SPUR_SQUEUE_H
#define SPUR_SPUR_SQUEUE_H

#include "spur/cli.h"
#include "spur/job_facts.h"
#include "spur/job_select.h"

struct squeue {
    struct job_select pick;
    const char *format, *long_format, *sort;
    bool all, array, long_list, no_convert, no_header, start, steps, me, not_me, by_partition, expand, only_state;
    bool json, help_format;
    const char *json_version, *iterate;
    uint32_t interval_secs; /* 0: once */
    const char *step_list, *job_list, *user_list, *state_list, *part_list, *name_list, *account_list, *qos_list;
    const char *node_list, *license_list, *reservation_list;
};

/* Return the exit code. */
int squeue_print_jobs(struct cli *c, const struct squeue *q, const struct jobs_reply *reply);
int squeue_print_json(struct cli *c, const struct squeue *q, const struct jobs_reply *reply);
int squeue_print_steps(struct cli *c, const struct squeue *q, const struct jobs_reply *reply);
void squeue_date(const struct squeue *q, struct str *out); /* above the table, where it is asked for */

#endif
