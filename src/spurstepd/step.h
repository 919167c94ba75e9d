/* SPDX-License-Identifier: Apache-2.0
 *
 * What spurd and spurstepd say to each other: the files of a run's directory and the frames on its socket. Both are
 * described for others in docs/format/step-protocol.md. Depends on base alone; spurd includes this header and no other
 * of this folder.
 *
 * A run is (job id, start number) on one node, or a step of one: (job id, start number, step id), what srun started.
 * Its directory STATE/runs/JOB.START/ or STATE/runs/JOB.START.STEP/ holds
 *   plan           step_plan: all that the step daemon needs; written by spurd, on disk before the daemon starts
 *   slurm_script   the batch script, the user's
 *   log            what became of the run: step_entry after step_entry, appended by the step daemon, which holds
 *                  flock(2) on it for as long as it lives. An entry that is cut off or damaged ends the log.
 *   sock           where a living step daemon listens
 */
#ifndef SPUR_SPURSTEPD_STEP_H
#define SPUR_SPURSTEPD_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/rec.h"

#define STEP_VERSION 1       /* of the frames; a daemon answers STEP_ERROR to a newer one */
#define STEP_PLAN_VERSION 1  /* of the plan's meaning; a daemon refuses a newer one */
#define STEP_FRAME_MAX 65536 /* bytes of a frame behind its header */
#define STEP_STREAM_MAX (1u << 20) /* of STEP_STREAM */
#define STEP_TASKS_MAX 1024  /* of one step on one node */
#define STEP_PLAN_MAX (64u << 20)
#define STEP_HEADER_SIZE 8

#define STEP_PLAN_FILE "plan"
#define STEP_LOG_FILE "log"
#define STEP_SOCKET_FILE "sock"
#define STEP_SCRIPT_FILE "slurm_script"

/* Signal number that Slurm gives a job whose input or output file could not be opened: ExitCode=0:53. */
#define STEP_WAIT_OPEN_FAILED 53u

enum step_containment { STEP_CONTAIN_AUTO = 0, STEP_CONTAIN_V2 = 1, STEP_CONTAIN_V1 = 2, STEP_CONTAIN_PROCESS = 3 };

#define STEP_RLIMIT_FIELDS(F)                                                                                          \
    F(STR, name, 1, _) /* "NOFILE" */                                                                                  \
    F(U64, soft, 2, _) /* UINT64_MAX: unlimited */
REC_DECLARE(step_rlimit, STEP_RLIMIT_FIELDS)

/* A task of a step. What is NULL here is streamed; batch scripts have none of these. */
#define STEP_TASK_FIELDS(F)                                                                                            \
    F(U32, rank, 1, _)        /* in the step */                                                                        \
    F(STRS, argv, 2, _)       /* none: the plan's */                                                                   \
    F(STRS, env, 3, _)        /* besides the plan's */                                                                 \
    F(STR, std_in, 4, _)                                                                                               \
    F(STR, std_out, 5, _)                                                                                              \
    F(STR, std_err, 6, _)                                                                                              \
    F(BOOL, keep_out, 7, _)   /* an earlier task has emptied the file */                                               \
    F(BOOL, keep_err, 8, _)                                                                                            \
    F(BOOL, err_to_out, 9, _) /* std_err is the same file as std_out */                                                \
    F(U32S, cpus, 120, _)     /* it may run on; none: on all */                                                        \
    F(BOOL, cpu_by_rank, 121, _) /* the number counts among the CPUs that there are, again from the first behind the last */ \
    F(BOOL, tell_cpus, 122, _)   /* say on its stderr which they are */
REC_DECLARE(step_task, STEP_TASK_FIELDS)

#define STEP_PLAN_FIELDS(F)                                                                                            \
    F(U32, version, 1, _)                                                                                              \
    F(U32, job_id, 2, _)                                                                                               \
    F(U32, start_no, 3, _)                                                                                             \
    F(STR, node_name, 4, _)                                                                                            \
    F(U32, uid, 5, _)                                                                                                  \
    F(U32, gid, 6, _)                                                                                                  \
    F(U32S, groups, 7, _)     /* supplementary, looked up by spurd */                                                  \
    F(STRS, argv, 8, _)       /* argv[0] is the script's path; none: nothing is run, the allocation is held */         \
    F(STRS, env, 9, _)        /* NAME=value; the value of *_TASK_PID is filled in before exec */                       \
    F(STR, work_dir, 10, _)                                                                                            \
    F(STR, std_in, 11, _)     /* paths without patterns; relative ones are below work_dir */                           \
    F(STR, std_out, 12, _)                                                                                             \
    F(STR, std_err, 13, _)    /* NULL: with stdout */                                                                  \
    F(BOOL, append, 14, _)                                                                                             \
    F(U32, umask, 15, _)                                                                                               \
    F(LIST, rlimits, 16, step_rlimit)                                                                                  \
    F(U64, mem_limit_mb, 17, _) /* 0: none */                                                                          \
    F(U32, containment, 18, _)  /* enum step_containment */                                                            \
    F(U32, unkillable_ms, 19, _) /* after SIGKILL, before the run is given up as unkillable */                         \
    F(U32, kill_wait_ms, 20, _) /* the job's own, for those who end it without saying how long */                      \
    F(STR, run_id, 21, _)       /* value of SPUR_RUN_ID in the environment of all processes */                         \
    F(STR, user, 22, _)         /* for messages */                                                                     \
    F(STR, cgroup, 23, _)       /* name of the run's cgroup: one that no other agent on the machine gives */           \
    F(U32, step_id, 24, _)      /* + 1; 0: the run of a batch script, or of an allocation that is held */              \
    F(LIST, tasks, 25, step_task) /* of a step */                                                                      \
    F(BOOL, pty, 26, _)         /* the first task has a terminal, the others no input and output */                    \
    F(U32, rows, 27, _)                                                                                                \
    F(U32, columns, 28, _)                                                                                             \
    F(BOOL, kill_on_bad_exit, 29, _)                                                                                   \
    F(U32, wait_ms, 30, _)      /* after the first task's end the others are ended; 0: never */                        \
    F(U32, input_task, 31, _)   /* + 1: the rank that alone gets the input; 0: all */                                  \
    F(STRS, denied, 32, _)      /* device files that the run may not open, where its cgroup can see to that */         \
    F(BOOL, everywhere, 33, _)  /* for the agent: the script runs on several nodes, which wait for each other */       \
    F(STR, login_shell, 34, _)  /* asked for what a login sets, which the script gets where env lacks it; NULL: not */
REC_DECLARE(step_plan, STEP_PLAN_FIELDS)

/* How a run ended. Exactly one for a run; nothing of it lives when it is written (see drain_node). */
#define STEP_RESULT_FIELDS(F)                                                                                          \
    F(U32, wait_status, 1, _)    /* of the batch script */                                                             \
    F(BOOL, out_of_memory, 2, _)                                                                                       \
    F(BOOL, never_started, 3, _) /* with text: the script was not run, and that is not the job's fault */              \
    F(BOOL, node_failed, 4, _)   /* the machine was started anew meanwhile */                                          \
    F(BOOL, drain_node, 5, _)    /* something could not be killed: text says what */                                   \
    F(STR, text, 6, _)                                                                                                 \
    F(I64, start_ms, 7, _)                                                                                             \
    F(I64, end_ms, 8, _)                                                                                               \
    F(U64, max_rss_kb, 9, _)                                                                                           \
    F(U64, user_cpu_us, 10, _)                                                                                         \
    F(U64, sys_cpu_us, 11, _)
REC_DECLARE(step_result, STEP_RESULT_FIELDS)

enum step_state { STEP_STARTING = 1, STEP_RUNNING = 2, STEP_ENDING = 3, STEP_ENDED = 4 };

#define STEP_STATUS_FIELDS(F)                                                                                          \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, start_no, 2, _)                                                                                             \
    F(U32, state, 3, _)        /* enum step_state */                                                                   \
    F(U32, pid, 4, _)          /* the step daemon's */                                                                 \
    F(U32, batch_pid, 5, _)    /* 0: none yet */                                                                       \
    F(I64, start_ms, 6, _)                                                                                             \
    F(U32, min_version, 7, _)  /* of frames that this daemon understands */                                            \
    F(U32, max_version, 8, _)                                                                                          \
    F(STR, containment, 9, _)  /* "cgroup v2", "cgroup v1 freezer", "process tree" … */                                \
    F(STR, program, 10, _)     /* version of the program: "0.1.0" */                                                   \
    F(U32, n_processes, 11, _)
REC_DECLARE(step_status, STEP_STATUS_FIELDS)

#define STEP_SIGNAL_FIELDS(F) F(U32, signal, 1, _) F(BOOL, batch_only, 2, _)
REC_DECLARE(step_signal, STEP_SIGNAL_FIELDS)

/* SIGCONT and SIGTERM now, SIGKILL after the wait. A second one may shorten the wait, never lengthen it. */
#define STEP_TERMINATE_FIELDS(F)                                                                                       \
    F(U32, kill_wait_ms, 1, _)                                                                                         \
    F(STR, why, 2, _) /* "DUE TO TIME LIMIT": for the line in the job's stderr */
REC_DECLARE(step_terminate, STEP_TERMINATE_FIELDS)

#define STEP_ERROR_FIELDS(F) F(U32, error, 1, _) /* row of err.def */ F(STR, text, 2, _)
REC_DECLARE(step_error, STEP_ERROR_FIELDS)

/* With a descriptor (SCM_RIGHTS): a client of task streams (wire/stream.h) that may have this step's. */
#define STEP_STREAM_FIELDS(F)                                                                                          \
    F(BYTES, open, 1, _)    /* stream_open without ticket and launch */                                                \
    F(BYTES, rest, 2, _)    /* what was read behind it */                                                              \
    F(BOOL, is_owner, 3, _) /* srun: its reading is waited for, its input is taken. Else it looks on */
REC_DECLARE(step_stream, STEP_STREAM_FIELDS)

/* What `spurstepd copy` is told, on descriptor 3 up to its end; the client's connection is descriptor 4. */
#define STEP_COPY_FIELDS(F)                                                                                            \
    F(U32, uid, 1, _)                                                                                                  \
    F(U32, gid, 2, _)                                                                                                  \
    F(U32S, groups, 3, _)                                                                                              \
    F(BYTES, rest, 4, _) /* of the stream, read already */
REC_DECLARE(step_copy, STEP_COPY_FIELDS)

#define STEP_SUSPEND_FIELDS(F) F(BOOL, resume, 1, _)
REC_DECLARE(step_suspend, STEP_SUSPEND_FIELDS)

#define STEP_EMPTY_FIELDS(F) F(BOOL, unused, 1, _)
REC_DECLARE(step_empty, STEP_EMPTY_FIELDS)

/* ---- the log ---- */

enum step_entry_kind { STEP_LOG_DAEMON = 1, STEP_LOG_BATCH = 2, STEP_LOG_EXIT = 3, STEP_LOG_RESULT = 4, STEP_LOG_TASK = 5 };
#define STEP_ENTRY_FIELDS(F)                                                                                           \
    F(U32, kind, 1, _)                                                                                                 \
    F(U32, pid, 2, _)          /* DAEMON: of the daemon; BATCH: of the script, or of a task */                                       \
    F(U64, pid_started, 3, _)  /* of that process, in ticks after boot (/proc/PID/stat), so that a pid can be told */  \
    F(STR, boot_id, 4, _)      /* DAEMON */                                                                            \
    F(STRS, cgroups, 5, _)     /* DAEMON: the run's own directories, the first one holds all its processes */          \
    F(I64, at_ms, 6, _)                                                                                                \
    F(U32, wait_status, 7, _)  /* EXIT; TASK: of one that is over */                                                                              \
    F(SUB, result, 8, step_result) /* RESULT */                                                                        \
    F(U32, containment, 9, _)  /* DAEMON: the kind that was found */                                                   \
    F(U32, rank, 10, _)        /* TASK, BATCH: of a step */
REC_DECLARE(step_entry, STEP_ENTRY_FIELDS)

/* Frames of the log: u32 length, u32 CRC-32C of the record, the record. */
void step_log_frame(const struct step_entry *entry, struct buf *out);

/* All of a log, folded. Texts are in the arena. Returns the length of what is sound: what is behind it is to be cut
 * off before anything is appended. */
struct step_history {
    bool has_daemon, has_batch, has_exit, has_result;
    struct step_entry daemon, batch, exit;
    struct step_result result;
};
size_t step_log_read(const void *p, size_t n, struct arena *a, struct step_history *out);

/* ---- the socket ---- */

/* Header: u32 length of the record, u8 STEP_VERSION, u8 type, u16 zero; then the record. Little-endian. */
enum step_frame {
    STEP_GET_STATUS = 1, /* step_empty → STEP_STATUS */
    STEP_SIGNAL = 2,     /* step_signal → STEP_OK */
    STEP_TERMINATE = 3,  /* step_terminate → STEP_OK */
    STEP_SUBSCRIBE = 4,  /* step_empty → STEP_STATUS at once, STEP_END when the run has ended */
    STEP_ACK = 5,        /* step_empty, after STEP_END: the result was taken. No answer; the daemon goes, of a step
                          * when its client has all */
    STEP_STREAM = 6,     /* step_stream, with a descriptor → STEP_OK: it is this daemon's now */
    STEP_SUSPEND = 7,    /* step_suspend → STEP_OK: all of the run stands still, or goes on */
    STEP_OK = 64,        /* step_empty */
    STEP_STATUS = 65,    /* step_status */
    STEP_END = 66,       /* step_result */
    STEP_ERROR = 67,     /* step_error */
};
void step_frame_add(struct buf *out, enum step_frame type, const struct rec_desc *d, const void *rec);

struct step_header {
    uint32_t length;
    uint8_t version;
    uint8_t type;
};
/* 1: a header is there; 0: too few bytes yet; negative: no frame of ours (E_TOO_BIG, E_PROTOCOL). */
int step_header_read(const void *p, size_t n, struct step_header *out);

#endif
