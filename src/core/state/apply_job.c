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
        return E_DENIED;
    if (old->hold == cmd->hold || dry)
        return 0;
    struct job j = *old;
    j.hold = cmd->hold;
    j.reason = job_hold_reason(cmd->hold); /* one that runs goes on, and is held when it is queued again */
    if (cmd->hold == HOLD_NONE && j.state == JOB_PENDING) {
        j.launch_failures = 0;
        j.retry_unix = 0;
        j.state_text = NULL;
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

static int cancel_one(struct apply *ap, const struct job *old, void *arg, bool dry) {
    const struct cmd_cancel *cmd = arg;
    if (old->state >= JOB_COMPLETED)
        return E_JOB_DONE; /* over, or on its way there: the end it already has stays */
    if (dry)
        return 0;
    struct job j = *old;
    j.end_uid = ap->head->uid + 1;
    j.kill_ms = ap->now_ms;
    if (cmd->complete && j.state != JOB_PENDING) {
        complete(ap, &j, cmd->complete - 1);
        return 0;
    }
    if (j.state == JOB_PENDING && !j.completing)
        j.start_ms = j.end_ms = ap->now_ms;
    run_end(ap, &j, JOB_CANCELLED, REASON_NONE);
    return 0;
}

int apply_cancel(struct apply *ap, const struct cmd_cancel *cmd) {
    targets_each(ap, cmd->job_ids, cmd->n_job_ids, cmd->targets, cmd->n_targets, cancel_one, (void *)cmd);
    return 0;
}

/* An array's own record stays until no other of it is left: the others' names and counters are there. */
static bool may_leave(const struct state *s, const struct job *j) {
    if (!job_is_over(j))
        return false;
    const struct idset *others = j->array && j->array->job_id == j->id ? idset_of(&s->arrays, j->id) : NULL;
    return !others || !others->ids.n;
}

static void leave(struct apply *ap, uint32_t id, bool heads) {
    const struct job *j = state_job(ap->s, id);
    if (!j || !may_leave(ap->s, j) || (j->array && j->array->job_id == id) != heads)
        return;
    uint32_t array_id = j->array ? j->array->job_id : 0;
    apply_event(ap, EV_JOB_PURGED, id, j->start_no, 0);
    deps_orphan(ap, id);
    state_del_job(ap->s, id);
    const struct job *head = array_id && !heads ? state_job(ap->s, array_id) : NULL;
    if (head && job_is_hollow(head)) /* it waited for its tasks alone */
        leave(ap, array_id, true);
}

int apply_purge(struct apply *ap, const struct cmd_purge *cmd) {
    for (uint32_t i = 0; i < cmd->n_job_ids; i++)
        leave(ap, cmd->job_ids[i], false);
    for (uint32_t i = 0; i < cmd->n_job_ids; i++)
        leave(ap, cmd->job_ids[i], true);
    return 0;
}
