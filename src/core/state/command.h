/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands: all that is ever put into the log. An entry is
 *
 *     u8 version | varint command | varint uid | zigzag now_ms | bytes token | bytes record
 *
 * (varints as in base/buf.h; docs/format/log-entry.md). Ids, times and random choices are in here, put there by the
 * proposer, so that apply never has to ask the world.
 */
#ifndef SPUR_CORE_STATE_COMMAND_H
#define SPUR_CORE_STATE_COMMAND_H

#include "base/arena.h"
#include "base/rec.h"
#include "core/model/cluster.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/step.h"

#define COMMAND_VERSION 1
#define COMMAND_TOKEN_SIZE 16

enum command {
#define COMMAND(name, number, record, fn, doc) CMD_##name = number,
#include "core/state/command.def"
#undef COMMAND
};

#define CMD_CLUSTER_INIT_FIELDS(F)                                                                                     \
    F(BYTES, key_seed, 1, _)                                                                                           \
    F(STRS, join_tokens, 2, _) /* hashes in hex */
REC_DECLARE(cmd_cluster_init, CMD_CLUSTER_INIT_FIELDS)

#define CMD_CONFIG_SET_FIELDS(F)                                                                                       \
    F(SUB, conf, 1, rconf) /* NULL: it is in force already, and only to be noted as the member's */                    \
    F(U32, member_id, 2, _) /* whose file it is */                                                                     \
    F(BYTES, hash, 3, _)    /* the file's, where conf is NULL */
REC_DECLARE(cmd_config_set, CMD_CONFIG_SET_FIELDS)

#define CMD_SUBMIT_FIELDS(F)                                                                                           \
    F(U32, job_id, 1, _)                                                                                               \
    F(STR, sluid, 2, _)                                                                                                \
    F(SUB, spec, 3, job_spec) /* complete: admit has filled in what was left out */                                    \
    F(U32, first_task_id, 4, _) /* of an array whose tasks have their ids from the beginning */
REC_DECLARE(cmd_submit, CMD_SUBMIT_FIELDS)

#define CMD_HOLD_FIELDS(F)                                                                                             \
    F(U32S, job_ids, 1, _)                                                                                             \
    F(U32, hold, 2, _)         /* enum hold; HOLD_NONE releases */                                                     \
    F(BOOL, as_admin, 3, _)    /* may release what an administrator holds */                                          \
    F(LIST, targets, 4, job_target) /* with or instead of job_ids; one item of the answer each, behind those */     \
    F(BOOL, runs_too, 5, _) /* jobs that run are held as well, for when they are queued again */                      \
    F(BOOL, keeps, 111, _)  /* who may not lift a hold may not make less of it: his own changes nothing, and is no mistake */ \
    F(BOOL, keeps_delay, 140, _) /* a release lifts the pause after launches that failed, not the delay of a requeue */
REC_DECLARE(cmd_hold, CMD_HOLD_FIELDS)

#define CMD_CANCEL_FIELDS(F)                                                                                          \
    F(U32S, job_ids, 1, _)                                                                                            \
    F(LIST, targets, 2, job_target)                                                                                   \
    F(U32, complete, 3, _) /* + 1: an interactive job's client is done, with this wait status: the job ends as COMPLETED, \
                            * or FAILED where it is not 0, instead of CANCELLED */ \
    F(BOOL, no_trace, 4, _) /* waiting tasks that this takes out of an array leave no job of their own */             \
    F(BOOL, keep_reason, 5, _) /* a waiting job that was held still says so when it is over */
REC_DECLARE(cmd_cancel, CMD_CANCEL_FIELDS)

#define JOB_START_FIELDS(F)                                                                                            \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, start_no, 2, _) /* the one that this start shall be */                                                      \
    F(STR, partition, 3, _)                                                                                            \
    F(LIST, nodes, 4, job_node)                                                                                        \
    F(U32, time_limit_min, 5, _)                                                                                      \
    F(U32, array_task, 6, _) /* + 1: of the array that job_id stands for, which task; its last one keeps the record */\
    F(U32, new_job_id, 7, _) /* the id that this task gets where it is not the last */                                \
    F(STR, new_sluid, 8, _)                                                                                           \
    F(LIST, licenses, 9, license_ask) /* to job.rare: those it takes, where the job left the choice */                \
    F(BOOL, everywhere, 10, _) /* each node runs the script */                                                        \
    F(BOOL, preferred, 11, _)  /* its nodes are of --prefer */
REC_DECLARE(job_start, JOB_START_FIELDS)
#define CMD_START_FIELDS(F) F(LIST, starts, 1, job_start)
REC_DECLARE(cmd_start, CMD_START_FIELDS)

#define CMD_RUNNING_FIELDS(F) F(U32, job_id, 1, _) F(U32, start_no, 2, _)
REC_DECLARE(cmd_running, CMD_RUNNING_FIELDS)

#define CMD_UNDO_FIELDS(F)                                                                                             \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, start_no, 2, _)                                                                                             \
    F(STR, text, 3, _)                                                                                                 \
    F(U32S, mute_nodes, 4, _) /* did not answer: they take no work until they register again */
REC_DECLARE(cmd_undo, CMD_UNDO_FIELDS)

#define CMD_NODE_DONE_FIELDS(F)                                                                                        \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, start_no, 2, _)                                                                                             \
    F(U32, node_id, 3, _)                                                                                              \
    F(U32, wait_status, 4, _)                                                                                          \
    F(BOOL, out_of_memory, 5, _)                                                                                       \
    F(BOOL, never_started, 6, _)                                                                                       \
    F(BOOL, node_failed, 7, _) /* the node went down, rebooted, or has lost the run */                                 \
    F(STR, text, 8, _)                                                                                                 \
    F(I64, end_ms, 9, _)                                                                                               \
    F(U64, max_rss_kb, 10, _)                                                                                          \
    F(U64, user_cpu_us, 11, _)                                                                                         \
    F(U64, sys_cpu_us, 12, _)                                                                                          \
    F(BOOL, drain_node, 13, _)                                                                                         \
    F(STR, new_sluid, 14, _) /* with node_failed: the job's next one should it be queued again */                      \
    F(BOOL, stays, 15, _) /* its script is over there, and the run goes on for the job's others */
REC_DECLARE(cmd_node_done, CMD_NODE_DONE_FIELDS)

#define RUN_ID_FIELDS(F) F(U32, job_id, 1, _) F(U32, start_no, 2, _)
REC_DECLARE(run_id, RUN_ID_FIELDS)
#define CMD_TIMEOUT_FIELDS(F) F(LIST, runs, 1, run_id)
REC_DECLARE(cmd_timeout, CMD_TIMEOUT_FIELDS)

#define CMD_PURGE_FIELDS(F)                                                                                            \
    F(U32S, job_ids, 1, _)                                                                                             \
    F(BOOL, remember, 2, _) /* arrays that stay keep which of their tasks ended badly (job_array.gone_bad) */
REC_DECLARE(cmd_purge, CMD_PURGE_FIELDS)

#define CMD_NODE_REGISTER_FIELDS(F)                                                                                    \
    F(SUB, node, 1, node)      /* as the agent says it */                                                              \
    F(BOOL, has_strangers, 2, _) /* runs that must go first: until it registers without, it takes no work */
REC_DECLARE(cmd_node_register, CMD_NODE_REGISTER_FIELDS)

#define CMD_NODE_STATE_FIELDS(F)                                                                                       \
    F(U32, node_id, 1, _)                                                                                              \
    F(BOOL, not_responding, 2, _)                                                                                      \
    F(BOOL, down, 3, _)                                                                                                \
    F(STR, reason, 4, _)
REC_DECLARE(cmd_node_state, CMD_NODE_STATE_FIELDS)

/* Back to the queue: what runs is ended first; what is over and still in the state may come back too. */
#define CMD_REQUEUE_FIELDS(F)                                                                                         \
    F(LIST, targets, 1, job_target)                                                                                   \
    F(U32, hold, 2, _)      /* enum hold, of the jobs when they are back */                                           \
    F(STRS, sluids, 3, _)   /* new ones, one for each job that this may put back at most */                          \
    F(BOOL, special_exit, 4, _) /* with hold: they are shown as SPECIAL_EXIT until they are released */
REC_DECLARE(cmd_requeue, CMD_REQUEUE_FIELDS)

#define CMD_SUSPEND_FIELDS(F)                                                                                          \
    F(LIST, targets, 1, job_target)                                                                                    \
    F(BOOL, resume, 2, _)                                                                                              \
    F(BOOL, by_signal, 3, _) /* SIGSTOP or SIGCONT was sent to them: they stay RUNNING, and are shown as STOPPED */
REC_DECLARE(cmd_suspend, CMD_SUSPEND_FIELDS)

#define CMD_UPDATE_FIELDS(F)                                                                                          \
    F(LIST, targets, 1, job_target)                                                                                   \
    F(U32, changes, 2, _)      /* bits of enum job_change */                                                          \
    F(SUB, spec, 3, job_spec)  /* the new values; complete as admit makes them */                                     \
    F(U64, priority_set, 4, _) /* + 1; 0: as computed */                                                              \
    F(BOOL, as_admin, 5, _)                                                                                           \
    F(BOOL, shrinks, 6, _)     /* of a job that runs CHANGE_NODES and CHANGE_NODE_LISTS say which of its nodes it keeps */ \
    F(LIST, nices, 7, job_nice) /* CHANGE_NICE of several, each its own, in the order of ids; none: spec has it for all */ \
    F(U32, changes_known, 111, _) /* all bits that its proposer knows; 0: those until CHANGE_HOLD */               \
    F(U32, step_plus_1, 112, _) /* CHANGE_TIME_LIMIT is of this step of each target */ \
    F(BOOL, lifts_delay, 140, _) /* CHANGE_BEGIN: what the job waited for after its last run is replaced too */
REC_DECLARE(cmd_update, CMD_UPDATE_FIELDS)

/* The step's shape is in the command; apply checks that it fits beside the job's other steps. E_STEP_BUSY: not now. */
#define CMD_STEP_START_FIELDS(F)                                                                                      \
    F(U32, job_id, 1, _)                                                                                              \
    F(U32, start_no, 2, _)                                                                                            \
    F(SUB, spec, 3, step_spec)                                                                                        \
    F(LIST, nodes, 4, step_node)
REC_DECLARE(cmd_step_start, CMD_STEP_START_FIELDS)

/* The end of a step is asked for. */
#define CMD_STEP_CANCEL_FIELDS(F)                                                                                     \
    F(U32, job_id, 1, _)                                                                                              \
    F(U32, step_id, 2, _)                                                                                             \
    F(BOOL, is_timeout, 3, _)
REC_DECLARE(cmd_step_cancel, CMD_STEP_CANCEL_FIELDS)

/* The step is over on one node. */
#define CMD_STEP_DONE_FIELDS(F)                                                                                       \
    F(U32, job_id, 1, _)                                                                                              \
    F(U32, start_no, 2, _)                                                                                            \
    F(U32, step_id, 3, _)                                                                                             \
    F(U32, node_id, 4, _)                                                                                             \
    F(U32, wait_status, 5, _) /* the worst of its tasks there */                                                      \
    F(BOOL, out_of_memory, 6, _)                                                                                      \
    F(BOOL, never_started, 7, _)                                                                                      \
    F(STR, text, 8, _)                                                                                                \
    F(I64, end_ms, 9, _)                                                                                              \
    F(U64, max_rss_kb, 10, _)                                                                                         \
    F(U64, user_cpu_us, 11, _)                                                                                        \
    F(U64, sys_cpu_us, 12, _)
REC_DECLARE(cmd_step_done, CMD_STEP_DONE_FIELDS)

#define CMD_WARNED_FIELDS(F) F(LIST, runs, 1, run_id)
REC_DECLARE(cmd_warned, CMD_WARNED_FIELDS) /* --signal was sent to them */

#define CMD_DEADLINE_FIELDS(F)                                                                                         \
    F(U32S, job_ids, 1, _)                                                                                             \
    F(BOOL, invalid_dep, 2, _) /* not the time: what they depend on can't come any more, and they are to end then */
REC_DECLARE(cmd_deadline, CMD_DEADLINE_FIELDS) /* pending, and can't end in time any more */

#define CMD_JOIN_TOKEN_FIELDS(F) F(SUB, add, 1, join_token) F(STR, revoke, 2, _) /* an id */
REC_DECLARE(cmd_join_token, CMD_JOIN_TOKEN_FIELDS)

enum node_op { NODE_OP_DRAIN = 1, NODE_OP_RESUME = 2, NODE_OP_DOWN = 3, NODE_OP_DELETE = 4, NODE_OP_SET = 5,
               NODE_OP_LABEL = 6, NODE_OP_LAST = NODE_OP_LABEL };
#define CMD_NODE_UPDATE_FIELDS(F)                                                                                     \
    F(U32S, node_ids, 1, _)                                                                                           \
    F(U32, op, 2, _)          /* enum node_op */                                                                      \
    F(STR, reason, 3, _)                                                                                              \
    F(STR, user, 4, _)                                                                                                \
    F(STRS, features, 5, _)   /* NODE_OP_SET, with has_features */                                                    \
    F(BOOL, has_features, 6, _)                                                                                       \
    F(U32, weight, 7, _)      /* + 1 */                                                                               \
    F(STR, comment, 8, _)     /* NODE_OP_SET, as the following: "" takes it away */                                   \
    F(STR, extra, 9, _)                                                                                               \
    F(STRS, instance_ids, 10, _)   /* one for all, or one each in the order of node_ids */                            \
    F(STRS, instance_types, 11, _)                                                                                    \
    F(BOOL, has_gres, 12, _)                                                                                          \
    F(LIST, gres, 13, gres)                                                                                           \
    F(LIST, labels, 14, selector) /* NODE_OP_LABEL: changes; no value: the key goes */                                \
    F(BOOL, force, 15, _)         /* NODE_OP_DELETE: jobs there are ended first */                                    \
    F(BOOL, bar, 16, _)           /* NODE_OP_DELETE: the agent that is there may not join again; one started anew may */ \
    F(U32, kind, 17, _)           /* NODE_OP_DRAIN: enum drain_kind */                                                \
    F(I64, until_unix, 18, _)     /* NODE_OP_DRAIN, NODE_OP_DOWN: it goes by itself then; 0: as it was, -1: never */   \
    F(BOOL, only_due, 19, _)      /* NODE_OP_RESUME: what was to go by itself until now */                            \
    F(BOOL, silent, 20, _)        /* NODE_OP_SET: it does not respond, until it is heard the next time */               \
    F(STRS, active, 131, _)       /* NODE_OP_SET, with has_active; features without it: all of them */                \
    F(BOOL, has_active, 132, _)
REC_DECLARE(cmd_node_update, CMD_NODE_UPDATE_FIELDS)

/* Until the next configuration file that is applied. */
enum part_op { PART_OP_CREATE = 1, PART_OP_UPDATE = 2, PART_OP_DELETE = 3 };
#define CMD_PARTITION_FIELDS(F)                                                                                       \
    F(U32, op, 1, _)      /* enum part_op */                                                                          \
    F(SUB, part, 2, part) /* name, and the new values; complete for PART_OP_CREATE, where apply gives the id */       \
    F(U32, changes, 3, _) /* PART_OP_UPDATE: bits of enum part_change */
REC_DECLARE(cmd_partition, CMD_PARTITION_FIELDS)

/* What a command answers, beside its code. */
#define ANSWER_ITEM_FIELDS(F)                                                                                          \
    F(U32, job_id, 1, _)                                                                                               \
    F(U32, error, 2, _) /* row of err.def; 0: done */                                                                  \
    F(STR, text, 3, _)
REC_DECLARE(answer_item, ANSWER_ITEM_FIELDS)
#define ANSWER_FIELDS(F)                                                                                               \
    F(U32, job_id, 1, _)                                                                                               \
    F(STR, sluid, 2, _)                                                                                                \
    F(LIST, items, 3, answer_item) /* for commands that name several jobs: one each, in order */                       \
    F(U32, node_id, 4, _)                                                                                             \
    F(U32, step_id, 5, _)
REC_DECLARE(answer, ANSWER_FIELDS)

struct command_head {
    enum command command;
    uint32_t uid; /* who asked; the scope of the token */
    int64_t now_ms;
    const uint8_t *token; /* COMMAND_TOKEN_SIZE bytes, or NULL: not a client's */
};

void command_encode(const struct command_head *h, const void *record, struct buf *out);
/* E_CORRUPT; E_VERSION for a version or command that this program does not know. *out_record is in the arena. */
int command_decode(const void *p, size_t n, struct arena *a, struct command_head *out, void **out_record,
                   struct err *e);
const char *command_name(enum command c);
const struct rec_desc *command_record(enum command c); /* NULL: no such command */

#endif
