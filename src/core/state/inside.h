/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the state machine, for the files of this folder only.
 */
#ifndef SPUR_CORE_STATE_INSIDE_H
#define SPUR_CORE_STATE_INSIDE_H

#include "base/map.h"
#include "core/state/state.h"

#define TOKEN_KEEP_MS 600000
#define TOKEN_KEEP_MAX 250000u
#define TOKEN_ANSWER_MAX 4096u

struct state {
    struct cow_epochs *epochs;
    struct cow_table jobs, nodes, parts, tokens;
    struct cluster *cluster; /* packed; never NULL */
    struct counters counters;
    uint64_t index;
    bool checking;

    /* Derived, made again after a restore, not part of the digest. */
    struct map64 token_at;  /* scope of a token → its number + 1, as a pointer */
    struct map64 children;  /* job id → struct children: the jobs that depend on it */
    struct maps node_names; /* name → node id as a pointer */
    size_t n_state[JOB_N_STATES];
};

#define TOKEN_REC_FIELDS(F)                                                                                            \
    F(BYTES, token, 1, _)                                                                                              \
    F(U32, uid, 2, _)                                                                                                  \
    F(I64, at_ms, 3, _)                                                                                                \
    F(BYTES, answer, 4, _)
REC_DECLARE(token_rec, TOKEN_REC_FIELDS)

/* One apply: everything that a handler may look at beside its command. */
struct apply {
    struct state *s;
    const struct command_head *head;
    uint64_t index;
    int64_t now_ms; /* never before that of an earlier command */
    struct arena *arena;
    struct applied *out;
    struct answer answer;
};

#define COMMAND(name, number, record, fn, doc) int fn(struct apply *ap, const struct record *cmd);
#include "core/state/command.def"
#undef COMMAND

/* ---- state.c: the only functions that touch the tables ---- */

void state_put_job(struct state *s, const struct job *j);
void state_del_job(struct state *s, uint32_t id);
void state_put_node(struct state *s, const struct node *n);
void state_set_cluster(struct state *s, const struct cluster *c);
void state_set_parts(struct state *s, const struct part *parts, uint32_t n);
static inline const struct job *state_job(const struct state *s, uint32_t id) {
    return cow_get(s->jobs.root, id);
}
static inline const struct node *state_node(const struct state *s, uint32_t id) {
    return cow_get(s->nodes.root, id);
}
void state_derive(struct state *s); /* makes the derived part from the tables */

/* ---- apply.c ---- */

void apply_event(struct apply *ap, enum event_kind kind, uint32_t job_id, uint32_t start_no, uint32_t node_id);
int apply_refuse(struct apply *ap, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Items of the answer, one a job, in order. `fmt` NULL: the code's sentence. */
struct answer_item *apply_items(struct apply *ap, uint32_t n);
void apply_item(struct answer_item *it, uint32_t job_id, int code);

/* ---- token.c ---- */

const struct token_rec *token_find(const struct state *s, const uint8_t *token, uint32_t uid);
void token_remember(struct apply *ap);
uint64_t token_scope(const uint8_t *token, uint32_t uid);

/* ---- deps.c ---- */

void deps_index(struct state *s, const struct job *j);   /* a job appears */
void deps_unindex(struct state *s, uint32_t parent_id);  /* the parent leaves the state */
void deps_free(struct state *s);
uint32_t deps_verdict(const struct dep *d, const struct job *parent); /* enum dep_state */
void deps_resolve(struct apply *ap, const struct job *parent); /* the parent is over, or began */

/* ---- run.c: what several commands do to a run ---- */

/* Takes `nodes` of the job from, or gives them back to, the nodes' records. */
void run_hold_nodes(struct apply *ap, const struct job *j);
void run_free_node(struct apply *ap, const struct job_node *jn);
/* The run is to end as `state` for `reason`: becomes completing, and over when no node is left. */
void run_end(struct apply *ap, struct job *j, uint32_t state, uint32_t reason);
/* Marks one node of the run as clean and closes the run when it was the last. Puts the job. */
void run_node_clean(struct apply *ap, struct job *j, uint32_t node_id);
/* A copy of the job's nodes that may be changed, in the arena. */
struct job_node *run_own_nodes(struct apply *ap, struct job *j);

#endif
