/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/node_fields.h"

#include <ctype.h>
#include <pwd.h>
#include <string.h>

#include "base/mem.h"
#include "spur/cli.h"
#include "spur/job_facts.h"
#include "spur/node_facts.h"
#include "spur/node_json.h"

#define FIELD(fn) static void fn(const void *row, const void *env, struct str *out)
#define ROW(row) ((const struct node_row *)(row))
#define PART(row) (ROW(row)->part)

static const struct node *first(const void *row) {
    return ROW(row)->nodes.n ? ROW(row)->nodes.p[0]->node : NULL;
}

/* ---- of the partition ---- */

FIELD(partition) {
    str_addf(out, "%s%s", PART(row)->name, PART(row)->is_default ? "*" : "");
}
FIELD(partition_name) {
    str_add(out, PART(row)->name);
}
FIELD(available) {
    static const char *const words[] = {"up", "down", "drain", "inact"};
    str_add(out, PART(row)->state < ARRAY_LEN(words) ? words[PART(row)->state] : "unk");
}
static void limit(uint32_t minutes, struct str *out) {
    if (minutes == TIME_LIMIT_NONE)
        str_add(out, "infinite");
    else
        duration_print((int64_t)minutes * 60, out);
}
FIELD(time_limit) {
    limit(PART(row)->max_time_min, out);
}
FIELD(default_time) {
    if (PART(row)->default_time_min)
        limit(PART(row)->default_time_min, out);
    else
        str_add(out, "n/a");
}
FIELD(size) {
    uint32_t min = MAX(PART(row)->min_nodes, 1u), max = PART(row)->max_nodes;
    count_print(min, out);
    if (!max)
        str_add(out, "-infinite");
    else if (max != min) {
        str_addc(out, '-');
        count_print(max, out);
    }
}
FIELD(priority_tier) {
    str_addf(out, "%u", MAX(PART(row)->priority_tier, 1u));
}

/* ---- counts ---- */

struct counts {
    uint32_t alloc, idle, other, total;
};

static struct counts node_counts(const void *row) {
    struct counts c = {.total = (uint32_t)ROW(row)->nodes.n};
    for (size_t i = 0; i < ROW(row)->nodes.n; i++) {
        const struct node *n = ROW(row)->nodes.p[i]->node;
        if (node_is_busy(n))
            c.alloc++;
        else if (n->n_drains || n->base != NODE_UP)
            c.other++;
        else
            c.idle++;
    }
    return c;
}
static struct counts cpu_counts(const void *row) {
    struct counts c = {0};
    for (size_t i = 0; i < ROW(row)->nodes.n; i++) {
        const struct node *n = ROW(row)->nodes.p[i]->node;
        c.alloc += n->alloc_cpus;
        c.idle += node_idle_cpus(n);
        c.other += node_other_cpus(n);
        c.total += n->cpus;
    }
    return c;
}
static void counts_print(struct counts c, struct str *out) {
    count_print(c.alloc, out);
    str_addc(out, '/');
    count_print(c.idle, out);
    str_addc(out, '/');
    count_print(c.other, out);
    str_addc(out, '/');
    count_print(c.total, out);
}
FIELD(nodes_ai) {
    struct counts c = node_counts(row);
    count_print(c.alloc, out);
    str_addc(out, '/');
    count_print(c.idle, out);
}
FIELD(nodes_aiot) {
    counts_print(node_counts(row), out);
}
FIELD(cpus_aiot) {
    counts_print(cpu_counts(row), out);
}
FIELD(n_nodes) {
    count_print(ROW(row)->nodes.n, out);
}

/* ---- of the nodes; the smallest, with a + where others have more ---- */

typedef uint64_t (*number_fn)(const struct node_info *ni);

static void smallest(const void *row, number_fn fn, uint64_t *out_min, uint64_t *out_max) {
    *out_min = UINT64_MAX;
    *out_max = 0;
    for (size_t i = 0; i < ROW(row)->nodes.n; i++) {
        uint64_t x = fn(ROW(row)->nodes.p[i]);
        *out_min = MIN(*out_min, x);
        *out_max = MAX(*out_max, x);
    }
    if (!ROW(row)->nodes.n)
        *out_min = 0;
}
static void smallest_print(const void *row, number_fn fn, bool exact, struct str *out) {
    uint64_t min, max;
    smallest(row, fn, &min, &max);
    if (exact)
        str_addf(out, "%llu", (unsigned long long)min);
    else
        count_print(min, out);
    if (max > min)
        str_addc(out, '+');
}
#define NUMBER(name, expression)                                                                                       \
    static uint64_t name##_of(const struct node_info *ni) {                                                            \
        return expression;                                                                                             \
    }
NUMBER(cpus, ni->node->cpus)
NUMBER(memory, ni->node->mem_mb)
NUMBER(alloc_mem, ni->node->alloc_mem_mb)
NUMBER(disk, ni->node->tmp_disk_mb)
NUMBER(weight, MAX(ni->node->weight, 1u))
NUMBER(sockets, ni->node->sockets)
NUMBER(cores, ni->node->cores_per_socket)
NUMBER(threads, ni->node->threads_per_core)
NUMBER(port, ni->node->port)
NUMBER(free_mem, ni->free_mem_mb)
NUMBER(load, ni->cpu_load_hundredths)
#define SMALLEST(name, exact)                                                                                          \
    FIELD(name) {                                                                                                      \
        smallest_print(row, name##_of, exact, out);                                                                    \
    }
SMALLEST(cpus, false)
SMALLEST(memory, true)
SMALLEST(disk, true)
SMALLEST(weight, true)
SMALLEST(sockets, false)
SMALLEST(cores, false)
SMALLEST(threads, false)
SMALLEST(port, true)
FIELD(alloc_mem) {
    uint64_t sum = 0;
    for (size_t i = 0; i < ROW(row)->nodes.n; i++)
        sum += alloc_mem_of(ROW(row)->nodes.p[i]);
    str_addf(out, "%llu", (unsigned long long)sum);
}
FIELD(sct) {
    sockets(row, env, out);
    str_addc(out, ':');
    cores(row, env, out);
    str_addc(out, ':');
    threads(row, env, out);
}
FIELD(free_mem) {
    uint64_t min, max;
    smallest(row, free_mem_of, &min, &max);
    if (!max)
        str_add(out, "N/A");
    else if (min == max || !min)
        str_addf(out, "%llu", (unsigned long long)(max - 1));
    else
        str_addf(out, "%llu-%llu", (unsigned long long)(min - 1), (unsigned long long)(max - 1));
}
FIELD(cpu_load) {
    uint64_t min, max;
    smallest(row, load_of, &min, &max);
    if (!max)
        str_add(out, "N/A");
    else if (min == max || !min)
        str_addf(out, "%.2f", (double)(max - 1) / 100);
    else
        str_addf(out, "%.2f-%.2f", (double)(min - 1) / 100, (double)(max - 1) / 100);
}

static int by_host(const void *a, const void *b) {
    return hostname_compare(*(const char *const *)a, *(const char *const *)b);
}
FIELD(node_list) {
    const char **name = xcalloc(ROW(row)->nodes.n + 1, sizeof(*name));
    for (size_t i = 0; i < ROW(row)->nodes.n; i++)
        name[i] = ROW(row)->nodes.p[i]->node->name;
    qsort(name, ROW(row)->nodes.n, sizeof(*name), by_host);
    hostlist_compact(name, (uint32_t)ROW(row)->nodes.n, out);
    free(name);
}
FIELD(host) {
    const struct node *n = first(row);
    str_add(out, n ? n->hostname ? n->hostname : n->name : "");
}
FIELD(address) {
    const struct node *n = first(row);
    str_add(out, n && n->address ? n->address : "");
}
FIELD(features) {
    if (first(row))
        features_print(first(row), out);
    else
        str_add(out, "(null)");
}
FIELD(active) {
    if (first(row))
        active_print(first(row), out);
    else
        str_add(out, "(null)");
}
FIELD(reason) {
    size_t before = out->n;
    if (first(row))
        node_reason(first(row), out);
    if (out->n == before)
        str_add(out, "none");
}
FIELD(reason_time) {
    cli_time(first(row) ? node_reason_since(first(row)) : 0, "Unknown", out);
}
FIELD(reason_user) {
    const char *user = first(row) ? node_reason_user(first(row)) : NULL;
    str_add(out, user ? user : "Unknown");
}
FIELD(reason_user_long) {
    const char *user = first(row) ? node_reason_user(first(row)) : NULL;
    struct passwd *pw = user ? getpwnam(user) : NULL;
    if (pw)
        str_addf(out, "%s(%u)", user, pw->pw_uid);
    else
        str_add(out, user ? user : "Unknown");
}
FIELD(state_compact) {
    char text[24];
    str_add(out, first(row) ? node_info_state(ROW(row)->nodes.p[0], true, text) : "n/a");
}
FIELD(state_long) {
    char text[24];
    str_add(out, first(row) ? node_info_state(ROW(row)->nodes.p[0], false, text) : "n/a");
}
FIELD(state_complete) {
    char text[64] = "n/a";
    if (first(row))
        node_info_state_upper(ROW(row)->nodes.p[0], text);
    for (const char *c = text; *c; c++)
        str_addc(out, (char)tolower((unsigned char)*c));
}
FIELD(version) {
    const struct node *n = first(row);
    str_add(out, n && n->version ? n->version : "N/A");
}

FIELD(gres) {
    size_t from = out->n;
    if (first(row))
        node_gres(first(row), out);
    if (out->n == from)
        str_add(out, "(null)");
}
FIELD(gres_used) {
    size_t from = out->n;
    if (first(row))
        node_gres_used(first(row), out);
    if (out->n == from)
        str_add(out, "(null)");
}
FIELD(groups) {
    part_groups(PART(row), "all", out);
}
FIELD(over_subscribe) {
    part_over_subscribe(PART(row), out);
}
FIELD(max_cpus_per_node) {
    if (PART(row)->max_cpus_per_node)
        str_addf(out, "%u", PART(row)->max_cpus_per_node);
    else
        str_add(out, "UNLIMITED");
}
FIELD(job_factor) {
    str_addf(out, "%u", MAX(PART(row)->priority_job_factor, 1u));
}
FIELD(root_only) {
    str_add(out, PART(row)->root_only ? "yes" : "no");
}

#define CMP(x, y) (((x) > (y)) - ((x) < (y)))
static int by_part(const void *a, const void *b) {
    return strcmp(PART(a)->name, PART(b)->name);
}
static uint32_t sort_state(const void *row) {
    uint32_t planned = first(row) && ROW(row)->nodes.p[0]->planned ? 1u << 8 : 0;
    return first(row) ? node_sort_state(first(row)) | planned : 0;
}
static int by_state(const void *a, const void *b) {
    return CMP(sort_state(a), sort_state(b));
}
static int by_nodes(const void *a, const void *b) {
    return CMP(ROW(a)->nodes.n, ROW(b)->nodes.n);
}
static int by_name(const void *a, const void *b) {
    return hostname_compare(first(a) ? first(a)->name : "", first(b) ? first(b)->name : "");
}
static int by_memory(const void *a, const void *b) {
    return CMP(first(a) ? first(a)->mem_mb : 0, first(b) ? first(b)->mem_mb : 0);
}
static int by_cpus(const void *a, const void *b) {
    return CMP(first(a) ? first(a)->cpus : 0, first(b) ? first(b)->cpus : 0);
}
static int by_weight(const void *a, const void *b) {
    return CMP(first(a) ? first(a)->weight : 0, first(b) ? first(b)->weight : 0);
}
static int by_time(const void *a, const void *b) {
    return CMP(first(a) ? node_reason_since(first(a)) : 0, first(b) ? node_reason_since(first(b)) : 0);
}

#define OWN(key, fn) .json = key, .as = JSON_OWN, .write = node_json_##fn

static const struct table_field rows[] = {
    {0, "allocmem", "ALLOCMEM", alloc_mem, .flags = FIELD_KEY},
    {'S', "allocnodes", "ALLOCNODES", .fixed = "all"},
    {'a', "available", "AVAIL", available, .flags = FIELD_KEY},
    {'V', "cluster", "CLUSTER", .fixed = "N/A"},
    {0, "comment", "COMMENT", .fixed = "(null)"},
    {'Y', "cores", "CORES", cores, .flags = FIELD_SIZE},
    {'c', "cpus", "CPUS", cpus, .flags = FIELD_SIZE, .compare = by_cpus},
    {'O', "cpusload", "CPU_LOAD", cpu_load, .flags = FIELD_SIZE},
    {'C', "cpusstate", "CPUS(A/I/O/T)", cpus_aiot},
    {'L', "defaulttime", "DEFAULTTIME", default_time, .flags = FIELD_KEY},
    {'d', "disk", "TMP_DISK", disk, .flags = FIELD_SIZE},
    {0, "extra", "EXTRA", .fixed = "(null)"},
    {'f', "features", "AVAIL_FEATURES", features, .flags = FIELD_KEY},
    {'b', "features_act", "ACTIVE_FEATURES", active, .flags = FIELD_KEY},
    {'e', "freemem", "FREE_MEM", free_mem, .flags = FIELD_SIZE},
    {'G', "gres", "GRES", gres, .flags = FIELD_KEY},
    {0, "gresused", "GRES_USED", gres_used, .flags = FIELD_KEY},
    {'g', "groups", "GROUPS", groups, .flags = FIELD_KEY},
    {'B', "maxcpuspernode", "MAX_CPUS_PER_NODE", max_cpus_per_node, .flags = FIELD_KEY},
    {'m', "memory", "MEMORY", memory, .flags = FIELD_SIZE, .compare = by_memory},
    {'o', "nodeaddr", "NODE_ADDR", address, .flags = FIELD_KEY},
    {'A', "nodeai", "NODES(A/I)", nodes_ai},
    {'F', "nodeaiot", "NODES(A/I/O/T)", nodes_aiot},
    {'n', "nodehost", "HOSTNAMES", host, .flags = FIELD_KEY, .compare = by_name},
    {'N', "nodelist", "NODELIST", node_list, .compare = by_name, .whole_head = true},
    {'D', "nodes", "NODES", n_nodes, .compare = by_nodes},
    {'h', "oversubscribe", "OVERSUBSCRIBE", over_subscribe, .flags = FIELD_KEY},
    {'P', "partition", "PARTITION", partition, .flags = FIELD_KEY | FIELD_PART, .compare = by_part},
    {'R', "partitionname", "PARTITION", partition_name, .flags = FIELD_KEY | FIELD_PART, .compare = by_part},
    {0, "port", "PORT", port, .flags = FIELD_SIZE},
    {'M', "preemptmode", "PREEMPT_MODE", .fixed = "OFF"},
    {'I', "priorityjobfactor", "PRIO_JOB_FACTOR", job_factor, .flags = FIELD_KEY},
    {'p', "prioritytier", "PRIO_TIER", priority_tier, .flags = FIELD_KEY},
    {'E', "reason", "REASON", reason, .flags = FIELD_KEY},
    {'i', "resv", "RESERVATION", .fixed = ""},
    {'r', "root", "ROOT", root_only, .flags = FIELD_KEY},
    {'s', "size", "JOB_SIZE", size, .flags = FIELD_KEY},
    {'z', "socketcorethread", "S:C:T", sct, .flags = FIELD_SIZE},
    {'X', "sockets", "SOCKETS", sockets, .flags = FIELD_SIZE},
    {'t', "statecompact", "STATE", state_compact, .flags = FIELD_KEY, .compare = by_state},
    {0, "statecomplete", "STATECOMPLETE", state_complete, .flags = FIELD_KEY, .compare = by_state},
    {'T', "statelong", "STATE", state_long, .flags = FIELD_KEY, .compare = by_state},
    {'Z', "threads", "THREADS", threads, .flags = FIELD_SIZE},
    {'l', "time", "TIMELIMIT", time_limit, .flags = FIELD_KEY},
    {'H', "timestamp", "TIMESTAMP", reason_time, .flags = FIELD_KEY, .compare = by_time},
    {'u', "user", "USER", reason_user, .flags = FIELD_KEY},
    {'U', "userlong", "USER", reason_user_long, .flags = FIELD_KEY},
    {'v', "version", "VERSION", version, .flags = FIELD_KEY},
    {'w', "weight", "WEIGHT", weight, .flags = FIELD_SIZE, .compare = by_weight},
    /* only in --json */
    {OWN("port", port)},
    {OWN("node", state)},
    {OWN("nodes", nodes)},
    {OWN("cpus", cpus)},
    {OWN("sockets", sockets)},
    {OWN("cores", cores)},
    {OWN("threads", threads)},
    {OWN("disk", disk)},
    {OWN("memory", memory)},
    {OWN("weight", weight)},
    {OWN("features", features)},
    {OWN("gres", gres)},
    {.json = "cluster", .fixed = ""},
    {.json = "comment", .fixed = ""},
    {.json = "extra", .fixed = ""},
    {OWN("reason", reason)},
    {.json = "reservation", .fixed = ""},
    {OWN("partition", partition)},
};

const struct table_fields *node_fields(void) {
    static const struct table_fields f = {rows, ARRAY_LEN(rows)};
    return &f;
}
