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
    bool expand; /* names of files without their patterns */
};

bool job_is_pending(const struct job *j);
uint32_t job_uid(const struct job *j);

/* "12", "12_3", "12_[0-3,7%2]" (a long list of tasks is cut as Slurm cuts it, by SLURM_BITSTR_LEN). */
void job_id_text(const struct job *j, struct str *out);
void job_task_text(const struct job *j, struct str *out); /* "3", "0-3,7%2", "N/A" */

/* At least, while it waits. */
uint32_t job_nodes(const struct job_info *ji);
uint32_t job_cpus(const struct job_info *ji);
uint32_t job_tasks(const struct job_info *ji);
uint64_t job_alloc_mem_mb(const struct job *j); /* 0: memory isn't counted */

uint64_t job_mem_mb(const struct job_info *ji);        /* asked for, on all nodes; 0: nothing */
uint32_t job_cpus_on_node(const struct job_spec *s);   /* MinCPUsNode */

int64_t job_eligible_unix(const struct job *j); /* with the delay of a requeue */
int64_t job_start_unix(const struct job_info *ji); /* expected, while it waits; 0: not known */
int64_t job_end_unix(const struct job_info *ji);   /* expected, while it runs; 0: not known */
int64_t job_run_secs(const struct job *j, int64_t now_unix);
uint32_t job_limit_min(const struct job_info *ji); /* 0: none set, and its partition is gone */

/* "None", "Resources", "RaisedSignal:9(Killed)", "ReqNodeNotAvail, …" */
void job_reason(const struct job_info *ji, struct str *out);
/* What is left of its dependencies: "afterok:12(unfulfilled)"; "(null)": nothing. */
void job_dependency(const struct job *j, int64_t now_unix, struct str *out);
void job_node_list(const struct job *j, struct str *out); /* "n[1-2]"; nothing while it waits */
void job_partition(const struct job *j, struct str *out);
/* "cpu=1,mem=500M,node=1,billing=1", in scontrol's order; sorted by name as sacct has it. */
void job_tres(const struct job_info *ji, bool allocated, bool sorted, char unit, struct str *out);
void job_exit(uint32_t wait_status, struct str *out); /* "3:0", "0:9" */
/* The file of stdout, stderr or stdin as scontrol shows it. */
const char *job_output_pattern(const struct job *j); /* as asked, or what stands for it */
void job_std_out(const struct job *j, struct str *out);
void job_std_err(const struct job *j, struct str *out); /* nothing where it is stdout's */
void job_std_in(const struct job *j, struct str *out);

/* Generic resources by name and type, summed up: "gres/gpu=6,gres/gpu:a100=2". */
struct tres_gres {
    struct gres_ask *item;
    uint32_t n;
};
void tres_gres_hold(struct tres_gres *t, const struct gres_held *g, uint32_t n);
void tres_gres_print(const struct tres_gres *t, bool sorted, struct str *out); /* with a comma in front of each */
void tres_gres_fini(struct tres_gres *t);
void job_exclusive(const struct job_spec *s, struct str *out); /* "NO", "NODE", "USER" */
void job_licenses(const struct job *j, bool allocated, struct str *out); /* "(null)" where there are none */
/* "gres/gpu:a100:1" of --gres and --gpus-per-node; of -G; "cpu=2,gres/gpu=1" of -c and --gpus-per-task. Nothing: none. */
void job_tres_per_node(const struct job_spec *s, struct str *out);
void job_tres_per_job(const struct job_spec *s, struct str *out);
void job_tres_per_task(const struct job_spec *s, struct str *out);

/* A size kept in `unit` (K, M …; ' ' for counts): one unit up while nothing but a half is lost, so 1024 is 1K, 1536M is
 * 1.50G and 16000M stays; or with `want` as job_env has it. */
void amount_print(uint64_t n, char unit, char want, struct str *out);
void count_print(uint64_t n, struct str *out);

#endif
