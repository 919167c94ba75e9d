/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/why.h"

#define REC_SELF why_fact
REC_DEFINE(why_fact, WHY_FACT_FIELDS)
#undef REC_SELF

#define REC_SELF why_node
REC_DEFINE(why_node, WHY_NODE_FIELDS)
#undef REC_SELF

#define REC_SELF why
REC_DEFINE(why, WHY_FIELDS)
#undef REC_SELF
