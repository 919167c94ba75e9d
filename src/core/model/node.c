/* SPDX-License-Identifier: Apache-2.0
 *
 * Node and partition records, and the words for a node's state. The record keeps only facts (base state, drains, what
 * is allocated); what people see is derived here, in Slurm's order of precedence: drained before down before busy.
 */
#include "core/model/node.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

#define REC_SELF gres
REC_DEFINE(gres, GRES_FIELDS)
#undef REC_SELF

#define REC_SELF drain
REC_DEFINE(drain, DRAIN_FIELDS)
#undef REC_SELF

#define REC_SELF node_said
REC_DEFINE(node_said, NODE_SAID_FIELDS)
#undef REC_SELF

#define REC_SELF node_set
REC_DEFINE(node_set, NODE_SET_FIELDS)
#undef REC_SELF

#define REC_SELF node
REC_DEFINE(node, NODE_FIELDS)
#undef REC_SELF

#define REC_SELF selector
REC_DEFINE(selector, SELECTOR_FIELDS)
#undef REC_SELF

#define REC_SELF part
REC_DEFINE(part, PART_FIELDS)
#undef REC_SELF

void part_change(struct part *to, const struct part *from, uint32_t changes) {
#define TAKE(bit, field)                                                                                               \
    if (changes & PART_CHANGE_##bit)                                                                                   \
    to->field = from->field
    TAKE(STATE, state);
    TAKE(DEFAULT, is_default);
    TAKE(NODES, nodes);
    TAKE(NODES, n_nodes);
    TAKE(NODES, all_nodes);
    TAKE(NODES, nodes_text);
    TAKE(MAX_TIME, max_time_min);
    TAKE(DEFAULT_TIME, default_time_min);
    TAKE(MAX_NODES, max_nodes);
    TAKE(MIN_NODES, min_nodes);
    TAKE(TIER, priority_tier);
    TAKE(JOB_FACTOR, priority_job_factor);
    TAKE(OVER, over_subscribe);
    TAKE(OVER, over_count);
    TAKE(EXCLUSIVE_USER, exclusive_user);
    TAKE(MAX_CPUS, max_cpus_per_node);
    TAKE(GROUPS, allow_groups);
    TAKE(GROUPS, n_allow_groups);
    TAKE(ACCOUNTS, allow_accounts);
    TAKE(ACCOUNTS, n_allow_accounts);
    TAKE(ROOT_ONLY, root_only);
    TAKE(HIDDEN, hidden);
    TAKE(EXCLUSIVE, exclusive_user);
    TAKE(EXCLUSIVE, exclusive_topo);
#undef TAKE
    if (!(changes & PART_CHANGE_EXCLUSIVE))
        return;
    bool is_node = from->over_subscribe == OVER_EXCLUSIVE;
    if (is_node || to->over_subscribe == OVER_EXCLUSIVE) {
        to->over_subscribe = is_node ? OVER_EXCLUSIVE : OVER_NO;
        to->over_count = 0;
    }
}

struct words {
    const char *full, *compact;
};

/* n_jobs counts the completing ones too: a node that only cleans up shows as completing. */
static bool is_completing(const struct node *n) {
    return n->n_completing && n->n_jobs <= n->n_completing;
}

static bool is_busy(const struct node *n) {
    return n->n_jobs || n->n_completing || n->alloc_cpus;
}

static bool is_full(const struct node *n) {
    return n->cpus && n->alloc_cpus >= n->cpus;
}

bool node_is_marked(const struct node *n, enum drain_kind kind) {
    for (uint32_t i = 0; i < n->n_drains; i++)
        if (n->drains[i].kind == (uint32_t)kind)
            return true;
    return false;
}

int64_t node_until(const struct node *n) {
    int64_t until = n->down_set ? n->down_until_unix : 0;
    for (uint32_t i = 0; i < n->n_drains; i++)
        until = MAX(until, n->drains[i].until_unix);
    return until;
}

static struct words shown_words(const struct node *n) {
    if (node_is_marked(n, DRAIN_FUTURE))
        return (struct words){"future", "futr"};
    if (node_is_marked(n, DRAIN_PLAIN))
        return is_busy(n) ? (struct words){"draining", "drng"} : (struct words){"drained", "drain"};
    if (node_is_marked(n, DRAIN_FAIL))
        return is_busy(n) ? (struct words){"failing", "failg"} : (struct words){"fail", "fail"};
    if (n->base == NODE_DOWN)
        return (struct words){"down", "down"};
    if (n->base != NODE_UP)
        return (struct words){"unknown", "unk"};
    if (is_completing(n))
        return (struct words){"completing", "comp"};
    if (is_full(n))
        return (struct words){"allocated", "alloc"};
    if (is_busy(n))
        return (struct words){"mixed", "mix"};
    return (struct words){"idle", "idle"};
}

const char *node_shown_state(const struct node *n, bool compact, char out[24]) {
    struct words w = shown_words(n);
    char *end = stpcpy(out, compact ? w.compact : w.full);
    if (n->not_responding)
        *end++ = '*';
    *end = '\0';
    return out;
}

static const char *base_upper(const struct node *n) {
    if (node_is_marked(n, DRAIN_FUTURE))
        return "FUTURE";
    if (n->base == NODE_DOWN)
        return "DOWN";
    if (n->base != NODE_UP)
        return "UNKNOWN";
    if (is_full(n) && !is_completing(n))
        return "ALLOCATED";
    return is_busy(n) && !is_completing(n) ? "MIXED" : "IDLE";
}

const char *node_state_upper(const struct node *n, char out[64]) {
    char *end = stpcpy(out, base_upper(n));
    if (n->n_completing)
        end = stpcpy(end, "+COMPLETING");
    if (node_is_marked(n, DRAIN_PLAIN))
        end = stpcpy(end, "+DRAIN");
    if (node_is_marked(n, DRAIN_FAIL))
        end = stpcpy(end, "+FAIL");
    if (n->not_responding)
        stpcpy(end, "+NOT_RESPONDING");
    return out;
}

struct node_said node_said(const struct node *n) {
    return n->said ? *n->said
                   : (struct node_said){n->address, n->cpus, n->mem_mb, n->features, n->n_features, n->gres, n->n_gres,
                                      n->labels, n->n_labels};
}

uint32_t node_boot(const struct node *n) {
    if (!n->boot_id)
        return 0;
    uint64_t h = hash_fixed(n->boot_id, strlen(n->boot_id));
    return (uint32_t)(h ^ h >> 32) | 1;
}

const char *const *node_active(const struct node *n, uint32_t *out_n) {
    *out_n = n->has_active ? n->n_active : n->n_features;
    return n->has_active ? n->active : n->features;
}

bool node_takes_work(const struct node *n) {
    return n->base == NODE_UP && !n->not_responding && !n->n_drains;
}

bool part_has_node(const struct part *p, const struct node *n) {
    if (p->all_nodes)
        return true;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        if (str_eq(p->nodes[i], n->name))
            return true;
    }
    return selectors_match(p->selectors, p->n_selectors, n->labels, n->n_labels);
}

const char *part_state_name(uint32_t state) {
    static const char *const names[] = {"UP", "DOWN", "DRAIN", "INACTIVE"};
    return state < ARRAY_LEN(names) ? names[state] : "UNKNOWN";
}
