/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptions of the cluster's own record and of the configuration in it.
 */
#include "core/model/cluster.h"

#include "base/str.h"

#define REC_SELF license
REC_DEFINE(license, LICENSE_FIELDS)
#undef REC_SELF

#define REC_SELF join_token
REC_DEFINE(join_token, JOIN_TOKEN_FIELDS)
#undef REC_SELF

#define REC_SELF node_overlay
REC_DEFINE(node_overlay, NODE_OVERLAY_FIELDS)
#undef REC_SELF

#define REC_SELF rconf
REC_DEFINE(rconf, RCONF_FIELDS)
#undef REC_SELF

#define REC_SELF member
REC_DEFINE(member, MEMBER_FIELDS)
#undef REC_SELF

#define REC_SELF removed_node
REC_DEFINE(removed_node, REMOVED_NODE_FIELDS)
#undef REC_SELF

#define REC_SELF cluster
REC_DEFINE(cluster, CLUSTER_FIELDS)
#undef REC_SELF

#define REC_SELF counters
REC_DEFINE(counters, COUNTERS_FIELDS)
#undef REC_SELF

const struct node_overlay *rconf_overlay(const struct rconf *r, const char *node_name, const struct selector *labels,
                                         uint32_t n_labels) {
    for (uint32_t i = 0; i < r->n_overlays; i++) {
        const struct node_overlay *o = &r->overlays[i];
        for (uint32_t k = 0; k < o->n_names; k++)
            if (str_eq(o->names[k], node_name))
                return o;
        if (selectors_match(o->selectors, o->n_selectors, labels, n_labels))
            return o;
    }
    return NULL;
}

const struct removed_node *cluster_removed(const struct cluster *c, const char *name) {
    for (uint32_t i = 0; i < c->n_removed; i++)
        if (str_eq(c->removed[i].name, name))
            return &c->removed[i];
    return NULL;
}

bool removed_is_same(const struct removed_node *r, const struct node *said) {
    return str_eq(r->boot_id, said->boot_id) && r->agent_start_unix == said->agent_start_unix;
}
