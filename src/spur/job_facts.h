/* SPDX-License-Identifier: Apache-2.0
 *
 * What squeue, scontrol and sacct all say of a job, worked out of its record in one place.
 */
#ifndef SPUR_SPUR_JOB_FACTS_H
#define SPUR_SPUR_JOB_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "spur/spur.h"

/* Lists of jobs share the moment at which the controller answered. */
struct job_env {
    int64_t now_unix;
    const char *cluster;
    char unit; /* of sizes: 0 as Slurm picks it, '=' as kept (--noconvert), or one of K M G T P */
};

bool job_is_pending(const struct job *j);
uint32_t job_uid(const struct job *j);

/* At least, while it waits. */
uint32_t job_nodes(const struct job_info *ji);
uint32_t job_cpus(const struct job_info *ji);
uint32_t job_tasks(const struct job_info *ji);
uint64_t job_alloc_mem_mb(const struct job *j); /* 0: memory isn't counted */

int64_t job_start_unix(const struct job_info *ji); /* expected, while it waits; 0: not known */
int64_t job_end_unix(const struct job_info *ji);   /* expected, while it runs; 0: not known */
int64_t job_run_secs(const struct job *j, int64_t now_unix);
uint32_t job_limit_min(const struct job_info *ji); /* 0: none set, and its partition is gone */

/* "None", "Resources", "RaisedSignal:9(Killed)", "ReqNodeNotAvail, …" */
void job_reason(const struct job_info *ji, struct str *out);
void job_node_list(const struct job *j, struct str *out); /* "n[1-2]"; nothing while it waits */
void job_partition(const struct job *j, struct str *out);
/* "cpu=1,mem=500M,node=1,billing=1", in scontrol's order; sorted by name as sacct has it. */
void job_tres(const struct job_info *ji, bool allocated, bool sorted, char unit, struct str *out);
void job_exit(uint32_t wait_status, struct str *out); /* "3:0", "0:9" */
/* The file of stdout, stderr or stdin as scontrol shows it. */
void job_std_out(const struct job *j, struct str *out);
void job_std_err(const struct job *j, struct str *out); /* nothing where it is stdout's */
void job_std_in(const struct job *j, struct str *out);

/* A size kept in `unit` (K, M …; ' ' for counts): one unit up while nothing but a half is lost, so 1024 is 1K, 1536M is
 * 1.50G and 16000M stays; or with `want` as job_env has it. */
void amount_print(uint64_t n, char unit, char want, struct str *out);
void count_print(uint64_t n, struct str *out);

#endif
