/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands of people: submit, hold, release, cancel; and purge, which ends a job's time in the state.
 */
#include "base/mem.h"
#include "core/state/inside.h"

/* A parent that is not here any more can't be waited for: Slurm's "Job dependency problem". */
static int check_deps(struct apply *ap, const struct job_spec *spec, struct dep *deps) {
    for (uint32_t i = 0; i < spec->n_deps; i++) {
        deps[i] = spec->deps[i];
        deps[i].state = DEP_WAITING;
        if (!deps[i].job_id)
            continue;
        const struct job *parent = state_job(ap->s, deps[i].job_id);
        if (!parent)
            return apply_refuse(ap, E_DEPENDENCY, "%s", err_sentence(E_DEPENDENCY));
        deps[i].state = deps_verdict(&deps[i], parent);
    }
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
    int rc = check_deps(ap, cmd->spec, deps);
    if (rc)
        return rc;
    struct job_spec spec = *cmd->spec;
    spec.deps = NULL;
    spec.n_deps = 0;
    struct job j = {
        .id = cmd->job_id,
        .spec = &spec,
        .state = JOB_PENDING,
        .hold = spec.hold ? HOLD_USER : HOLD_NONE,
        .reason = spec.hold ? REASON_HELD_USER : REASON_NONE,
        .sluid = cmd->sluid,
        .submit_ms = ap->now_ms,
        .eligible_unix = MAX(ap->now_ms / 1000, spec.begin_unix),
        .nice = spec.nice,
        .deps = deps,
        .n_deps = cmd->spec->n_deps,
    };
    state_put_job(s, &j);
    deps_index(s, &j);
    s->counters.next_job_id = MAX(s->counters.next_job_id, cmd->job_id + 1);
    ap->answer.job_id = cmd->job_id;
    ap->answer.sluid = cmd->sluid;
    apply_event(ap, EV_JOB_PENDING, cmd->job_id, 0, 0);
    return 0;
}

static int hold_one(struct apply *ap, const struct cmd_hold *cmd, uint32_t id) {
    const struct job *old = state_job(ap->s, id);
    if (!old)
        return E_JOB_ID;
    if (job_is_over(old))
        return E_JOB_DONE;
    if (old->state != JOB_PENDING)
        return cmd->hold == HOLD_NONE ? 0 : E_JOB_STATE;
    if (old->hold == HOLD_ADMIN && !cmd->as_admin)
        return E_DENIED;
    if (old->hold == cmd->hold)
        return 0;
    struct job j = *old;
    j.hold = cmd->hold;
    j.reason = cmd->hold == HOLD_USER ? REASON_HELD_USER : cmd->hold == HOLD_ADMIN ? REASON_HELD_ADMIN : REASON_NONE;
    if (cmd->hold == HOLD_NONE) {
        j.launch_failures = 0;
        j.retry_unix = 0;
        j.state_text = NULL;
    }
    state_put_job(ap->s, &j);
    apply_event(ap, cmd->hold ? EV_JOB_CHANGED : EV_JOB_PENDING, id, j.start_no, 0);
    return 0;
}

int apply_hold(struct apply *ap, const struct cmd_hold *cmd) {
    struct answer_item *items = apply_items(ap, cmd->n_job_ids);
    if (cmd->hold > HOLD_ADMIN)
        return apply_refuse(ap, E_SYNTAX, "hold %u is no kind of hold", cmd->hold);
    for (uint32_t i = 0; i < cmd->n_job_ids; i++)
        apply_item(&items[i], cmd->job_ids[i], hold_one(ap, cmd, cmd->job_ids[i]));
    return 0;
}

static int cancel_one(struct apply *ap, uint32_t id) {
    const struct job *old = state_job(ap->s, id);
    if (!old)
        return E_JOB_ID;
    if (old->state >= JOB_COMPLETED)
        return E_JOB_DONE; /* over, or on its way there: the end it already has stays */
    struct job j = *old;
    j.end_uid = ap->head->uid + 1;
    j.kill_ms = ap->now_ms;
    if (j.state == JOB_PENDING && !j.completing) {
        j.start_ms = j.end_ms = ap->now_ms;
        j.start_no = old->start_no;
    }
    run_end(ap, &j, JOB_CANCELLED, REASON_NONE);
    return 0;
}

int apply_cancel(struct apply *ap, const struct cmd_cancel *cmd) {
    struct answer_item *items = apply_items(ap, cmd->n_job_ids);
    for (uint32_t i = 0; i < cmd->n_job_ids; i++)
        apply_item(&items[i], cmd->job_ids[i], cancel_one(ap, cmd->job_ids[i]));
    return 0;
}

int apply_purge(struct apply *ap, const struct cmd_purge *cmd) {
    for (uint32_t i = 0; i < cmd->n_job_ids; i++) {
        const struct job *j = state_job(ap->s, cmd->job_ids[i]);
        if (!j || !job_is_over(j))
            continue;
        apply_event(ap, EV_JOB_PURGED, j->id, j->start_no, 0);
        state_del_job(ap->s, cmd->job_ids[i]);
    }
    return 0;
}
