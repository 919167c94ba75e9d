/* SPDX-License-Identifier: Apache-2.0
 *
 * What sinfo and scontrol both say of nodes and partitions.
 */
#ifndef SPUR_SPUR_NODE_FACTS_H
#define SPUR_SPUR_NODE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "spur/spur.h"

/* Base states in Slurm's numbers; sinfo sorts by them. */
enum node_shown_base { NODE_SHOWN_UNKNOWN, NODE_SHOWN_DOWN, NODE_SHOWN_IDLE, NODE_SHOWN_ALLOCATED, NODE_SHOWN_MIXED = 5 };
enum node_shown_base node_shown_base(const struct node *n);
bool node_is_busy(const struct node *n);
uint32_t node_sort_state(const struct node *n); /* base with its flags above it */

/* As node_shown_state and node_state_upper have it, and whether it is planned: "plnd", "mix-"; "IDLE+PLANNED". */
const char *node_info_state(const struct node_info *ni, bool compact, char out[24]);
const char *node_info_state_upper(const struct node_info *ni, char out[64]);

/* Why it takes no work: text of all causes, and of the first one since when and by whom. NULL and 0: none. */
void node_reason(const struct node *n, struct str *out);
int64_t node_reason_since(const struct node *n);
const char *node_reason_user(const struct node *n);

/* CPUs that are neither taken nor to be had. */
uint32_t node_other_cpus(const struct node *n);
uint32_t node_idle_cpus(const struct node *n);

void index_list(const uint32_t *list, uint32_t n, struct str *out); /* "0-1,3" */
void features_print(const struct node *n, struct str *out); /* "ib,zen" or "(null)" */
void active_print(const struct node *n, struct str *out);   /* those that are active */
void node_gres(const struct node *n, struct str *out);      /* "gpu:h100:4,gpu:2"; nothing: none */
void node_gres_used(const struct node *n, struct str *out); /* "gpu:h100:1(IDX:0),gpu:0(IDX:N/A)" */
/* ",gres/gpu=6,gres/gpu:a100=2": what there is, or what jobs have. */
void node_gres_tres(const struct node *const *n, uint32_t n_nodes, bool used, struct str *out);
void part_groups(const struct part *p, const char *all, struct str *out);
const char *part_exclusive(const struct part *p); /* "NO", "NODE", "USER", "TOPO" */
void part_over_subscribe(const struct part *p, struct str *out); /* "NO", "EXCLUSIVE", "YES:4", "FORCE:2" */
/* Whether sinfo -t selects it by this word, or words that are joined by & or +; ~ or ! in front of a word: those that are
 * not in that state. `ni` may be NULL, to ask only whether all words are known. */
bool node_state_matches(const struct node_info *ni, const char *term, bool *out_known);
const char *node_valid_states(void);
struct nodes_reply;
void node_drop_future(struct nodes_reply *all); /* nodes in state FUTURE are shown to those who ask for them */

#endif
