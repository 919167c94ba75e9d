/* SPDX-License-Identifier: Apache-2.0
 *
 * What administrators do to nodes, and the tokens that admit new ones.
 */
#include "base/mem.h"
#include "base/str.h"
#include "core/state/inside.h"

#define TOKENS_MAX 1000u
#define REMOVED_MAX 1000u

/* ---- nodes ---- */

static bool is_due(const struct apply *ap, int64_t until_unix) {
    return until_unix && until_unix <= ap->now_ms / 1000;
}

/* Resume lifts what only a person may: his own, and that an agent could not kill something. */
static bool drain_goes(const struct apply *ap, const struct drain *d, const struct cmd_node_update *cmd) {
    bool is_admins = str_eq(d->owner, "admin");
    if (cmd->op == NODE_OP_RESUME)
        return cmd->only_due ? is_due(ap, d->until_unix) : is_admins || str_eq(d->owner, "agent");
    return is_admins && d->kind == cmd->kind;
}

static int64_t next_until(int64_t was, int64_t wish) {
    return wish < 0 ? 0 : wish ? wish : was;
}

static void set_drains(struct apply *ap, struct node *n, const struct cmd_node_update *cmd, bool add) {
    struct drain *drains = arena_calloc(ap->arena, n->n_drains + 1, sizeof(*drains));
    uint32_t k = 0;
    int64_t until = 0;
    for (uint32_t i = 0; i < n->n_drains; i++) {
        if (drain_goes(ap, &n->drains[i], cmd))
            until = n->drains[i].until_unix;
        else
            drains[k++] = n->drains[i];
    }
    if (add)
        drains[k++] = (struct drain){.owner = "admin", .text = cmd->reason, .since_unix = ap->now_ms / 1000, .user = cmd->user,
                                     .kind = cmd->kind, .until_unix = next_until(until, cmd->until_unix)};
    n->drains = drains;
    n->n_drains = k;
}

/* `place`: of the node in the command. */
static void set_fields(struct apply *ap, struct node *n, const struct cmd_node_update *cmd, uint32_t place) {
    struct node_set *set = arena_calloc(ap->arena, 1, sizeof(*set));
    if (n->set)
        *set = *n->set;
    if (cmd->has_features) {
        set->has_features = true;
        set->features = cmd->features;
        set->n_features = cmd->n_features;
    }
    if (cmd->has_features || cmd->has_active) {
        set->has_active = cmd->has_active;
        set->active = cmd->active;
        set->n_active = cmd->n_active;
    }
    if (cmd->weight)
        set->weight = cmd->weight;
    if (cmd->comment)
        set->comment = cmd->comment;
    if (cmd->extra)
        set->extra = cmd->extra;
    if (cmd->n_instance_ids)
        set->instance_id = cmd->instance_ids[cmd->n_instance_ids > 1 ? place : 0];
    if (cmd->n_instance_types)
        set->instance_type = cmd->instance_types[cmd->n_instance_types > 1 ? place : 0];
    if (cmd->has_gres) {
        set->has_gres = true;
        set->gres = cmd->gres;
        set->n_gres = cmd->n_gres;
    }
    n->set = set;
    node_overlay_apply(ap, n);
}

static void set_labels(struct apply *ap, struct node *n, const struct cmd_node_update *cmd) {
    labels_change(n->label_changes, n->n_label_changes, cmd->labels, cmd->n_labels, true, ap->arena, &n->label_changes,
                  &n->n_label_changes);
    node_overlay_apply(ap, n);
}

/* As Slurm: what runs there is queued again at once, or fails. The agent, if it lives, is told to end it. */
static void end_jobs_of(struct apply *ap, uint32_t node_id) {
    const struct idset *there = idset_of(&ap->s->node_jobs, node_id);
    size_t n = there ? there->ids.n : 0;
    uint32_t *ids = arena_memdup(ap->arena, n ? there->ids.p : NULL, n * sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        run_node_down(ap, ids[i], node_id);
}

/* With force nothing may be left there: its jobs fail, and what they hold of it is given back. Should the agent live, it
 * is told to end them when it asks to join. */
static void evict(struct apply *ap, uint32_t node_id) {
    const struct idset *there = idset_of(&ap->s->node_jobs, node_id);
    size_t n = there ? there->ids.n : 0;
    uint32_t *ids = arena_memdup(ap->arena, n ? there->ids.p : NULL, n * sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        run_node_gone(ap, ids[i], node_id);
}

static void bar(struct apply *ap, const struct node *n) {
    struct cluster next = *ap->s->cluster;
    struct removed_node *list = arena_calloc(ap->arena, next.n_removed + 1, sizeof(*list));
    uint32_t k = 0, first = next.n_removed >= REMOVED_MAX ? 1 : 0; /* the oldest goes */
    for (uint32_t i = first; i < next.n_removed; i++)
        if (!str_eq(next.removed[i].name, n->name))
            list[k++] = next.removed[i];
    list[k++] = (struct removed_node){n->name, n->boot_id, n->agent_start_unix, ap->now_ms / 1000};
    next.removed = list;
    next.n_removed = k;
    state_set_cluster(ap->s, &next);
}

static int delete_node(struct apply *ap, const struct node *old, const struct cmd_node_update *cmd) {
    uint32_t id = old->id;
    if (old->n_jobs && !cmd->force)
        return E_NODES_BUSY;
    if (cmd->bar)
        bar(ap, old);
    evict(ap, id);
    state_del_node(ap->s, id);
    apply_event(ap, EV_NODE_CHANGED, 0, 0, id);
    return 0;
}

static int update_node(struct apply *ap, const struct node *old, const struct cmd_node_update *cmd, uint32_t place) {
    struct node n = *old;
    switch ((enum node_op)cmd->op) {
    case NODE_OP_DRAIN: set_drains(ap, &n, cmd, true); break;
    case NODE_OP_RESUME:
        set_drains(ap, &n, cmd, false);
        if (n.down_set && (!cmd->only_due || is_due(ap, n.down_until_unix))) {
            n.down_set = false;
            n.down_until_unix = 0;
            n.base = NODE_UP; /* it is asked at once: when it is silent it goes down as any other */
            n.down_reason = NULL;
            n.down_since_unix = 0;
        }
        break;
    case NODE_OP_DOWN:
        n.base = NODE_DOWN;
        n.down_until_unix = next_until(n.down_set ? n.down_until_unix : 0, cmd->until_unix);
        n.down_set = true;
        n.down_reason = cmd->reason;
        n.down_since_unix = ap->now_ms / 1000;
        break;
    case NODE_OP_DELETE:
        return delete_node(ap, old, cmd);
    case NODE_OP_SET:
        set_fields(ap, &n, cmd, place);
        n.not_responding |= cmd->silent;
        break;
    case NODE_OP_LABEL: set_labels(ap, &n, cmd); break;
    default: return E_SYNTAX;
    }
    state_put_node(ap->s, &n);
    apply_event(ap, EV_NODE_CHANGED, 0, 0, n.id);
    if (cmd->op == NODE_OP_DOWN)
        end_jobs_of(ap, n.id);
    return 0;
}

/* All of them or none: a list is one wish. */
int apply_node_update(struct apply *ap, const struct cmd_node_update *cmd) {
    if (cmd->op < NODE_OP_DRAIN || cmd->op > NODE_OP_LAST || cmd->kind > DRAIN_KIND_LAST)
        return apply_refuse(ap, E_SYNTAX, "node operation %u is not known", cmd->op);
    if ((cmd->n_instance_ids > 1 && cmd->n_instance_ids != cmd->n_node_ids) ||
        (cmd->n_instance_types > 1 && cmd->n_instance_types != cmd->n_node_ids))
        return apply_refuse(ap, E_SYNTAX, "%s", err_sentence(E_SYNTAX));
    for (uint32_t i = 0; i < cmd->n_node_ids; i++) {
        const struct node *n = state_node(ap->s, cmd->node_ids[i]);
        if (!n)
            return apply_refuse(ap, E_NODE_NAME, "%s", err_sentence(E_NODE_NAME));
        if (cmd->op == NODE_OP_DELETE && n->n_jobs && !cmd->force)
            return apply_refuse(ap, E_NODES_BUSY, "node %s has jobs", n->name);
        if (cmd->kind == DRAIN_FUTURE && (n->n_jobs || n->n_completing))
            return apply_refuse(ap, E_JOB_STATE, "Invalid node state transition");
    }
    for (uint32_t i = 0; i < cmd->n_node_ids; i++) {
        const struct node *n = state_node(ap->s, cmd->node_ids[i]);
        if (n) /* named twice, and deleted */
            update_node(ap, n, cmd, i);
    }
    return 0;
}

/* ---- tokens ---- */

static int token_add(struct apply *ap, const struct join_token *t) {
    struct cluster next = *ap->s->cluster;
    if (!t->id || !t->hash)
        return apply_refuse(ap, E_SYNTAX, "a token needs an id and a hash");
    struct join_token *list = arena_calloc(ap->arena, next.n_tokens + 1, sizeof(*list));
    uint32_t n = 0;
    for (uint32_t i = 0; i < next.n_tokens; i++) {
        if (str_eq(next.tokens[i].id, t->id))
            return apply_refuse(ap, E_EXISTS, "token %s exists already", t->id);
        if (!next.tokens[i].until_unix || next.tokens[i].until_unix > ap->now_ms / 1000) /* the others are void */
            list[n++] = next.tokens[i];
    }
    if (n >= TOKENS_MAX)
        return apply_refuse(ap, E_BUSY, "there are %u tokens; revoke some", n);
    list[n] = *t;
    list[n].created_unix = t->created_unix ? t->created_unix : ap->now_ms / 1000;
    next.tokens = list;
    next.n_tokens = n + 1;
    state_set_cluster(ap->s, &next);
    return 0;
}

static int token_revoke(struct apply *ap, const char *id) {
    struct cluster next = *ap->s->cluster;
    struct join_token *list = arena_calloc(ap->arena, next.n_tokens + 1, sizeof(*list));
    uint32_t n = 0;
    for (uint32_t i = 0; i < next.n_tokens; i++)
        if (!str_eq(next.tokens[i].id, id))
            list[n++] = next.tokens[i];
    if (n == next.n_tokens)
        return apply_refuse(ap, E_NOT_FOUND, "there is no token %s", id);
    next.tokens = list;
    next.n_tokens = n;
    state_set_cluster(ap->s, &next);
    return 0;
}

int apply_join_token(struct apply *ap, const struct cmd_join_token *cmd) {
    if (!cmd->add && !cmd->revoke)
        return apply_refuse(ap, E_SYNTAX, "nothing to add or revoke");
    int rc = cmd->add ? token_add(ap, cmd->add) : 0;
    return rc || !cmd->revoke ? rc : token_revoke(ap, cmd->revoke);
}
