/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs: what was asked for (job_spec), and what became of it (job). Records of base/rec.h: never changed in place.
 *
 * Times named _unix are seconds since 1970 in UTC, _ms milliseconds; 0 is "not set". Sizes are MiB (2^20 bytes).
 */
#ifndef SPUR_CORE_MODEL_JOB_H
#define SPUR_CORE_MODEL_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rec.h"

enum job_state {
#define JOB_STATE(name, number, compact, moves, doc) JOB_##name = number,
#define JOB_REASON(name, number, word, doc)
#include "core/model/job_state.def"
#undef JOB_STATE
#undef JOB_REASON
    JOB_N_STATES
};

enum job_reason {
#define JOB_STATE(name, number, compact, moves, doc)
#define JOB_REASON(name, number, word, doc) REASON_##name = number,
#include "core/model/job_state.def"
#undef JOB_STATE
#undef JOB_REASON
    JOB_N_REASONS
};

enum dep_kind { DEP_AFTER = 1, DEP_AFTERANY, DEP_AFTEROK, DEP_AFTERNOTOK, DEP_SINGLETON, DEP_AFTERCORR };
enum dep_state { DEP_WAITING = 0, DEP_DONE = 1, DEP_NEVER = 2 };
enum open_mode { OPEN_DEFAULT = 0, OPEN_APPEND = 1, OPEN_TRUNCATE = 2 };
enum hold { HOLD_NONE = 0, HOLD_USER = 1, HOLD_ADMIN = 2 };

#define TIME_LIMIT_NONE UINT32_MAX /* minutes: UNLIMITED */
#define JOB_ID_MAX 0x03ffffffu     /* Slurm's MAX_JOB_ID rounded to its 26 bits */
#define STEP_BATCH 0xfffffffbu     /* Slurm's number: SLURM_STEP_ID of a batch script is -5 */
#define NICE_MAX 2147483645        /* Slurm's bound on |--nice| */

#define DEP_FIELDS(F)                                                                                                  \
    F(U32, kind, 1, _)    /* enum dep_kind */                                                                          \
    F(U32, job_id, 2, _)  /* 0 for singleton */                                                                        \
    F(U32, state, 3, _)   /* enum dep_state; set by apply */                                                           \
    F(BOOL, is_or, 4, _)  /* joined to the one before by `?` */
REC_DECLARE(dep, DEP_FIELDS)

#define RLIMIT_FIELDS(F)                                                                                               \
    F(STR, name, 1, _) /* "NOFILE": as in SLURM_RLIMIT_NOFILE */                                                       \
    F(U64, soft, 2, _) /* UINT64_MAX: unlimited */
REC_DECLARE(job_rlimit, RLIMIT_FIELDS)

/* Rows stand in the order that leaves no holes in the struct: a hundred thousand of them wait in memory. */
#define JOB_SPEC_FIELDS(F)                                                                                            \
    F(STR, name, 1, _)                                                                                                \
    F(STR, user, 4, _)                                                                                                \
    F(STR, group, 5, _)                                                                                               \
    F(STR, account, 6, _) /* NULL: not given */                                                                       \
    F(STR, qos, 7, _)                                                                                                 \
    F(STR, partition, 8, _) /* as asked: "a,b"; admit fills in the default */                                         \
    F(STR, comment, 19, _)                                                                                            \
    F(STR, dependency, 20, _) /* as asked */                                                                          \
    F(STR, work_dir, 24, _)                                                                                           \
    F(STR, std_out, 25, _) /* pattern as asked; NULL: slurm-%j.out */                                                 \
    F(STR, std_err, 26, _) /* NULL: with stdout */                                                                    \
    F(STR, std_in, 27, _) /* NULL: /dev/null */                                                                       \
    F(STR, command, 32, _) /* path of the script; NULL for stdin and --wrap */                                        \
    F(STR, submit_line, 33, _)                                                                                        \
    F(STR, submit_host, 34, _)                                                                                        \
    F(U64, mem_node_mb, 13, _) /* --mem; 0: not given */                                                              \
    F(I64, begin_unix, 16, _)                                                                                         \
    F(I64, nice, 17, _)                                                                                               \
    F(LIST, deps, 21, dep) /* parsed */                                                                               \
    F(U32, uid, 2, _)                                                                                                 \
    F(STRS, req_nodes, 22, _) /* -w, expanded */                                                                      \
    F(U32, gid, 3, _)                                                                                                 \
    F(STRS, exc_nodes, 23, _) /* -x, expanded */                                                                      \
    F(U32, n_tasks, 9, _) /* admit fills in */                                                                        \
    F(BYTES, script_hash, 29, _) /* blob, 32 bytes */                                                                 \
    F(U32, min_nodes, 10, _)                                                                                          \
    F(BYTES, env_hash, 30, _) /* blob: NAME=value NUL NAME=value NUL … */                                             \
    F(U32, max_nodes, 11, _) /* 0: no bound asked */                                                                  \
    F(STRS, args, 31, _) /* of the script */                                                                          \
    F(U32, cpus_per_task, 12, _) /* 0: 1 */                                                                           \
    F(LIST, rlimits, 36, job_rlimit)                                                                                  \
    F(U32, time_limit_min, 15, _) /* 0: not given; TIME_LIMIT_NONE */                                                 \
    F(U32, open_mode, 28, _)                                                                                          \
    F(U32, umask, 35, _) /* + 1, so that 0 is "not given" */                                                          \
    F(U32, n_tasks_given, 39, _) /* what -n said; 0: not given (decides SLURM_NTASKS in the job) */                   \
    F(U32, cpus_per_task_given, 40, _)                                                                                \
    F(U32, session_id, 42, _) /* of the submitting process, for AllocNode:Sid */                                      \
    F(BOOL, mem_all, 14, _) /* --mem=0: all of the node */                                                            \
    F(BOOL, hold, 18, _)                                                                                              \
    F(BOOL, no_requeue, 37, _)                                                                                        \
    F(BOOL, env_minimal, 38, _) /* --export without ALL: no user environment beyond the blob */                       \
    F(BOOL, min_nodes_given, 43, _)
REC_DECLARE(job_spec, JOB_SPEC_FIELDS)

/* A job's share of one node. */
#define JOB_NODE_FIELDS(F)                                                                                             \
    F(U32, node_id, 1, _)                                                                                              \
    F(STR, name, 2, _)                                                                                                 \
    F(U32, cpus, 3, _)                                                                                                 \
    F(U64, mem_mb, 4, _) /* what is taken from the node; 0: memory is not counted for this job */                      \
    F(U32, n_tasks, 5, _)                                                                                              \
    F(BOOL, is_done, 6, _) /* cleaned up after the end of this start */                                                \
    F(U32, boot, 7, _)     /* node_boot of the node at the start */
REC_DECLARE(job_node, JOB_NODE_FIELDS)

#define JOB_FIELDS(F)                                                                                                 \
    F(SUB, spec, 2, job_spec)                                                                                         \
    F(STR, sluid, 10, _)                                                                                              \
    F(STR, partition, 15, _) /* where it runs or ran; NULL while it waits */                                          \
    F(STR, state_text, 22, _) /* a sentence beside the reason: what failed where */                                   \
    F(I64, submit_ms, 11, _)                                                                                          \
    F(I64, eligible_unix, 12, _)                                                                                      \
    F(I64, start_ms, 13, _)                                                                                           \
    F(I64, end_ms, 14, _)                                                                                             \
    F(I64, kill_ms, 21, _) /* when its end was asked for (cancel, limit); 0: not */                                   \
    F(U64, max_rss_kb, 23, _) /* of the batch step, at its end */                                                     \
    F(U64, user_cpu_us, 24, _)                                                                                        \
    F(U64, sys_cpu_us, 25, _)                                                                                         \
    F(I64, nice, 26, _) /* in force */                                                                                \
    F(I64, retry_unix, 29, _) /* not started again before; after a failed launch */                                   \
    F(U64, ended_index, 30, _) /* log index of its end, for the history's watermark */                                \
    F(LIST, nodes, 16, job_node) /* the first one runs the batch script */                                            \
    F(U32, id, 1, _)                                                                                                  \
    F(LIST, deps, 27, dep) /* with their states */                                                                    \
    F(U32, state, 3, _)                                                                                               \
    F(U32, reason, 4, _) /* why it is held or how it ended; why it waits is the planner's (soft) */                   \
    F(U32, hold, 7, _) /* enum hold */                                                                                \
    F(U32, start_no, 8, _) /* starts so far: names a run together with id */                                          \
    F(U32, restarts, 9, _) /* requeues so far */                                                                      \
    F(U32, n_cpus, 17, _) /* allocated, all nodes */                                                                  \
    F(U32, time_limit_min, 18, _) /* in force (from spec, else partition); TIME_LIMIT_NONE */                         \
    F(U32, wait_status, 19, _) /* of the batch script, as waitpid gives it: code << 8 | signal */                     \
    F(U32, end_uid, 20, _) /* + 1: who cancelled it */                                                                \
    F(U32, launch_failures, 28, _)                                                                                    \
    F(BOOL, completing, 5, _)                                                                                         \
    F(BOOL, configuring, 6, _)
REC_DECLARE(job, JOB_FIELDS)

static inline bool job_is_over(const struct job *j) {
    return j->state >= JOB_COMPLETED && !j->completing;
}
static inline bool job_holds_nodes(const struct job *j) {
    return j->state == JOB_RUNNING || j->state == JOB_SUSPENDED || j->completing;
}

const char *job_state_name(uint32_t state);      /* "PENDING" */
const char *job_state_compact(uint32_t state);   /* "PD" */
const char *job_shown_state(const struct job *j);         /* with COMPLETING and CONFIGURING */
const char *job_shown_state_compact(const struct job *j); /* with CG and CF */
/* Long or short, any case; also the flags COMPLETING/CG and CONFIGURING/CF, which come back as JOB_N_STATES and + 1. */
int job_state_parse(const char *s, uint32_t *out);
bool job_may_move(uint32_t from, uint32_t to);
const char *job_reason_word(uint32_t reason);    /* "Priority" */
bool job_state_is_end(uint32_t state);

#endif
