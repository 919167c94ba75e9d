/* SPDX-License-Identifier: Apache-2.0
 *
 * What several commands do to a run: take and free nodes, end it, close it.
 *
 *     START ─► RUNNING+configuring ─► RUNNING ─► final state+completing ─► over
 *                    │ undo                                ▲
 *                    └──► PENDING+completing ─► PENDING    └ cancel, limit, script's end, node lost
 *
 * A node's share is free the moment that node is clean, not before, and exactly once (job_node.is_done).
 */
#include "base/mem.h"
#include "core/state/inside.h"

static void change_node(struct apply *ap, const struct job_node *jn, int by) {
    const struct node *old = state_node(ap->s, jn->node_id);
    if (!old)
        return;
    struct node n = *old;
    must(by > 0 || (n.alloc_cpus >= jn->cpus && n.alloc_mem_mb >= jn->mem_mb && n.n_jobs > 0));
    n.alloc_cpus += by > 0 ? jn->cpus : -jn->cpus;
    n.alloc_mem_mb += by > 0 ? jn->mem_mb : -jn->mem_mb;
    n.n_jobs += by > 0 ? 1u : -1u;
    n.last_busy_unix = ap->now_ms / 1000;
    state_put_node(ap->s, &n);
}

void run_hold_nodes(struct apply *ap, const struct job *j) {
    for (uint32_t i = 0; i < j->n_nodes; i++)
        change_node(ap, &j->nodes[i], 1);
}

void run_free_node(struct apply *ap, const struct job_node *jn) {
    change_node(ap, jn, -1);
    apply_event(ap, EV_NODE_CHANGED, 0, 0, jn->node_id);
}

struct job_node *run_own_nodes(struct apply *ap, struct job *j) {
    struct job_node *nodes = arena_memdup(ap->arena, j->nodes, j->n_nodes * sizeof(*nodes));
    j->nodes = nodes;
    return nodes;
}

static void count_completing(struct apply *ap, const struct job_node *jn, int by) {
    const struct node *old = state_node(ap->s, jn->node_id);
    if (!old)
        return;
    struct node n = *old;
    must(by > 0 || n.n_completing > 0);
    n.n_completing += by > 0 ? 1u : -1u;
    state_put_node(ap->s, &n);
}

/* The last node is clean. */
static void close_run(struct apply *ap, struct job *j) {
    j->completing = false;
    if (j->state == JOB_PENDING) { /* an undone start: as if it had never been, but for its number */
        j->nodes = NULL;
        j->n_nodes = 0;
        j->n_cpus = 0;
        j->partition = NULL;
        j->reason = j->hold ? j->reason : REASON_NONE;
        j->start_ms = j->end_ms = j->kill_ms = 0;
        state_put_job(ap->s, j);
        apply_event(ap, EV_JOB_PENDING, j->id, j->start_no, 0);
        return;
    }
    if (!j->end_ms)
        j->end_ms = ap->now_ms;
    j->ended_index = ap->index;
    state_put_job(ap->s, j);
    apply_event(ap, EV_JOB_OVER, j->id, j->start_no, 0);
    deps_resolve(ap, j);
}

void run_end(struct apply *ap, struct job *j, uint32_t state, uint32_t reason) {
    must(state == j->state || job_may_move(j->state, state));
    j->state = state;
    j->reason = reason;
    j->configuring = false;
    bool any_left = false;
    if (!j->completing)
        for (uint32_t i = 0; i < j->n_nodes; i++)
            if (!j->nodes[i].is_done)
                count_completing(ap, &j->nodes[i], 1);
    j->completing = true;
    for (uint32_t i = 0; i < j->n_nodes; i++)
        any_left |= !j->nodes[i].is_done;
    if (!any_left) {
        close_run(ap, j);
        return;
    }
    state_put_job(ap->s, j);
    apply_event(ap, EV_JOB_ENDING, j->id, j->start_no, 0);
}

void run_node_clean(struct apply *ap, struct job *j, uint32_t node_id) {
    struct job_node *nodes = run_own_nodes(ap, j);
    bool any_left = false;
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        if (nodes[i].node_id == node_id && !nodes[i].is_done) {
            nodes[i].is_done = true;
            if (j->completing)
                count_completing(ap, &nodes[i], -1);
            run_free_node(ap, &nodes[i]);
        }
        any_left |= !nodes[i].is_done;
    }
    if (!any_left && j->completing)
        close_run(ap, j);
    else
        state_put_job(ap->s, j);
}
