/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps: what srun runs inside a job.
 *
 *     STEP_START ─► RUNNING ─┬─► (STEP_CANCEL, the job's end) an end, kill_ms set ─┬─► over: end_ms set
 *                            └──────────────── done on every node ─────────────────┘
 *
 * A step's share of a node is free for other steps when it is done there (step_node.is_done). Steps are a job's children
 * in the table `steps`; ended ones stay until the job leaves the state or is queued again, the newest STEPS_KEPT of them.
 */
#include "base/mem.h"
#include "base/str.h"
#include "core/state/inside.h"

#define STEPS_KEPT 1000u
#define MAX_STEPS 40000u

/* ---- room beside the job's other steps ---- */

struct used { /* of one of the job's nodes */
    uint64_t cpus, mem_mb;
};

struct beside {
    const struct job *job;
    const struct cmd_step_start *cmd;
    struct used *used; /* by index in job.nodes */
    uint32_t n_ended, oldest_ended;
};

static const struct job_node *node_of(const struct job *j, uint32_t node_id, uint32_t *out_index) {
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        if (j->nodes[i].node_id == node_id) {
            *out_index = i;
            return &j->nodes[i];
        }
    }
    return NULL;
}

static const struct gres_held *held_of(const struct gres_held *list, uint32_t n, const struct gres_held *like) {
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(list[i].name, like->name) && str_eq(list[i].type, like->type))
            return &list[i];
    return NULL;
}

static bool has_index(const struct gres_held *g, uint32_t index) {
    for (uint32_t i = 0; i < g->n_indexes; i++)
        if (g->indexes[i] == index)
            return true;
    return false;
}

/* What a step may ever have of the job's generic resources there. */
static bool job_has_gres(const struct job_node *jn, const struct step_node *sn) {
    for (uint32_t i = 0; i < sn->n_gres; i++) {
        const struct gres_held *mine = held_of(jn->gres, jn->n_gres, &sn->gres[i]);
        if (!mine || sn->gres[i].count > mine->count)
            return false;
        for (uint32_t k = 0; k < sn->gres[i].n_indexes; k++)
            if (!has_index(mine, sn->gres[i].indexes[k]))
                return false;
    }
    return true;
}

static int check_shape(const struct beside *r) {
    const struct cmd_step_start *cmd = r->cmd;
    if (!cmd->spec || !cmd->n_nodes)
        return E_STEP_TOO_BIG;
    for (uint32_t i = 0; i < cmd->n_nodes; i++) {
        const struct step_node *sn = &cmd->nodes[i];
        uint32_t at;
        const struct job_node *jn = node_of(r->job, sn->node_id, &at);
        if (!jn || jn->is_done)
            return E_NODES_UNAVAIL;
        for (uint32_t k = 0; k < i; k++)
            if (cmd->nodes[k].node_id == sn->node_id)
                return E_NODES_UNAVAIL;
        if (sn->cpus > jn->cpus || (jn->mem_mb && sn->mem_mb > jn->mem_mb) || !job_has_gres(jn, sn))
            return E_STEP_TOO_BIG;
    }
    return 0;
}

/* Whether the generic resources of two steps on a node stand in each other's way; `sum` adds up the bare counts. */
static bool gres_clash(const struct step_node *other, const struct step_node *mine, uint64_t *sum) {
    for (uint32_t i = 0; i < mine->n_gres; i++) {
        const struct gres_held *theirs = held_of(other->gres, other->n_gres, &mine->gres[i]);
        if (!theirs)
            continue;
        sum[i] += theirs->count;
        for (uint32_t k = 0; k < mine->gres[i].n_indexes; k++)
            if (has_index(theirs, mine->gres[i].indexes[k]))
                return true;
    }
    return false;
}

static bool gres_fits(const struct beside *r, struct arena *a, const struct job_node *jn, const struct step_node *mine,
                      const struct step *const *live, uint32_t n_live) {
    uint64_t *sum = arena_calloc(a, mine->n_gres + 1, sizeof(*sum));
    for (uint32_t i = 0; i < n_live; i++)
        for (uint32_t k = 0; k < live[i]->n_nodes; k++)
            if (live[i]->nodes[k].node_id == mine->node_id && !live[i]->nodes[k].is_done &&
                gres_clash(&live[i]->nodes[k], mine, sum))
                return false;
    for (uint32_t i = 0; i < mine->n_gres; i++)
        if (sum[i] + mine->gres[i].count > held_of(jn->gres, jn->n_gres, &mine->gres[i])->count)
            return false;
    return true;
}

static void add_used(struct beside *r, const struct step *st) {
    for (uint32_t i = 0; i < st->n_nodes; i++) {
        uint32_t at;
        if (st->nodes[i].is_done || !node_of(r->job, st->nodes[i].node_id, &at))
            continue;
        r->used[at].cpus += st->nodes[i].cpus;
        r->used[at].mem_mb += st->nodes[i].mem_mb;
    }
}

/* One walk over the job's steps: those that take room, and how many are over. */
static int check_room(struct apply *ap, struct beside *r) {
    VEC(const struct step *) live = {0};
    const struct step *st;
    r->used = arena_calloc(ap->arena, r->job->n_nodes, sizeof(*r->used));
    for (uint64_t k = step_key(r->job->id, 0); (st = cow_next(ap->s->steps.root, &k)) && st->job_id == r->job->id;
         k++) {
        if (step_is_over(st)) {
            r->oldest_ended = r->n_ended++ ? r->oldest_ended : st->id;
        } else if (!st->spec->overlap) {
            add_used(r, st);
            vec_push(&live, st);
        }
    }
    int rc = 0;
    for (uint32_t i = 0; i < r->cmd->n_nodes && !rc && !r->cmd->spec->overlap; i++) {
        const struct step_node *sn = &r->cmd->nodes[i];
        uint32_t at;
        const struct job_node *jn = node_of(r->job, sn->node_id, &at);
        if (r->used[at].cpus + sn->cpus > jn->cpus || (jn->mem_mb && r->used[at].mem_mb + sn->mem_mb > jn->mem_mb) ||
            !gres_fits(r, ap->arena, jn, sn, live.p, (uint32_t)live.n))
            rc = E_STEP_BUSY;
    }
    vec_fini(&live);
    return rc;
}

static int check_job(const struct apply *ap, const struct job *j, uint32_t start_no) {
    if (!j)
        return E_JOB_ID;
    if (j->state >= JOB_COMPLETED)
        return E_JOB_DONE;
    if (j->state == JOB_PENDING || j->configuring)
        return E_JOB_PENDING;
    if (j->completing || j->start_no != start_no)
        return E_STALE;
    if (j->state == JOB_SUSPENDED)
        return E_STEP_BUSY;
    const struct rconf *conf = ap->s->cluster->conf;
    uint32_t most = conf && conf->max_steps ? conf->max_steps : MAX_STEPS;
    return job_rare_of(j)->next_step_id >= MIN(most, STEP_ID_MAX) ? E_STEP_LIMIT : 0;
}

static void put_step(struct apply *ap, const struct job *j, const struct cmd_step_start *cmd, uint32_t id) {
    struct step_node *nodes = arena_memdup(ap->arena, cmd->nodes, cmd->n_nodes * sizeof(*nodes));
    struct step st = {.job_id = j->id, .start_no = j->start_no, .id = id, .spec = cmd->spec, .uid = ap->head->uid,
                      .state = JOB_RUNNING, .nodes = nodes, .n_nodes = cmd->n_nodes, .start_ms = ap->now_ms,
                      .sluid = j->sluid};
    for (uint32_t i = 0; i < cmd->n_nodes; i++) {
        const struct node *n = state_node(ap->s, nodes[i].node_id);
        nodes[i].is_done = false;
        nodes[i].name = n ? n->name : nodes[i].name;
        st.n_cpus += nodes[i].cpus;
    }
    state_put_step(ap->s, &st);
    apply_step_event(ap, EV_STEP_STARTED, &st);
}

int apply_step_start(struct apply *ap, const struct cmd_step_start *cmd) {
    const struct job *old = state_job(ap->s, cmd->job_id);
    struct beside r = {.job = old, .cmd = cmd};
    int rc = check_job(ap, old, cmd->start_no);
    if (!rc)
        rc = check_shape(&r);
    if (!rc)
        rc = check_room(ap, &r);
    if (rc)
        return apply_refuse(ap, rc, "%s", err_sentence(rc));
    if (r.n_ended > STEPS_KEPT)
        state_del_step(ap->s, old->id, r.oldest_ended);
    struct job j = *old;
    struct job_rare rare = *job_rare_of(old);
    uint32_t id = rare.next_step_id++;
    j.rare = &rare;
    state_put_job(ap->s, &j);
    put_step(ap, &j, cmd, id);
    ap->answer.job_id = j.id;
    ap->answer.step_id = id;
    ap->answer.sluid = j.sluid;
    return 0;
}

/* ---- ends ---- */

int apply_step_cancel(struct apply *ap, const struct cmd_step_cancel *cmd) {
    const struct step *old = state_step(ap->s, cmd->job_id, cmd->step_id);
    if (!old)
        return apply_refuse(ap, E_STEP_ID, "%s", err_sentence(E_STEP_ID));
    if (step_is_over(old) || old->kill_ms)
        return apply_refuse(ap, E_JOB_DONE, "%s", err_sentence(E_JOB_DONE));
    struct step st = *old;
    st.kill_ms = ap->now_ms;
    st.end_uid = cmd->is_timeout ? 0 : ap->head->uid + 1;
    if (st.state == JOB_RUNNING)
        st.state = cmd->is_timeout ? JOB_TIMEOUT : JOB_CANCELLED;
    state_put_step(ap->s, &st);
    apply_step_event(ap, EV_STEP_ENDING, &st);
    return 0;
}

int step_set_limit(struct apply *ap, const struct job *j, uint32_t step_id, uint32_t limit_min, bool dry) {
    const struct step *old = state_step(ap->s, j->id, step_id);
    if (!old || step_is_over(old) || old->kill_ms || old->start_no != j->start_no)
        return E_JOB_ID; /* as Slurm says of a step that doesn't run */
    if (dry)
        return 0;
    struct step st = *old;
    struct step_spec spec = *old->spec;
    spec.time_limit_min = limit_min;
    st.spec = &spec;
    state_put_step(ap->s, &st);
    apply_step_event(ap, EV_STEP_CHANGED, &st);
    return 0;
}

/* A step that its job's end met when it had ended already and that was not yet known: nobody cancelled it. */
static bool went_by_itself(const struct apply *ap, const struct step *st) {
    const struct job *j = state_job(ap->s, st->job_id);
    return st->state == JOB_CANCELLED && !st->end_uid && !(st->wait_status & 0x7f) && j &&
           (j->state == JOB_COMPLETED || j->state == JOB_FAILED);
}

/* Marks the step's share of a node as free; over when it was the last. Puts the step. */
static void node_clean(struct apply *ap, struct step *st, uint32_t node_id, int64_t end_ms, bool has_said) {
    struct step_node *nodes = arena_memdup(ap->arena, st->nodes, st->n_nodes * sizeof(*nodes));
    bool any_left = false;
    for (uint32_t i = 0; i < st->n_nodes; i++) {
        nodes[i].is_done |= nodes[i].node_id == node_id;
        any_left |= !nodes[i].is_done;
    }
    st->nodes = nodes;
    if (!any_left) {
        st->end_ms = MAX(MIN(end_ms, ap->now_ms), st->start_ms);
        st->ended_index = ap->index;
        if (st->state == JOB_RUNNING || (has_said && went_by_itself(ap, st)))
            st->state = st->wait_status ? JOB_FAILED : JOB_COMPLETED;
    }
    state_put_step(ap->s, st);
    if (!any_left)
        apply_step_event(ap, EV_STEP_OVER, st);
}

static bool lives_on(const struct step *st, uint32_t node_id) {
    for (uint32_t i = 0; i < st->n_nodes; i++)
        if (st->nodes[i].node_id == node_id && !st->nodes[i].is_done)
            return true;
    return false;
}

static bool lives_elsewhere(const struct step *st, uint32_t node_id) {
    for (uint32_t i = 0; i < st->n_nodes; i++)
        if (st->nodes[i].node_id != node_id && !st->nodes[i].is_done)
            return true;
    return false;
}

/* The job is told by it too, whatever its script makes of the step's end. */
static void mark_oom(struct apply *ap, uint32_t job_id) {
    const struct job *old = state_job(ap->s, job_id);
    if (!old || job_rare_of(old)->step_oom)
        return;
    struct job j = *old;
    struct job_rare rare = *job_rare_of(old);
    rare.step_oom = true;
    j.rare = &rare;
    state_put_job(ap->s, &j);
}

int apply_step_done(struct apply *ap, const struct cmd_step_done *cmd) {
    const struct step *old = state_step(ap->s, cmd->job_id, cmd->step_id);
    if (!old || old->start_no != cmd->start_no || !lives_on(old, cmd->node_id))
        return 0; /* an earlier start, or said before */
    struct step st = *old;
    st.wait_status = MAX(st.wait_status, cmd->wait_status);
    st.max_rss_kb = MAX(st.max_rss_kb, cmd->max_rss_kb);
    st.user_cpu_us += cmd->user_cpu_us;
    st.sys_cpu_us += cmd->sys_cpu_us;
    if (cmd->text)
        st.text = cmd->text;
    if (st.state == JOB_RUNNING && (cmd->out_of_memory || cmd->never_started))
        st.state = cmd->out_of_memory ? JOB_OUT_OF_MEMORY : JOB_FAILED;
    if (st.state == JOB_OUT_OF_MEMORY) {
        st.wait_status = STATUS_OOM;
        mark_oom(ap, cmd->job_id);
    }
    node_clean(ap, &st, cmd->node_id, cmd->end_ms > 0 ? cmd->end_ms : ap->now_ms, true);
    return 0;
}

static struct step cut_short(struct apply *ap, const struct step *old) {
    struct step st = *old;
    st.kill_ms = ap->now_ms;
    if (st.state == JOB_RUNNING)
        st.state = JOB_CANCELLED;
    state_put_step(ap->s, &st);
    return st;
}

void steps_end(struct apply *ap, const struct job *j) {
    const struct step *old;
    if (!job_rare_of(j)->next_step_id)
        return;
    for (uint64_t k = step_key(j->id, 0); (old = cow_next(ap->s->steps.root, &k)) && old->job_id == j->id; k++) {
        if (step_is_over(old) || old->kill_ms)
            continue;
        cut_short(ap, old);
    }
}

void steps_node_lost(struct apply *ap, const struct job *j, uint32_t node_id) {
    const struct step *old;
    if (!job_rare_of(j)->next_step_id)
        return;
    for (uint64_t k = step_key(j->id, 0); (old = cow_next(ap->s->steps.root, &k)) && old->job_id == j->id; k++) {
        if (!lives_on(old, node_id) || old->kill_ms || old->spec->no_kill)
            continue;
        struct step st = cut_short(ap, old);
        apply_step_event(ap, EV_STEP_ENDING, &st);
    }
}

void steps_node_clean(struct apply *ap, const struct job *j, uint32_t node_id) {
    const struct step *old;
    if (!job_rare_of(j)->next_step_id)
        return;
    for (uint64_t k = step_key(j->id, 0); (old = cow_next(ap->s->steps.root, &k)) && old->job_id == j->id; k++) {
        if (!lives_on(old, node_id))
            continue;
        struct step st = *old;
        uint32_t at;
        bool goes_on = !node_of(j, node_id, &at) && lives_elsewhere(old, node_id); /* the job has given the node back */
        if (st.state == JOB_RUNNING && !st.kill_ms && !goes_on)
            st.state = JOB_CANCELLED; /* the job is over there, and it had not said how it went */
        node_clean(ap, &st, node_id, ap->now_ms, false);
    }
}
