/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptions of the cluster's own record and of the configuration in it.
 */
#include "core/model/cluster.h"

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
