/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands about nodes and the cluster itself.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/model/constraint.h"
#include "core/state/inside.h"

/* The kinds alone, without what jobs have of them and those that are there for a job only. */
static void bare_gres(struct apply *ap, struct node_said *said) {
    struct gres *list = arena_calloc(ap->arena, said->n_gres + 1, sizeof(*list));
    uint32_t k = 0;
    for (uint32_t i = 0; i < said->n_gres; i++) {
        const struct gres *g = &said->gres[i];
        if (g->count && g->name)
            list[k++] = (struct gres){.name = g->name, .type = g->type, .count = g->count, .files = g->files, .n_files = g->n_files,
                                      .first = g->first, .no_consume = g->no_consume, .is_explicit = g->is_explicit};
    }
    said->gres = list;
    said->n_gres = k;
}

/* What is configured says how many there are; which devices they are and how they are given away, its agent knows. */
static const struct gres *with_said(struct apply *ap, const struct gres *from, uint32_t n, const struct node_said *said) {
    struct gres *list = arena_memdup(ap->arena, from, n * sizeof(*list));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < said->n_gres; k++) {
            const struct gres *g = &said->gres[k];
            if (!str_eq(g->name, list[i].name) || !str_eq(g->type, list[i].type))
                continue;
            list[i].is_explicit |= g->is_explicit;
            list[i].no_consume |= g->no_consume;
            if (g->n_files != list[i].count || list[i].n_files)
                continue;
            list[i].files = g->files;
            list[i].n_files = g->n_files;
            list[i].first = g->first;
        }
    return list;
}

/* The kinds are what is said or configured, what jobs have of them goes on. A kind that is there no more stays, with a
 * count of 0, as long as jobs have of it. */
static void keep_gres(struct apply *ap, struct node *n, const struct gres *had, uint32_t n_had,
                      const struct gres *from, uint32_t n_from) {
    struct gres *list = arena_calloc(ap->arena, n_from + n_had + 1, sizeof(*list));
    uint32_t k = n_from;
    if (n_from)
        memcpy(list, from, n_from * sizeof(*list));
    for (uint32_t i = 0; i < n_had; i++) {
        struct gres *g = NULL;
        for (uint32_t m = 0; m < k && !g; m++)
            if (str_eq(list[m].name, had[i].name) && str_eq(list[m].type, had[i].type))
                g = &list[m];
        if (!had[i].alloc)
            continue;
        if (!g) {
            g = &list[k++];
            *g = (struct gres){.name = had[i].name, .type = had[i].type};
        }
        g->alloc = had[i].alloc;
        g->taken = had[i].taken;
        g->n_taken = had[i].n_taken;
    }
    n->gres = list;
    n->n_gres = k;
}

static void set_by_hand(struct node *n) {
    if (!n->set)
        return;
    if (n->set->has_features) {
        n->features = n->set->features;
        n->n_features = n->set->n_features;
    }
    if (n->set->weight)
        n->weight = n->set->weight - 1;
}

/* Sockets and the like: what the agent says is kept beside the node only where the file says otherwise. */
static bool overlay_shape(const struct node_overlay *o, struct node *n, struct node_said *said) {
    bool differs = o && (o->sockets || o->cores_per_socket || o->threads_per_core || o->tmp_disk_mb);
    if (said->has_shape) {
        n->sockets = said->sockets, n->cores_per_socket = said->cores_per_socket;
        n->threads_per_core = said->threads_per_core, n->tmp_disk_mb = said->tmp_disk_mb;
    }
    said->has_shape = differs;
    said->sockets = differs ? n->sockets : 0, said->cores_per_socket = differs ? n->cores_per_socket : 0;
    said->threads_per_core = differs ? n->threads_per_core : 0, said->tmp_disk_mb = differs ? n->tmp_disk_mb : 0;
    if (!differs)
        return false;
    n->sockets = o->sockets ? o->sockets : n->sockets;
    n->cores_per_socket = o->cores_per_socket ? o->cores_per_socket : n->cores_per_socket;
    n->threads_per_core = o->threads_per_core ? o->threads_per_core : n->threads_per_core;
    n->tmp_disk_mb = o->tmp_disk_mb ? o->tmp_disk_mb : n->tmp_disk_mb;
    return true;
}

/* Of what was set active that which there is. */
static void keep_active(struct apply *ap, struct node *n) {
    n->has_active = n->set && n->set->has_active;
    n->active = NULL;
    n->n_active = 0;
    if (!n->has_active)
        return;
    const char **list = arena_calloc(ap->arena, n->set->n_active + 1, sizeof(*list));
    for (uint32_t i = 0; i < n->set->n_active; i++)
        if (features_list(n->set->active[i], n->features, n->n_features))
            list[n->n_active++] = n->set->active[i];
    n->active = list;
}

/* [[nodes]] adds to what agents report; what they report is kept beside it. `had`: with what jobs have. */
static void overlay_file(struct apply *ap, struct node *n, const struct gres *had, uint32_t n_had) {
    const struct state *s = ap->s;
    struct node_said said = node_said(n);
    labels_change(said.labels, said.n_labels, n->label_changes, n->n_label_changes, false, ap->arena, &n->labels, &n->n_labels);
    const struct node_overlay *o =
        s->cluster->conf ? rconf_overlay(s->cluster->conf, n->name, n->labels, n->n_labels) : NULL;
    bare_gres(ap, &said);
    n->address = said.address;
    n->cpus = said.cpus;
    n->mem_mb = said.mem_mb;
    n->features = said.features;
    n->n_features = said.n_features;
    n->said = NULL;
    n->weight = o && o->weight ? o->weight : 1;
    bool by_hand = n->set && n->set->has_gres, by_file = o && o->n_gres;
    keep_gres(ap, n, had, n_had, by_hand ? n->set->gres : by_file ? with_said(ap, o->gres, o->n_gres, &said) : said.gres,
              by_hand ? n->set->n_gres : by_file ? o->n_gres : said.n_gres);
    set_by_hand(n);
    bool is_shaped = overlay_shape(o, n, &said);
    bool differs = is_shaped || (o && (o->n_features || o->cpus || o->memory_mb || o->address || o->n_gres));
    if (differs || by_hand || n->n_label_changes || (n->set && n->set->has_features))
        n->said = arena_memdup(ap->arena, &said, sizeof(said));
    if (!o)
        return;
    if (o->n_features && !(n->set && n->set->has_features)) {
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

static void overlay(struct apply *ap, struct node *n, const struct gres *had, uint32_t n_had) {
    overlay_file(ap, n, had, n_had);
    keep_active(ap, n);
}

void node_overlay_apply(struct apply *ap, struct node *n) {
    overlay(ap, n, n->gres, n->n_gres);
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
        changed.set = NULL; /* what was set by hand lasts until the next file */
        overlay(ap, &changed, node->gres, node->n_gres);
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

/* The agent of a node that was removed. One that was started anew is another: the entry is done with. */
static int check_removed(struct apply *ap, const struct node *said) {
    const struct cluster *now = ap->s->cluster;
    const struct removed_node *r = cluster_removed(now, said->name);
    if (!r)
        return 0;
    if (removed_is_same(r, said))
        return apply_refuse(ap, E_ADMISSION, "node %s was removed: it may join when its agent is started anew", said->name);
    struct cluster next = *now;
    struct removed_node *list = arena_calloc(ap->arena, next.n_removed, sizeof(*list));
    uint32_t k = 0;
    for (uint32_t i = 0; i < next.n_removed; i++)
        if (&next.removed[i] != r)
            list[k++] = next.removed[i];
    next.removed = list;
    next.n_removed = k;
    state_set_cluster(ap->s, &next);
    return 0;
}

int apply_node_register(struct apply *ap, const struct cmd_node_register *cmd) {
    struct state *s = ap->s;
    if (!cmd->node || !cmd->node->name || !*cmd->node->name || !cmd->node->cpus)
        return apply_refuse(ap, E_NODE_NAME, "%s", err_sentence(E_NODE_NAME));
    const struct node *old = state_find_node(s, cmd->node->name);
    int rc = check_key(ap, old, cmd->node);
    rc = rc ? rc : check_removed(ap, cmd->node);
    if (rc)
        return rc;
    struct node n = *cmd->node;
    n.id = old ? old->id : s->counters.next_node_id++;
    bool stays_down = old && old->down_set;
    n.base = stays_down ? NODE_DOWN : NODE_UP;
    n.not_responding = cmd->has_strangers;
    n.down_reason = stays_down ? old->down_reason : NULL;
    n.down_since_unix = stays_down ? old->down_since_unix : 0;
    n.down_set = stays_down;
    n.down_until_unix = stays_down ? old->down_until_unix : 0;
    n.set = old ? old->set : NULL;
    n.label_changes = old ? old->label_changes : NULL;
    n.n_label_changes = old ? old->n_label_changes : 0;
    n.share_kind = old ? old->share_kind : SHARE_CORES;
    n.share_uid = old ? old->share_uid : 0;
    n.drains = old ? old->drains : NULL; /* a drain is lifted by its owner, never by coming back */
    n.n_drains = old ? old->n_drains : 0;
    n.alloc_cpus = old ? old->alloc_cpus : 0;
    n.alloc_mem_mb = old ? old->alloc_mem_mb : 0;
    n.n_jobs = old ? old->n_jobs : 0;
    n.n_completing = old ? old->n_completing : 0;
    n.last_busy_unix = old ? old->last_busy_unix : ap->now_ms / 1000;
    n.said = NULL;
    overlay(ap, &n, old ? old->gres : NULL, old ? old->n_gres : 0);
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
    if (!n.down_set) {
        n.base = cmd->down ? NODE_DOWN : NODE_UP;
        n.down_reason = cmd->down ? cmd->reason : NULL;
        n.down_since_unix = cmd->down ? ap->now_ms / 1000 : 0;
    }
    state_put_node(ap->s, &n);
    apply_event(ap, EV_NODE_CHANGED, 0, 0, n.id);
    return 0;
}
