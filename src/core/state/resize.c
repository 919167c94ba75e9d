/* SPDX-License-Identifier: Apache-2.0
 *
 * A run is made smaller. Nodes that it gives back are no more its own from this entry on: steps get no room there, and no
 * list shows them. What runs there is ended, and until the node has said that it is clean its share stays taken
 * (job_rare.leaving). So with a node that is lost, of a run with --no-kill.
 */
#include "base/mem.h"
#include "base/str.h"
#include "core/state/inside.h"

static bool by_names(const struct cmd_update *cmd) {
    return cmd->changes & CHANGE_NODE_LISTS && cmd->spec->n_req_nodes && !cmd->spec->n_exc_nodes;
}

bool resize_is_asked(const struct cmd_update *cmd, const struct job *j) {
    return cmd->shrinks && j->state != JOB_PENDING && (cmd->changes & CHANGE_NODES || by_names(cmd));
}

static bool is_named(const struct job_spec *s, const char *name) {
    for (uint32_t i = 0; i < s->n_req_nodes; i++)
        if (str_eq(s->req_nodes[i], name))
            return true;
    return false;
}

static bool is_kept(const struct cmd_update *cmd, const struct job *j, uint32_t i) {
    return by_names(cmd) ? is_named(cmd->spec, j->nodes[i].name) : i < cmd->spec->min_nodes;
}

/* Each name is one of the job's nodes. Where a script runs its node stays. */
static int check_names(const struct job_spec *want, const struct job *j) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->n_nodes; i++)
        n += is_named(want, j->nodes[i].name);
    bool has_script = !job_spec_more(j->spec)->interactive;
    return n != want->n_req_nodes || (has_script && !is_named(want, j->nodes[0].name)) ? E_NODE_NAME : 0;
}

int resize_check(struct apply *ap, const struct cmd_update *cmd, const struct job *j) {
    if (j->configuring || j->completing)
        return E_JOB_STATE;
    if (by_names(cmd))
        return check_names(cmd->spec, j);
    return !cmd->spec->min_nodes || cmd->spec->min_nodes > j->n_nodes ? E_UNSUPPORTED : 0;
}

static struct job_node leave(struct apply *ap, const struct job_node *jn) {
    struct job_node gone = *jn;
    run_count_completing(ap, &gone, 1);
    return gone;
}

void resize(struct apply *ap, const struct cmd_update *cmd, struct job *j, struct job_spec *spec, struct job_more *more,
            struct job_rare *rare) {
    struct job_node *keep = arena_calloc(ap->arena, j->n_nodes, sizeof(*keep));
    struct job_node *leaving = arena_calloc(ap->arena, job_n_held(j) + 1, sizeof(*leaving));
    uint32_t n_keep = 0, n_leaving = rare->n_leaving, n_tasks = 0, n_cpus = 0;
    for (uint32_t i = 0; i < n_leaving; i++)
        leaving[i] = rare->leaving[i];
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        if (is_kept(cmd, j, i)) {
            n_tasks += j->nodes[i].n_tasks;
            n_cpus += j->nodes[i].cpus;
            keep[n_keep++] = j->nodes[i];
        } else if (!j->nodes[i].is_done) {
            leaving[n_leaving++] = leave(ap, &j->nodes[i]);
        }
    }
    if (n_keep == j->n_nodes)
        return;
    j->nodes = keep;
    j->n_nodes = n_keep;
    j->n_cpus = n_cpus;
    rare->leaving = leaving;
    rare->n_leaving = n_leaving;
    spec->min_nodes = n_keep;
    spec->max_nodes = spec->max_nodes ? n_keep : 0;
    spec->n_tasks = n_tasks ? n_tasks : MAX(n_keep, 1u);
    if (more->nodes_given)
        more->nodes_given = n_keep;
}

bool resize_without(struct apply *ap, struct job *j, uint32_t node_id) {
    bool any_left = false;
    for (uint32_t i = 0; i < j->n_nodes; i++)
        any_left |= j->nodes[i].node_id != node_id && !j->nodes[i].is_done;
    if (!job_spec_more(j->spec)->no_kill || j->configuring || j->completing || !any_left)
        return false;
    struct job_rare rare = *job_rare_of(j);
    struct job_node *keep = arena_calloc(ap->arena, j->n_nodes, sizeof(*keep));
    struct job_node *leaving = arena_calloc(ap->arena, rare.n_leaving + 1, sizeof(*leaving));
    uint32_t n_keep = 0, n_cpus = 0;
    for (uint32_t i = 0; i < rare.n_leaving; i++)
        leaving[i] = rare.leaving[i];
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        if (j->nodes[i].node_id == node_id) {
            leaving[rare.n_leaving++] = leave(ap, &j->nodes[i]);
        } else {
            n_cpus += j->nodes[i].cpus;
            keep[n_keep++] = j->nodes[i];
        }
    }
    must(n_keep + 1 == j->n_nodes);
    j->nodes = keep; /* what it asked for stays: should it wait again, that is what it waits for */
    j->n_nodes = n_keep;
    j->n_cpus = n_cpus;
    rare.leaving = leaving;
    j->rare = &rare;
    state_put_job(ap->s, j);
    steps_node_lost(ap, j, node_id);
    apply_event(ap, EV_JOB_CHANGED, j->id, j->start_no, 0);
    *j = *state_job(ap->s, j->id);
    return true;
}

void resize_node_clean(struct apply *ap, struct job *j, uint32_t node_id) {
    static const struct job_rare nothing;
    struct job_rare rare = *job_rare_of(j);
    struct job_node *left = arena_calloc(ap->arena, rare.n_leaving + 1, sizeof(*left));
    struct job_node gone = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < rare.n_leaving; i++) {
        if (rare.leaving[i].node_id == node_id)
            gone = rare.leaving[i];
        else
            left[n++] = rare.leaving[i];
    }
    rare.leaving = left;
    rare.n_leaving = n;
    j->rare = rec_same(job_rare_rec(), &rare, &nothing) ? NULL : &rare;
    run_count_completing(ap, &gone, -1);
    state_put_job(ap->s, j);
    steps_node_clean(ap, j, node_id);
    run_free_node(ap, j, &gone);
    run_close_if_clean(ap, j);
}
