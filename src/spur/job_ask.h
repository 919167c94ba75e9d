/* SPDX-License-Identifier: Apache-2.0
 *
 * What sbatch, srun and salloc all ask for: the options that shape a job, as setters for the rows of their option tables,
 * and what follows from them together.
 */
#ifndef SPUR_SPUR_JOB_ASK_H
#define SPUR_SPUR_JOB_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "spur/cli.h"

/* The ways to ask for memory, of which the one of the latest level counts. */
enum ask_mem { ASK_MEM_NODE, ASK_MEM_CPU, ASK_MEM_GPU, ASK_N_MEM };
struct ask_size {
    uint64_t mb;
    unsigned level; /* + 1; 0: not given */
};

/* The first fields of the context (opt_run.ctx) of every command that uses these setters. */
#define JOB_ASK_FIELDS                                                                                                \
    struct cli *c;                                                                                                    \
    struct job_spec spec; /* its texts are borrowed, or in the command's arena */                                     \
    struct job_more more; /* becomes spec.more where anything of it is set */                                         \
    struct job_seldom seldom; /* and this more.seldom */                                                              \
    bool is_shaped;       /* -B says how many tasks there are */                                                      \
    unsigned level;       /* of options: a later one (environment, command line) goes before an earlier one */        \
    struct ask_size mem[ASK_N_MEM];                                                                                   \
    const char *refused; /* what a refusal begins with; NULL: "Batch job submission failed" */                        \
    uint32_t tasks_per_gpu;                                                                                           \
    const char *propagate; /* limits; NULL: all */                                                                    \
    const char *node_list, *exclude;                                                                                  \
    const char *gres, *gpus, *gpus_per_node, *gpus_per_task, *tres_per_task, *licenses, *array, *features, *prefer;          \
    bool exclusive, oversubscribe, any_signal_reservation;                                                            \
    uint32_t quiet;
struct job_ask {
    JOB_ASK_FIELDS
};

/* Typed values, at the row's `off`. */
int ask_count(struct opt_run *r, const struct opt_row *o, const char *value);  /* uint32_t, 1 or more */
int ask_limit(struct opt_run *r, const struct opt_row *o, const char *value);  /* uint32_t, minutes */
int ask_mem(struct opt_run *r, const struct opt_row *o, const char *value);    /* struct ask_size */
int ask_moment(struct opt_run *r, const struct opt_row *o, const char *value); /* int64_t, unix seconds */
/* Options of their own. */
int ask_nodes(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_time(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_nice(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_open_mode(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_requeue(struct opt_run *r, const struct opt_row *o, const char *value); /* requeue, no-requeue */
int ask_exclusive(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_user_env(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_no_kill(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_signal(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_kill_invalid_dep(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_priority(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_propagate(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_uid(struct opt_run *r, const struct opt_row *o, const char *value); /* refuses uid, gid */

/* ---- job_hosts.c ---- */
int ask_distribution(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_nodefile(struct opt_run *r, const struct opt_row *o, const char *value);
uint32_t job_plane_size(const struct job_more *m); /* of -m plane=N; 0: not so */
/* SLURM_HOSTFILE, where no nodes are named; -m arbitrary, when they are read; whether -m plane has enough tasks for -N. false: said what
 * is wrong. */
bool job_ask_hostfile(struct job_ask *a);
bool job_ask_dealt(struct job_ask *a);
bool job_ask_planes(struct job_ask *a);

/* ---- job_shape.c ---- */
int ask_tmp(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_at_least(struct opt_run *r, const struct opt_row *o, const char *value); /* uint32_t: "2", "2-4", "*" */
int ask_threads(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_extra_info(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_hint(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_mail_type(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_switches(struct opt_run *r, const struct opt_row *o, const char *value);
/* Before generic resources are read: --tres-per-task says some. After them: what goes with GPUs, -B's tasks. false: said what is
 * wrong. */
bool job_shape_before(struct job_ask *a);
bool job_shape_after(struct job_ask *a);

/* ---- job_check.c ---- */
/* Of options that are refused (opt.h): whether the value is one. */
int check_number(struct opt_run *r, const struct opt_row *o, const char *value);
int check_yes_no(struct opt_run *r, const struct opt_row *o, const char *value);
int check_cpu_freq(struct opt_run *r, const struct opt_row *o, const char *value);
int check_gpu_freq(struct opt_run *r, const struct opt_row *o, const char *value);
int check_gpu_bind(struct opt_run *r, const struct opt_row *o, const char *value);
int check_acctg_freq(struct opt_run *r, const struct opt_row *o, const char *value);
int check_mem_bind(struct opt_run *r, const struct opt_row *o, const char *value);
int check_gres_flags(struct opt_run *r, const struct opt_row *o, const char *value);
int check_batch(struct opt_run *r, const struct opt_row *o, const char *value);
int check_gpus_per_socket(struct opt_run *r, const struct opt_row *o, const char *value);
int check_reboot(struct opt_run *r, const struct opt_row *o, const char *value);
int check_reservation(struct opt_run *r, const struct opt_row *o, const char *value);
/* Of options that need nothing to be done here. */
int ask_spec_cores(struct opt_run *r, const struct opt_row *o, const char *value); /* core-spec, thread-spec */
int ask_wait_nodes(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_delay_boot(struct opt_run *r, const struct opt_row *o, const char *value);
int ask_segment(struct opt_run *r, const struct opt_row *o, const char *value); /* segment, consolidate-segments */

/* Refuses what is wrong in its combination, and fills in what follows from the options. false: said so; the exit code
 * is 1. */
bool job_ask_settle(struct job_ask *a);
void job_ask_all_named(struct job_ask *a); /* -w without -N: all nodes that it names. For jobs */

#endif
