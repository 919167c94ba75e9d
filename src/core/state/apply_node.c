/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands about nodes and the cluster itself.
 */
#include <string.h>

#include "base/mem.h"
#include "core/state/inside.h"

/* [[nodes]] adds to what agents report; what they report is kept beside it. */
static void overlay(struct apply *ap, struct node *n) {
    const struct state *s = ap->s;
    const struct node_overlay *o = s->cluster->conf ? rconf_overlay(s->cluster->conf, n->name) : NULL;
    struct node_said said = node_said(n);
    n->address = said.address;
    n->cpus = said.cpus;
    n->mem_mb = said.mem_mb;
    n->features = said.features;
    n->n_features = said.n_features;
    n->said = NULL;
    n->weight = o && o->weight ? o->weight : 1;
    if (!o)
        return;
    if (o->n_features || o->cpus || o->memory_mb || o->address)
        n->said = arena_memdup(ap->arena, &said, sizeof(said));
    if (o->n_features) {
        n->features = o->features;
        n->n_features = o->n_features;
    }
    if (o->cpus)
        n->cpus = o->cpus;
    if (o->memory_mb)
        n->mem_mb = o->memory_mb;
    if (o->address)
        n->address = o->address;
}

int apply_cluster_init(struct apply *ap, const struct cmd_cluster_init *cmd) {
    struct cluster next = *ap->s->cluster;
    if (next.n_key_seed)
        return apply_refuse(ap, E_EXISTS, "the cluster has its keys already");
    next.key_seed = cmd->key_seed;
    next.n_key_seed = cmd->n_key_seed;
    next.join_tokens = cmd->join_tokens;
    next.n_join_tokens = cmd->n_join_tokens;
    state_set_cluster(ap->s, &next);
    return 0;
}

int apply_config_set(struct apply *ap, const struct cmd_config_set *cmd) {
    struct state *s = ap->s;
    const struct rconf *conf = cmd->conf;
    if (!conf && !cmd->n_hash)
        return apply_refuse(ap, E_CONFIG, "a configuration is missing");
    struct cluster next = *s->cluster;
    struct member *members = arena_calloc(ap->arena, next.n_members + 1, sizeof(*members));
    uint32_t n = 0;
    for (uint32_t i = 0; i < next.n_members; i++)
        if (next.members[i].id != cmd->member_id)
            members[n++] = next.members[i];
    members[n++] = conf ? (struct member){cmd->member_id, conf->hash, conf->n_hash}
                        : (struct member){cmd->member_id, cmd->hash, cmd->n_hash};
    next.members = members;
    next.n_members = n;
    next.conf = conf ? conf : next.conf;
    state_set_cluster(s, &next);
    if (!conf)
        return 0;
    state_set_parts(s, conf->parts, conf->n_parts);
    s->counters.next_job_id = MAX(s->counters.next_job_id, MAX(conf->first_job_id, 1u));
    const struct node *node;
    for (uint64_t k = 0; (node = cow_next(s->nodes.root, &k)); k++) {
        struct node changed = *node;
        overlay(ap, &changed);
        if (!rec_same(node_rec(), node, &changed))
            state_put_node(s, &changed);
    }
    apply_event(ap, EV_CONFIG_CHANGED, 0, 0, 0);
    return 0;
}

/* A node's key is its name's owner: another key may not take the name over. */
static int check_key(struct apply *ap, const struct node *old, const struct node *said) {
    if (!old || !old->n_public_key)
        return 0;
    if (old->n_public_key == said->n_public_key && memcmp(old->public_key, said->public_key, old->n_public_key) == 0)
        return 0;
    return apply_refuse(ap, E_NODE_KEY, "node %s is registered with another key", said->name);
}

int apply_node_register(struct apply *ap, const struct cmd_node_register *cmd) {
    struct state *s = ap->s;
    if (!cmd->node || !cmd->node->name || !*cmd->node->name || !cmd->node->cpus)
        return apply_refuse(ap, E_NODE_NAME, "%s", err_sentence(E_NODE_NAME));
    const struct node *old = state_find_node(s, cmd->node->name);
    int rc = check_key(ap, old, cmd->node);
    if (rc)
        return rc;
    struct node n = *cmd->node;
    n.id = old ? old->id : s->counters.next_node_id++;
    n.base = NODE_UP;
    n.not_responding = cmd->has_strangers;
    n.down_reason = NULL;
    n.down_since_unix = 0;
    n.drains = old ? old->drains : NULL; /* a drain is lifted by its owner, never by coming back */
    n.n_drains = old ? old->n_drains : 0;
    n.alloc_cpus = old ? old->alloc_cpus : 0;
    n.alloc_mem_mb = old ? old->alloc_mem_mb : 0;
    n.n_jobs = old ? old->n_jobs : 0;
    n.n_completing = old ? old->n_completing : 0;
    n.last_busy_unix = old ? old->last_busy_unix : ap->now_ms / 1000;
    n.said = NULL;
    overlay(ap, &n);
    state_put_node(s, &n);
    ap->answer.node_id = n.id;
    apply_event(ap, EV_NODE_CHANGED, 0, 0, n.id);
    return 0;
}

int apply_node_state(struct apply *ap, const struct cmd_node_state *cmd) {
    const struct node *old = state_node(ap->s, cmd->node_id);
    if (!old)
        return apply_refuse(ap, E_NODE_NAME, "%s", err_sentence(E_NODE_NAME));
    struct node n = *old;
    n.not_responding = cmd->not_responding;
    n.base = cmd->down ? NODE_DOWN : NODE_UP;
    n.down_reason = cmd->down ? cmd->reason : NULL;
    n.down_since_unix = cmd->down ? ap->now_ms / 1000 : 0;
    state_put_node(ap->s, &n);
    apply_event(ap, EV_NODE_CHANGED, 0, 0, n.id);
    return 0;
}
