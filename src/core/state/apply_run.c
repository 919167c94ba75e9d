/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands of the planner, of timers and of agents: a job gets its nodes, runs, and ends.
 */
#include <signal.h>

#include "base/mem.h"
#include "core/model/policy.h"
#include "core/state/inside.h"

/* Whether the node has been asked for before in this start; notes that it has. */
static bool is_again(uint8_t *seen, uint32_t node_id) {
    bool was = seen[node_id / 8] >> node_id % 8 & 1;
    seen[node_id / 8] |= (uint8_t)(1 << node_id % 8);
    return was;
}

/* A task of an array: is it waiting, and is its record's id free? */
static int check_task(struct apply *ap, const struct job *j, const struct job_start *st) {
    if (!job_is_group(j) || !st->array_task ||
        !array_has(j->array->pending, j->array->n_pending, st->array_task - 1))
        return E_STALE;
    const struct job *head = state_job(ap->s, j->array->job_id);
    bool has_ids = head && head->array->first_id;
    if (job_n_tasks(j) > 1 && !has_ids && (!st->new_job_id || st->new_job_id > JOB_ID_MAX || state_job(ap->s, st->new_job_id)))
        return E_STALE;
    return 0;
}

/* As many of the array run as may. */
static bool is_throttled(const struct state *s, const struct job *j) {
    const struct job *head = j->array ? state_job(s, j->array->job_id) : NULL;
    const struct idset *all = head ? idset_of(&s->arrays, head->id) : NULL;
    return all && head->array->max_running && all->count >= head->array->max_running;
}

/* The last word on a start: what the planner saw may be gone. */
static int check_start(struct apply *ap, const struct job *j, const struct job_start *st) {
    const struct state *s = ap->s;
    if (!j)
        return E_JOB_ID;
    if (j->state != JOB_PENDING || j->completing || st->start_no != j->start_no + 1)
        return E_STALE;
    if (j->hold)
        return E_JOB_HELD;
    if (!st->n_nodes || is_throttled(s, j))
        return E_NODES_UNAVAIL;
    uint8_t *seen = arena_calloc(ap->arena, s->counters.next_node_id / 8 + 1, 1);
    for (uint32_t i = 0; i < st->n_nodes; i++) {
        const struct job_node *want = &st->nodes[i];
        const struct node *n = state_node(s, want->node_id);
        if (!n || !node_takes_work(n) || !want->cpus)
            return E_NODES_UNAVAIL;
        if (share_check(ap, j, st, n, want) || is_again(seen, want->node_id))
            return E_NODES_UNAVAIL;
    }
    return st->array_task || job_is_group(j) ? check_task(ap, j, st) : 0;
}

/* The record that is to start: the job's, or of a group the task's. */
static const struct job *task_record(struct apply *ap, const struct job *j, const struct job_start *st) {
    if (!job_is_group(j))
        return j;
    struct array_range *one = arena_calloc(ap->arena, 1, sizeof(*one));
    one->first = one->last = st->array_task - 1;
    if (job_n_tasks(j) > 1 || (j->id == j->array->job_id && j->array->first_id))
        return state_job(ap->s, array_split(ap, j, one, 1, st->new_job_id, st->new_sluid));
    struct job *task = arena_memdup(ap->arena, j, sizeof(*j));
    struct job_array *array = arena_memdup(ap->arena, j->array, sizeof(*array));
    array->task = st->array_task;
    array->pending = NULL;
    array->n_pending = 0;
    task->array = array;
    return task;
}

/* `fresh` has what this start brings; what is of the job stays. */
static void set_rare(struct job *j, struct job_rare *fresh) {
    static const struct job_rare nothing;
    fresh->priority_set = job_rare_of(j)->priority_set;
    fresh->limit_set = job_rare_of(j)->limit_set;
    j->rare = rec_same(job_rare_rec(), fresh, &nothing) ? NULL : fresh;
}

static int start_one(struct apply *ap, const struct job_start *st) {
    const struct job *old = state_job(ap->s, st->job_id);
    struct job_rare rare = {.everywhere = st->everywhere, .preferred = st->preferred};
    int rc = check_start(ap, old, st);
    if (!rc)
        rc = licenses_pick(ap, old->spec, st, &rare.licenses, &rare.n_licenses);
    if (rc)
        return rc;
    struct job j = *task_record(ap, old, st);
    if (job_rare_of(&j)->next_step_id)
        state_del_steps(ap->s, j.id); /* of an earlier start: they are in the history */
    set_rare(&j, &rare);
    struct job_node *nodes = arena_memdup(ap->arena, st->nodes, st->n_nodes * sizeof(*nodes));
    uint32_t n_cpus = 0;
    for (uint32_t i = 0; i < st->n_nodes; i++) {
        const struct node *n = state_node(ap->s, nodes[i].node_id);
        nodes[i].is_done = false;
        nodes[i].name = n->name;
        nodes[i].boot = node_boot(n);
        n_cpus += nodes[i].cpus;
    }
    j.state = JOB_RUNNING;
    j.configuring = true;
    j.reason = REASON_NONE;
    j.state_text = NULL;
    j.start_no = st->start_no;
    j.partition = st->partition;
    j.nodes = nodes;
    j.n_nodes = st->n_nodes;
    j.n_cpus = n_cpus;
    j.time_limit_min = st->time_limit_min;
    j.start_ms = ap->now_ms;
    j.end_ms = j.kill_ms = 0;
    j.wait_status = 0;
    j.retry_unix = 0;
    state_put_job(ap->s, &j);
    run_hold_nodes(ap, &j);
    apply_event(ap, EV_JOB_STARTED, j.id, j.start_no, 0);
    return 0;
}

int apply_start(struct apply *ap, const struct cmd_start *cmd) {
    struct answer_item *items = apply_items(ap, cmd->n_starts);
    for (uint32_t i = 0; i < cmd->n_starts; i++)
        apply_item(&items[i], cmd->starts[i].job_id, start_one(ap, &cmd->starts[i]));
    return 0;
}

/* The run that a command speaks of, or NULL: another start, or not holding nodes any more. */
static const struct job *run_find(const struct apply *ap, uint32_t job_id, uint32_t start_no) {
    const struct job *j = state_job(ap->s, job_id);
    return j && j->start_no == start_no && job_holds_nodes(j) ? j : NULL;
}

int apply_running(struct apply *ap, const struct cmd_running *cmd) {
    const struct job *old = run_find(ap, cmd->job_id, cmd->start_no);
    if (!old || !old->configuring)
        return apply_refuse(ap, E_STALE, "%s", err_sentence(E_STALE));
    struct job j = *old;
    j.configuring = false;
    j.start_ms = ap->now_ms; /* the failures count on: that the nodes took it does not mean that they can run it */
    state_put_job(ap->s, &j);
    apply_event(ap, EV_JOB_RUNNING, j.id, j.start_no, 0);
    deps_resolve(ap, &j);
    return 0;
}

/* Back to the queue with a pause that doubles; held when it failed too often. */
static void undo(struct apply *ap, struct job *j, const char *text) {
    const struct rconf *conf = ap->s->cluster->conf;
    uint32_t most = conf && conf->max_launch_failures ? conf->max_launch_failures : 5;
    uint32_t longest = conf && conf->max_launch_backoff_secs ? conf->max_launch_backoff_secs : 300;
    uint32_t reason = REASON_CLEANING;
    uint32_t shift = MIN(j->launch_failures, 16u);
    j->launch_failures++;
    j->retry_unix = ap->now_ms / 1000 + MIN((int64_t)1 << shift, (int64_t)longest);
    j->state_text = text;
    if (j->launch_failures >= most) {
        j->hold = HOLD_ADMIN;
        reason = REASON_LAUNCH_FAILED;
    }
    run_end(ap, j, JOB_PENDING, reason);
}

static void note_mute(struct apply *ap, uint32_t node_id) {
    const struct node *old = state_node(ap->s, node_id);
    if (!old || old->not_responding)
        return;
    struct node next = *old;
    next.not_responding = true;
    state_put_node(ap->s, &next);
    apply_event(ap, EV_NODE_CHANGED, 0, 0, node_id);
}

int apply_undo(struct apply *ap, const struct cmd_undo *cmd) {
    const struct job *old = run_find(ap, cmd->job_id, cmd->start_no);
    if (!old || !old->configuring)
        return apply_refuse(ap, E_STALE, "%s", err_sentence(E_STALE));
    struct job j = *old;
    for (uint32_t i = 0; i < cmd->n_mute_nodes; i++)
        note_mute(ap, cmd->mute_nodes[i]);
    undo(ap, &j, cmd->text);
    return 0;
}

int apply_timeout(struct apply *ap, const struct cmd_timeout *cmd) {
    for (uint32_t i = 0; i < cmd->n_runs; i++) {
        const struct job *old = run_find(ap, cmd->runs[i].job_id, cmd->runs[i].start_no);
        if (!old || old->completing || old->configuring || old->state == JOB_SUSPENDED)
            continue;
        struct job j = *old;
        j.kill_ms = ap->now_ms;
        run_end(ap, &j, JOB_TIMEOUT, REASON_TIME_LIMIT);
    }
    return 0;
}

/* The node's own time, within what we know: its clock may be wrong, and others wait for the age of this end. */
static int64_t end_time(const struct apply *ap, const struct job *j, const struct cmd_node_done *cmd) {
    int64_t at_ms = cmd->end_ms > 0 ? MIN(cmd->end_ms, ap->now_ms) : ap->now_ms;
    return MAX(at_ms, j->start_ms);
}

static void take_result(struct apply *ap, struct job *j, const struct cmd_node_done *cmd) {
    bool has_script = !job_spec_more(j->spec)->interactive;
    if (has_script || !j->completing) /* else its client has said how it went */
        j->wait_status = cmd->wait_status;
    j->max_rss_kb = cmd->max_rss_kb;
    j->user_cpu_us = cmd->user_cpu_us;
    j->sys_cpu_us = cmd->sys_cpu_us;
    j->end_ms = end_time(ap, j, cmd);
}

/* How a run that nobody had asked to end has ended. */
static uint32_t verdict(const struct cmd_node_done *cmd, uint32_t *out_reason) {
    if (cmd->node_failed || cmd->never_started) {
        *out_reason = REASON_NODE_DOWN;
        return JOB_NODE_FAIL;
    }
    if (cmd->out_of_memory) {
        *out_reason = REASON_OUT_OF_MEMORY;
        return JOB_OUT_OF_MEMORY;
    }
    if (cmd->wait_status & 0x7f) {
        *out_reason = REASON_RAISED_SIGNAL;
        return JOB_FAILED;
    }
    *out_reason = cmd->wait_status ? REASON_NONZERO_EXIT : REASON_NONE;
    return cmd->wait_status ? JOB_FAILED : JOB_COMPLETED;
}

/* Whether a job that lost a node is queued again. */
static bool comes_back(const struct apply *ap, const struct job *j) {
    const struct rconf *conf = ap->s->cluster->conf;
    bool must_ask = conf && policy_of((enum flavor)conf->flavor)->lost_jobs_fail;
    return job_may_requeue(j) && (!must_ask || job_spec_more(j->spec)->requeue);
}

/* A job that lost a node is queued again; held when that happened too often. */
static void requeue_lost(struct apply *ap, struct job *j, const char *sluid) {
    struct job_rare *rare = arena_memdup(ap->arena, job_rare_of(j), sizeof(*rare));
    rare->requeue_wanted = true;
    rare->requeue_hold = j->restarts >= job_max_requeues(ap->s) ? HOLD_ADMIN : HOLD_NONE;
    rare->new_sluid = sluid;
    j->rare = rare;
    j->kill_ms = ap->now_ms;
    run_end(ap, j, JOB_PENDING, REASON_NODE_DOWN);
}

/* One of those that it runs on; not one that it gave back. */
static const struct job_node *node_in(const struct job *j, uint32_t node_id) {
    for (uint32_t i = 0; i < j->n_nodes; i++)
        if (j->nodes[i].node_id == node_id && !j->nodes[i].is_done)
            return &j->nodes[i];
    return NULL;
}

void run_node_down(struct apply *ap, uint32_t job_id, uint32_t node_id) {
    const struct job *old = state_job(ap->s, job_id);
    if (!old || !job_holds_nodes(old) || old->completing || !node_in(old, node_id))
        return;
    struct job j = *old;
    if (resize_without(ap, &j, node_id))
        return;
    if (comes_back(ap, old)) {
        requeue_lost(ap, &j, NULL);
        return;
    }
    j.kill_ms = ap->now_ms;
    run_end(ap, &j, JOB_NODE_FAIL, REASON_NODE_DOWN);
}

void run_node_gone(struct apply *ap, uint32_t job_id, uint32_t node_id) {
    const struct job *old = state_job(ap->s, job_id);
    if (!old || !job_holds_nodes(old))
        return;
    struct job j = *old;
    if (!node_in(old, node_id) || resize_without(ap, &j, node_id)) {
        resize_node_clean(ap, &j, node_id);
        return;
    }
    if (!j.completing) {
        j.kill_ms = ap->now_ms;
        run_end(ap, &j, JOB_NODE_FAIL, REASON_NODE_DOWN);
        j = *state_job(ap->s, job_id);
    }
    run_node_clean(ap, &j, node_id);
}

static bool others_run(const struct job *j, uint32_t node_id) {
    for (uint32_t i = 0; i < j->n_nodes; i++)
        if (j->nodes[i].node_id != node_id && !j->nodes[i].is_done && !j->nodes[i].script_over)
            return true;
    return false;
}

/* What the end of a run on one node means for the whole run, before that node is counted as clean. */
static void node_ended(struct apply *ap, struct job *j, const struct cmd_node_done *cmd) {
    bool is_batch = j->nodes[0].node_id == cmd->node_id;
    if (is_batch && !cmd->never_started && !j->nodes[0].script_over)
        take_result(ap, j, cmd);
    if (cmd->text)
        j->state_text = cmd->text;
    if (j->completing) {
        /* A job that its memory limit killed while it was being ended is still told (cases.md 8). */
        if (is_batch && (cmd->out_of_memory || job_rare_of(j)->step_oom) && j->state == JOB_FAILED) {
            j->state = JOB_OUT_OF_MEMORY;
            j->reason = REASON_OUT_OF_MEMORY;
            j->wait_status = STATUS_OOM;
        }
        return;
    }
    /* The script has not run, or it has not even been confirmed that it may: as if there had been no start. */
    if (cmd->never_started && (is_batch || j->configuring)) {
        undo(ap, j, cmd->text);
        return;
    }
    uint32_t reason;
    uint32_t state = verdict(cmd, &reason);
    if (is_batch && job_rare_of(j)->step_oom && (state == JOB_COMPLETED || state == JOB_FAILED)) {
        state = JOB_OUT_OF_MEMORY;
        reason = REASON_OUT_OF_MEMORY;
    }
    if (state == JOB_OUT_OF_MEMORY)
        j->wait_status = STATUS_OOM;
    if (state == JOB_NODE_FAIL && comes_back(ap, j))
        requeue_lost(ap, j, cmd->new_sluid);
    else if (job_rare_of(j)->everywhere && state == JOB_COMPLETED && others_run(j, cmd->node_id))
        return; /* their scripts count as much */
    else if (is_batch || job_rare_of(j)->everywhere || state != JOB_COMPLETED)
        run_end(ap, j, state, reason);
}

static void drain_node(struct apply *ap, uint32_t node_id, const char *text) {
    const struct node *old = state_node(ap->s, node_id);
    if (!old)
        return;
    struct drain *drains = arena_calloc(ap->arena, old->n_drains + 1, sizeof(*drains));
    uint32_t n = 0;
    for (uint32_t i = 0; i < old->n_drains; i++)
        if (!old->drains[i].owner || __builtin_strcmp(old->drains[i].owner, "agent") != 0)
            drains[n++] = old->drains[i];
    drains[n++] = (struct drain){
        .owner = "agent", .text = text ? text : "Kill task failed", .since_unix = ap->now_ms / 1000, .machine = true};
    struct node next = *old;
    next.drains = drains;
    next.n_drains = n;
    state_put_node(ap->s, &next);
    apply_event(ap, EV_NODE_CHANGED, 0, 0, node_id);
}

/* The others' scripts may still want the node for their steps. `j`: as node_ended has left it. */
static void script_over(struct apply *ap, struct job *j, uint32_t node_id) {
    struct job_node *nodes = run_own_nodes(ap, j);
    for (uint32_t i = 0; i < j->n_nodes; i++)
        if (nodes[i].node_id == node_id)
            nodes[i].script_over = true;
    state_put_job(ap->s, j);
}

int apply_node_done(struct apply *ap, const struct cmd_node_done *cmd) {
    const struct job *old = run_find(ap, cmd->job_id, cmd->start_no);
    if (!old || !job_held_on(old, cmd->node_id)) /* an earlier start, or said before: the agent may forget it */
        return 0;
    struct job j = *old;
    const struct job_node *jn = node_in(old, cmd->node_id);
    if (!jn && !cmd->stays) /* it was given back: how it went there is nobody's concern */
        resize_node_clean(ap, &j, cmd->node_id);
    if (!jn && cmd->drain_node)
        drain_node(ap, cmd->node_id, cmd->text);
    if (!jn)
        return 0;
    if (cmd->stays && (jn->script_over || j.completing)) /* said before, or what ends it is under way */
        return 0;
    if (cmd->node_failed && !cmd->stays && resize_without(ap, &j, cmd->node_id)) {
        resize_node_clean(ap, &j, cmd->node_id);
        return 0;
    }
    node_ended(ap, &j, cmd);
    if (cmd->stays) {
        script_over(ap, &j, cmd->node_id);
        return 0;
    }
    /* node_ended may have put the job already; its record and our copy are the same values. */
    run_node_clean(ap, &j, cmd->node_id);
    if (cmd->drain_node)
        drain_node(ap, cmd->node_id, cmd->text);
    return 0;
}
