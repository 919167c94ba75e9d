/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster's own facts in the state: the replicated configuration in force, keys, counters. One record.
 */
#ifndef SPUR_CORE_MODEL_CLUSTER_H
#define SPUR_CORE_MODEL_CLUSTER_H

#include "base/rec.h"
#include "core/model/node.h"

/* [[nodes]]: an overlay on what agents report. */
#define NODE_OVERLAY_FIELDS(F)                                                                                         \
    F(STRS, names, 1, _)                                                                                               \
    F(STRS, features, 2, _)                                                                                            \
    F(U32, weight, 3, _) /* 0: 1 */                                                                                    \
    F(STR, address, 4, _)                                                                                              \
    F(LIST, selectors, 5, selector) /* nodes that have all of these labels are named too */                            \
    F(U32, cpus, 6, _)      /* 0: what the agent reports */                                                            \
    F(U64, memory_mb, 7, _)                                                                                           \
    F(LIST, gres, 8, gres)                                                                                            \
    F(U32, sockets, 9, _) /* these: 0: what the agent reports */                                                       \
    F(U32, cores_per_socket, 10, _)                                                                                    \
    F(U32, threads_per_core, 11, _)                                                                                    \
    F(U64, tmp_disk_mb, 12, _)
REC_DECLARE(node_overlay, NODE_OVERLAY_FIELDS)

#define LICENSE_FIELDS(F) F(STR, name, 1, _) F(U32, count, 2, _)
REC_DECLARE(license, LICENSE_FIELDS)

/* Whether a job that breaks limits of its partitions is refused: never, when it breaks those of all, of any. */
enum enforce { ENFORCE_NO = 0, ENFORCE_ANY = 1, ENFORCE_ALL = 2 };

/* The replicated part of spur.conf. Made by core/model/config from the file, carried by command config_set. */
#define RCONF_FIELDS(F)                                                                                                \
    F(BYTES, hash, 1, _) /* of the replicated part's text, 32 bytes */                                                 \
    F(STR, cluster_name, 2, _)                                                                                         \
    F(LIST, parts, 3, part)                                                                                            \
    F(LIST, overlays, 4, node_overlay)                                                                                 \
    F(U32, interval_secs, 5, _)       /* [scheduler] */                                                                \
    F(U32, default_time_min, 6, _)    /* 0: the partition's */                                                         \
    F(U32, max_jobs_per_cycle, 7, _)                                                                                   \
    F(U32, min_job_age_secs, 8, _)                                                                                     \
    F(U32, kill_wait_secs, 9, _)                                                                                       \
    F(U32, heartbeat_timeout_secs, 10, _)                                                                              \
    F(U32, weight_age, 11, _)                                                                                          \
    F(U32, weight_job_size, 12, _)                                                                                     \
    F(U32, weight_partition, 13, _)                                                                                    \
    F(U32, max_age_secs, 14, _)       /* at which the age factor is 1 */                                               \
    F(U32, max_jobs, 15, _)           /* in the state at once */                                                       \
    F(U32, first_job_id, 16, _)                                                                                        \
    F(U32, max_job_id, 17, _)                                                                                          \
    F(U64, max_script_bytes, 18, _)                                                                                    \
    F(U64, max_env_bytes, 19, _)                                                                                       \
    F(STRS, admins, 20, _)            /* users that may do what root may */                                            \
    F(U32, max_launch_failures, 21, _)                                                                                 \
    F(U32, max_launch_backoff_secs, 22, _)                                                                             \
    F(U32, def_mem_per_cpu_mb, 23, _) /* 0: a job without --mem takes no memory */                                     \
    F(BOOL, admission_token, 24, _)   /* [admission] mode = "token" */                                                 \
    F(U32, launch_timeout_secs, 25, _) /* CONFIGURING is undone after */                                              \
    F(LIST, licenses, 26, license)                                                                                    \
    F(U32, max_array_size, 27, _)     /* one more than the highest task id; Slurm's default 1001 */                   \
    F(U32, max_requeues, 28, _)       /* after so many a job that lost a node is held */                              \
    F(U32, max_steps, 29, _)          /* of one job */                                                                \
    F(BOOL, no_requeue, 30, _)        /* JobRequeue=0: jobs are not queued again unless they ask for it */            \
    F(U32, attend_secs, 31, _)        /* an interactive job ends when its client was not heard of for so long */      \
    F(U32, batch_starts, 32, _)       /* starts in one command of the planner */                                      \
    F(U32, flavor, 33, _)             /* enum flavor of core/model/policy.h */                                         \
    F(U32, enforce_part_limits, 34, _) /* enum enforce */                                                              \
    F(U32, complete_wait_secs, 35, _)  /* what outlives SIGKILL so long is given up, and its node drained; 0: 60 */  \
    F(U32, requeue_delay_secs, 130, _) /* a job whose run ended to be queued again waits so long */
REC_DECLARE(rconf, RCONF_FIELDS)

/* The first overlay that names the node, or selects its labels; NULL: none. */
const struct node_overlay *rconf_overlay(const struct rconf *r, const char *node_name, const struct selector *labels,
                                         uint32_t n_labels);

/* Which configuration file each member started with last. */
#define MEMBER_FIELDS(F) F(U32, id, 1, _) F(BYTES, hash, 2, _)
REC_DECLARE(member, MEMBER_FIELDS)

/* A token that admits nodes (spur token create). */
#define JOIN_TOKEN_FIELDS(F)                                                                                          \
    F(STR, id, 1, _)   /* public part, shown by `spur token list` */                                                  \
    F(STR, hash, 2, _) /* hex, of the whole token */                                                                  \
    F(STR, text, 3, _) /* what it is for */                                                                           \
    F(I64, created_unix, 4, _)                                                                                        \
    F(I64, until_unix, 5, _) /* 0: for ever */                                                                        \
    F(U32, uid, 6, _)        /* who made it */
REC_DECLARE(join_token, JOIN_TOKEN_FIELDS)

/* A node that was removed while its agent may live: that agent stays out until it is started anew. */
#define REMOVED_NODE_FIELDS(F)                                                                                        \
    F(STR, name, 1, _) F(STR, boot_id, 2, _) F(I64, agent_start_unix, 3, _) F(I64, since_unix, 4, _)
REC_DECLARE(removed_node, REMOVED_NODE_FIELDS)

/* Changes rarely; what grows with each command is in `counters`. Tags 3, 4, 6 and 8 are free for ever. */
#define CLUSTER_FIELDS(F)                                                                                              \
    F(SUB, conf, 1, rconf)                                                                                             \
    F(LIST, members, 2, member)                                                                                        \
    F(BYTES, key_seed, 5, _) /* 32 bytes; the controllers' launch key where no jwt_key gives one */                    \
    F(STRS, join_tokens, 7, _) /* hashes in hex of tokens that admit a node, made at the first start */               \
    F(LIST, tokens, 9, join_token) /* those that administrators made */                                               \
    F(LIST, removed, 10, removed_node)
REC_DECLARE(cluster, CLUSTER_FIELDS)

/* NULL: no node of that name was removed. */
const struct removed_node *cluster_removed(const struct cluster *c, const char *name);
/* Whether it is the very agent that was removed. */
bool removed_is_same(const struct removed_node *r, const struct node *said);

#define COUNTERS_FIELDS(F)                                                                                             \
    F(U32, next_job_id, 1, _)                                                                                          \
    F(U32, next_node_id, 2, _)                                                                                         \
    F(I64, now_ms, 3, _)     /* the latest time of any command: never goes back */                                     \
    F(U64, next_token_no, 4, _)
REC_DECLARE(counters, COUNTERS_FIELDS)

#endif
