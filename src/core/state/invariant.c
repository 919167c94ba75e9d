/* SPDX-License-Identifier: Apache-2.0
 *
 * What must be true after every apply. Slow and plain: read it to know what the state promises.
 */
#include <string.h>

#include "base/mem.h"
#include "core/state/inside.h"

struct sums {
    uint32_t cpus, jobs, completing;
    uint64_t mem_mb;
};

static int check_job(const struct state *s, const struct job *j, struct sums *sums, uint32_t n_sums, struct err *e) {
    if (!j->spec)
        return err_set(e, E_INTERNAL, "job %u has no spec", j->id);
    if (j->state >= JOB_N_STATES)
        return err_set(e, E_INTERNAL, "job %u is in state %u", j->id, j->state);
    if (j->configuring && (j->state != JOB_RUNNING || j->completing))
        return err_set(e, E_INTERNAL, "job %u is configuring in state %u", j->id, j->state);
    if (job_holds_nodes(j) && !j->n_nodes)
        return err_set(e, E_INTERNAL, "job %u holds no node in state %u", j->id, j->state);
    if (j->state == JOB_PENDING && !j->completing && j->n_nodes)
        return err_set(e, E_INTERNAL, "job %u waits with nodes", j->id);
    if (job_is_over(j) && (!j->end_ms || !j->ended_index))
        return err_set(e, E_INTERNAL, "job %u is over without an end", j->id);
    if (!deps_are_sound(s, j))
        return err_set(e, E_INTERNAL, "job %u: what it knows of its dependencies is not so", j->id);
    const struct job_rare *rare = job_rare_of(j);
    if ((rare->suspended_ms != 0) != (j->state == JOB_SUSPENDED))
        return err_set(e, E_INTERNAL, "job %u is suspended or not", j->id);
    if (rare->requeue_wanted && (j->state != JOB_PENDING || !j->completing))
        return err_set(e, E_INTERNAL, "job %u is to be queued again in state %u", j->id, j->state);
    bool any_left = false;
    for (uint32_t i = 0; i < job_n_held(j); i++) {
        const struct job_node *jn = job_held(j, i);
        if (jn->is_done || !job_holds_nodes(j))
            continue;
        if (jn->node_id >= n_sums || !state_node(s, jn->node_id))
            return err_set(e, E_INTERNAL, "job %u names node %u, which is not there", j->id, jn->node_id);
        if (!idset_has(idset_of(&s->node_jobs, jn->node_id), j->id))
            return err_set(e, E_INTERNAL, "job %u is not among those on node %u", j->id, jn->node_id);
        any_left = true;
        sums[jn->node_id].cpus += jn->cpus;
        sums[jn->node_id].mem_mb += jn->mem_mb;
        sums[jn->node_id].jobs++;
        sums[jn->node_id].completing += j->completing || i >= j->n_nodes;
    }
    if (job_is_over(j))
        for (uint32_t i = 0; i < job_n_held(j); i++)
            if (!job_held(j, i)->is_done)
                return err_set(e, E_INTERNAL, "job %u is over and node %u is not clean", j->id, job_held(j, i)->node_id);
    if (j->completing && !any_left)
        return err_set(e, E_INTERNAL, "job %u completes on no node", j->id);
    return 0;
}

static int check_node(const struct state *s, const struct node *n, const struct sums *sum, struct err *e) {
    if (n->alloc_cpus != sum->cpus || n->alloc_mem_mb != sum->mem_mb || n->n_jobs != sum->jobs ||
        n->n_completing != sum->completing)
        return err_set(e, E_INTERNAL, "node %s says %u CPUs of %u jobs, its jobs say %u of %u", n->name,
                       n->alloc_cpus, n->n_jobs, sum->cpus, sum->jobs);
    return check_shares(s, n, e);
}

int state_check(const struct state *s, struct err *e) {
    uint32_t n_sums = s->counters.next_node_id;
    autofree struct sums *sums = xcalloc(n_sums + 1, sizeof(*sums));
    size_t n_state[JOB_N_STATES] = {0};
    const struct job *j;
    const struct node *n;
    for (uint64_t k = 0; (j = cow_next(s->jobs.root, &k)); k++) {
        int rc = j->id == k ? check_job(s, j, sums, n_sums, e)
                            : err_set(e, E_INTERNAL, "job %u stands at key %llu", j->id, (unsigned long long)k);
        if (rc)
            return rc;
        if (j->id >= s->counters.next_job_id)
            return err_set(e, E_INTERNAL, "job %u is ahead of the next id", j->id);
        n_state[j->state]++;
    }
    int rc = check_others(s, e);
    if (rc)
        return rc;
    if (memcmp(n_state, s->n_state, sizeof(n_state)) != 0)
        return err_set(e, E_INTERNAL, "the counts by state differ from the jobs");
    for (uint64_t k = 0; (n = cow_next(s->nodes.root, &k)); k++) {
        rc = n->id == k && k < n_sums ? check_node(s, n, &sums[k], e)
                                          : err_set(e, E_INTERNAL, "node %s has a wrong id", n->name);
        if (rc)
            return rc;
        if (state_find_node(s, n->name) != n)
            return err_set(e, E_INTERNAL, "node %s is not found by its name", n->name);
    }
    if (s->tokens.n != s->token_at.n && s->tokens.n < s->token_at.n)
        return err_set(e, E_INTERNAL, "more tokens are indexed than kept");
    return 0;
}
