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
#include "base/str.h"

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
    F(BOOL, is_or, 4, _)  /* joined to the one before by `?` */                                                       \
    F(U32, task, 5, _)    /* + 1: of the array job_id; DEP_ALL_TASKS: it is an array, and all of it; 0: as it comes */ \
    F(U32, minutes, 6, _) /* of DEP_AFTER: so long after it began */                                                   \
    F(I64, from_unix, 7, _) /* with DEP_DONE: it counts from then on; set by apply where minutes are given */          \
    F(BOOL, is_final, 8, _) /* the job that it names has left the state: its last word stands */
REC_DECLARE(dep, DEP_FIELDS)
#define DEP_ALL_TASKS UINT32_MAX

#define RLIMIT_FIELDS(F)                                                                                               \
    F(STR, name, 1, _) /* "NOFILE": as in SLURM_RLIMIT_NOFILE */                                                       \
    F(U64, soft, 2, _) /* UINT64_MAX: unlimited */
REC_DECLARE(job_rlimit, RLIMIT_FIELDS)

/* Task ids of an array, from first to last. Lists of them are ascending and disjoint, with a gap between two. */
#define ARRAY_RANGE_FIELDS(F) F(U32, first, 1, _) F(U32, last, 2, _)
REC_DECLARE(array_range, ARRAY_RANGE_FIELDS)

/* Which jobs a request or a command speaks of: a job, a whole array (its array id), or tasks of an array. */
#define JOB_TARGET_FIELDS(F)                                                                                          \
    F(U32, job_id, 1, _)                                                                                              \
    F(LIST, tasks, 2, array_range) /* none: all of it */
REC_DECLARE(job_target, JOB_TARGET_FIELDS)

#define JOB_NICE_FIELDS(F) F(U32, job_id, 1, _) F(I64, nice, 2, _)
REC_DECLARE(job_nice, JOB_NICE_FIELDS)

/* What is asked for of a generic resource, such as gpu. */
enum gres_per { GRES_PER_NODE = 0, GRES_PER_JOB = 1, GRES_PER_TASK = 2 };
#define GRES_ASK_FIELDS(F)                                                                                            \
    F(STR, name, 1, _) /* "gpu" */                                                                                    \
    F(STR, type, 2, _) /* "a100"; NULL: any */                                                                        \
    F(U64, count, 3, _)                                                                                               \
    F(U32, per, 4, _)  /* enum gres_per: --gres is a node's, --gpus a job's, --gpus-per-task a task's */
REC_DECLARE(gres_ask, GRES_ASK_FIELDS)

/* What a job or step has of one kind of a generic resource on one node. */
#define GRES_HELD_FIELDS(F)                                                                                           \
    F(STR, name, 1, _)                                                                                                \
    F(STR, type, 2, _)    /* NULL: the node's have no type */                                                         \
    F(U64, count, 3, _)                                                                                               \
    F(U32S, indexes, 4, _) /* which of the node's, ascending: of those with files; none for bare counts */
REC_DECLARE(gres_held, GRES_HELD_FIELDS)

#define LICENSE_ASK_FIELDS(F)                                                                                         \
    F(STR, name, 1, _)                                                                                                \
    F(U32, count, 2, _)                                                                                               \
    F(BOOL, is_or, 3, _) /* joined to the one before by `|`: one of them is enough */
REC_DECLARE(license_ask, LICENSE_ASK_FIELDS)

enum exclusive { EXCLUSIVE_NO = 0, EXCLUSIVE_NODE = 1, EXCLUSIVE_USER = 2, EXCLUSIVE_MCS = 3, EXCLUSIVE_TOPO = 4 };

/* Bits of --mail-type, as Slurm numbers them. */
enum mail_type {
    MAIL_BEGIN = 1u << 0,
    MAIL_END = 1u << 1,
    MAIL_FAIL = 1u << 2,
    MAIL_REQUEUE = 1u << 3,
    MAIL_TIME_100 = 1u << 4,
    MAIL_TIME_90 = 1u << 5,
    MAIL_TIME_80 = 1u << 6,
    MAIL_TIME_50 = 1u << 7,
    MAIL_STAGE_OUT = 1u << 8,
    MAIL_ARRAY_TASKS = 1u << 9, /* of each task of an array, else of the array as a whole */
    MAIL_INVALID_DEPEND = 1u << 10,
};

/* What even fewer ask for: NULL in job_more where nothing of it is set. See job_spec_seldom. */
#define JOB_SELDOM_FIELDS(F)                                                                                          \
    F(U32, mail_type, 1, _) /* bits of enum mail_type */                                                              \
    F(STR, mail_user, 2, _) /* NULL: the job's user */                                                                \
    F(STR, wckey, 3, _)                                                                                               \
    F(STR, extra, 4, _)                                                                                               \
    F(U32, cpus_per_gpu, 5, _)                                                                                        \
    F(U64, mem_gpu_mb, 6, _) /* --mem-per-gpu; not together with the other two */                                     \
    F(U32, min_cpus, 7, _)   /* --mincpus: of each node */                                                            \
    F(U64, tmp_mb, 8, _)     /* --tmp: of each node's TmpDisk */                                                      \
    F(STR, tres_per_task, 9, _) /* as asked, for what shows it */                                                     \
    F(BOOL, spread, 11, _)      /* on as many nodes as tasks allow */                                                 \
    F(BOOL, use_min_nodes, 12, _) /* of a range of nodes as few as do */                                              \
    F(U32, sockets, 13, _)      /* a node has at least so many: -B, --sockets-per-node, … */                          \
    F(U32, cores, 14, _)        /* of a socket */                                                                     \
    F(U32, threads, 15, _)      /* of a core */                                                                       \
    F(U32, delay_boot_secs, 16, _) /* kept and shown: no node is started anew for a job here */                       \
    F(U32, tasks_per_gpu, 21, _)   /* as asked, for the job's environment: so is the next */                          \
    F(STR, gpus_per_node, 22, _)                                                                                      \
    F(U32, tasks_per_core, 24, _)                                                                                     \
    F(U32, tasks_per_socket, 25, _)                                                                                   \
    F(BOOL, one_thread, 26, _) /* of each core: --hint=nomultithread, --threads-per-core=1. It has whole cores */     \
    F(U32, switches, 27, _)    /* --switches, kept and shown: without a topology all nodes are on one */              \
    F(U32, switches_secs, 28, _)
REC_DECLARE(job_seldom, JOB_SELDOM_FIELDS)

/* What a job asks for that most jobs do not: NULL in the spec where nothing of it is set. See job_spec_more. */
#define JOB_MORE_FIELDS(F)                                                                                            \
    F(STR, array, 1, _) /* --array as asked, without the limit; NULL: no array */                                     \
    F(STR, features, 2, _) /* -C as asked */                                                                          \
    F(STR, gres_text, 3, _) /* --gres as asked */                                                                     \
    F(STR, licenses_text, 4, _)                                                                                       \
    F(STR, gpus_text, 5, _) /* -G as asked */                                                                         \
    F(U64, mem_cpu_mb, 6, _) /* --mem-per-cpu; not together with mem_node_mb */                                       \
    F(I64, deadline_unix, 7, _)                                                                                       \
    F(LIST, array_ranges, 8, array_range) /* ascending, disjoint */                                                   \
    F(LIST, gres, 9, gres_ask)                                                                                        \
    F(LIST, licenses, 10, license_ask)                                                                                \
    F(U32, array_max_running, 11, _) /* behind %; 0: no bound */                                                      \
    F(U32, tasks_per_node, 12, _) /* 0: not given */                                                                  \
    F(U32, exclusive, 13, _) /* enum exclusive */                                                                     \
    F(U32, time_min_min, 14, _) /* --time-min, minutes; 0: not given */                                               \
    F(U32, signal, 15, _) /* --signal; 0: none */                                                                     \
    F(U32, signal_secs, 16, _) /* before the end; Slurm's default is 60 */                                            \
    F(U32, nodes_given, 17, _) /* what -N said at least; 0: not given */                                              \
    F(BOOL, signal_batch, 18, _) /* B: the batch shell only */                                                        \
    F(BOOL, oversubscribe, 19, _) /* -s */                                                                            \
    F(BOOL, requeue, 20, _) /* --requeue was given */                                                                 \
    F(BOOL, interactive, 21, _) /* no script: the allocation of a salloc or srun; its client attends to it */         \
    F(BOOL, no_shell, 22, _) /* salloc --no-shell: nobody attends to it */                                            \
    F(U32, limit_secs, 24, _) /* where a time limit below a minute counts: it; time_limit_min is 1 then */            \
    F(BOOL, overcommit, 25, _) /* -O: CPUs as for one task a node, however many there are */                          \
    F(U32, kill_invalid_dep, 26, _) /* --kill-on-invalid-dep: 1 no, 2 yes; 0: not given */                            \
    F(U64, priority, 27, _) /* --priority, + 1; an administrator's alone. 0: not given */                             \
    F(STR, distribution, 28, _) /* of tasks over nodes, for its steps: "block", "cyclic", "plane=2", "arbitrary"; NULL: not given */ \
    F(BOOL, may_share, 29, _) /* never asked: set in what is shown of a run that could have had -s */                 \
    F(BOOL, contiguous, 30, _) /* its nodes are neighbours in the order of names */                                   \
    F(SUB, seldom, 31, job_seldom)                                                                                    \
    F(STR, prefer, 32, _) /* --prefer: features that are tried first, in place of `features` */                       \
    F(STRS, task_nodes, 33, _) /* -m arbitrary: the node of each task. req_nodes are these, each once */              \
    F(BOOL, no_kill, 34, _)    /* it goes on without a node that is lost */                                           \
    F(STR, admin_comment, 35, _) /* an administrator's alone */                                                       \
    F(BOOL, login_env, 36, _)  /* --get-user-env: the script has what a login would set */
REC_DECLARE(job_more, JOB_MORE_FIELDS)

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
    F(SUB, more, 44, job_more)                                                                                        \
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
enum job_share { SHARE_CORES = 0, SHARE_NONE = 1, SHARE_USER = 2, SHARE_OVER = 3 };
#define JOB_NODE_FIELDS(F)                                                                                             \
    F(U32, node_id, 1, _)                                                                                              \
    F(STR, name, 2, _)                                                                                                 \
    F(U32, cpus, 3, _)                                                                                                 \
    F(U64, mem_mb, 4, _) /* what is taken from the node; 0: memory is not counted for this job */                      \
    F(U32, n_tasks, 5, _)                                                                                              \
    F(BOOL, is_done, 6, _) /* cleaned up after the end of this start */                                                \
    F(U32, boot, 7, _)     /* node_boot of the node at the start */                                                   \
    F(LIST, gres, 8, gres_held)                                                                                       \
    F(U32, share, 9, _)    /* enum job_share: what others may do on the node meanwhile */                             \
    F(BOOL, script_over, 10, _) /* of a start with a script on each node: this one's ended well */
REC_DECLARE(job_node, JOB_NODE_FIELDS)

/* A job array is one record until its tasks start: each start takes a task out of it, as a record with an id of its own;
 * the last task keeps the array's record and id. */
#define JOB_ARRAY_FIELDS(F)                                                                                           \
    F(U32, job_id, 1, _) /* of the array */                                                                           \
    F(U32, task, 2, _)   /* + 1; 0 while the record stands for all of `pending` */                                    \
    F(LIST, pending, 3, array_range) /* tasks that have not become jobs of their own; ascending */                    \
    F(U32, max_running, 4, _) /* in force; 0: no bound. Of the record whose id is job_id, as are the following: */    \
    F(U32, n, 5, _)      /* tasks in all, */                                                                          \
    F(U32, begun, 6, _)  /* started at least once, */                                                                 \
    F(U32, over, 7, _)   /* over, */                                                                                  \
    F(U32, bad, 8, _)    /* over otherwise than COMPLETED */                                                          \
    F(U32, first_id, 9, _) /* the tasks' ids are this one and the following, in their order, and no task takes the    \
                            * array's own; 0: each start gives one */                                                 \
    F(LIST, gone_bad, 10, array_range) /* tasks whose records have left the state, those that are bad; ascending */
REC_DECLARE(job_array, JOB_ARRAY_FIELDS)

/* What happens to few jobs. */
#define JOB_RARE_FIELDS(F)                                                                                            \
    F(I64, suspended_ms, 1, _)       /* since when it is suspended; 0: it is not */                                   \
    F(I64, suspended_total_ms, 2, _) /* before that, in this start */                                                 \
    F(U64, priority_set, 3, _) /* by an administrator, + 1; 0: as computed */                                         \
    F(U32, next_step_id, 4, _)                                                                                        \
    F(U32, requeue_hold, 5, _) /* with requeue_wanted: enum hold of the job when it is back in the queue */           \
    F(BOOL, requeue_wanted, 6, _) /* it is being ended to be queued again */                                          \
    F(BOOL, warned, 7, _)    /* --signal was sent in this start */                                                    \
    F(BOOL, limit_set, 8, _) /* the time limit was changed by hand: not the partition's any more */                   \
    F(STR, new_sluid, 9, _)  /* with requeue_wanted: its next one */                                                  \
    F(LIST, licenses, 10, license_ask) /* that this start has, where the job left the choice; none: all it asks for */ \
    F(BOOL, everywhere, 11, _) /* this start runs the script on each of its nodes */                                  \
    F(LIST, leaving, 12, job_node) /* what the run gave back when it was made smaller, and what is not clean there yet */ \
    F(BOOL, step_oom, 13, _) /* a step of this start was killed by its memory limit */                                \
    F(BOOL, stopped, 14, _)  /* it got SIGSTOP, and no SIGCONT since */                                                \
    F(BOOL, special_exit, 15, _) /* queued again by somebody who says that it ended in a special way; until it is released */ \
    F(BOOL, preferred, 16, _) /* this start's nodes are of --prefer */
REC_DECLARE(job_rare, JOB_RARE_FIELDS)

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
    F(SUB, array, 31, job_array) /* NULL: no array, and no task of one */                                             \
    F(SUB, rare, 32, job_rare)   /* NULL: nothing of it is set. See job_rare_of */                                    \
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

/* New values of a job's fields: those whose bit is set. The planner sees them like any. */
enum job_change {
    CHANGE_NAME = 1u << 0,
    CHANGE_COMMENT = 1u << 1,
    CHANGE_TIME_LIMIT = 1u << 2, /* of a running job too */
    CHANGE_TIME_MIN = 1u << 3,
    CHANGE_BEGIN = 1u << 4,
    CHANGE_DEADLINE = 1u << 5,
    CHANGE_PARTITION = 1u << 6,
    CHANGE_ACCOUNT = 1u << 7,
    CHANGE_QOS = 1u << 8,
    CHANGE_NICE = 1u << 9,
    CHANGE_PRIORITY = 1u << 10, /* priority_set */
    CHANGE_NODES = 1u << 11,    /* min_nodes, max_nodes */
    CHANGE_TASKS = 1u << 12,    /* n_tasks, cpus_per_task, tasks_per_node */
    CHANGE_MEMORY = 1u << 13,   /* mem_node_mb, mem_cpu_mb, mem_all */
    CHANGE_NODE_LISTS = 1u << 14,
    CHANGE_FEATURES = 1u << 15,
    CHANGE_GRES = 1u << 16,
    CHANGE_LICENSES = 1u << 17,
    CHANGE_DEPENDENCY = 1u << 18,
    CHANGE_REQUEUE = 1u << 19,     /* requeue, no_requeue */
    CHANGE_ARRAY_LIMIT = 1u << 20, /* array_max_running */
    CHANGE_SHARE = 1u << 21,       /* exclusive, oversubscribe */
    CHANGE_OUTPUT = 1u << 22,      /* std_out, std_err, std_in */
    CHANGE_HOLD = 1u << 23,        /* priority_set 0 holds, as Slurm's Priority=0 */
    CHANGE_CONTIGUOUS = 1u << 24,
    CHANGE_PREFER = 1u << 25,
    CHANGE_ADMIN_COMMENT = 1u << 26,
    CHANGE_OF_OLD = (CHANGE_HOLD << 1) - 1, /* those of the first version of the command */
    CHANGE_ALL = (1u << 27) - 1,
};

/* Puts the values of `from` whose bits are set into a description and its rare part, which are the caller's; borrows. */
void job_spec_change(struct job_spec *to, struct job_more *to_more, const struct job_spec *from, uint32_t changes);

/* A record that stands for several tasks of an array: `pending` ones, or (when it is over) those that one command ended. */
static inline bool job_is_group(const struct job *j) {
    return j->array && !j->array->task;
}
/* An array's own record when all tasks have records of their own. */
static inline bool job_is_hollow(const struct job *j) {
    return j->array && !j->array->task && !j->array->n_pending;
}
static inline bool job_is_over(const struct job *j) {
    return j->state >= JOB_COMPLETED && !j->completing;
}
/* By a signal, which tasks may have outlived: its time goes on, unlike that of a suspended one. */
bool job_is_stopped(const struct job *j);
static inline bool job_holds_nodes(const struct job *j) {
    return j->state == JOB_RUNNING || j->state == JOB_SUSPENDED || j->completing;
}

const char *job_state_name(uint32_t state);      /* "PENDING" */
const char *job_state_compact(uint32_t state);   /* "PD" */
const char *job_shown_state(const struct job *j);         /* with COMPLETING, CONFIGURING and STOPPED */
const char *job_shown_state_compact(const struct job *j); /* with CG, CF and ST */
/* Long or short, any case; also the flags COMPLETING/CG, CONFIGURING/CF, STOPPED/ST and SPECIAL_EXIT/SE: JOB_N_STATES, + 1, + 2, + 3. */
int job_state_parse(const char *s, uint32_t *out);
bool job_may_move(uint32_t from, uint32_t to);
const char *job_reason_word(uint32_t reason);    /* "Priority" */
uint32_t job_hold_reason(uint32_t hold); /* of an enum hold */
bool job_state_is_end(uint32_t state);
const struct job_more *job_spec_more(const struct job_spec *s); /* never NULL: a zeroed one */
const struct job_seldom *job_spec_seldom(const struct job_spec *s); /* the same */
const struct job_rare *job_rare_of(const struct job *j);        /* the same */
/* What counts of the two while it waits is both; else that which found its nodes. NULL: none. */
const char *job_shown_features(const struct job *j);
const char *job_shown_prefer(const struct job *j);
/* All that it holds: its nodes, and behind them those that it gave back and that are not clean yet. */
uint32_t job_n_held(const struct job *j);
const struct job_node *job_held(const struct job *j, uint32_t i);
/* Its share of that node, as long as it is not clean there; NULL: none. */
const struct job_node *job_held_on(const struct job *j, uint32_t node_id);
/* "123", "123_4", or of a waiting array "123_[0-3,7%2]" (`limit` with the last). */
void job_print_id(const struct job *j, struct str *out);
/* Ids of tasks. "0-15:4,20%2" to ascending disjoint ranges; E_ARRAY. max_id: the highest id allowed. */
int array_parse(const char *s, uint32_t max_id, struct arena *a, const struct array_range **out, uint32_t *out_n,
                uint32_t *out_limit, struct err *e);
void array_print(const struct array_range *r, uint32_t n, struct str *out); /* "0-3,7", "1,3,5" */
uint32_t array_count(const struct array_range *r, uint32_t n);
bool array_has(const struct array_range *r, uint32_t n, uint32_t task);
/* How many are before it. */
uint32_t array_rank(const struct array_range *r, uint32_t n, uint32_t task);
/* The ids of both, in the arena. */
const struct array_range *array_with(struct arena *ar, const struct array_range *a, uint32_t n_a,
                                     const struct array_range *b, uint32_t n_b, uint32_t *out_n);
/* The ids of a that are not in b, in the arena. */
const struct array_range *array_without(struct arena *ar, const struct array_range *a, uint32_t n_a,
                                        const struct array_range *b, uint32_t n_b, uint32_t *out_n);

#endif
