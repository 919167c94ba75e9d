/* SPDX-License-Identifier: Apache-2.0
 *
 * A node, a partition and a step as --json shows them: Slurm's OpenAPI v0.0.45, in its order.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spur/node_facts.h"
#include "spur/scontrol.h"
#include "spur/step_facts.h"

static void texts(struct json *j, const char *key, const char *const *list, uint32_t n) {
    json_open(j, key, '[');
    for (uint32_t i = 0; i < n; i++)
        json_text(j, NULL, list[i]);
    json_close(j, ']');
}

/* "MIXED+DRAIN" as a list of its words. */
static void state(struct json *j, const struct node *n) {
    char text[64], *word = text;
    node_state_upper(n, text);
    json_open(j, "state", '[');
    for (char *plus = text; plus; word = plus + 1) {
        plus = strchr(word, '+');
        if (plus)
            *plus = '\0';
        json_text(j, NULL, word);
    }
    json_close(j, ']');
}

static void energy(struct json *j) {
    static const char *const keys[] = {"average_watts", "base_consumed_energy", "consumed_energy"};
    json_open(j, "energy", '{');
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        json_number(j, keys[i], 0);
    json_no_val(j, "current_watts", JSON_UNSET);
    json_number(j, "previous_consumed_energy", 0);
    json_number(j, "last_collected", 0);
    json_close(j, '}');
}

static void hardware(struct json *j, const struct node_info *ni, const char *cluster) {
    const struct node *n = ni->node;
    json_text(j, "architecture", n->arch);
    json_text(j, "burstbuffer_network_address", "");
    json_number(j, "boards", 1);
    json_no_val(j, "boot_time", n->boot_unix);
    json_no_val(j, "tls_cert_last_renewal", 0);
    json_empty(j, "cert_flags", "[]");
    json_text(j, "cluster_name", cluster);
    json_number(j, "cores", n->cores_per_socket);
    json_number(j, "specialized_cores", 0);
    json_number(j, "cpu_binding", 0);
    json_number(j, "cpu_load", ni->cpu_load_hundredths ? (int64_t)ni->cpu_load_hundredths - 1 : 0);
    if (ni->free_mem_mb)
        json_no_val(j, "free_mem", (int64_t)ni->free_mem_mb - 1);
    else
        json_no_val(j, "free_mem", JSON_UNSET);
    json_number(j, "cpus", n->cpus);
    json_number(j, "effective_cpus", n->cpus);
    json_text(j, "specialized_cpus", "");
    energy(j);
    json_text(j, "extra", n->set ? n->set->extra : "");
}

static void said(struct json *j, const struct node_info *ni) {
    const struct node *n = ni->node;
    auto_str gres = {0}, used = {0}, why = {0};
    node_gres(n, &gres);
    node_gres_used(n, &used);
    node_reason(n, &why);
    texts(j, "features", n->features, n->n_features);
    uint32_t n_active;
    const char *const *active = node_active(n, &n_active);
    texts(j, "active_features", active, n_active);
    json_text(j, "gpu_spec", "");
    json_text(j, "gres", str_text(&gres));
    json_text(j, "gres_drained", "N/A");
    json_text(j, "gres_used", gres.n ? str_text(&used) : "");
    json_text(j, "instance_id", n->set ? n->set->instance_id : "");
    json_text(j, "instance_type", n->set ? n->set->instance_type : "");
    json_no_val(j, "last_busy", n->last_busy_unix);
    json_text(j, "mcs_label", "");
    json_number(j, "specialized_memory", 0);
    json_text(j, "name", n->name);
    json_empty(j, "next_state_after_reboot", "[]");
    json_text(j, "address", n->address);
    json_text(j, "hostname", n->hostname ? n->hostname : n->name);
    state(j, n);
    json_text(j, "operating_system", n->os);
    json_text(j, "owner", "");
    texts(j, "partitions", ni->partitions, ni->n_partitions);
    json_number(j, "port", n->port);
    json_number(j, "real_memory", (int64_t)n->mem_mb);
    json_number(j, "res_cores_per_gpu", 0);
    json_text(j, "comment", n->set ? n->set->comment : "");
    json_text(j, "reason", str_text(&why));
    json_no_val(j, "reason_changed_at", why.n ? node_reason_since(n) : 0);
    json_text(j, "reason_set_by_user", why.n ? node_reason_user(n) : "");
}

static void add_tres(const struct node *n, bool used, struct str *out) {
    uint64_t mem = used ? n->alloc_mem_mb : n->mem_mb;
    uint32_t cpus = used ? n->alloc_cpus : n->cpus;
    if (cpus)
        str_addf(out, "cpu=%u", cpus);
    if (mem) {
        str_add(out, out->n ? ",mem=" : "mem=");
        size_mb_print(mem, out);
    }
    if (!used)
        str_addf(out, ",billing=%u", n->cpus);
    node_gres_tres(&n, 1, used, out);
}

void scontrol_node_json(struct json *j, const struct node_info *ni, const char *cluster) {
    const struct node *n = ni->node;
    auto_str tres = {0}, used = {0};
    add_tres(n, false, &tres);
    add_tres(n, true, &used);
    json_open(j, NULL, '{');
    hardware(j, ni, cluster);
    said(j, ni);
    json_no_val(j, "resume_after", 0);
    json_text(j, "reservation", "");
    json_no_val(j, "suspend_time", JSON_INFINITE);
    json_number(j, "alloc_memory", (int64_t)n->alloc_mem_mb);
    json_number(j, "alloc_cpus", n->alloc_cpus);
    json_number(j, "alloc_idle_cpus", (int64_t)n->cpus - n->alloc_cpus);
    json_text(j, "tres_used", str_text(&used));
    json_no_val(j, "slurmd_start_time", n->agent_start_unix);
    json_number(j, "sockets", n->sockets);
    json_number(j, "threads", n->threads_per_core);
    json_number(j, "temporary_disk", (int64_t)n->tmp_disk_mb);
    json_number(j, "weight", MAX(n->weight, 1u));
    json_text(j, "topology", "");
    json_text(j, "tres", str_text(&tres));
    json_text(j, "version", n->version);
    json_close(j, '}');
}

/* ---- partitions ---- */

static void names(struct json *j, const char *object, const char *key, const char *const *list, uint32_t n, const char *other) {
    auto_str text = {0};
    for (uint32_t i = 0; i < n; i++)
        str_addf(&text, "%s%s", i ? "," : "", list[i]);
    json_open(j, object, '{');
    json_text(j, key, str_text(&text));
    if (other)
        json_text(j, other, "");
    json_close(j, '}');
}

static void limit(struct json *j, const char *key, uint32_t minutes) {
    if (minutes == TIME_LIMIT_NONE)
        json_no_val(j, key, JSON_INFINITE);
    else if (minutes)
        json_no_val(j, key, minutes);
    else
        json_no_val(j, key, JSON_UNSET);
}

/* 0 is no bound. */
static void bound(struct json *j, const char *key, uint32_t n) {
    if (n)
        json_no_val(j, key, n);
    else
        json_no_val(j, key, JSON_INFINITE);
}

static void defaults(struct json *j, const struct part *p) {
    json_open(j, "defaults", '{');
    json_number(j, "memory_per_cpu", 0);
    json_no_val(j, "partition_memory_per_cpu", JSON_UNSET);
    json_no_val(j, "partition_memory_per_node", JSON_UNSET);
    limit(j, "time", p->default_time_min);
    json_text(j, "job", "");
    json_close(j, '}');
}

static void maximums(struct json *j, const struct part *p) {
    json_open(j, "maximums", '{');
    bound(j, "cpus_per_node", p->max_cpus_per_node);
    json_no_val(j, "cpus_per_socket", JSON_INFINITE);
    json_number(j, "memory_per_cpu", 0);
    json_no_val(j, "partition_memory_per_cpu", JSON_UNSET);
    json_no_val(j, "partition_memory_per_node", JSON_UNSET);
    bound(j, "nodes", p->max_nodes);
    json_number(j, "shares", p->over_subscribe == OVER_EXCLUSIVE ? 0 : MAX(p->over_count, 1u));
    json_open(j, "oversubscribe", '{');
    json_number(j, "jobs", MAX(p->over_count, 1u));
    json_open(j, "flags", '[');
    if (p->over_subscribe == OVER_FORCE)
        json_text(j, NULL, "force");
    json_close(j, ']');
    json_close(j, '}');
    limit(j, "time", p->max_time_min);
    json_no_val(j, "over_time_limit", JSON_UNSET);
    json_close(j, '}');
}

static void shown(struct json *j, const struct part *p) {
    json_open(j, "flags", '[');
    if (p->is_default)
        json_text(j, NULL, "DEFAULT");
    if (p->hidden)
        json_text(j, NULL, "HIDDEN");
    if (p->root_only)
        json_text(j, NULL, "ROOT_ONLY");
    json_close(j, ']');
    json_open(j, "partition", '{');
    auto_str over = {0};
    part_over_subscribe(p, &over);
    json_text(j, "exclusive", part_exclusive(p));
    json_text(j, "oversubscribe", str_text(&over));
    json_open(j, "state", '[');
    json_text(j, NULL, part_state_name(p->state));
    json_close(j, ']');
    json_close(j, '}');
}

void scontrol_part_json(struct json *j, const struct part *p, const struct nodes_reply *all) {
    auto_str list = {0}, tres = {0};
    struct part_totals t = part_totals(p, all, &list);
    str_addf(&tres, "cpu=%u,mem=", t.cpus);
    size_mb_print(t.mem_mb, &tres);
    str_addf(&tres, ",node=%u,billing=%u", t.nodes, t.cpus);
    node_gres_tres(t.node, t.nodes, false, &tres);
    json_open(j, NULL, '{');
    json_open(j, "nodes", '{');
    json_text(j, "allowed_allocation", "");
    json_text(j, "configured", p->nodes_text ? p->nodes_text : str_text(&list));
    json_number(j, "total", t.nodes);
    json_close(j, '}');
    names(j, "accounts", "allowed", p->allow_accounts, p->n_allow_accounts, "deny");
    names(j, "groups", "allowed", p->allow_groups, p->n_allow_groups, NULL);
    json_open(j, "qos", '{');
    json_text(j, "allowed", "");
    json_text(j, "deny", "");
    json_text(j, "assigned", "");
    json_close(j, '}');
    json_text(j, "alternate", "");
    json_open(j, "tres", '{');
    json_text(j, "billing_weights", "");
    json_text(j, "configured", str_text(&tres));
    json_close(j, '}');
    json_text(j, "cluster", "");
    json_empty(j, "select_type", "[]");
    json_open(j, "cpus", '{');
    json_empty(j, "task_binding", "[]");
    json_number(j, "total", t.cpus);
    json_close(j, '}');
    defaults(j, p);
    shown(j, p);
    json_number(j, "grace_time", 0);
    maximums(j, p);
    json_open(j, "minimums", '{');
    json_number(j, "nodes", p->min_nodes > 1 ? p->min_nodes : 0);
    json_close(j, '}');
    json_text(j, "name", p->name);
    json_text(j, "node_sets", "");
    json_empty(j, "preempt_mode", "[]");
    json_open(j, "priority", '{');
    json_number(j, "job_factor", MAX(p->priority_job_factor, 1u));
    json_number(j, "tier", MAX(p->priority_tier, 1u));
    json_close(j, '}');
    json_open(j, "timeouts", '{');
    json_no_val(j, "resume", JSON_UNSET);
    json_no_val(j, "suspend", JSON_UNSET);
    json_close(j, '}');
    json_text(j, "topology", "");
    json_no_val(j, "suspend_time", JSON_UNSET);
    json_close(j, '}');
    free(t.node);
}

/* ---- steps ---- */

static void cpu_time(struct json *j, const char *key, uint64_t us) {
    json_open(j, key, '{');
    json_number(j, "seconds", (int64_t)(us / 1000000));
    json_number(j, "microseconds", (int64_t)(us % 1000000));
    json_close(j, '}');
}

static void step_time(struct json *j, const struct job *job, const struct step *st, int64_t now_unix) {
    uint32_t limit = st->spec ? st->spec->time_limit_min : 0;
    json_open(j, "time", '{');
    json_number(j, "elapsed", step_run_secs(job, st, now_unix));
    json_no_val(j, "end", st->end_ms / 1000);
    json_no_val(j, "start", st->start_ms / 1000);
    json_number(j, "suspended", 0);
    cpu_time(j, "system", st->sys_cpu_us);
    json_no_val(j, "limit", limit && limit != TIME_LIMIT_NONE ? (int64_t)limit : JSON_INFINITE);
    cpu_time(j, "total", st->sys_cpu_us + st->user_cpu_us);
    cpu_time(j, "user", st->user_cpu_us);
    json_close(j, '}');
}

void scontrol_step_json(struct json *j, const struct job_info *ji, const struct step *st, int64_t now_unix) {
    auto_str id = {0};
    step_id_text(ji->job, st, &id);
    json_open(j, NULL, '{');
    step_time(j, ji->job, st, now_unix);
    json_exit(j, "exit_code", st->wait_status, !st->end_ms);
    step_nodes_json(j, st);
    json_open(j, "tasks", '{');
    json_number(j, "count", st->spec ? st->spec->n_tasks : 1);
    json_close(j, '}');
    json_text(j, "kill_request_user", "");
    json_open(j, "state", '[');
    json_text(j, NULL, job_state_name(st->state));
    json_close(j, ']');
    json_text(j, "sluid", st->sluid ? st->sluid : ji->job->sluid);
    json_open(j, "step", '{');
    json_text(j, "id", str_text(&id));
    json_text(j, "name", st->spec ? st->spec->name : "batch");
    json_close(j, '}');
    json_open(j, "task", '{');
    json_text(j, "distribution", step_layout_word(st->spec));
    json_close(j, '}');
    json_text(j, "submit_line", st->spec ? st->spec->submit_line : "");
    json_close(j, '}');
}
