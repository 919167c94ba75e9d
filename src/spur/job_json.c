/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/job_json.h"

#include <stdio.h>

#include "base/mem.h"
#include "core/model/mail.h"
#include "spur/job_facts.h"
#include "spur/node_facts.h"

#define INFO(row) ((const struct job_info *)(row))
#define JOB(row) (INFO(row)->job)
#define SPEC(row) (JOB(row)->spec)
#define MORE(row) job_spec_more(SPEC(row))
#define ENV(env) ((const struct job_env *)(env))

/* ---- numbers ---- */

#define NUMBER(name, expression)                                                                                      \
    int64_t job_number_##name(const void *row, const void *env) {                                                     \
        return (int64_t)(expression);                                                                                 \
    }

static int64_t or_unset(uint64_t n) {
    return n ? (int64_t)n : JSON_UNSET;
}

NUMBER(id, JOB(row)->id)
#define SELDOM(row) job_spec_seldom(SPEC(row))
NUMBER(cores, or_unset(SELDOM(row)->cores))
NUMBER(sockets, or_unset(SELDOM(row)->sockets))
NUMBER(threads, or_unset(SELDOM(row)->threads))
NUMBER(tasks_per_core, or_unset(SELDOM(row)->tasks_per_core))
NUMBER(tasks_per_socket, or_unset(SELDOM(row)->tasks_per_socket))
NUMBER(tmp_disk, SELDOM(row)->tmp_mb)
NUMBER(delay_boot, SELDOM(row)->delay_boot_secs)
NUMBER(switches, SELDOM(row)->switches)
NUMBER(switches_wait, SELDOM(row)->switches_secs)
NUMBER(array_job_id, JOB(row)->array ? JOB(row)->array->job_id : 0)
NUMBER(array_task_id, JOB(row)->array && JOB(row)->array->task ? (int64_t)JOB(row)->array->task - 1 : JSON_UNSET)
NUMBER(array_max_tasks, JOB(row)->array ? JOB(row)->array->max_running : 0)
NUMBER(batch_flag, !MORE(row)->interactive)
NUMBER(contiguous, MORE(row)->contiguous)
NUMBER(billable, JOB(row)->n_nodes ? (int64_t)JOB(row)->n_cpus : JSON_UNSET)
NUMBER(cpus, job_cpus(INFO(row)))
NUMBER(cpus_per_task, MAX(SPEC(row)->cpus_per_task, 1u))
NUMBER(deadline, MORE(row)->deadline_unix)
NUMBER(eligible, job_eligible_unix(JOB(row)))
NUMBER(end, job_end_unix(INFO(row)))
NUMBER(gid, SPEC(row)->gid)
NUMBER(hold, JOB(row)->hold != HOLD_NONE)
NUMBER(max_nodes, SPEC(row)->max_nodes)
NUMBER(mem_cpu, or_unset(MORE(row)->mem_cpu_mb))
NUMBER(mem_node, or_unset(SPEC(row)->mem_node_mb))
NUMBER(memory, MORE(row)->mem_cpu_mb ? MORE(row)->mem_cpu_mb : SPEC(row)->mem_node_mb)
NUMBER(min_cpus, job_cpus_on_node(SPEC(row)))
NUMBER(nice, JOB(row)->nice)
NUMBER(nodes, job_nodes(INFO(row)))
NUMBER(pre_suspend, job_rare_of(JOB(row))->suspended_total_ms / 1000)
NUMBER(priority, INFO(row)->priority)
NUMBER(requeue, !SPEC(row)->no_requeue)
NUMBER(restarts, JOB(row)->restarts)
NUMBER(start, job_start_unix(INFO(row)))
NUMBER(submit, JOB(row)->submit_ms / 1000)
NUMBER(suspend, job_rare_of(JOB(row))->suspended_ms / 1000)
NUMBER(tasks, job_tasks(INFO(row)))
NUMBER(tasks_per_node, or_unset(MORE(row)->tasks_per_node))
NUMBER(time_min, MORE(row)->time_min_min)
NUMBER(uid, SPEC(row)->uid)
NUMBER(zero, 0)

int64_t job_number_limit(const void *row, const void *env) {
    uint32_t minutes = job_limit_min(INFO(row));
    return minutes == TIME_LIMIT_NONE ? JSON_INFINITE : or_unset(minutes);
}

/* ---- what has parts ---- */

#define OWN(name) void job_json_##name(struct json *w, const char *key, const void *row, const void *env)

static void text_of(struct json *w, const char *key, void (*print)(const struct job *j, struct str *out), const struct job *j) {
    auto_str text = {0};
    print(j, &text);
    json_text(w, key, str_text(&text));
}

OWN(billable) {
    json_real_no_val(w, key, job_number_billable(row, env));
}
OWN(exit_code) {
    json_exit(w, key, JOB(row)->wait_status, false);
}
OWN(derived_exit) {
    const struct job_info *ji = INFO(row);
    uint32_t worst = 0;
    for (uint32_t i = 0; i < ji->n_steps; i++)
        worst = MAX(worst, ji->steps[i].wait_status >> 8 & 0xff);
    json_exit(w, key, worst << 8, false);
}
OWN(profile) {
    json_words(w, key, "NOT_SET");
}

OWN(mail_type) {
    auto_str all = {0};
    uint32_t bits = SELDOM(row)->mail_type;
    json_open(w, key, '[');
    for (uint32_t bit = 1; bit && bits; bit <<= 1) {
        str_clear(&all);
        if (bits & bit) {
            mail_type_print(bit, &all);
            json_text(w, NULL, all.p);
        }
        bits &= ~bit;
    }
    json_close(w, ']');
}

static void gres_text(const struct gres_held *g, struct str *out) {
    str_add(out, g->name ? g->name : "");
    if (g->type)
        str_addf(out, ":%s", g->type);
    str_addf(out, ":%llu", (unsigned long long)g->count);
    if (!g->n_indexes)
        return;
    str_add(out, "(IDX:");
    index_list(g->indexes, g->n_indexes, out);
    str_addc(out, ')');
}
OWN(gres_detail) {
    const struct job *j = JOB(row);
    json_open(w, key, '[');
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        auto_str text = {0};
        for (uint32_t k = 0; k < j->nodes[i].n_gres; k++) {
            str_add(&text, k ? "," : "");
            gres_text(&j->nodes[i].gres[k], &text);
        }
        if (text.n)
            json_text(w, NULL, text.p);
    }
    json_close(w, ']');
}

static void node_resources(struct json *w, const struct job_node *n, uint32_t index) {
    json_open(w, NULL, '{');
    json_number(w, "index", index);
    json_text(w, "name", n->name);
    json_open(w, "cpus", '{');
    json_number(w, "count", n->cpus);
    json_number(w, "used", 0);
    json_close(w, '}');
    json_open(w, "memory", '{');
    json_number(w, "used", 0);
    json_number(w, "allocated", (int64_t)n->mem_mb);
    json_close(w, '}');
    json_empty(w, "sockets", "[]");
    json_close(w, '}');
}
/* Of a job that has nodes; a member of others is left out, as null is no object. */
OWN(resources) {
    const struct job *j = JOB(row);
    if (!j->n_nodes)
        return;
    json_open(w, key, '{');
    json_words(w, "select_type", "CR_CORE_MEMORY");
    json_open(w, "nodes", '{');
    json_number(w, "count", j->n_nodes);
    json_words(w, "select_type", "AVAILABLE");
    text_of(w, "list", job_node_list, j);
    json_flag(w, "whole", MORE(row)->exclusive == EXCLUSIVE_NODE);
    json_open(w, "allocation", '[');
    for (uint32_t i = 0; i < j->n_nodes; i++)
        node_resources(w, &j->nodes[i], i);
    json_close(w, ']');
    json_close(w, '}');
    json_number(w, "cpus", j->n_cpus);
    json_no_val(w, "threads_per_core", JSON_UNSET);
    json_close(w, '}');
}

OWN(shared) {
    const struct job_more *m = MORE(row);
    static const char *const words[] = {[EXCLUSIVE_NODE] = "none", [EXCLUSIVE_USER] = "user", [EXCLUSIVE_MCS] = "mcs", [EXCLUSIVE_TOPO] = "topo"};
    const char *word = m->exclusive < ARRAY_LEN(words) ? words[m->exclusive] : NULL;
    json_words(w, key, word ? word : m->oversubscribe ? "oversubscribe" : "");
}
OWN(state) {
    const struct job *j = JOB(row);
    json_open(w, key, '[');
    json_text(w, NULL, job_state_name(j->state));
    if (j->completing)
        json_text(w, NULL, "COMPLETING");
    if (j->configuring)
        json_text(w, NULL, "CONFIGURING");
    if (job_is_stopped(j))
        json_text(w, NULL, "STOPPED");
    json_close(w, ']');
}
OWN(state_text) {
    json_text(w, key, JOB(row)->state_text ? JOB(row)->state_text : INFO(row)->reason_text);
}
OWN(step_id) {
    json_open(w, key, '{');
    json_text(w, "sluid", JOB(row)->sluid);
    json_no_val(w, "job_id", JOB(row)->id);
    json_no_val(w, "step_het_component", JSON_UNSET);
    json_text(w, "step_id", "TBD"); /* Slurm's word where a job is meant */
    json_close(w, '}');
}
OWN(tres_req) {
    auto_str text = {0};
    job_tres(INFO(row), false, false, 0, &text);
    json_text(w, key, str_text(&text));
}
OWN(tres_alloc) {
    auto_str text = {0};
    if (JOB(row)->n_nodes)
        job_tres(INFO(row), true, false, 0, &text);
    json_text(w, key, str_text(&text));
}
OWN(std_out) {
    text_of(w, key, job_std_out, JOB(row));
}
OWN(std_err) {
    text_of(w, key, job_std_err, JOB(row));
}
OWN(std_in) {
    text_of(w, key, job_std_in, JOB(row));
}
