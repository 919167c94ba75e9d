/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/node_json.h"

#include <string.h>

#include "base/mem.h"
#include "spur/node_facts.h"
#include "spur/node_fields.h"

#define ROW(row) ((const struct node_row *)(row))
#define OWN(name) void node_json_##name(struct json *w, const char *key, const void *row, const void *env)

typedef int64_t (*number_fn)(const struct node_info *ni);
#define NUMBER(name, expression)                                                                                      \
    static int64_t name##_of(const struct node_info *ni) {                                                            \
        return (int64_t)(expression);                                                                                 \
    }
NUMBER(cpus, ni->node->cpus)
NUMBER(sockets, ni->node->sockets)
NUMBER(cores, ni->node->cores_per_socket)
NUMBER(threads, ni->node->threads_per_core)
NUMBER(disk, ni->node->tmp_disk_mb)
NUMBER(memory, ni->node->mem_mb)
NUMBER(alloc_memory, ni->node->alloc_mem_mb)
NUMBER(weight, MAX(ni->node->weight, 1u))
NUMBER(load, ni->cpu_load_hundredths ? ni->cpu_load_hundredths - 1 : 0)
NUMBER(free, ni->free_mem_mb ? (int64_t)ni->free_mem_mb - 1 : JSON_UNSET)
NUMBER(alloc_cpus, ni->node->alloc_cpus)
NUMBER(idle_cpus, node_idle_cpus(ni->node))
NUMBER(other_cpus, node_other_cpus(ni->node))
NUMBER(is_busy, node_is_busy(ni->node))
NUMBER(is_idle, !node_is_busy(ni->node) && node_takes_work(ni->node))

static const struct node *first(const void *row) {
    return ROW(row)->nodes.n ? ROW(row)->nodes.p[0]->node : NULL;
}

static int64_t sum(const void *row, number_fn fn) {
    int64_t n = 0;
    for (size_t i = 0; i < ROW(row)->nodes.n; i++)
        n += fn(ROW(row)->nodes.p[i]);
    return n;
}

static int64_t edge(const void *row, number_fn fn, bool highest) {
    int64_t best = ROW(row)->nodes.n ? fn(ROW(row)->nodes.p[0]) : 0;
    for (size_t i = 1; i < ROW(row)->nodes.n; i++) {
        int64_t x = fn(ROW(row)->nodes.p[i]);
        if (highest ? x > best : x < best)
            best = x;
    }
    return best;
}

static void bounds(struct json *w, const void *row, number_fn fn) {
    json_number(w, "minimum", edge(row, fn, false));
    json_number(w, "maximum", edge(row, fn, true));
}

static void range(struct json *w, const char *key, const void *row, number_fn fn) {
    json_open(w, key, '{');
    bounds(w, row, fn);
    json_close(w, '}');
}

OWN(port) {
    json_number(w, key, first(row) ? first(row)->port : 0);
}
/* "MIXED+DRAIN" as words. */
OWN(state) {
    char text[64] = "";
    if (first(row))
        node_info_state_upper(ROW(row)->nodes.p[0], text);
    for (char *c = text; *c; c++)
        if (*c == '+')
            *c = ',';
    json_open(w, key, '{');
    json_words(w, "state", text);
    json_close(w, '}');
}
OWN(nodes) {
    int64_t busy = sum(row, is_busy_of), idle = sum(row, is_idle_of), all = (int64_t)ROW(row)->nodes.n;
    json_open(w, key, '{');
    json_number(w, "allocated", busy);
    json_number(w, "idle", idle);
    json_number(w, "other", all - busy - idle);
    json_number(w, "total", all);
    json_open(w, "hostnames", '[');
    for (size_t i = 0; i < ROW(row)->nodes.n; i++)
        json_text(w, NULL, ROW(row)->nodes.p[i]->node->hostname);
    json_close(w, ']');
    json_open(w, "addresses", '[');
    for (size_t i = 0; i < ROW(row)->nodes.n; i++)
        json_text(w, NULL, ROW(row)->nodes.p[i]->node->address);
    json_close(w, ']');
    json_open(w, "nodes", '[');
    for (size_t i = 0; i < ROW(row)->nodes.n; i++)
        json_text(w, NULL, ROW(row)->nodes.p[i]->node->name);
    json_close(w, ']');
    json_close(w, '}');
}
OWN(cpus) {
    const struct part *p = ROW(row)->part;
    json_open(w, key, '{');
    json_number(w, "allocated", sum(row, alloc_cpus_of));
    json_number(w, "idle", sum(row, idle_cpus_of));
    json_number(w, "other", sum(row, other_cpus_of));
    json_number(w, "total", sum(row, cpus_of));
    bounds(w, row, cpus_of);
    range(w, "load", row, load_of);
    json_open(w, "per_node", '{');
    json_no_val(w, "max", p->max_cpus_per_node ? (int64_t)p->max_cpus_per_node : JSON_INFINITE);
    json_close(w, '}');
    json_close(w, '}');
}
#define RANGE(name)                                                                                                   \
    OWN(name) {                                                                                                       \
        range(w, key, row, name##_of);                                                                                \
    }
RANGE(sockets)
RANGE(cores)
RANGE(threads)
RANGE(disk)
RANGE(weight)
OWN(memory) {
    json_open(w, key, '{');
    bounds(w, row, memory_of);
    json_open(w, "free", '{');
    json_no_val(w, "minimum", edge(row, free_of, false));
    json_no_val(w, "maximum", edge(row, free_of, true));
    json_close(w, '}');
    json_number(w, "allocated", sum(row, alloc_memory_of));
    json_close(w, '}');
}

static void two_texts(struct json *w, const char *key, const char *const name[2], const struct str text[2]) {
    json_open(w, key, '{');
    for (unsigned i = 0; i < 2; i++)
        json_text(w, name[i], text[i].n && strcmp(text[i].p, "(null)") ? text[i].p : "");
    json_close(w, '}');
}
OWN(features) {
    auto_str all = {0}, active = {0};
    if (first(row)) {
        features_print(first(row), &all);
        active_print(first(row), &active);
    }
    two_texts(w, key, (const char *const[2]){"total", "active"}, (const struct str[2]){all, active});
}
OWN(gres) {
    auto_str all = {0}, used = {0};
    if (first(row)) {
        node_gres(first(row), &all);
        node_gres_used(first(row), &used);
    }
    two_texts(w, key, (const char *const[2]){"total", "used"}, (const struct str[2]){all, used});
}
OWN(reason) {
    auto_str text = {0};
    if (first(row))
        node_reason(first(row), &text);
    json_open(w, key, '{');
    json_text(w, "description", str_text(&text));
    json_no_val(w, "time", first(row) ? node_reason_since(first(row)) : 0);
    json_text(w, "user", first(row) ? node_reason_user(first(row)) : NULL);
    json_close(w, '}');
}
OWN(partition) {
    part_json(w, key, ROW(row)->part, env);
}

/* ---- a partition ---- */

static void one(struct json *w, const char *key, const char *name, const char *value) {
    json_open(w, key, '{');
    json_text(w, name, value);
    json_close(w, '}');
}

static void joined(const char *const *word, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n; i++)
        str_addf(out, "%s%s", i ? "," : "", word[i]);
}

static int64_t limit(uint32_t minutes) {
    return minutes == TIME_LIMIT_NONE ? JSON_INFINITE : minutes ? (int64_t)minutes : JSON_UNSET;
}

static void part_limits(struct json *w, const struct part *p) {
    json_open(w, "maximums", '{');
    json_no_val(w, "cpus_per_node", p->max_cpus_per_node ? (int64_t)p->max_cpus_per_node : JSON_INFINITE);
    json_no_val(w, "cpus_per_socket", JSON_INFINITE);
    json_number(w, "memory_per_cpu", 0);
    json_no_val(w, "partition_memory_per_cpu", JSON_UNSET);
    json_no_val(w, "partition_memory_per_node", JSON_UNSET);
    json_no_val(w, "nodes", p->max_nodes ? (int64_t)p->max_nodes : JSON_INFINITE);
    json_number(w, "shares", MAX(p->over_count, 1u));
    json_open(w, "oversubscribe", '{');
    json_number(w, "jobs", MAX(p->over_count, 1u));
    json_words(w, "flags", p->over_subscribe == OVER_FORCE ? "force" : "");
    json_close(w, '}');
    json_no_val(w, "time", limit(p->max_time_min));
    json_no_val(w, "over_time_limit", JSON_UNSET);
    json_close(w, '}');
    json_open(w, "minimums", '{');
    json_number(w, "nodes", p->min_nodes);
    json_close(w, '}');
}

static void part_rules(struct json *w, const struct part *p) {
    auto_str flags = {0}, over = {0};
    str_add(&flags, p->is_default ? "DEFAULT," : "");
    str_add(&flags, p->hidden ? "HIDDEN," : "");
    str_add(&flags, p->root_only ? "ROOT_ONLY," : "");
    json_words(w, "flags", str_text(&flags));
    part_over_subscribe(p, &over);
    json_open(w, "partition", '{');
    json_text(w, "exclusive", p->exclusive_user ? "USER" : p->over_subscribe == OVER_EXCLUSIVE ? "NODE" : "NO");
    json_text(w, "oversubscribe", str_text(&over));
    json_words(w, "state", part_state_name(p->state));
    json_close(w, '}');
}

void part_json(struct json *w, const char *key, const struct part *p, const char *cluster) {
    auto_str groups = {0}, accounts = {0};
    joined(p->allow_groups, p->n_allow_groups, &groups);
    joined(p->allow_accounts, p->n_allow_accounts, &accounts);
    json_open(w, key, '{');
    json_open(w, "nodes", '{');
    json_text(w, "allowed_allocation", "");
    json_text(w, "configured", p->nodes_text ? p->nodes_text : "ALL");
    json_number(w, "total", p->n_nodes);
    json_close(w, '}');
    one(w, "accounts", "allowed", str_text(&accounts));
    one(w, "groups", "allowed", str_text(&groups));
    json_text(w, "alternate", "");
    json_text(w, "cluster", cluster);
    json_open(w, "defaults", '{');
    json_no_val(w, "time", limit(p->default_time_min));
    json_close(w, '}');
    part_rules(w, p);
    json_number(w, "grace_time", 0);
    part_limits(w, p);
    json_text(w, "name", p->name);
    json_words(w, "preempt_mode", "DISABLED");
    json_open(w, "priority", '{');
    json_number(w, "job_factor", MAX(p->priority_job_factor, 1u));
    json_number(w, "tier", MAX(p->priority_tier, 1u));
    json_close(w, '}');
    json_close(w, '}');
}
