/* SPDX-License-Identifier: Apache-2.0
 *
 * What people do to jobs that are there: requeue, suspend and resume; and what timers find: --signal was sent, a deadline
 * can't be kept.
 */
#include "base/mem.h"
#include "core/state/inside.h"

/* ---- requeue ---- */

struct requeue {
    const struct cmd_requeue *cmd;
    uint32_t n_used; /* sluids of the command */
};

bool job_may_requeue(const struct job *j) {
    return !j->spec->no_requeue && !job_spec_more(j->spec)->interactive;
}

uint32_t job_max_requeues(const struct state *s) {
    const struct rconf *conf = s->cluster->conf;
    return conf && conf->max_requeues ? conf->max_requeues : UINT32_MAX;
}

/* Of an end that is under way, or of a run: the job is to come back. */
static int back_when_clean(struct apply *ap, const struct job *old, struct requeue *rq, const char *sluid) {
    struct job j = *old;
    struct job_rare rare = *job_rare_of(old);
    rare.requeue_wanted = true;
    rare.requeue_hold = rq->cmd->hold;
    rare.special_exit = rq->cmd->special_exit && rq->cmd->hold;
    rare.new_sluid = sluid;
    j.rare = &rare;
    j.kill_ms = j.kill_ms ? j.kill_ms : ap->now_ms;
    run_end(ap, &j, JOB_PENDING, REASON_CLEANING);
    return 0;
}

static int requeue_one(struct apply *ap, const struct job *j, void *arg, bool dry) {
    struct requeue *rq = arg;
    if (j->state == JOB_PENDING && !j->completing)
        return E_JOB_PENDING;
    if (!job_may_requeue(j))
        return E_REQUEUE;
    if (dry)
        return 0;
    const char *sluid = rq->n_used < rq->cmd->n_sluids ? rq->cmd->sluids[rq->n_used++] : NULL;
    if (!sluid)
        sluid = derived_sluid(ap, j->sluid, j->id);
    if (!job_is_over(j))
        return back_when_clean(ap, j, rq, sluid);
    struct job next = *j;
    struct job_rare rare = *job_rare_of(j);
    rare.requeue_hold = rq->cmd->hold;
    rare.special_exit = rq->cmd->special_exit && rq->cmd->hold;
    rare.new_sluid = sluid;
    next.rare = &rare;
    run_requeue(ap, &next);
    return 0;
}

int apply_requeue(struct apply *ap, const struct cmd_requeue *cmd) {
    struct requeue rq = {.cmd = cmd};
    if (cmd->hold > HOLD_ADMIN)
        return apply_refuse(ap, E_SYNTAX, "hold %u is no kind of hold", cmd->hold);
    targets_each(ap, NULL, 0, cmd->targets, cmd->n_targets, requeue_one, &rq);
    return 0;
}

/* ---- suspend and resume ---- */

static int may_suspend(const struct job *j, bool resume) {
    if (j->state >= JOB_COMPLETED)
        return E_JOB_DONE;
    if (j->state == JOB_PENDING || j->configuring)
        return E_JOB_PENDING;
    return resume && j->state != JOB_SUSPENDED ? E_REQUEUE : 0;
}

static int suspend_one(struct apply *ap, const struct job *old, void *arg, bool dry) {
    bool resume = *(const bool *)arg;
    int rc = may_suspend(old, resume);
    if (rc || dry || (!resume && old->state == JOB_SUSPENDED))
        return rc;
    struct job j = *old;
    struct job_rare rare = *job_rare_of(old);
    j.rare = &rare;
    j.state = resume ? JOB_RUNNING : JOB_SUSPENDED;
    if (resume)
        run_count_suspended(ap, &rare);
    else
        rare.suspended_ms = ap->now_ms;
    rare.stopped &= !resume; /* SIGCONT is how it goes on */
    state_put_job(ap->s, &j);
    apply_event(ap, resume ? EV_JOB_RESUMED : EV_JOB_SUSPENDED, j.id, j.start_no, 0);
    return 0;
}

/* A signal was sent: nothing else is to be done. */
static int note_stop(struct apply *ap, const struct job *old, void *arg, bool dry) {
    bool resume = *(const bool *)arg;
    int rc = may_suspend(old, false);
    if (rc || dry || job_rare_of(old)->stopped == !resume)
        return rc;
    struct job j = *old;
    struct job_rare rare = *job_rare_of(old);
    rare.stopped = !resume;
    j.rare = &rare;
    state_put_job(ap->s, &j);
    apply_event(ap, EV_JOB_CHANGED, j.id, j.start_no, 0);
    return 0;
}

int apply_suspend(struct apply *ap, const struct cmd_suspend *cmd) {
    bool resume = cmd->resume;
    targets_each(ap, NULL, 0, cmd->targets, cmd->n_targets, cmd->by_signal ? note_stop : suspend_one, &resume);
    return 0;
}

/* ---- what timers find ---- */

int apply_warned(struct apply *ap, const struct cmd_warned *cmd) {
    for (uint32_t i = 0; i < cmd->n_runs; i++) {
        const struct job *old = state_job(ap->s, cmd->runs[i].job_id);
        if (!old || old->start_no != cmd->runs[i].start_no || !job_holds_nodes(old) || job_rare_of(old)->warned)
            continue;
        struct job j = *old;
        struct job_rare rare = *job_rare_of(old);
        rare.warned = true;
        j.rare = &rare;
        state_put_job(ap->s, &j);
    }
    return 0;
}

int apply_deadline(struct apply *ap, const struct cmd_deadline *cmd) {
    for (uint32_t i = 0; i < cmd->n_job_ids; i++) {
        const struct job *old = state_job(ap->s, cmd->job_ids[i]);
        if (!old || old->state != JOB_PENDING || old->completing)
            continue;
        struct job j = *old;
        const struct job_more *m = job_spec_more(old->spec);
        if (cmd->invalid_dep && m->kill_invalid_dep == 2) { /* never began */
            j.end_ms = ap->now_ms;
            run_end(ap, &j, JOB_CANCELLED, REASON_DEP_NEVER);
        } else if (!cmd->invalid_dep && m->deadline_unix) {
            j.start_ms = j.end_ms = ap->now_ms;
            run_end(ap, &j, JOB_DEADLINE, REASON_DEADLINE);
        }
    }
    return 0;
}
