/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said between processes: requests and replies as records (base/rec.h), whose encoding is that of Protocol
 * Buffers. proto/spur/v1/spur.proto is printed from these tables (tools/gen-proto) for everyone else's clients; tags
 * are append-only. A field that is absent reads as zero, NULL or empty.
 *
 * Every request that changes something carries a `token`: 16 random bytes that its client made and sends again when it
 * must repeat the request. A repeat is answered with the first answer.
 */
#ifndef SPUR_WIRE_MESSAGES_H
#define SPUR_WIRE_MESSAGES_H

#include "base/rec.h"
#include "core/model/cluster.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/step.h"
#include "core/model/why.h"
#include "wire/backup.h"
#include "wire/catchup.h"

#define TOKEN_SIZE 16

#define NOTHING_FIELDS(F) F(BOOL, unused, 1, _)
REC_DECLARE(nothing, NOTHING_FIELDS)

/* Where a node is reached. */
#define NODE_PLACE_FIELDS(F) F(STR, name, 1, _) F(STR, address, 2, _) F(U32, port, 3, _)
REC_DECLARE(node_place, NODE_PLACE_FIELDS)

/* What the controller lets a client do on the nodes of a step or job: bytes that are signed for each of them (wire/proof.h),
 * good for one job, start, step and user, for a while. The client passes them on as they are, to each node with that
 * node's signature. One text for all: it names every node, and a thousand copies would be a million names. */
enum ticket_use { TICKET_LAUNCH = 1, TICKET_ATTACH = 2, TICKET_COPY = 3 };
#define STEP_TICKET_FIELDS(F)                                                                                         \
    F(U32, use, 1, _) /* enum ticket_use */                                                                           \
    /* 2 was the node's name, in a ticket of its own */                                                               \
    F(U32, job_id, 3, _)                                                                                              \
    F(U32, start_no, 4, _)                                                                                            \
    F(U32, step_id, 5, _)                                                                                             \
    F(U32, uid, 6, _)                                                                                                 \
    F(U32, gid, 7, _)                                                                                                 \
    F(STR, user, 8, _)                                                                                                \
    F(I64, expires_unix, 9, _)                                                                                        \
    F(SUB, step, 10, step)         /* all of its shape; the node finds itself by name */                              \
    F(SUB, spec, 11, job_spec)     /* of the job: what its environment says */                                        \
    F(LIST, job_nodes, 12, job_node)                                                                                  \
    /* 13 was the node's index in the step */                                                                         \
    F(STR, cluster_name, 14, _)                                                                                       \
    F(U32, kill_wait_secs, 15, _)                                                                                     \
    F(STR, partition, 16, _)                                                                                          \
    F(I64, job_end_unix, 17, _)    /* 0: no limit */                                                                  \
    F(U32, restarts, 18, _)                                                                                           \
    F(SUB, array, 19, job_array)                                                                                      \
    F(I64, job_start_unix, 20, _)                                                                                     \
    F(U32, complete_wait_secs, 21, _)
REC_DECLARE(step_ticket, STEP_TICKET_FIELDS)
#define STEP_TICKET_SIGNED_FIELDS(F)                                                                                  \
    /* 1 was a ticket of the node's own */                                                                            \
    F(BYTES, signature, 2, _)                                                                                         \
    F(SUB, place, 3, node_place)
REC_DECLARE(step_ticket_signed, STEP_TICKET_SIGNED_FIELDS)

/* ---- jobs ---- */

#define SUBMIT_REQUEST_FIELDS(F)                                                                                       \
    F(BYTES, token, 1, _)                                                                                              \
    F(SUB, spec, 2, job_spec) /* without script_hash, env_hash and deps, which the controller makes */                 \
    F(BYTES, script, 3, _)                                                                                             \
    F(BYTES, env, 4, _) /* NAME=value NUL … */                                                                        \
    F(BOOL, test_only, 5, _) /* only say when and where it could start; nothing is kept */
REC_DECLARE(submit_request, SUBMIT_REQUEST_FIELDS)
#define SUBMIT_REPLY_FIELDS(F)                                                                                         \
    F(U32, job_id, 1, _)                                                                                               \
    F(STR, sluid, 2, _)                                                                                                \
    F(STRS, warnings, 3, _) /* for stderr, without "sbatch: warning: " */                                             \
    F(I64, start_unix, 4, _) /* of test_only, as the following */                                                     \
    F(U32, n_cpus, 5, _)                                                                                              \
    F(STRS, nodes, 6, _)                                                                                              \
    F(STR, partition, 7, _)
REC_DECLARE(submit_reply, SUBMIT_REPLY_FIELDS)

/* One job's outcome in a request that names several. */
#define JOB_RESULT_FIELDS(F)                                                                                           \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, error, 2, _) /* row number of err.def; 0: done */                                                           \
    F(STR, text, 3, _)\
    F(STR, id_text, 4, _) /* as it was asked for: "12_[3-5]", "12.0"; NULL: the number */
REC_DECLARE(job_result, JOB_RESULT_FIELDS)

/* A step of a job; STEP_BATCH is the batch script. */
#define STEP_REF_FIELDS(F) F(U32, job_id, 1, _) F(U32, array_task, 2, _) /* + 1 */ F(U32, step_id, 3, _)
REC_DECLARE(step_ref, STEP_REF_FIELDS)

/* Which jobs: those of all conditions that are given. Ids that are not there have a result with E_JOB_ID. */
#define CANCEL_REQUEST_FIELDS(F)                                                                                       \
    F(BYTES, token, 1, _)                                                                                              \
    F(U32S, job_ids, 2, _)                                                                                             \
    F(STR, user, 3, _)                                                                                                 \
    F(U32, signal, 4, _)     /* 0: end the job; else send this signal to what runs */                                  \
    F(BOOL, batch_only, 5, _) /* signal the batch shell only */                                                       \
    F(LIST, targets, 6, job_target) /* arrays and tasks; job_ids is for plain jobs */                                 \
    F(LIST, steps, 7, step_ref)                                                                                       \
    F(STR, name, 8, _)                                                                                                \
    F(STR, partition, 9, _)                                                                                           \
    F(STR, account, 10, _)                                                                                            \
    F(STR, qos, 11, _)                                                                                                \
    F(U32S, states, 12, _) /* enum job_state: only jobs in one of them */                                             \
    F(STRS, nodes, 13, _)  /* only jobs that are on one of them */                                                    \
    F(BOOL, full, 14, _)   /* signal the batch shell and all steps */                                                 \
    F(BOOL, hurry, 15, _)                                                                                             \
    F(U32, complete, 16, _) /* + 1: an interactive job's client is done, and this is its wait status: COMPLETED, or   \
                             * FAILED where that is not 0. For one id in job_ids */
REC_DECLARE(cancel_request, CANCEL_REQUEST_FIELDS)
#define RESULTS_FIELDS(F) F(LIST, results, 1, job_result)
REC_DECLARE(results, RESULTS_FIELDS)

enum hold_op { HOLD_OP_HOLD = 1, HOLD_OP_UHOLD = 2, HOLD_OP_RELEASE = 3 };
#define HOLD_REQUEST_FIELDS(F)                                                                                         \
    F(BYTES, token, 1, _)                                                                                              \
    F(U32S, job_ids, 2, _)                                                                                             \
    F(U32, op, 3, _)                                                                                                  \
    F(LIST, targets, 4, job_target)
REC_DECLARE(hold_request, HOLD_REQUEST_FIELDS)

#define JOBS_REQUEST_FIELDS(F)                                                                                         \
    F(U32S, job_ids, 1, _)   /* none: all. One id that is not there alone: E_JOB_ID */                                 \
    F(STR, user, 2, _)                                                                                                 \
    F(BOOL, with_ended, 3, _) /* also those that are over */                                                          \
    F(BOOL, with_steps, 4, _) /* with the steps that they have */                                                     \
    F(BOOL, show_hidden, 5, _) /* also those of hidden partitions */                                                  \
    F(BOOL, with_parts, 6, _)  /* with what their priorities are made of */                                           \
    F(STRS, sluids, 7, _)      /* instead of job_ids: by second ids */
REC_DECLARE(jobs_request, JOBS_REQUEST_FIELDS)
/* Of a waiting job's priority, for one of its partitions. */
#define PRIORITY_PARTS_FIELDS(F)                                                                                      \
    F(STR, partition, 1, _)                                                                                           \
    F(U64, priority, 2, _) /* all together */                                                                         \
    F(U64, age, 3, _)                                                                                                 \
    F(U64, size, 4, _)                                                                                                \
    F(U64, partition_points, 5, _)                                                                                    \
    F(I64, nice, 6, _)                                                                                                \
    F(BOOL, is_set, 7, _) /* by an administrator: the parts don't count */
REC_DECLARE(priority_parts, PRIORITY_PARTS_FIELDS)
#define PRIORITY_WEIGHTS_FIELDS(F) F(U32, age, 1, _) F(U32, size, 2, _) F(U32, partition, 3, _)
REC_DECLARE(priority_weights, PRIORITY_WEIGHTS_FIELDS)
#define JOB_INFO_FIELDS(F)                                                                                             \
    F(SUB, job, 1, job)                                                                                                \
    F(U32, reason, 2, _)              /* why it waits, by the last pass; else job.reason */                            \
    F(I64, expected_start_unix, 3, _)                                                                                  \
    F(U64, priority, 4, _)                                                                                             \
    F(BOOL, is_yours, 5, _) /* the asker may see all of it; scripts' and environments' hashes only then */                \
    F(U32, least_nodes, 6, _) /* that it needs while it waits: what -N said, or more where its tasks fill more */      \
    F(STR, reason_text, 7, _) /* in more words than the reason's; NULL: those */                                       \
    F(STRS, promised_nodes, 8, _) /* where it is to start at expected_start_unix */                                    \
    F(U32, limit_min, 9, _)       /* of a job that never started: as asked, else its first partition's; TIME_LIMIT_NONE */\
    F(LIST, steps, 10, step) /* asked for with with_steps, and in history */                                          \
    F(LIST, parts, 11, priority_parts) /* asked for with with_parts: of a job that waits, for each partition */
REC_DECLARE(job_info, JOB_INFO_FIELDS)
#define JOBS_REPLY_FIELDS(F)                                                                                           \
    F(LIST, jobs, 1, job_info) /* ascending by id */                                                                   \
    F(U64, index, 2, _)                                                                                                \
    F(I64, now_unix, 3, _)                                                                                             \
    F(STR, cluster_name, 4, _)                                                                                         \
    F(U32, scheduler_interval_secs, 5, _)                                                                             \
    F(SUB, weights, 6, priority_weights) /* asked for with with_parts */
REC_DECLARE(jobs_reply, JOBS_REPLY_FIELDS)

/* More of what steers jobs: one result each, in order. */
#define REQUEUE_REQUEST_FIELDS(F)                                                                                     \
    F(BYTES, token, 1, _)                                                                                             \
    F(LIST, targets, 2, job_target)                                                                                   \
    F(BOOL, hold, 3, _) /* requeuehold */                                                                             \
    F(BOOL, special_exit, 4, _) /* requeuehold State=SpecialExit */
REC_DECLARE(requeue_request, REQUEUE_REQUEST_FIELDS)
#define SUSPEND_REQUEST_FIELDS(F) F(BYTES, token, 1, _) F(LIST, targets, 2, job_target) F(BOOL, resume, 3, _)
REC_DECLARE(suspend_request, SUSPEND_REQUEST_FIELDS)
#define UPDATE_REQUEST_FIELDS(F)                                                                                      \
    F(BYTES, token, 1, _)                                                                                             \
    F(LIST, targets, 2, job_target)                                                                                   \
    F(U32, changes, 3, _)      /* bits: CHANGE_… of core/model/job.h */                                               \
    F(SUB, spec, 4, job_spec)  /* the new values, as sbatch would send them */                                        \
    F(U64, priority_set, 5, _) /* + 1 */                                                                              \
    F(LIST, nices, 6, job_nice) /* CHANGE_NICE by an administrator, each its own, in the order of ids: one for each target */ \
    F(U32, step_plus_1, 111, _) /* CHANGE_TIME_LIMIT of this step of each target */
REC_DECLARE(update_request, UPDATE_REQUEST_FIELDS)

/* scontrol update nodename=…, by an administrator. */
#define NODE_UPDATE_REQUEST_FIELDS(F)                                                                                 \
    F(BYTES, token, 1, _)                                                                                             \
    F(STRS, names, 2, _)                                                                                              \
    F(U32, op, 3, _) /* enum node_op of core/state/command.h: 1 drain, 2 resume, 3 down, 4 delete, 5 set, 6 label */  \
    F(STR, reason, 4, _)                                                                                              \
    F(STRS, features, 5, _) /* of set, with has_features */                                                           \
    F(BOOL, has_features, 6, _)                                                                                       \
    F(U32, weight, 7, _) /* of set; + 1 */                                                                            \
    F(STR, comment, 8, _) /* of set, as the following: absent: as it is, "": none */                                  \
    F(STR, extra, 9, _)                                                                                               \
    F(STRS, instance_ids, 10, _) /* one for all, or one each; one "" takes them away */                               \
    F(STRS, instance_types, 11, _)                                                                                    \
    F(BOOL, has_gres, 12, _)                                                                                          \
    F(STRS, gres, 13, _) /* "gpu:a100:4", with has_gres; kinds that the node has, in new numbers */                   \
    F(LIST, labels, 14, selector) /* of label; one without a value is taken away */                                   \
    F(BOOL, force, 15, _) /* of delete: its jobs are ended first, and it may not come back for a while */             \
    F(U32, kind, 16, _)   /* of drain: enum drain_kind of core/model/node.h: 1 fails, 2 is to come */                 \
    F(U64, resume_after_secs, 17, _) /* + 1, of drain and down: it is back by itself then; UINT32_MAX + 1: not */ \
    F(BOOL, silent, 18, _) /* of set: it does not respond, until it is heard the next time */                         \
    F(STRS, active, 131, _) /* of set, with has_active: features that are active, of those there are */               \
    F(BOOL, has_active, 132, _)
REC_DECLARE(node_update_request, NODE_UPDATE_REQUEST_FIELDS)

/* scontrol create, update and delete partition, by an administrator: until the next configuration that is applied. */
#define PART_UPDATE_REQUEST_FIELDS(F)                                                                                 \
    F(BYTES, token, 1, _)                                                                                             \
    F(U32, op, 2, _)      /* enum part_op of core/state/command.h: 1 create, 2 update, 3 delete */                    \
    F(SUB, part, 3, part) /* its name and new values; nodes as names, with nodes_text as it was written */            \
    F(U32, changes, 4, _) /* bits of enum part_change: what is given */
REC_DECLARE(part_update_request, PART_UPDATE_REQUEST_FIELDS)

/* The batch script of a job, for its owner and administrators. */
#define SCRIPT_REQUEST_FIELDS(F) F(U32, job_id, 1, _)
REC_DECLARE(script_request, SCRIPT_REQUEST_FIELDS)
#define SCRIPT_REPLY_FIELDS(F) F(BYTES, script, 1, _)
REC_DECLARE(script_reply, SCRIPT_REPLY_FIELDS)

/* Why a job waits. */
#define WHY_REQUEST_FIELDS(F)                                                                                          \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, task, 2, _) /* + 1, of the array job_id; 0: the job, or all of the array that waits */
REC_DECLARE(why_request, WHY_REQUEST_FIELDS)
#define WHY_REPLY_FIELDS(F)                                                                                            \
    F(STR, id, 1, _) /* as squeue shows it */                                                                          \
    F(STR, name, 2, _)                                                                                                 \
    F(STR, partition, 3, _) /* asked for, or where it runs */                                                          \
    F(U32, state, 4, _)     /* enum job_state */                                                                       \
    F(STR, state_text, 5, _) /* as shown */                                                                            \
    F(I64, now_unix, 6, _)                                                                                             \
    F(SUB, why, 7, why) /* NULL: it doesn't wait */
REC_DECLARE(why_reply, WHY_REPLY_FIELDS)

/* The configuration that is in force, as scontrol show config prints its rows. */
#define CONFIG_REPLY_FIELDS(F)                                                                                        \
    F(STR, text, 1, _) /* "Key = value" lines */                                                                      \
    F(I64, now_unix, 2, _)                                                                                            \
    F(I64, boot_unix, 3, _) /* when this controller was started */                                                    \
    F(STR, hostname, 4, _)                                                                                            \
    F(U32, port, 5, _)                                                                                                \
    F(LIST, licenses, 6, license) /* all there are */                                                                 \
    F(STR, cluster_name, 7, _)
REC_DECLARE(config_reply, CONFIG_REPLY_FIELDS)

/* Until the next start or configuration. */
#define LOG_LEVEL_REQUEST_FIELDS(F) F(STR, level, 1, _) /* as [logging] level */
REC_DECLARE(log_level_request, LOG_LEVEL_REQUEST_FIELDS)

/* ---- steps ---- */

/* Waits (some 20 s at most, then E_STEP_BUSY: ask again with the same token) until the step fits beside the others. */
#define STEP_REQUEST_FIELDS(F)                                                                                        \
    F(BYTES, token, 1, _)                                                                                             \
    F(U32, job_id, 2, _)                                                                                              \
    F(SUB, spec, 3, step_spec)
REC_DECLARE(step_request, STEP_REQUEST_FIELDS)
#define STEP_REPLY_FIELDS(F)                                                                                          \
    F(SUB, step, 1, step)                                                                                             \
    F(LIST, tickets, 2, step_ticket_signed) /* one a node, in the step's order */                                     \
    F(SUB, job, 3, job)                                                                                               \
    F(STR, cluster_name, 4, _)                                                                                        \
    F(BYTES, ticket, 5, _) /* a step_ticket, encoded */
REC_DECLARE(step_reply, STEP_REPLY_FIELDS)

/* The client of an interactive job, or of a step, says that it is there. Answered when the job (or step) changed since
 * `seen_state`, or after some 10 s: ask again. When nobody asks for attend_secs, the job (or step) is ended. */
#define ATTEND_REQUEST_FIELDS(F)                                                                                      \
    F(U32, job_id, 1, _)                                                                                              \
    F(U32, step_id, 2, _)    /* + 1; 0: the job */                                                                    \
    F(STR, seen_state, 3, _) /* job_shown_state of the last answer; NULL: answer at once */                           \
    F(BOOL, leaving, 4, _)   /* the last one: nobody attends any more, and that is right */
REC_DECLARE(attend_request, ATTEND_REQUEST_FIELDS)
#define ATTEND_REPLY_FIELDS(F)                                                                                        \
    F(SUB, job, 1, job_info)                                                                                          \
    F(SUB, step, 2, step)                                                                                             \
    F(LIST, places, 3, node_place) /* of the job's nodes, in their order, once it has some */
REC_DECLARE(attend_reply, ATTEND_REPLY_FIELDS)

/* A ticket to attach to a step that runs (sattach), or to send a file to a job's nodes (sbcast). */
#define ATTACH_REQUEST_FIELDS(F)                                                                                      \
    F(U32, job_id, 1, _)                                                                                              \
    F(U32, step_id, 2, _) /* + 1; 0: the job itself, for sbcast */
REC_DECLARE(attach_request, ATTACH_REQUEST_FIELDS)

#define WAIT_REQUEST_FIELDS(F) F(U32, job_id, 1, _)
REC_DECLARE(wait_request, WAIT_REQUEST_FIELDS)
/* Answered when the job is over, or after some 20 s with is_over false: ask again. */
#define WAIT_REPLY_FIELDS(F)                                                                                           \
    F(BOOL, is_over, 1, _)                                                                                             \
    F(SUB, job, 2, job)                                                                                                \
    F(U32, wait_status, 3, _) /* of the job; of an array: that of its worst task, when it is over */
REC_DECLARE(wait_reply, WAIT_REPLY_FIELDS)

/* ---- nodes, partitions ---- */

#define NODE_INFO_FIELDS(F)                                                                                            \
    F(SUB, node, 1, node)                                                                                              \
    F(U32, cpu_load_hundredths, 2, _) /* as last reported; + 1, 0: not known */                                        \
    F(U64, free_mem_mb, 3, _)         /* + 1, 0: not known */                                                          \
    F(I64, last_seen_unix, 4, _)                                                                                       \
    F(STRS, partitions, 5, _)                                                                                         \
    F(BOOL, planned, 6, _) /* promised to a job that waits for more */
REC_DECLARE(node_info, NODE_INFO_FIELDS)
#define NODES_REPLY_FIELDS(F)                                                                                          \
    F(LIST, nodes, 1, node_info) /* in Slurm's order of names */                                                       \
    F(LIST, parts, 2, part)      /* in the configuration's order */                                                    \
    F(U64, index, 3, _)                                                                                                \
    F(I64, now_unix, 4, _)                                                                                             \
    F(STR, cluster_name, 5, _)
REC_DECLARE(nodes_reply, NODES_REPLY_FIELDS)

/* ---- history ---- */

#define HISTORY_REQUEST_FIELDS(F)                                                                                      \
    F(U32S, job_ids, 1, _)                                                                                             \
    F(STRS, users, 2, _)     /* none: the asker's own, unless all_users or job_ids */                                  \
    F(BOOL, all_users, 3, _)                                                                                           \
    F(I64, since_unix, 4, _) /* jobs that were there at or behind it; 0: since midnight is the client's business */     \
    F(I64, until_unix, 5, _) /* 0: now */                                                                              \
    F(U32, after_id, 6, _)   /* paging: ids above */                                                                   \
    F(U32, limit, 7, _)      /* 0: 10,000 */                                                                           \
    F(BOOL, duplicates, 8, _) /* each life of a job that was queued again, and former jobs of an id, too */        \
    F(STRS, sluids, 9, _)    /* as a bound on all: second ids */
REC_DECLARE(history_request, HISTORY_REQUEST_FIELDS)
#define HISTORY_REPLY_FIELDS(F)                                                                                        \
    F(LIST, jobs, 1, job_info) /* ascending by id; state and history merged */                                         \
    F(BOOL, is_cut, 2, _)      /* more behind the last id */                                                           \
    F(I64, now_unix, 3, _)                                                                                             \
    F(STR, cluster_name, 4, _)
REC_DECLARE(history_reply, HISTORY_REPLY_FIELDS)

/* ---- the controller itself ---- */

/* One controller, as another one knows it. */
#define CONTROLLER_INFO_FIELDS(F)                                                                                      \
    F(U32, id, 1, _)                                                                                                   \
    F(STR, address, 2, _) /* host:port among controllers */                                                            \
    F(STR, role, 3, _)    /* leader, follower, spare, unknown */                                                       \
    F(U64, term, 4, _)                                                                                                 \
    F(U64, index, 5, _)   /* that it was heard to have applied */                                                      \
    F(BOOL, is_reached, 6, _) /* heard of within the last seconds */                                                   \
    F(STR, version, 7, _)
REC_DECLARE(controller_info, CONTROLLER_INFO_FIELDS)

#define PING_REPLY_FIELDS(F)                                                                                           \
    F(STR, hostname, 1, _)                                                                                             \
    F(STR, role, 2, _) /* leader, follower, candidate, starting */                                                     \
    F(STR, version, 3, _)                                                                                              \
    F(U64, index, 4, _)                                                                                                \
    F(U64, term, 5, _)                                                                                                 \
    F(STR, cluster_name, 6, _)                                                                                         \
    F(U64, digest, 7, _)                                                                                               \
    F(U32, member_id, 8, _)                                                                                            \
    F(U32, pid, 9, _)                                                                                                  \
    F(U32, leader_id, 10, _) /* 0: none known */                                                                       \
    F(LIST, members, 11, controller_info) /* as this one knows them */
REC_DECLARE(ping_reply, PING_REPLY_FIELDS)

/* ---- among controllers (role MEMBER), and what changes them ---- */

#define CONFIRM_REQUEST_FIELDS(F) F(U64, term, 1, _)
REC_DECLARE(confirm_request, CONFIRM_REQUEST_FIELDS)
#define CONFIRM_REPLY_FIELDS(F)                                                                                        \
    F(U64, term, 1, _)  /* the answering member's, at this instant */                                                  \
    F(U64, index, 2, _) /* that it has applied */                                                                      \
    F(STR, version, 3, _)                                                                                              \
    F(BOOL, is_removed, 150, _) /* it leads or has a leader, and who asked is no member */                             \
    F(BOOL, has_turn, 160, _)   /* it writes a snapshot, or asks whether it may */
REC_DECLARE(confirm_reply, CONFIRM_REPLY_FIELDS)

#define READ_INDEX_REPLY_FIELDS(F) F(U64, index, 1, _) F(U64, term, 2, _)
REC_DECLARE(read_index_reply, READ_INDEX_REPLY_FIELDS)

/* What a member with an empty directory asks the others: is there a cluster? */
#define HELLO_REQUEST_FIELDS(F) F(U64, peers_hash, 1, _)
REC_DECLARE(hello_request, HELLO_REQUEST_FIELDS)
#define HELLO_REPLY_FIELDS(F)                                                                                          \
    F(BOOL, is_fresh, 1, _) /* its directory is empty as well */                                                       \
    F(U64, index, 2, _)     /* the last one of its log */                                                              \
    F(U64, term, 3, _)                                                                                                 \
    F(U64, peers_hash, 4, _) /* of [controller] peers as it has them */                                                \
    F(U32, leader_id, 5, _)
REC_DECLARE(hello_reply, HELLO_REPLY_FIELDS)
/* "I am empty: take me in." To the leader. */
#define JOIN_REQUEST_FIELDS(F) F(STR, address, 1, _)
REC_DECLARE(join_request, JOIN_REQUEST_FIELDS)
/* A member's configuration file, where the hash rule says that it is to be offered (or noted: `conf` absent). */
#define OFFER_REQUEST_FIELDS(F) F(SUB, conf, 1, rconf) F(BYTES, hash, 2, _)
REC_DECLARE(offer_request, OFFER_REQUEST_FIELDS)
/* A request that another member took: who asks is its word, except that an agent's signature goes along and is checked
 * by whoever leads. The answer is that of the method, or its error. */
#define FORWARD_REQUEST_FIELDS(F)                                                                                      \
    F(STR, method, 1, _) /* its path */                                                                                \
    F(STR, id, 2, _)     /* of the request, as its client or the other member named it */                              \
    F(BYTES, message, 3, _)                                                                                            \
    F(STR, proof, 4, _) /* an agent's; the rest is of users */                                                         \
    F(STR, user, 5, _)                                                                                                 \
    F(STR, group, 6, _)                                                                                                \
    F(U32, uid, 7, _)                                                                                                  \
    F(U32, gid, 8, _)                                                                                                  \
    F(BOOL, is_proven, 9, _)                                                                                           \
    F(BOOL, is_admin, 10, _)                                                                                           \
    F(STR, address, 11, _) /* it came from, for the log */
REC_DECLARE(forward_request, FORWARD_REQUEST_FIELDS)
#define FORWARD_REPLY_FIELDS(F) F(BYTES, message, 1, _)
REC_DECLARE(forward_reply, FORWARD_REPLY_FIELDS)
/* A member has read its own file again: the hash of its replicated part, what there is to say of the rest. */
#define REREAD_REPLY_FIELDS(F) F(BYTES, hash, 1, _) F(STRS, notes, 2, _)
REC_DECLARE(reread_reply, REREAD_REPLY_FIELDS)

/* spur controller add|remove|transfer */
enum controller_verb { CONTROLLER_ADD = 1, CONTROLLER_REMOVE = 2, CONTROLLER_TRANSFER = 3 };
#define CONTROLLER_CHANGE_FIELDS(F) F(U32, verb, 1, _) F(U32, id, 2, _) F(STR, address, 3, _)
REC_DECLARE(controller_change, CONTROLLER_CHANGE_FIELDS)

#define COUNTER_FIELDS(F)                                                                                              \
    F(STR, group, 1, _)                                                                                                \
    F(STR, name, 2, _)                                                                                                 \
    F(U64, value, 3, _)                                                                                                \
    F(STR, unit, 4, _)
REC_DECLARE(counter, COUNTER_FIELDS)
#define DIAG_REQUEST_FIELDS(F) F(BOOL, reset, 1, _)
REC_DECLARE(diag_request, DIAG_REQUEST_FIELDS)
#define DIAG_REPLY_FIELDS(F)                                                                                           \
    F(LIST, counters, 1, counter)                                                                                      \
    F(I64, now_unix, 2, _)                                                                                             \
    F(I64, since_unix, 3, _)
REC_DECLARE(diag_reply, DIAG_REPLY_FIELDS)

#define TOKEN_REQUEST_FIELDS(F)                                                                                        \
    F(STR, user, 1, _)          /* NULL: the asker */                                                                  \
    F(U32, lifespan_secs, 2, _) /* 0: 1,800, as scontrol token */
REC_DECLARE(token_request, TOKEN_REQUEST_FIELDS)
#define TOKEN_REPLY_FIELDS(F) F(STR, jwt, 1, _)
REC_DECLARE(token_reply, TOKEN_REPLY_FIELDS)

/* Tokens that admit nodes: one is made, or revoked; neither: all are listed. */
#define JOIN_TOKEN_REQUEST_FIELDS(F)                                                                                  \
    F(BYTES, token, 1, _)                                                                                             \
    F(SUB, create, 2, join_token) /* its `text` counts */                                                             \
    F(STR, revoke, 3, _)          /* an id */                                                                         \
    F(U32, ttl_secs, 4, _)        /* 0: for ever */
REC_DECLARE(join_token_request, JOIN_TOKEN_REQUEST_FIELDS)
#define JOIN_TOKEN_REPLY_FIELDS(F)                                                                                    \
    F(STR, text, 1, _)           /* of the one that was made: shown this once */                                      \
    F(LIST, tokens, 2, join_token) /* without their hashes */
REC_DECLARE(join_token_reply, JOIN_TOKEN_REPLY_FIELDS)

#define RECONFIGURE_REPLY_FIELDS(F)                                                                                    \
    F(BOOL, changed, 1, _)                                                                                             \
    F(STRS, notes, 2, _) /* what needs a restart, what was dropped */
REC_DECLARE(reconfigure_reply, RECONFIGURE_REPLY_FIELDS)

/* ---- agent to controller; each call is signed: see wire/proof.h ---- */

enum run_state { RUN_STARTING = 1, RUN_RUNNING = 2, RUN_ENDING = 3, RUN_ENDED = 4 };
#define RUN_REF_FIELDS(F)                                                                                              \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, start_no, 2, _)                                                                                             \
    F(U32, state, 3, _) /* enum run_state */                                                                           \
    F(U32, step_id, 4, _) /* + 1: a step of that run; 0: the run itself */
REC_DECLARE(run_ref, RUN_REF_FIELDS)

#define REGISTER_REQUEST_FIELDS(F)                                                                                     \
    F(SUB, node, 1, node)    /* what the agent knows of itself: name, address, port, sizes, boot_id, public_key … */    \
    F(STR, join_token, 2, _)                                                                                           \
    F(LIST, runs, 3, run_ref) /* all it has, ended ones that were not acknowledged too */
REC_DECLARE(register_request, REGISTER_REQUEST_FIELDS)
#define REGISTER_REPLY_FIELDS(F)                                                                                       \
    F(U32, node_id, 1, _)                                                                                              \
    F(BYTES, controller_key, 2, _) /* public; pinned by the agent at first sight */                                    \
    F(U32, heartbeat_ms, 3, _)                                                                                         \
    F(LIST, end, 4, run_ref)       /* runs that should not be: end them */                                             \
    F(STR, cluster_name, 5, _)                                                                                         \
    F(BOOL, goodbye, 6, _)         /* say so when you stop: Leave */                                                   \
    F(BOOL, removed, 7, _)         /* you were removed: end all you have; you may join when you are started anew */
REC_DECLARE(register_reply, REGISTER_REPLY_FIELDS)

/* The agent stops for good as far as it knows. */
#define LEAVE_REQUEST_FIELDS(F) F(STR, name, 1, _) F(STR, boot_id, 2, _) F(I64, agent_start_unix, 3, _)
REC_DECLARE(leave_request, LEAVE_REQUEST_FIELDS)

#define HEARTBEAT_REQUEST_FIELDS(F)                                                                                    \
    F(STR, name, 1, _)                                                                                                 \
    F(STR, boot_id, 2, _)                                                                                              \
    F(I64, agent_start_unix, 3, _)                                                                                     \
    F(U32, cpu_load_hundredths, 4, _)                                                                                  \
    F(U64, free_mem_mb, 5, _)                                                                                          \
    F(U64, runs_hash, 6, _)   /* same as last time: runs is left out */                                                \
    F(LIST, runs, 7, run_ref)                                                                                          \
    F(BOOL, has_runs, 8, _)   /* runs is the whole list, even if it is empty */
REC_DECLARE(heartbeat_request, HEARTBEAT_REQUEST_FIELDS)
#define HEARTBEAT_REPLY_FIELDS(F)                                                                                      \
    F(BOOL, register_again, 1, _)                                                                                      \
    F(BOOL, send_runs, 2, _)                                                                                           \
    F(LIST, end, 3, run_ref)
REC_DECLARE(heartbeat_reply, HEARTBEAT_REPLY_FIELDS)

/* A run is over on this node and nothing of it lives. Repeated until it is answered. */
#define RUN_REPORT_FIELDS(F)                                                                                           \
    F(STR, name, 1, _) /* of the node */                                                                               \
    F(U32, job_id, 2, _)                                                                                               \
    F(U32, start_no, 3, _)                                                                                             \
    F(U32, wait_status, 4, _) /* of the batch script, as waitpid gives it; 0 on other nodes than the first */          \
    F(BOOL, out_of_memory, 5, _)                                                                                       \
    F(BOOL, never_started, 6, _) /* with text: why. The start is undone everywhere. */                                 \
    F(STR, text, 7, _)                                                                                                 \
    F(I64, start_ms, 8, _)                                                                                             \
    F(I64, end_ms, 9, _)                                                                                               \
    F(U64, max_rss_kb, 10, _)                                                                                          \
    F(U64, user_cpu_us, 11, _)                                                                                         \
    F(U64, sys_cpu_us, 12, _)                                                                                          \
    F(BOOL, drain_node, 13, _)  /* something could not be killed: text says what */                                    \
    F(BOOL, node_failed, 14, _) /* the node was started anew while it ran */                                           \
    F(BOOL, stays, 15, _) /* of a run whose script runs everywhere: it is over, the run stays until Terminate */
REC_DECLARE(run_report, RUN_REPORT_FIELDS)

/* A step is over on this node and nothing of it lives. Repeated until it is answered. */
#define STEP_REPORT_FIELDS(F)                                                                                         \
    F(STR, name, 1, _) /* of the node */                                                                              \
    F(U32, job_id, 2, _)                                                                                              \
    F(U32, start_no, 3, _)                                                                                            \
    F(U32, step_id, 4, _)                                                                                             \
    F(U32, wait_status, 5, _) /* the worst of its tasks here */                                                       \
    F(BOOL, out_of_memory, 6, _)                                                                                      \
    F(BOOL, never_started, 7, _)                                                                                      \
    F(STR, text, 8, _)                                                                                                \
    F(I64, start_ms, 9, _)                                                                                            \
    F(I64, end_ms, 10, _)                                                                                             \
    F(U64, max_rss_kb, 11, _)                                                                                         \
    F(U64, user_cpu_us, 12, _)                                                                                        \
    F(U64, sys_cpu_us, 13, _)
REC_DECLARE(step_report, STEP_REPORT_FIELDS)

/* ---- controller to agent; each call carries a credential: see wire/proof.h ---- */

#define LAUNCH_REQUEST_FIELDS(F)                                                                                       \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, start_no, 2, _)                                                                                             \
    F(SUB, spec, 3, job_spec)                                                                                          \
    F(LIST, nodes, 4, job_node) /* all of the job's */                                                                 \
    F(U32, node_index, 5, _)    /* which of them you are; 0 runs the script, others only hold the allocation */        \
    F(BYTES, script, 6, _)      /* only for node_index 0 */                                                            \
    F(BYTES, env, 7, _)                                                                                                \
    F(U32, time_limit_min, 8, _)                                                                                       \
    F(I64, start_unix, 9, _)                                                                                           \
    F(STR, cluster_name, 10, _)                                                                                        \
    F(STR, sluid, 11, _)                                                                                               \
    F(STR, partition, 12, _)                                                                                           \
    F(U32, kill_wait_secs, 13, _)                                                                                      \
    F(U32, restarts, 14, _)                                                                                            \
    F(STR, batch_host, 15, _)                                                                                          \
    F(STR, node_name, 16, _)    /* of the node this is for: signed with the rest */                                   \
    F(SUB, array, 17, job_array)                                                                                       \
    F(BOOL, everywhere, 18, _)  /* each node runs the script; `script` and `env` are for all */                        \
    F(STR, first_address, 19, _) /* of the first node, with everywhere */                                              \
    F(U32, complete_wait_secs, 20, _)
REC_DECLARE(launch_request, LAUNCH_REQUEST_FIELDS)
/* Answered when the run's state is on this node's disk and its step daemon lives (script not necessarily exec'ed). */
#define LAUNCH_REPLY_FIELDS(F) F(U32, pid, 1, _)
REC_DECLARE(launch_reply, LAUNCH_REPLY_FIELDS)

#define SIGNAL_REQUEST_FIELDS(F)                                                                                       \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, start_no, 2, _)                                                                                             \
    F(U32, signal, 3, _)                                                                                               \
    F(BOOL, batch_only, 4, _)                                                                                          \
    F(STR, node_name, 5, _)                                                                                            \
    F(U32, uid, 6, _) /* the job's */                                                                                 \
    F(U32, step_id, 7, _) /* + 1; 0: what the rest says */                                                            \
    F(BOOL, full, 8, _)   /* the batch shell and all steps; else, without batch_only and step_id: all steps */          \
    F(U64, nonce, 9, _)   /* a new one for each request: its credential counts once, and so must differ */
REC_DECLARE(signal_request, SIGNAL_REQUEST_FIELDS)

/* End a run: SIGCONT and SIGTERM to all of it, after kill_wait_secs SIGKILL; then a run_report. Repeatable. A run that
 * the agent does not know is answered with E_NOT_FOUND, which means: nothing of it lives here. */
#define TERMINATE_REQUEST_FIELDS(F)                                                                                    \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, start_no, 2, _)                                                                                             \
    F(U32, kill_wait_secs, 3, _)                                                                                       \
    F(STR, why, 4, _)          /* "CANCELLED", "DUE TO TIME LIMIT" …: for the line in the job's stderr */              \
    F(STR, node_name, 5, _)                                                                                            \
    F(U32, uid, 6, _)                                                                                                  \
    F(I64, at_unix, 7, _)                                                                                             \
    F(U32, step_id, 8, _) /* + 1: that step only; 0: the run with all its steps */
REC_DECLARE(terminate_request, TERMINATE_REQUEST_FIELDS)

/* Stops or continues everything of a run. Repeatable. */
#define SUSPEND_RUN_REQUEST_FIELDS(F)                                                                                 \
    F(U32, job_id, 1, _)                                                                                              \
    F(U32, start_no, 2, _)                                                                                            \
    F(STR, node_name, 3, _)                                                                                           \
    F(U32, uid, 4, _)                                                                                                 \
    F(BOOL, resume, 5, _)                                                                                             \
    F(U64, nonce, 6, _) /* as signal_request's */
REC_DECLARE(suspend_run_request, SUSPEND_RUN_REQUEST_FIELDS)

#endif
