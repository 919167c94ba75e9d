/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps: what srun runs inside a job. Records of base/rec.h. A batch script is no record of this kind (its result is in
 * the job); sacct shows it as step "batch".
 */
#ifndef SPUR_CORE_MODEL_STEP_H
#define SPUR_CORE_MODEL_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/model/job.h"

#define STEP_ID_MAX 0xfffffff0u /* behind it are Slurm's special ones */

/* What srun asks for. */
#define STEP_SPEC_FIELDS(F)                                                                                           \
    F(STR, name, 1, _)                                                                                                \
    F(U32, n_tasks, 2, _)                                                                                             \
    F(U32, min_nodes, 3, _)       /* 0: as few as hold the tasks, or all of the job's (see admit) */                  \
    F(U32, max_nodes, 4, _)                                                                                           \
    F(U32, cpus_per_task, 5, _)                                                                                       \
    F(U64, mem_node_mb, 6, _)     /* 0: no bound of its own */                                                        \
    F(U64, mem_cpu_mb, 7, _)                                                                                          \
    F(LIST, gres, 8, gres_ask)                                                                                        \
    F(STRS, req_nodes, 9, _)                                                                                          \
    F(STRS, exc_nodes, 10, _)                                                                                         \
    F(U32, tasks_per_node, 11, _)                                                                                     \
    F(U32, time_limit_min, 12, _) /* 0: the job's */                                                                  \
    F(BOOL, overlap, 13, _)       /* takes nothing from other steps */                                                \
    F(BOOL, exact, 14, _)         /* --exclusive, --exact: no CPU beyond those asked for */                           \
    F(BOOL, kill_on_bad_exit, 15, _)                                                                                  \
    F(U32, wait_secs, 16, _)      /* -W: the others are ended so long after the first end; 0: never */                \
    F(STR, submit_line, 17, _)                                                                                        \
    F(STR, submit_host, 18, _)                                                                                        \
    F(STR, work_dir, 19, _)                                                                                           \
    F(BOOL, cyclic, 20, _)        /* -m cyclic; else block */                                                         \
    F(BOOL, pty, 21, _)                                                                                               \
    F(BOOL, immediate, 22, _)     /* refuse instead of waiting for room */                                            \
    F(STR, features, 23, _)       /* -C: names joined by & and |; its nodes have them */                              \
    F(BOOL, overcommit, 24, _)    /* -O: tasks need no CPU each */                                                    \
    F(U32, plane, 25, _)          /* -m plane=N: so many on each node, then again; 0: not */                          \
    F(STRS, task_nodes, 26, _)    /* -m arbitrary: the node of each task */                                           \
    F(BOOL, no_kill, 27, _)       /* it goes on without a node that its job has lost */
REC_DECLARE(step_spec, STEP_SPEC_FIELDS)
const char *step_distribution(const struct step_spec *s); /* as in SLURM_DISTRIBUTION */

/* A step's share of one node. */
#define STEP_NODE_FIELDS(F)                                                                                           \
    F(U32, node_id, 1, _)                                                                                             \
    F(STR, name, 2, _)                                                                                                \
    F(U32, cpus, 3, _)                                                                                                \
    F(U64, mem_mb, 4, _)                                                                                              \
    F(U32, n_tasks, 5, _)                                                                                             \
    F(U32S, ranks, 6, _)       /* of its tasks, ascending */                                                          \
    F(LIST, gres, 7, gres_held)                                                                                       \
    F(BOOL, is_done, 8, _)
REC_DECLARE(step_node, STEP_NODE_FIELDS)

#define STEP_FIELDS(F)                                                                                                \
    F(U32, job_id, 1, _)                                                                                              \
    F(U32, start_no, 2, _)                                                                                            \
    F(U32, id, 3, _)                                                                                                  \
    F(SUB, spec, 4, step_spec)                                                                                        \
    F(U32, uid, 5, _)          /* who made it: the job's owner, or root */                                            \
    F(U32, state, 6, _)        /* enum job_state: RUNNING, then an end */                                             \
    F(LIST, nodes, 7, step_node)                                                                                      \
    F(I64, start_ms, 8, _)                                                                                            \
    F(I64, end_ms, 9, _)       /* 0: not yet */                                                                       \
    F(U32, wait_status, 10, _) /* the worst of its tasks */                                                           \
    F(I64, kill_ms, 11, _)     /* its end was asked for */                                                            \
    F(U32, end_uid, 12, _)     /* + 1: by whom */                                                                     \
    F(U64, max_rss_kb, 13, _)                                                                                         \
    F(U64, user_cpu_us, 14, _)                                                                                        \
    F(U64, sys_cpu_us, 15, _)                                                                                         \
    F(STR, text, 16, _)        /* what failed where */                                                                \
    F(U64, ended_index, 17, _)                                                                                        \
    F(STR, sluid, 18, _)       /* the job's */                                                                        \
    F(U32, n_cpus, 19, _)      /* on all nodes */
REC_DECLARE(step, STEP_FIELDS)

static inline bool step_is_over(const struct step *s) {
    return s->end_ms != 0; /* its state is an end from the moment that this was asked for or sure */
}
static inline uint64_t step_key(uint32_t job_id, uint32_t step_id) {
    return (uint64_t)job_id << 32 | step_id;
}
void step_print_id(uint32_t id, struct str *out); /* "0", "batch", "extern", "interactive" */

#endif
