/* SPDX-License-Identifier: Apache-2.0
 *
 * What only the leader does by the clock: hands out job ids, watches nodes, ends runs at their limit, lets old jobs go,
 * offers the configuration. All of it is proposed; nothing here is state.
 */
#ifndef SPUR_SPURCTLD_LEAD_H
#define SPUR_SPURCTLD_LEAD_H

#include "spurctld/room.h"

#define SLUID_SIZE 15 /* `s`, 13 characters, NUL */

struct lead *lead_new(struct room *r);
void lead_free(struct lead *l);
void lead_begin(struct lead *l); /* leadership gained: the state is current */
void lead_end(struct lead *l);
void lead_on_event(struct lead *l, const struct event *ev);

uint32_t lead_take_job_id(struct room *r); /* 0: none is free */
/* The first of n ids behind the one that was taken just now, which are taken too; 0: there are not so many. */
uint32_t lead_take_ids_behind(struct room *r, uint32_t n);
uint32_t lead_next_job_id(struct room *r); /* what that would give now, most likely */
void lead_new_sluid(struct room *r, char out[SLUID_SIZE]);

/* A sign of life. The load is kept for those who ask (hundredths + 1, MiB + 1; 0: unknown). */
void lead_heard(struct lead *l, uint32_t node_id, uint32_t cpu_load_hundredths, uint64_t free_mem_mb);
/* Whether the agent should send its list of runs: its hash is another than when we last saw the list. */
bool lead_runs_changed(struct lead *l, uint32_t node_id, uint64_t runs_hash, bool has_list);
/* It could not be called, though it may call us: for a while it is not asked to register, which would make it take work. */
void lead_shun(struct lead *l, uint32_t node_id);
bool lead_is_shunned(const struct lead *l, uint32_t node_id);
/* The node's next heartbeat is asked for the list, whatever its hash. */
void lead_ask_runs(struct lead *l, uint32_t node_id);
/* The jobs that hold nodes now, in no order, without a scan of all jobs: for (size_t c = 0; lead_next_holding(l, &c, &id);) */
bool lead_next_holding(const struct lead *l, size_t *cursor, uint32_t *out_job_id);

/* A run (step 0), or a step of one (its id + 1), that its agent did not list: true when that was so before, in an earlier
 * list, and no list between had it. */
bool lead_suspect(struct lead *l, uint32_t job_id, uint32_t start_no, uint32_t step_plus_1, uint32_t node_id);
void lead_listed(struct lead *l, uint32_t job_id, uint32_t start_no, uint32_t step_plus_1, uint32_t node_id);
/* The client of an interactive job (step 0), or of a step (its id + 1), is there; or goes, and need not come back. */
void lead_attended(struct lead *l, uint32_t job_id, uint32_t step_plus_1, bool leaving);
uint64_t lead_attend_ms(const struct lead *l); /* so long nobody need be heard of */
struct lead_node {
    uint32_t cpu_load_hundredths;
    uint64_t free_mem_mb;
    int64_t last_unix;
};
struct lead_node lead_node(const struct lead *l, uint32_t node_id);

/* Offers this member's file: by the hash rule of the design, with `force` (scontrol reconfigure) always.
 * done's answer is empty. */
void lead_offer_config(struct lead *l, bool force, host_proposed_fn done, void *arg);
/* The same of a member that doesn't lead: what it sends to the leader (borrowed from its configuration). False: nothing. */
struct offer_request;
bool lead_has_offer(const struct lead *l, struct offer_request *out);
void lead_take_offer(struct lead *l, uint32_t member_id, const struct offer_request *req, host_proposed_fn done, void *arg);

#endif
