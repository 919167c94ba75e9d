/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes and partitions. Records of base/rec.h.
 */
#ifndef SPUR_CORE_MODEL_NODE_H
#define SPUR_CORE_MODEL_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/rec.h"

/* The base state; allocation and drain are derived: see node_shown_state. */
enum node_base { NODE_UNKNOWN = 0, NODE_UP = 1, NODE_DOWN = 2 };

/* What a cause that keeps work away is shown as; one that is to come (FUTURE) is not shown unless it is asked for. */
enum drain_kind { DRAIN_PLAIN = 0, DRAIN_FAIL = 1, DRAIN_FUTURE = 2, DRAIN_KIND_LAST = DRAIN_FUTURE };

/* One party's wish that a node takes no new work. The node is back when the last cause is gone. */
#define DRAIN_FIELDS(F)                                                                                                \
    F(STR, owner, 1, _) /* "admin", "health", "agent": each owner has at most one of a kind */                                   \
    F(STR, text, 2, _)                                                                                                 \
    F(I64, since_unix, 3, _)                                                                                           \
    F(I64, until_unix, 4, _) /* it goes by itself then; 0: when somebody lifts it */                                   \
    F(BOOL, machine, 5, _) /* set by a machine, which may lift it again */                                             \
    F(STR, user, 6, _)     /* who set it, for sinfo -R */                                                              \
    F(U32, kind, 7, _)     /* enum drain_kind */
REC_DECLARE(drain, DRAIN_FIELDS)

/* A kind of generic resource that a node has. */
#define GRES_FIELDS(F)                                                                                                \
    F(STR, name, 1, _)   /* "gpu" */                                                                                  \
    F(STR, type, 2, _)   /* "a100"; NULL: no type */                                                                  \
    F(U64, count, 3, _)                                                                                               \
    F(STRS, files, 4, _) /* device files, one each, in the order of their indexes; none: a bare count */              \
    F(U32, first, 5, _)  /* index of the first one among all of that name on the node */                              \
    F(U64, alloc, 6, _)  /* taken by jobs; kept by apply */                                                           \
    F(U32S, taken, 7, _) /* indexes that jobs have, ascending; kept by apply */                                       \
    F(BOOL, no_consume, 8, _)  /* jobs that ask for it find it, and take nothing of it */                             \
    F(BOOL, is_explicit, 9, _) /* a job that has the node for itself has only what it asked for of it */
REC_DECLARE(gres, GRES_FIELDS)

/* A label of a node, or one that a selector asks for: the key, and its value. */
#define SELECTOR_FIELDS(F) F(STR, key, 1, _) F(STR, value, 2, _) /* NULL: the label is taken away */
REC_DECLARE(selector, SELECTOR_FIELDS)

/* What an agent says of itself where [[nodes]] says otherwise: it counts again when that goes. */
#define NODE_SAID_FIELDS(F)                                                                                            \
    F(STR, address, 1, _)                                                                                              \
    F(U32, cpus, 2, _)                                                                                                 \
    F(U64, mem_mb, 3, _)                                                                                               \
    F(STRS, features, 4, _)                                                                                           \
    F(LIST, gres, 5, gres)                                                                                             \
    F(LIST, labels, 6, selector)                                                                                       \
    F(BOOL, has_shape, 7, _) /* what follows is what it says; else it is not kept, and the node's is that */           \
    F(U32, sockets, 8, _)                                                                                              \
    F(U32, cores_per_socket, 9, _)                                                                                     \
    F(U32, threads_per_core, 10, _)                                                                                    \
    F(U64, tmp_disk_mb, 11, _)
REC_DECLARE(node_said, NODE_SAID_FIELDS)

/* What an administrator set by hand: until the next configuration file that is applied. */
#define NODE_SET_FIELDS(F)                                                                                             \
    F(BOOL, has_features, 1, _)                                                                                        \
    F(STRS, features, 2, _)                                                                                            \
    F(U32, weight, 3, _) /* + 1; 0: not set */                                                                         \
    F(STR, comment, 4, _)                                                                                              \
    F(STR, extra, 5, _)                                                                                                \
    F(STR, instance_id, 6, _)                                                                                          \
    F(STR, instance_type, 7, _)                                                                                        \
    F(BOOL, has_gres, 8, _)                                                                                            \
    F(LIST, gres, 9, gres)                                                                                             \
    F(BOOL, has_active, 131, _) /* else all features are active */                                                     \
    F(STRS, active, 132, _)
REC_DECLARE(node_set, NODE_SET_FIELDS)

#define NODE_FIELDS(F)                                                                                                 \
    F(U32, id, 1, _) /* 1…, in the order of registration; never reused */                                             \
    F(STR, name, 2, _)                                                                                                 \
    F(STR, address, 3, _) /* host or IP, without port */                                                               \
    F(U32, port, 4, _)                                                                                                 \
    F(STR, hostname, 5, _)                                                                                             \
    F(U32, cpus, 6, _)                                                                                                 \
    F(U32, sockets, 7, _)                                                                                              \
    F(U32, cores_per_socket, 8, _)                                                                                     \
    F(U32, threads_per_core, 9, _)                                                                                     \
    F(U64, mem_mb, 10, _)                                                                                              \
    F(U64, tmp_disk_mb, 11, _)                                                                                         \
    F(STRS, features, 12, _)                                                                                           \
    F(U32, weight, 13, _)                                                                                              \
    F(STR, arch, 14, _)                                                                                                \
    F(STR, os, 15, _)                                                                                                  \
    F(STR, version, 16, _)                                                                                             \
    F(I64, boot_unix, 17, _)                                                                                           \
    F(I64, agent_start_unix, 18, _)                                                                                    \
    F(BYTES, public_key, 19, _) /* 32 bytes; what its reports are signed with */                                       \
    F(U32, base, 20, _)         /* enum node_base */                                                                   \
    F(BOOL, not_responding, 21, _)                                                                                     \
    F(LIST, drains, 22, drain)                                                                                         \
    F(STR, down_reason, 23, _)                                                                                         \
    F(I64, down_since_unix, 24, _)                                                                                     \
    F(U32, alloc_cpus, 25, _) /* sum over the jobs on it; kept by apply */                                             \
    F(U64, alloc_mem_mb, 26, _)                                                                                        \
    F(U32, n_jobs, 27, _)                                                                                              \
    F(U32, n_completing, 28, _)                                                                                        \
    F(STR, boot_id, 29, _)                                                                                             \
    F(I64, last_busy_unix, 30, _)                                                                                      \
    F(SUB, said, 31, node_said) /* NULL: the fields above are what it says */                                         \
    F(LIST, gres, 32, gres)                                                                                           \
    F(U32, share_kind, 33, _)  /* enum job_share of the jobs that are there, the strictest; kept by apply */              \
    F(U32, share_uid, 34, _)   /* + 1: of SHARE_USER; kept by apply */                                                 \
    F(SUB, set, 35, node_set)                                                                                          \
    F(BOOL, down_set, 36, _)   /* DOWN by an administrator: it stays so when the node registers */                     \
    F(LIST, labels, 37, selector)        /* in the order of their keys */                                              \
    F(LIST, label_changes, 38, selector) /* by administrators: they go before what the agent says, for good */         \
    F(I64, down_until_unix, 39, _) /* with down_set: it is up again then by itself; 0: when somebody says so */ \
    F(BOOL, has_active, 131, _) /* not all features are active: those of `active` */                                   \
    F(STRS, active, 132, _)     /* in the order they were given; kept by apply */
REC_DECLARE(node, NODE_FIELDS)

enum over_subscribe { OVER_NO = 0, OVER_EXCLUSIVE = 1, OVER_YES = 2, OVER_FORCE = 3 };
enum part_state { PART_UP = 0, PART_DOWN = 1, PART_DRAIN = 2, PART_INACTIVE = 3 };

#define PART_FIELDS(F)                                                                                                 \
    F(U32, id, 1, _) /* 1…, in the order of the file */                                                                \
    F(STR, name, 2, _)                                                                                                 \
    F(U32, state, 3, _)                                                                                                \
    F(BOOL, is_default, 4, _)                                                                                          \
    F(STRS, nodes, 5, _)          /* names, expanded; empty with all_nodes */                                          \
    F(BOOL, all_nodes, 6, _)      /* neither nodes nor selector, or nodes = "ALL" */                                   \
    F(LIST, selectors, 7, selector) /* nodes that have all of these labels are its too */                              \
    F(U32, max_time_min, 8, _)    /* TIME_LIMIT_NONE: no bound */                                                      \
    F(U32, default_time_min, 9, _) /* 0: none, max_time is taken */                                                    \
    F(U32, max_nodes, 10, _)      /* 0: no bound */                                                                    \
    F(U32, min_nodes, 11, _)                                                                                           \
    F(U32, priority_tier, 12, _)                                                                                       \
    F(STR, nodes_text, 13, _)     /* as configured, for scontrol */                                                   \
    F(U32, over_subscribe, 14, _) /* enum over_subscribe */                                                           \
    F(U32, over_count, 15, _)     /* jobs that may share a CPU, of YES and FORCE */                                   \
    F(BOOL, exclusive_user, 16, _)                                                                                    \
    F(U32, max_cpus_per_node, 17, _) /* 0: no bound */                                                                \
    F(STRS, allow_groups, 18, _)                                                                                      \
    F(STRS, allow_accounts, 19, _)                                                                                    \
    F(BOOL, root_only, 20, _)                                                                                         \
    F(BOOL, hidden, 21, _)                                                                                            \
    F(U32, priority_job_factor, 22, _)                                                                                \
    F(BOOL, exclusive_topo, 23, _)
REC_DECLARE(part, PART_FIELDS)

/* New values of a partition's fields: those whose bit is set. */
enum part_change {
    PART_CHANGE_STATE = 1u << 0,
    PART_CHANGE_DEFAULT = 1u << 1,
    PART_CHANGE_NODES = 1u << 2, /* nodes, all_nodes, nodes_text */
    PART_CHANGE_MAX_TIME = 1u << 3,
    PART_CHANGE_DEFAULT_TIME = 1u << 4,
    PART_CHANGE_MAX_NODES = 1u << 5,
    PART_CHANGE_MIN_NODES = 1u << 6,
    PART_CHANGE_TIER = 1u << 7,
    PART_CHANGE_JOB_FACTOR = 1u << 8,
    PART_CHANGE_OVER = 1u << 9, /* over_subscribe, over_count */
    PART_CHANGE_EXCLUSIVE_USER = 1u << 10,
    PART_CHANGE_MAX_CPUS = 1u << 11,
    PART_CHANGE_GROUPS = 1u << 12,
    PART_CHANGE_ACCOUNTS = 1u << 13,
    PART_CHANGE_ROOT_ONLY = 1u << 14,
    PART_CHANGE_HIDDEN = 1u << 15,
    /* exclusive_user, exclusive_topo, and of over_subscribe whether it is OVER_EXCLUSIVE: what else it says stays */
    PART_CHANGE_EXCLUSIVE = 1u << 16,
    PART_CHANGES = (1u << 17) - 1,
};
/* Puts the values of `from` whose bits are set into `to`; borrows. */
void part_change(struct part *to, const struct part *from, uint32_t changes);

/* What sinfo and scontrol show: "idle", "mixed", "allocated", "down", "drained", "draining", "unknown", "completing"
 * (long) or "idle", "mix", "alloc", "down", "drain", "drng", "unk", "comp" (compact), with `*` when not responding. */
const char *node_shown_state(const struct node *n, bool compact, char out[24]);
/* Upper case as scontrol shows: IDLE, MIXED+DRAIN, DOWN+NOT_RESPONDING … */
const char *node_state_upper(const struct node *n, char out[64]);
struct node_said node_said(const struct node *n); /* borrowed from it */
uint32_t node_boot(const struct node *n); /* of its boot_id: differs when the machine was started anew; 0: not known */
const char *const *node_active(const struct node *n, uint32_t *out_n); /* features: all, or those set active */
bool node_takes_work(const struct node *n); /* up, responding, no drain */
bool node_is_marked(const struct node *n, enum drain_kind kind); /* there is such a cause */
int64_t node_until(const struct node *n); /* when it is back by itself, as an administrator wished; 0: not by itself */
bool part_has_node(const struct part *p, const struct node *n);
/* Whether all that the selectors ask for is among the labels; none: nothing is selected. */
bool selectors_match(const struct selector *want, uint32_t n_want, const struct selector *labels, uint32_t n_labels);
/* Puts changes over labels: a value of NULL takes the key away. The result is in the order of keys, in the arena. */
void labels_change(const struct selector *old, uint32_t n_old, const struct selector *change, uint32_t n_change,
                   bool keep_gone, struct arena *a, const struct selector **out, uint32_t *out_n);
/* "rack" and "spur.amd.com/zone": letters, digits, `-_./`, 1 to 63; a value may be empty and has no `/`. */
bool label_key_ok(const char *s);
bool label_value_ok(const char *s);
struct str;
/* "gpu=mi300x,rack=r1" */
void labels_print(const struct selector *labels, uint32_t n, struct str *out);
const char *part_state_name(uint32_t state); /* "UP" */

/* With whom a run shares its nodes: sharing.c. */
struct job_spec;
struct job_more;
enum oversubscribe { OVERSUBSCRIBE_NO, OVERSUBSCRIBE_YES, OVERSUBSCRIBE_OK /* it could, and did not ask */ };
struct sharing {
    uint32_t exclusive;     /* enum exclusive */
    uint32_t oversubscribe; /* enum oversubscribe */
};
struct sharing part_sharing(const struct part *p, const struct job_more *m);
uint32_t sharing_of_nodes(struct sharing s); /* enum job_share */
/* The spec itself, or where the partition settles something a copy in `spec` and `more` that says how. */
const struct job_spec *part_settle(const struct part *p, const struct job_spec *s, struct job_spec *spec, struct job_more *more);
const char *exclusive_word(const struct job_spec *s);     /* "NO", "NODE", "USER", "MCS", "TOPO" */
const char *oversubscribe_word(const struct job_spec *s); /* "NO", "YES", "OK" */

#endif
