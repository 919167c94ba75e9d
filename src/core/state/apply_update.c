/* SPDX-License-Identifier: Apache-2.0
 *
 * New values of a job's fields (scontrol update). Which ones a job that runs allows is Slurm's rule.
 */
#include "base/mem.h"
#include "core/state/inside.h"

#define CHANGES_OF_A_RUN                                                                                               \
    (CHANGE_NAME | CHANGE_COMMENT | CHANGE_TIME_LIMIT | CHANGE_TIME_MIN | CHANGE_NICE | CHANGE_PRIORITY |              \
     CHANGE_REQUEUE | CHANGE_ARRAY_LIMIT | CHANGE_ADMIN_COMMENT)
#define CHANGES_OF_SIZE ((uint32_t)(CHANGE_NODES | CHANGE_NODE_LISTS)) /* of a run: its nodes themselves, not its wishes */

struct change {
    const struct cmd_update *cmd;
    uint32_t bits; /* of the changes, those that are new values of fields */
    struct job job;
    struct job_spec spec;
    struct job_more more;
    struct job_rare rare;
    struct job_array array;
    int64_t was_nice;
};

static int check(struct apply *ap, const struct cmd_update *cmd, const struct job *j) {
    bool is_head = j->array && j->array->job_id == j->id;
    if (j->state >= JOB_COMPLETED)
        return E_JOB_DONE;
    if (cmd->changes & CHANGE_ARRAY_LIMIT && !is_head && !(j->array && cmd->changes & ~CHANGE_ARRAY_LIMIT))
        return E_UNSUPPORTED;
    if (j->state == JOB_PENDING && !j->completing) {
        if (cmd->changes & CHANGE_PRIORITY && cmd->priority_set && j->hold)
            return E_JOB_HELD;
        if (cmd->changes & CHANGE_HOLD && j->hold == HOLD_ADMIN && !cmd->as_admin)
            return E_DENIED;
        return cmd->changes & CHANGE_DEPENDENCY ? deps_check(ap, j->id, cmd->spec, NULL) : 0;
    }
    bool shrinks = resize_is_asked(cmd, j);
    if (cmd->changes & CHANGE_NODES && !shrinks)
        return E_UNSUPPORTED;
    uint32_t may = CHANGES_OF_A_RUN | (shrinks ? CHANGES_OF_SIZE : 0);
    if (cmd->changes & ~may)
        return E_JOB_NOT_PENDING;
    return shrinks ? resize_check(ap, cmd, j) : 0;
}

#define SET(bit, ...)                                                                                                  \
    if (bits & (bit)) {                                                                                                \
        __VA_ARGS__                                                                                                    \
    }

/* Of one of many, each with a value of its own; in the order of ids. */
static int64_t nice_of(const struct cmd_update *cmd, uint32_t job_id, int64_t otherwise) {
    uint32_t from = 0, to = cmd->n_nices;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (cmd->nices[mid].job_id < job_id)
            from = mid + 1;
        else
            to = mid;
    }
    return from < cmd->n_nices && cmd->nices[from].job_id == job_id ? cmd->nices[from].nice : otherwise;
}

/* What stands in the job beside its spec. */
static void set_job(struct apply *ap, struct change *c) {
    const struct cmd_update *cmd = c->cmd;
    uint32_t bits = c->bits;
    struct job *j = &c->job;
    bool waits = j->state == JOB_PENDING;
    SET(CHANGE_TIME_LIMIT, c->rare.limit_set = true; j->time_limit_min = waits ? j->time_limit_min
                                                                               : cmd->spec->time_limit_min;)
    SET(CHANGE_BEGIN, j->eligible_unix = MAX(ap->now_ms / 1000, cmd->spec->begin_unix);
        if (cmd->lifts_delay)
            j->retry_unix = 0;)
    SET(CHANGE_NICE, j->nice = cmd->spec->nice;
        if (cmd->n_nices)
            c->spec.nice = j->nice = nice_of(cmd, j->id, c->was_nice);)
    SET(CHANGE_PRIORITY, c->rare.priority_set = cmd->priority_set;)
    SET(CHANGE_ARRAY_LIMIT, c->array.max_running = job_spec_more(cmd->spec)->array_max_running;)
    SET(CHANGE_HOLD, j->hold = cmd->as_admin ? HOLD_ADMIN : HOLD_USER;
        j->reason = cmd->as_admin ? REASON_HELD_ADMIN : REASON_HELD_USER;)
}

static int update_one(struct apply *ap, const struct job *old, void *arg, bool dry) {
    const struct cmd_update *cmd = arg;
    static const struct job_more no_more;
    static const struct job_rare no_rare;
    if (cmd->step_plus_1)
        return step_set_limit(ap, old, cmd->step_plus_1 - 1, cmd->spec->time_limit_min, dry);
    bool shrinks = resize_is_asked(cmd, old);
    struct change c = {.cmd = cmd, .bits = cmd->changes & ~(shrinks ? CHANGES_OF_SIZE : 0)};
    int rc = check(ap, cmd, old);
    if (rc || dry)
        return rc;
    c.job = *old;
    c.was_nice = old->nice;
    c.spec = *old->spec;
    c.more = *job_spec_more(old->spec);
    c.rare = *job_rare_of(old);
    if (old->array)
        c.array = *old->array;
    job_spec_change(&c.spec, &c.more, cmd->spec, c.bits);
    set_job(ap, &c);
    if (shrinks)
        resize(ap, cmd, &c.job, &c.spec, &c.more, &c.rare);
    c.spec.more = rec_same(job_more_rec(), &c.more, &no_more) ? NULL : &c.more;
    c.job.spec = &c.spec;
    c.job.rare = rec_same(job_rare_rec(), &c.rare, &no_rare) ? NULL : &c.rare;
    c.job.array = old->array ? &c.array : NULL;
    if (cmd->changes & CHANGE_DEPENDENCY)
        deps_replace(ap, &c.job, cmd->spec);
    state_put_job(ap->s, &c.job);
    apply_event(ap, EV_JOB_CHANGED, c.job.id, c.job.start_no, 0);
    if (cmd->changes & CHANGE_DEPENDENCY)
        deps_judge(ap, c.job.id);
    return 0;
}

int apply_update(struct apply *ap, const struct cmd_update *cmd) {
    uint32_t known = cmd->changes_known ? cmd->changes_known & CHANGE_ALL : CHANGE_OF_OLD;
    if (!cmd->spec || !cmd->changes || cmd->changes & ~known)
        return apply_refuse(ap, E_SYNTAX, "No changes specified");
    targets_each(ap, NULL, 0, cmd->targets, cmd->n_targets, update_one, (void *)cmd);
    return 0;
}
