/* SPDX-License-Identifier: Apache-2.0
 *
 * What several commands do to a run: take and free nodes, end it, close it.
 *
 *     START ─► RUNNING+configuring ─► RUNNING ⇄ SUSPENDED ─► final state+completing ─► over
 *                    │ undo             │ requeue               ▲                        │ requeue
 *                    └──────────────────┴──► PENDING+completing └ cancel, limit,         └──► PENDING
 *                                              └──► PENDING       script's end, node lost
 *
 * A node's share is free the moment that node is clean, not before, and exactly once (job_node.is_done).
 */
#include "base/mem.h"
#include "core/state/inside.h"

static void change_node(struct apply *ap, const struct job *j, const struct job_node *jn, int by) {
    const struct node *old = state_node(ap->s, jn->node_id);
    if (!old)
        return;
    struct node n = *old;
    must(by > 0 || (n.alloc_cpus >= jn->cpus && n.alloc_mem_mb >= jn->mem_mb && n.n_jobs > 0));
    n.alloc_cpus += by > 0 ? jn->cpus : -jn->cpus;
    n.alloc_mem_mb += by > 0 ? jn->mem_mb : -jn->mem_mb;
    n.n_jobs += by > 0 ? 1u : -1u;
    n.last_busy_unix = ap->now_ms / 1000;
    share_hold(ap, j, jn, &n, by > 0);
    state_put_node(ap->s, &n);
}

void run_hold_nodes(struct apply *ap, const struct job *j) {
    for (uint32_t i = 0; i < j->n_nodes; i++)
        change_node(ap, j, &j->nodes[i], 1);
    licenses_count(ap->s, j, true);
}

void run_free_node(struct apply *ap, const struct job *j, const struct job_node *jn) {
    change_node(ap, j, jn, -1);
    apply_event(ap, EV_NODE_CHANGED, 0, 0, jn->node_id);
}

struct job_node *run_own_nodes(struct apply *ap, struct job *j) {
    struct job_node *nodes = arena_memdup(ap->arena, j->nodes, j->n_nodes * sizeof(*nodes));
    j->nodes = nodes;
    return nodes;
}

void run_count_completing(struct apply *ap, const struct job_node *jn, int by) {
    const struct node *old = state_node(ap->s, jn->node_id);
    if (!old)
        return;
    struct node n = *old;
    must(by > 0 || n.n_completing > 0);
    n.n_completing += by > 0 ? 1u : -1u;
    state_put_node(ap->s, &n);
}

void run_count_suspended(const struct apply *ap, struct job_rare *r) {
    if (r->suspended_ms)
        r->suspended_total_ms += ap->now_ms - r->suspended_ms;
    r->suspended_ms = 0;
}

/* Back in the queue with nothing of the run left but its number. */
static void wait_again(struct apply *ap, struct job *j) {
    j->nodes = NULL;
    j->n_nodes = 0;
    j->n_cpus = 0;
    j->partition = NULL;
    j->start_ms = j->end_ms = j->kill_ms = 0;
    state_put_job(ap->s, j);
    apply_event(ap, EV_JOB_PENDING, j->id, j->start_no, 0);
}

static void keep_life(struct apply *ap, const struct job *j) {
    struct job life = *j;
    life.completing = false;
    life.state = j->reason == REASON_NODE_DOWN ? JOB_NODE_FAIL : JOB_REQUEUED;
    life.end_ms = j->end_ms ? j->end_ms : ap->now_ms;
    life.ended_index = ap->index;
    vec_push(&ap->out->lives, rec_pack(job_rec(), &life));
    apply_event(ap, EV_JOB_REQUEUED, j->id, j->start_no, 0);
}

void run_requeue(struct apply *ap, struct job *j) {
    static const struct job_rare nothing;
    struct job_rare rare = *job_rare_of(j);
    bool lost = !job_is_over(j) && j->reason == REASON_NODE_DOWN;
    const struct rconf *conf = ap->s->cluster->conf;
    if (!job_is_over(j)) /* one that was over is in the history as it ended */
        keep_life(ap, j);
    j->state = JOB_PENDING;
    j->completing = j->configuring = false;
    j->sluid = rare.new_sluid ? rare.new_sluid : derived_sluid(ap, j->sluid, j->id);
    j->reason = !rare.requeue_hold ? job_hold_reason(j->hold) : lost ? REASON_MAX_REQUEUE : REASON_REQUEUED_HELD;
    j->hold = MAX(j->hold, rare.requeue_hold); /* what was held while it ran stays so */
    if (!licenses_exist(ap, j->spec)) { /* configured away meanwhile: it could never start */
        j->hold = MAX(j->hold, HOLD_ADMIN);
        j->reason = REASON_LICENSE_GONE;
    }
    j->restarts++;
    j->submit_ms = ap->now_ms;
    j->eligible_unix = MAX(ap->now_ms / 1000, j->spec->begin_unix);
    j->state_text = NULL;
    j->wait_status = j->end_uid = j->launch_failures = j->time_limit_min = 0;
    j->max_rss_kb = j->user_cpu_us = j->sys_cpu_us = j->ended_index = 0;
    j->retry_unix = conf && conf->requeue_delay_secs ? ap->now_ms / 1000 + conf->requeue_delay_secs : 0;
    rare = (struct job_rare){.priority_set = rare.priority_set, .limit_set = rare.limit_set,
                             .next_step_id = rare.next_step_id, .special_exit = rare.special_exit};
    j->rare = rec_same(job_rare_rec(), &rare, &nothing) ? NULL : &rare;
    wait_again(ap, j);
    j->rare = state_job(ap->s, j->id)->rare;
    deps_resolve(ap, j);
    deps_judge(ap, j->id);
}

/* The last node is clean. `j` is put, still as one that holds nodes, or has had none. */
static void close_run(struct apply *ap, struct job *j) {
    if (j->n_nodes)
        licenses_count(ap->s, j, false);
    if (j->state == JOB_PENDING && job_rare_of(j)->requeue_wanted) {
        run_requeue(ap, j);
        return;
    }
    j->completing = false;
    if (j->state == JOB_PENDING) { /* an undone start: as if it had never been */
        if (!j->hold || j->reason == REASON_CLEANING)
            j->reason = job_hold_reason(j->hold);
        wait_again(ap, j);
        return;
    }
    if (!j->end_ms)
        j->end_ms = ap->now_ms;
    j->ended_index = ap->index;
    state_put_job(ap->s, j);
    apply_event(ap, EV_JOB_OVER, j->id, j->start_no, 0);
    deps_resolve(ap, j);
}

static bool any_left(const struct job *j) {
    for (uint32_t i = 0; i < job_n_held(j); i++)
        if (!job_held(j, i)->is_done)
            return true;
    return false;
}

void run_close_if_clean(struct apply *ap, struct job *j) {
    if (j->completing && !any_left(j))
        close_run(ap, j);
    else
        state_put_job(ap->s, j);
}

void run_end(struct apply *ap, struct job *j, uint32_t state, uint32_t reason) {
    struct job_rare rare = *job_rare_of(j);
    must(state == j->state || job_may_move(j->state, state));
    if (rare.suspended_ms || (rare.requeue_wanted && state != JOB_PENDING)) {
        run_count_suspended(ap, &rare);
        rare.requeue_wanted &= state == JOB_PENDING; /* who cancels it meanwhile has the last word */
        j->rare = arena_memdup(ap->arena, &rare, sizeof(rare));
    }
    steps_end(ap, j);
    j->state = state;
    j->reason = reason;
    j->configuring = false;
    if (!j->completing)
        for (uint32_t i = 0; i < j->n_nodes; i++)
            if (!j->nodes[i].is_done)
                run_count_completing(ap, &j->nodes[i], 1);
    j->completing = true;
    if (!any_left(j)) {
        close_run(ap, j);
        return;
    }
    state_put_job(ap->s, j);
    apply_event(ap, EV_JOB_ENDING, j->id, j->start_no, 0);
    deps_resolve(ap, j); /* it has begun by now; or it waits again, and who had seen it begin does too */
}

void run_node_clean(struct apply *ap, struct job *j, uint32_t node_id) {
    struct job_node *nodes = run_own_nodes(ap, j);
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        if (nodes[i].node_id == node_id && !nodes[i].is_done) {
            nodes[i].is_done = true;
            if (j->completing)
                run_count_completing(ap, &nodes[i], -1);
            state_put_job(ap->s, j);
            steps_node_clean(ap, j, node_id);
            run_free_node(ap, j, &nodes[i]);
        }
    }
    run_close_if_clean(ap, j);
}
