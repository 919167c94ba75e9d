/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol show node and show partition, and node lists.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spur/hint.h"
#include "spur/node_facts.h"
#include "spur/scontrol.h"

static const char *or_null(const char *s) {
    return s ? s : "(null)";
}

static void head(const struct node_info *ni, const char *nl, bool details, struct str *out) {
    const struct node *n = ni->node;
    str_addf(out, "NodeName=%s Arch=%s CoresPerSocket=%u %sCPUAlloc=%u CPUEfctv=%u CPUTot=%u CPULoad=", n->name,
             or_null(n->arch), n->cores_per_socket, nl, n->alloc_cpus, n->cpus, n->cpus);
    if (ni->cpu_load_hundredths)
        str_addf(out, "%.2f", (double)(ni->cpu_load_hundredths - 1) / 100);
    else
        str_add(out, "N/A");
    str_addf(out, "%sAvailableFeatures=", nl);
    features_print(n, out);
    str_addf(out, "%sActiveFeatures=", nl);
    active_print(n, out);
    auto_str gres = {0};
    node_gres(n, &gres);
    if (n->n_labels) {
        str_addf(out, "%sLabels=", nl);
        labels_print(n->labels, n->n_labels, out);
    }
    str_addf(out, "%sGres=%s", nl, gres.n ? gres.p : "(null)");
    if (details) {
        auto_str used = {0};
        node_gres_used(n, &used);
        str_addf(out, "%sGresDrain=N/A", nl);
        if (gres.n)
            str_addf(out, "%sGresUsed=%s", nl, str_text(&used));
    }
    str_addf(out, "%sNodeAddr=%s NodeHostName=%s Version=%s%sOS=%s ", nl, or_null(n->address),
             n->hostname ? n->hostname : n->name, or_null(n->version), nl, n->os ? n->os : "");
    str_addf(out, "%sRealMemory=%llu AllocMem=%llu FreeMem=", nl, (unsigned long long)n->mem_mb,
             (unsigned long long)n->alloc_mem_mb);
    if (ni->free_mem_mb)
        str_addf(out, "%llu", (unsigned long long)(ni->free_mem_mb - 1));
    else
        str_add(out, "N/A");
    str_addf(out, " Sockets=%u Boards=1", n->sockets);
}

static void tres(const struct node *n, const char *nl, struct str *out) {
    str_addf(out, "%sCfgTRES=cpu=%u,mem=", nl, n->cpus);
    size_mb_print(n->mem_mb, out);
    str_addf(out, ",billing=%u", n->cpus);
    node_gres_tres(&n, 1, false, out);
    str_addf(out, "%sAllocTRES=", nl);
    if (n->alloc_cpus)
        str_addf(out, "cpu=%u", n->alloc_cpus);
    if (n->alloc_mem_mb) {
        str_add(out, n->alloc_cpus ? ",mem=" : "mem=");
        size_mb_print(n->alloc_mem_mb, out);
    }
    node_gres_tres(&n, 1, true, out);
    str_addf(out, "%sCurrentWatts=0 AveWatts=0", nl);
}

/* What an administrator wrote beside it. */
static void notes(const struct node *n, const char *nl, struct str *out) {
    const struct node_set *set = n->set;
    if (set && set->comment && *set->comment)
        str_addf(out, "%sComment=%s", nl, set->comment);
    if (set && set->extra && *set->extra)
        str_addf(out, "%sExtra=%s", nl, set->extra);
    bool has_id = set && set->instance_id && *set->instance_id, has_type = set && set->instance_type && *set->instance_type;
    if (has_id || has_type)
        str_addf(out, "%sInstanceId=%s InstanceType=%s", nl, has_id ? set->instance_id : "(null)",
                 has_type ? set->instance_type : "(null)");
}

void scontrol_node_text(const struct node_info *ni, bool one_line, bool details, struct str *out) {
    const struct node *n = ni->node;
    const char *nl = RECORD_BREAK(one_line);
    char state[64];
    head(ni, nl, details, out);
    str_addf(out, "%sState=%s ThreadsPerCore=%u TmpDisk=%llu Weight=%u Owner=N/A MCS_label=N/A%sPartitions=", nl,
             node_info_state_upper(ni, state), n->threads_per_core, (unsigned long long)n->tmp_disk_mb, MAX(n->weight, 1u),
             nl);
    for (uint32_t i = 0; i < ni->n_partitions; i++)
        str_addf(out, "%s%s", i ? "," : "", ni->partitions[i]);
    str_addf(out, " %sBootTime=", nl);
    cli_time(n->boot_unix, "None", out);
    str_add(out, " SlurmdStartTime=");
    cli_time(n->agent_start_unix, "None", out);
    str_addf(out, "%sLastBusyTime=", nl);
    cli_time(n->last_busy_unix, "Unknown", out);
    str_add(out, " ResumeAfterTime=");
    cli_time(node_until(n), "None", out);
    str_add(out, " SuspendTime=INFINITE");
    tres(n, nl, out);
    auto_str why = {0};
    node_reason(n, &why);
    if (why.n) {
        str_addf(out, "%sReason=%s [%s@", nl, why.p, or_null(node_reason_user(n)));
        cli_time(node_reason_since(n), "Unknown", out);
        str_addc(out, ']');
    }
    notes(n, nl, out);
    str_add(out, RECORD_END(one_line));
}

static int load(struct scontrol *s, const char *what, struct nodes_reply *reply) {
    struct nothing request = {0};
    struct err e = {0};
    int rc = cli_call(s->c, WIRE_Controller_Nodes, &request, reply, &e);
    if (rc)
        fprintf(stderr, "%s error: %s\n", what, e.text);
    else if (!s->future)
        node_drop_future(reply);
    return rc;
}

static const struct node_info *find_node(const struct nodes_reply *all, const char *name) {
    for (uint32_t i = 0; i < all->n_nodes; i++)
        if (all->nodes[i].node && str_eq(all->nodes[i].node->name, name))
            return &all->nodes[i];
    return NULL;
}

static int nodes_as_json(struct scontrol *s, const struct node_info *const *list, uint32_t n, const struct nodes_reply *all) {
    auto_str out = {0};
    struct json w = {.out = &out};
    json_doc_begin(&w);
    json_open(&w, "nodes", '[');
    for (uint32_t i = 0; i < n; i++) {
        scontrol_node_json(&w, list[i], all->cluster_name);
        json_doc_flush(&w);
    }
    json_close(&w, ']');
    json_no_val(&w, "last_update", all->now_unix);
    json_doc_end(&w, s->c, all->cluster_name);
    return 0;
}

int scontrol_show_node(struct scontrol *s, const char *name) {
    struct nodes_reply reply = {0};
    const char *const *wanted = NULL;
    uint32_t n = 0, n_found = 0;
    struct err e = {0};
    bool is_all = !name || !*name;
    auto_str out = {0};
    if (!is_all && hostlist_expand(name, &s->c->arena, &wanted, &n, &e)) {
        cli_error(s->c, "%s", e.text);
        return 1;
    }
    if (load(s, "slurm_load_node", &reply))
        return 1;
    const struct node_info **found = arena_calloc(&s->c->arena, reply.n_nodes + n + 1, sizeof(*found));
    for (uint32_t i = 0; is_all && i < reply.n_nodes; i++)
        found[n_found++] = &reply.nodes[i];
    bool is_missing = false;
    for (uint32_t i = 0; i < n; i++) {
        const struct node_info *ni = find_node(&reply, wanted[i]);
        is_missing |= !ni;
        if (ni)
            found[n_found++] = ni;
        if (ni && !s->json)
            scontrol_node_text(ni, s->one_line, s->details, &out);
        else if (!ni && !s->json)
            str_addf(&out, "Node %s not found\n", wanted[i]);
    }
    if (s->json)
        return nodes_as_json(s, found, n_found, &reply) || is_missing;
    for (uint32_t i = 0; is_all && i < n_found; i++)
        scontrol_node_text(found[i], s->one_line, s->details, &out);
    cli_out(&out);
    return is_missing;
}

/* ---- partitions ---- */

struct part_totals part_totals(const struct part *p, const struct nodes_reply *all, struct str *names) {
    struct part_totals t = {0};
    const char **name = xcalloc(all->n_nodes + 1, sizeof(*name));
    t.node = xcalloc(all->n_nodes + 1, sizeof(*t.node));
    for (uint32_t i = 0; i < all->n_nodes; i++) {
        const struct node_info *ni = &all->nodes[i];
        for (uint32_t k = 0; ni->node && k < ni->n_partitions; k++) {
            if (!str_eq(ni->partitions[k], p->name))
                continue;
            t.node[t.nodes] = ni->node;
            name[t.nodes++] = ni->node->name;
            t.cpus += ni->node->cpus;
            t.mem_mb += ni->node->mem_mb;
            break;
        }
    }
    hostlist_compact(name, t.nodes, names);
    free(name);
    return t;
}

static void limit(uint32_t minutes, const char *none, struct str *out) {
    if (!minutes)
        str_add(out, none);
    else if (minutes == TIME_LIMIT_NONE)
        str_add(out, "UNLIMITED");
    else
        duration_print_long((int64_t)minutes * 60, out);
}

static void list_or_all(const char *const *list, uint32_t n, struct str *out) {
    if (!n)
        str_add(out, "ALL");
    for (uint32_t i = 0; i < n; i++)
        str_addf(out, "%s%s", i ? "," : "", list[i]);
}

static void number(uint32_t n, const char *none, struct str *out) {
    if (n)
        str_addf(out, "%u", n);
    else
        str_add(out, none);
}

void scontrol_part_text(const struct part *p, const struct nodes_reply *all, bool one_line, struct str *out) {
    const char *nl = RECORD_BREAK(one_line);
    auto_str names = {0};
    struct part_totals t = part_totals(p, all, &names);
    str_addf(out, "PartitionName=%s%sAllowGroups=", p->name, nl);
    part_groups(p, "ALL", out);
    str_add(out, " AllowAccounts=");
    list_or_all(p->allow_accounts, p->n_allow_accounts, out);
    str_addf(out, " AllowQos=ALL%sAllocNodes=ALL Default=%s QoS=N/A%sDefaultTime=", nl, p->is_default ? "YES" : "NO", nl);
    limit(p->default_time_min, "NONE", out);
    str_addf(out, " DisableRootJobs=NO Exclusive=%s GraceTime=0 Hidden=%s%sMaxNodes=", part_exclusive(p),
             p->hidden ? "YES" : "NO", nl);
    number(p->max_nodes, "UNLIMITED", out);
    str_add(out, " MaxTime=");
    limit(p->max_time_min, "UNLIMITED", out);
    /* one node is what every job has at least: no bound */
    str_addf(out, " MinNodes=%u LLN=NO MaxCPUsPerNode=", p->min_nodes > 1 ? p->min_nodes : 0);
    number(p->max_cpus_per_node, "UNLIMITED", out);
    str_addf(out, " MaxCPUsPerSocket=UNLIMITED%sNodes=%s%s", nl, names.n ? names.p : "(null)", nl);
    str_addf(out, "PriorityJobFactor=%u PriorityTier=%u RootOnly=%s ReqResv=NO OverSubscribe=",
             MAX(p->priority_job_factor, 1u), MAX(p->priority_tier, 1u), p->root_only ? "YES" : "NO");
    if (p->over_subscribe == OVER_EXCLUSIVE) /* Exclusive=NODE says so */
        str_add(out, "NO");
    else
        part_over_subscribe(p, out);
    str_addf(out, "%sOverTimeLimit=NONE PreemptMode=OFF%s", nl, nl);
    str_addf(out, "State=%s TotalCPUs=%u TotalNodes=%u SelectTypeParameters=NONE%sJobDefaults=(null)%s"
             "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED%sTRES=cpu=%u,mem=", part_state_name(p->state), t.cpus,
             t.nodes, nl, nl, nl, t.cpus);
    size_mb_print(t.mem_mb, out);
    str_addf(out, ",node=%u,billing=%u", t.nodes, t.cpus);
    node_gres_tres(t.node, t.nodes, false, out);
    str_add(out, RECORD_END(one_line));
    free(t.node);
}

int scontrol_show_partition(struct scontrol *s, const char *name) {
    struct nodes_reply reply = {0};
    auto_str out = {0};
    struct json w = {.out = &out};
    bool is_all = !name || !*name, found = false;
    if (load(s, "slurm_load_partitions", &reply))
        return 1;
    if (s->json) {
        json_doc_begin(&w);
        json_open(&w, "partitions", '[');
    }
    for (uint32_t i = 0; i < reply.n_parts; i++) {
        const struct part *p = &reply.parts[i];
        if (is_all ? p->hidden && !s->all : !str_eq(p->name, name))
            continue;
        if (s->json)
            scontrol_part_json(&w, p, &reply);
        else
            scontrol_part_text(p, &reply, s->one_line, &out);
        found = true;
    }
    if (s->json) {
        json_close(&w, ']');
        json_no_val(&w, "last_update", reply.now_unix);
        json_doc_end(&w, s->c, reply.cluster_name);
        return is_all || found ? 0 : 1;
    }
    if (is_all && !found)
        str_add(&out, "No partitions in the system\n");
    else if (!found)
        str_addf(&out, "Partition %s not found\n", name);
    cli_out(&out);
    if (!is_all && !found)
        hint_partition(s->c, &reply, name);
    return is_all || found ? 0 : 1;
}

/* ---- node lists ---- */

/* Messages as Slurm's; the exit code stays 0. */
int scontrol_show_hostnames(struct scontrol *s, const char *list) {
    const char *const *name;
    uint32_t n;
    struct err e = {0};
    if (!list) {
        cli_error(s->c, "host list is empty");
        return 0;
    }
    if (hostlist_expand(list, &s->c->arena, &name, &n, &e)) {
        if (str_starts(e.text, "Invalid hostlist"))
            fprintf(stderr, "%s\n", e.text);
        else
            fprintf(stderr, "%s: error: %s\nInvalid hostlist: %s\n", s->c->prog, e.text, list);
        return 0;
    }
    for (uint32_t i = 0; i < n; i++)
        puts(name[i]); /* each as a line of its own on a terminal: scripts of expect read them so */
    return 0;
}

static int by_name(const void *a, const void *b) {
    return hostname_compare(*(const char *const *)a, *(const char *const *)b);
}

/* A file of names, one or more a line, where the argument is a path. */
static int read_names(struct scontrol *s, const char *path, const char **out_list) {
    FILE *f = fopen(path, "re");
    auto_str text = {0};
    char chunk[4096];
    size_t n;
    if (!f) {
        fprintf(stderr, "Can not open %s\n", path);
        return 1;
    }
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0 && text.n < (4u << 20))
        str_addn(&text, chunk, n);
    fclose(f);
    for (size_t i = 0; i < text.n; i++)
        if (strchr("\n\r\t ", text.p[i]))
            text.p[i] = ',';
    *out_list = arena_strdup(&s->c->arena, str_text(&text));
    return 0;
}

int scontrol_show_hostlist(struct scontrol *s, const char *list, bool sorted) {
    const char *const *name;
    uint32_t n;
    struct err e = {0};
    auto_str out = {0};
    if (!list) {
        cli_error(s->c, "host list is empty");
        return 0;
    }
    if (*list == '/' && read_names(s, list, &list))
        return 1;
    if (hostlist_expand(list, &s->c->arena, &name, &n, &e)) {
        fprintf(stderr, "Invalid hostlist: %s\n", list);
        return 1;
    }
    if (sorted && n) {
        const char **copy = arena_memdup(&s->c->arena, name, n * sizeof(*name));
        qsort(copy, n, sizeof(*copy), by_name);
        name = copy;
    }
    hostlist_compact(name, n, &out);
    str_addc(&out, '\n');
    cli_out(&out);
    return 0;
}
