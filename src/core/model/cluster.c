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

#define REC_SELF cluster
REC_DEFINE(cluster, CLUSTER_FIELDS)
#undef REC_SELF

#define REC_SELF counters
REC_DEFINE(counters, COUNTERS_FIELDS)
#undef REC_SELF

const struct node_overlay *rconf_overlay(const struct rconf *r, const char *node_name) {
    for (uint32_t i = 0; i < r->n_overlays; i++)
        for (uint32_t k = 0; k < r->overlays[i].n_names; k++)
            if (str_eq(r->overlays[i].names[k], node_name))
                return &r->overlays[i];
    return NULL;
}
