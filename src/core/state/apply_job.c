/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands of people: submit, hold, release, cancel; and purge, which ends a job's time in the state.
 */
#include "base/mem.h"
#include "core/state/inside.h"

#define ARRAY_ID_END 0x7fffffffu

/* One record for all tasks until they start. */
static int check_array(const struct cmd_submit *cmd, struct job_array *out) {
    const struct job_more *more = job_spec_more(cmd->spec);
    *out = (struct job_array){.job_id = cmd->job_id,
                              .pending = more->array_ranges,
                              .n_pending = more->n_array_ranges,
                              .max_running = more->array_max_running};
    for (uint32_t i = 0; i < more->n_array_ranges; i++) {
        const struct array_range *r = &more->array_ranges[i];
        if (r->last < r->first || r->last >= ARRAY_ID_END || (i && r->first <= r[-1].last))
            return E_ARRAY;
    }
    out->n = array_count(out->pending, out->n_pending);
    out->first_id = cmd->first_task_id > cmd->job_id && cmd->first_task_id <= JOB_ID_MAX - out->n ? cmd->first_task_id : 0;
    return 0;
}

int apply_submit(struct apply *ap, const struct cmd_submit *cmd) {
    struct state *s = ap->s;
    if (!cmd->spec || !cmd->job_id || cmd->job_id > JOB_ID_MAX)
        return apply_refuse(ap, E_JOB_ID, "%s", err_sentence(E_JOB_ID));
    if (state_job(s, cmd->job_id))
        return apply_refuse(ap, E_EXISTS, "job %u exists already", cmd->job_id);
    const struct rconf *conf = s->cluster->conf;
    if (conf && conf->max_jobs && s->jobs.n >= conf->max_jobs)
        return apply_refuse(ap, E_QUEUE_FULL, "%s", err_sentence(E_QUEUE_FULL));
    struct dep *deps = arena_calloc(ap->arena, cmd->spec->n_deps + 1, sizeof(*deps));
    struct job_array array;
    int rc = deps_check(ap, cmd->job_id, cmd->spec, deps);
    if (!rc)
        rc = check_array(cmd, &array);
    if (rc)
        return apply_refuse(ap, rc, "%s", err_sentence(rc));
    struct job_spec spec = *cmd->spec;
    spec.deps = NULL;
    spec.n_deps = 0;
    struct job_rare rare = {.priority_set = job_spec_more(&spec)->priority};
    struct job j = {
        .id = cmd->job_id,
        .spec = &spec,
        .rare = rare.priority_set ? &rare : NULL,
        .state = JOB_PENDING,
        .hold = spec.hold ? HOLD_USER : HOLD_NONE,
        .reason = spec.hold ? REASON_HELD_USER : REASON_NONE,
        .sluid = cmd->sluid,
        .submit_ms = ap->now_ms,
        .eligible_unix = MAX(ap->now_ms / 1000, spec.begin_unix),
        .nice = spec.nice,
        .deps = deps,
        .n_deps = cmd->spec->n_deps,
        .array = array.n ? &array : NULL,
    };
    s->counters.next_job_id = MAX(s->counters.next_job_id, cmd->job_id + 1);
    if (array.first_id)
        s->counters.next_job_id = MAX(s->counters.next_job_id, array.first_id + array.n);
    state_put_job(s, &j);
    deps_judge(ap, j.id);
    ap->answer.job_id = cmd->job_id;
    ap->answer.sluid = cmd->sluid;
    apply_event(ap, EV_JOB_PENDING, cmd->job_id, 0, 0);
    return 0;
}

static int hold_one(struct apply *ap, const struct job *old, void *arg, bool dry) {
    const struct cmd_hold *cmd = arg;
    if (job_is_over(old))
        return E_JOB_DONE;
    if (old->state != JOB_PENDING && (!cmd->runs_too || old->state >= JOB_COMPLETED))
        return cmd->hold == HOLD_NONE ? 0 : E_JOB_STATE;
    if (old->hold == HOLD_ADMIN && !cmd->as_admin)
        return cmd->hold == HOLD_NONE || !cmd->keeps ? E_DENIED : 0;
    if (old->hold == cmd->hold || dry)
        return 0;
    struct job j = *old;
    j.hold = cmd->hold;
    j.reason = job_hold_reason(cmd->hold); /* one that runs goes on, and is held when it is queued again */
    if (cmd->hold == HOLD_NONE && j.state == JOB_PENDING) {
        if (j.launch_failures || !cmd->keeps_delay)
            j.retry_unix = 0;
        j.launch_failures = 0;
        j.state_text = NULL;
    }
    struct job_rare rare = *job_rare_of(old);
    if (rare.special_exit && cmd->hold == HOLD_NONE) {
        rare.special_exit = false;
        j.rare = &rare;
    }
    state_put_job(ap->s, &j);
    apply_event(ap, cmd->hold || j.state != JOB_PENDING ? EV_JOB_CHANGED : EV_JOB_PENDING, j.id, j.start_no, 0);
    return 0;
}

int apply_hold(struct apply *ap, const struct cmd_hold *cmd) {
    if (cmd->hold > HOLD_ADMIN)
        return apply_refuse(ap, E_SYNTAX, "hold %u is no kind of hold", cmd->hold);
    targets_each(ap, cmd->job_ids, cmd->n_job_ids, cmd->targets, cmd->n_targets, hold_one, (void *)cmd);
    return 0;
}

/* The client of a run has ended it with its command: the command's status is the job's. */
static void complete(struct apply *ap, struct job *j, uint32_t status) {
    j->end_uid = 0;
    j->wait_status = status;
    j->end_ms = ap->now_ms;
    if (status)
        run_end(ap, j, JOB_FAILED, status & 0x7f ? REASON_RAISED_SIGNAL : REASON_NONZERO_EXIT);
    else
        run_end(ap, j, JOB_COMPLETED, REASON_NONE);
}

static void leave(struct apply *ap, uint32_t id, bool heads, bool remember);

struct cancelling {
    const struct cmd_cancel *cmd;
    bool is_part; /* the record is made for this: tasks that are taken out of a group */
};

/* Tasks that a cancel takes out of a group that waits on may be gone at once, as if the array had been submitted without
 * them: Slurm keeps no job of them. Where tasks have ids of their own from the beginning, these stay jobs. */
static bool leaves_nothing(const struct state *s, const struct cancelling *c, const struct job *j) {
    if (!c->cmd->no_trace || !c->is_part || j->start_no || !j->array || j->array->job_id == j->id)
        return false;
    const struct job *head = state_job(s, j->array->job_id);
    return head && !head->array->first_id;
}

static int cancel_one(struct apply *ap, const struct job *old, void *arg, bool dry) {
    struct cancelling *c = arg;
    const struct cmd_cancel *cmd = c->cmd;
    bool is_gone = !dry && leaves_nothing(ap->s, c, old);
    c->is_part = dry && old->state < JOB_COMPLETED; /* asked before a group is split */
    if (old->state >= JOB_COMPLETED)
        return E_JOB_DONE; /* over, or on its way there: the end it already has stays */
    if (dry)
        return 0;
    uint32_t id = old->id;
    struct job j = *old;
    j.end_uid = ap->head->uid + 1;
    j.kill_ms = ap->now_ms;
    if (cmd->complete && j.state != JOB_PENDING) {
        complete(ap, &j, cmd->complete - 1);
        return 0;
    }
    bool waits = j.state == JOB_PENDING && !j.completing;
    if (waits)
        j.start_ms = j.end_ms = ap->now_ms;
    run_end(ap, &j, JOB_CANCELLED, waits && cmd->keep_reason ? j.reason : REASON_NONE);
    if (is_gone)
        leave(ap, id, false, false); /* as if it had never been there: nobody waits for it */
    return 0;
}

int apply_cancel(struct apply *ap, const struct cmd_cancel *cmd) {
    struct cancelling c = {.cmd = cmd};
    targets_each(ap, cmd->job_ids, cmd->n_job_ids, cmd->targets, cmd->n_targets, cancel_one, &c);
    return 0;
}

/* An array's own record stays until no other of it is left: the others' names and counters are there. */
static bool may_leave(const struct state *s, const struct job *j) {
    if (!job_is_over(j))
        return false;
    const struct idset *others = j->array && j->array->job_id == j->id ? idset_of(&s->arrays, j->id) : NULL;
    return !others || !others->ids.n;
}

/* While its array is there, it is known how a task ended: others may still wait for it, or be told to. */
static void remember_end(struct apply *ap, const struct job *task) {
    const struct job *head = task->array ? state_job(ap->s, task->array->job_id) : NULL;
    if (!head || head->id == task->id || !head->array || task->state == JOB_COMPLETED)
        return;
    struct array_range one = {task->array->task - 1, task->array->task - 1};
    bool is_group = job_is_group(task);
    struct job_array array = *head->array;
    struct job next = *head;
    array.gone_bad = array_with(ap->arena, array.gone_bad, array.n_gone_bad, is_group ? task->array->pending : &one,
                                is_group ? task->array->n_pending : 1, &array.n_gone_bad);
    next.array = &array;
    state_put_job(ap->s, &next);
}

static void leave(struct apply *ap, uint32_t id, bool heads, bool remember) {
    const struct job *j = state_job(ap->s, id);
    if (!j || !may_leave(ap->s, j) || (j->array && j->array->job_id == id) != heads)
        return;
    uint32_t array_id = j->array ? j->array->job_id : 0;
    apply_event(ap, EV_JOB_PURGED, id, j->start_no, 0);
    deps_orphan(ap, id);
    if (remember)
        remember_end(ap, j);
    state_del_job(ap->s, id);
    const struct job *head = array_id && !heads ? state_job(ap->s, array_id) : NULL;
    if (head && job_is_hollow(head)) /* it waited for its tasks alone */
        leave(ap, array_id, true, false);
}

int apply_purge(struct apply *ap, const struct cmd_purge *cmd) {
    for (uint32_t i = 0; i < cmd->n_job_ids; i++)
        leave(ap, cmd->job_ids[i], false, cmd->remember);
    for (uint32_t i = 0; i < cmd->n_job_ids; i++)
        leave(ap, cmd->job_ids[i], true, false);
    return 0;
}
