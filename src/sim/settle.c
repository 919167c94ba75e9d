/* SPDX-License-Identifier: Apache-2.0
 *
 * A life without faults any more comes to rest: every job is over, or has a reason to wait that nobody will lift; nodes are
 * free; all members are the same.
 */
#include <stdio.h>

#include "sim/cluster_inside.h"

struct vctl *life_leader(const struct life *c) {
    for (uint32_t i = 0; i < c->n_members; i++)
        if (smember_is_up(c->m[i]) && smember_ctl(c->m[i])->room.is_leader)
            return smember_ctl(c->m[i]);
    return NULL;
}

static const struct job *restless_job(const struct vctl *c) {
    struct view v;
    const struct job *j;
    state_peek(c->room.state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        if (!job_is_over(j) && !vctl_may_wait(c, j))
            return j;
    return NULL;
}

static const struct node *restless_node(const struct vctl *c) {
    struct view v;
    const struct node *n;
    state_peek(c->room.state, &v);
    for (uint64_t k = 0; (n = view_next_node(&v, &k)); k++)
        if (!node_takes_work(n) || n->alloc_cpus || n->n_jobs || n->n_completing)
            return n;
    return NULL;
}

static bool are_agents_idle(const struct life *c) {
    for (uint32_t i = 0; i < AGENTS; i++)
        if (vagent_live(c->a[i]) || vagent_known(c->a[i]))
            return false;
    return true;
}

static bool are_members_equal(const struct life *c) {
    for (uint32_t i = 0; i < c->n_members; i++) {
        const struct vctl *m = smember_ctl(c->m[i]);
        if (!life_is_in(c, i)) {
            if (m) /* it has not heard yet that it was removed */
                return false;
            continue;
        }
        if (!m || m->applied_index != judge_committed(&c->judge) || acct_flushed_index(m->room.acct) < m->applied_index)
            return false;
    }
    return true;
}

bool settle_is_done(void *arg) {
    struct life *c = arg;
    const struct vctl *l = life_leader(c);
    if (!l || !admin_is_quiet(c) || !sclient_is_quiet(c->client) || !are_members_equal(c) || !are_agents_idle(c))
        return false;
    return react_stats(l->room.react).in_flight == 0 && !restless_node(l) && !restless_job(l);
}

void settle_check(struct life *c) {
    const struct vctl *l = life_leader(c);
    const struct judge *j = &c->judge;
    for (uint32_t i = 0; i < c->n_members && !settle_is_done(c); i++)
        smember_print(c->m[i]);
    if (!l)
        judge_fail(j, "nobody leads after a long quiet time");
    if (!sclient_is_quiet(c->client))
        judge_fail(j, "a client has no answer after a long quiet time");
    const struct job *job = restless_job(l);
    if (job) {
        auto_arena a = {0};
        printf("  %s\n", rec_print(job_rec(), job, &a));
    }
    if (job)
        judge_fail(j, "job %u is %s, reason %s, after a long quiet time", job->id, job_shown_state(job),
                   job_reason_word(job->reason));
    const struct node *n = restless_node(l);
    if (n)
        judge_fail(j, "node %s: base %u, not responding %u, %u CPUs of %u jobs after a long quiet time", n->name, n->base,
                   n->not_responding, n->alloc_cpus, n->n_jobs);
    if (!are_agents_idle(c))
        judge_fail(j, "an agent has runs after a long quiet time");
    for (uint32_t i = 0; i < c->n_members; i++) {
        const struct vctl *m = smember_ctl(c->m[i]);
        if (!life_is_in(c, i) && !m)
            continue;
        if (!life_is_in(c, i))
            judge_fail(j, "member %u was removed and is still there after a long quiet time", i + 1);
        if (!m || m->applied_index != judge_committed(j))
            judge_fail(j, "member %u has applied %llu, others %llu, after a long quiet time", i + 1,
                       (unsigned long long)(m ? m->applied_index : 0), (unsigned long long)judge_committed(j));
    }
    if (!admin_is_quiet(c))
        judge_fail(j, "a change of members does not end, or one that was taken in does not vote");
    if (!settle_is_done(c))
        judge_fail(j, "the cluster does not come to rest");
    judge_history(&c->judge);
    sclient_check(c->client, l);
}
