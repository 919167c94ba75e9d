/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the state machine, for the files of this folder only.
 */
#ifndef SPUR_CORE_STATE_INSIDE_H
#define SPUR_CORE_STATE_INSIDE_H

#include "base/map.h"
#include "core/state/idset.h"
#include "core/state/state.h"

#define TOKEN_KEEP_MS 600000
#define TOKEN_KEEP_MAX 250000u
#define TOKEN_ANSWER_MAX 4096u

struct state {
    struct cow_epochs *epochs;
    struct cow_table jobs, nodes, parts, tokens, steps;
    struct cluster *cluster; /* packed; never NULL */
    struct counters counters;
    uint64_t index;
    bool checking;
    bool is_left;     /* freed by its owner; goes with the last view */
    uint32_t n_views; /* out */

    /* Derived, made again after a restore, not part of the digest. */
    struct map64 token_at;  /* scope of a token → its number + 1, as a pointer */
    struct map64 children;  /* job id → the jobs that name it in a dependency */
    struct map64 arrays;    /* array id → its records but for its own; count: those of all that hold nodes */
    struct map64 node_jobs; /* node id → the jobs that hold a share of it */
    struct maps licenses;   /* name → struct license_use */
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
void state_del_node(struct state *s, uint32_t id);
void state_put_step(struct state *s, const struct step *st);
void state_del_step(struct state *s, uint32_t job_id, uint32_t id);
void state_del_steps(struct state *s, uint32_t job_id); /* all of the job's */
void state_set_cluster(struct state *s, const struct cluster *c);
void state_set_parts(struct state *s, const struct part *parts, uint32_t n); /* none of them the state's own */
void state_put_part(struct state *s, const struct part *p);
void state_del_part(struct state *s, uint32_t id);
static inline const struct job *state_job(const struct state *s, uint32_t id) {
    return cow_get(s->jobs.root, id);
}
static inline const struct node *state_node(const struct state *s, uint32_t id) {
    return cow_get(s->nodes.root, id);
}
static inline const struct step *state_step(const struct state *s, uint32_t job_id, uint32_t step_id) {
    return cow_get(s->steps.root, step_key(job_id, step_id));
}
void state_derive(struct state *s); /* makes the derived part from the tables */

/* ---- apply.c ---- */

void apply_event(struct apply *ap, enum event_kind kind, uint32_t job_id, uint32_t start_no, uint32_t node_id);
void apply_step_event(struct apply *ap, enum event_kind kind, const struct step *st);
int apply_refuse(struct apply *ap, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Items of the answer, one a job, in order. `fmt` NULL: the code's sentence. */
struct answer_item *apply_items(struct apply *ap, uint32_t n);
void apply_item(struct answer_item *it, uint32_t job_id, int code);

/* ---- token.c ---- */

const struct token_rec *token_find(const struct state *s, const uint8_t *token, uint32_t uid);
void token_remember(struct apply *ap);
uint64_t token_scope(const uint8_t *token, uint32_t uid);

/* ---- deps.c ---- */

void deps_index(struct state *s, const struct job *j);   /* a job appears, */
void deps_unindex(struct state *s, const struct job *j); /* and goes */
/* 0 or E_DEPENDENCY; `out`, where not NULL, gets spec's dependencies. `job_id` may exist already or not. */
int deps_check(struct apply *ap, uint32_t job_id, const struct job_spec *spec, struct dep *out);
/* Puts spec's dependencies, which were checked, in the place of j's. Doesn't put j. */
void deps_replace(struct apply *ap, struct job *j, const struct job_spec *spec);
void deps_judge(struct apply *ap, uint32_t job_id); /* the job has just got its dependencies */
void deps_split(struct apply *ap, uint32_t from, uint32_t id); /* a group was split */
void deps_resolve(struct apply *ap, const struct job *parent); /* the parent is over, or began, or waits again */
void deps_orphan(struct apply *ap, uint32_t parent_id); /* it is about to leave the state */
bool deps_are_sound(const struct state *s, const struct job *j); /* what is kept is what the parents' records say */

/* ---- targets.c ---- */

/* Does something to one record, or refuses. `dry`: only says whether it would. */
typedef int (*target_fn)(struct apply *ap, const struct job *j, void *arg, bool dry);
/* One item of the answer for each id and target, in order. A whole array is done when one of its records is. */
void targets_each(struct apply *ap, const uint32_t *ids, uint32_t n_ids, const struct job_target *targets, uint32_t n,
                  target_fn fn, void *arg);
int target_each(struct apply *ap, const struct job_target *t, target_fn fn, void *arg);
/* Takes tasks, not all, out of a group: a record of their own. Its id (`id`, or the next free one); 0: none is free. */
uint32_t array_split(struct apply *ap, const struct job *from, const struct array_range *tasks, uint32_t n,
                     uint32_t id, const char *sluid);
const struct array_range *array_both(struct apply *ap, const struct array_range *a, uint32_t n_a,
                                     const struct array_range *b, uint32_t n_b, uint32_t *out_n);
const char *derived_sluid(struct apply *ap, const char *from, uint32_t id);

/* ---- apply_step.c ---- */

int step_set_limit(struct apply *ap, const struct job *j, uint32_t step_id, uint32_t limit_min, bool dry);

/* ---- arrays.c: the counters in an array's own record, and the index of its others ---- */

void arrays_put(struct state *s, const struct job *old, const struct job *j); /* puts j */
void arrays_del(struct state *s, const struct job *j);
void arrays_derive(struct state *s, const struct job *j);
bool job_has_begun(const struct job *j);
uint32_t job_n_tasks(const struct job *j); /* of an array that the record stands for */

/* ---- share.c: generic resources, sharing, licences ---- */

struct license_use {
    uint32_t used;
    char name[];
};
int share_check(struct apply *ap, const struct job *j, const struct job_start *st, const struct node *n,
                const struct job_node *want);
void share_hold(struct apply *ap, const struct job *j, const struct job_node *jn, struct node *n, bool take);
/* What the start is to have, chosen among alternatives where it doesn't say; E_LICENSE. */
int licenses_pick(struct apply *ap, const struct job_spec *spec, const struct job_start *st,
                  const struct license_ask **out, uint32_t *out_n);
bool licenses_exist(struct apply *ap, const struct job_spec *spec); /* as many as it asks for are configured */
void licenses_count(struct state *s, const struct job *j, bool take);
void licenses_free(struct state *s);

/* ---- apply_step.c ---- */

#define STATUS_OOM 125 /* the wait status of what was killed by its memory limit: 0:125, as Slurm's */
void steps_end(struct apply *ap, const struct job *j); /* the job is to end */
/* The job has lost the node: steps that ran there end everywhere, but for those with --no-kill. */
void steps_node_lost(struct apply *ap, const struct job *j, uint32_t node_id);
void steps_node_clean(struct apply *ap, const struct job *j, uint32_t node_id);

/* ---- invariant_more.c ---- */

int check_shares(const struct state *s, const struct node *n, struct err *e);
int check_others(const struct state *s, struct err *e); /* arrays, steps, licences */

/* ---- others ---- */

void node_overlay_apply(struct apply *ap, struct node *n); /* apply_node.c: configuration and what was set by hand */
bool job_may_requeue(const struct job *j); /* apply_steer.c */

/* ---- run.c: what several commands do to a run ---- */

/* Takes `nodes` of the job, which is put already, from the nodes' records. */
void run_hold_nodes(struct apply *ap, const struct job *j);
/* The run is to end as `state` for `reason`: becomes completing, and over when no node is left. */
void run_end(struct apply *ap, struct job *j, uint32_t state, uint32_t reason);
/* Marks one node of the run as clean and closes the run when it was the last. Puts the job. */
void run_node_clean(struct apply *ap, struct job *j, uint32_t node_id);
/* A job that is over, or whose run has just ended, waits again: hold and sluid are in its job_rare. Puts the job. */
void run_requeue(struct apply *ap, struct job *j);
uint32_t job_max_requeues(const struct state *s);
void run_node_gone(struct apply *ap, uint32_t job_id, uint32_t node_id); /* apply_run.c: a node of it leaves the cluster */
void run_node_down(struct apply *ap, uint32_t job_id, uint32_t node_id); /* apply_run.c: set down by hand; it answers still */
void run_count_suspended(const struct apply *ap, struct job_rare *r); /* it is suspended no longer */
/* A node's share is given back; the job is put already, without it. */
void run_free_node(struct apply *ap, const struct job *j, const struct job_node *jn);
void run_count_completing(struct apply *ap, const struct job_node *jn, int by);
void run_close_if_clean(struct apply *ap, struct job *j); /* it ends, and nothing is left of it. Else it is put */

/* ---- resize.c: a run is made smaller ---- */

/* Whether the update wants it of this job, which runs. */
bool resize_is_asked(const struct cmd_update *cmd, const struct job *j);
int resize_check(struct apply *ap, const struct cmd_update *cmd, const struct job *j);
/* What is not kept becomes `leaving`. Changes j, its spec and its job_rare, which are the caller's; doesn't put it. */
void resize(struct apply *ap, const struct cmd_update *cmd, struct job *j, struct job_spec *spec, struct job_more *more,
            struct job_rare *rare);
/* A node is lost. Whether the run goes on without it: then it is one of its leaving, and the job is put. */
bool resize_without(struct apply *ap, struct job *j, uint32_t node_id);
void resize_node_clean(struct apply *ap, struct job *j, uint32_t node_id); /* one of its leaving is. Puts the job */

/* A copy of the job's nodes that may be changed, in the arena. */
struct job_node *run_own_nodes(struct apply *ap, struct job *j);

#endif
