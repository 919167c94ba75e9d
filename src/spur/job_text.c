/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/job_text.h"

#include <string.h>

#include "base/mem.h"
#include "spur/cli.h"
#include "spur/job_facts.h"

#define FIELD(fn) void job_text_##fn(const void *row, const void *env, struct str *out)
#define INFO(row) ((const struct job_info *)(row))
#define JOB(row) (INFO(row)->job)
#define SPEC(row) (JOB(row)->spec)
#define ENV(env) ((const struct job_env *)(env))

static void or_null(const char *s, struct str *out) {
    str_add(out, s ? s : "(null)");
}

/* Tasks that were cancelled while they waited are listed by sacct alone. */
FIELD(id) {
    if (JOB(row)->array && JOB(row)->array->job_id == JOB(row)->id && job_is_group(JOB(row)) && job_is_over(JOB(row)))
        str_addf(out, "%u", JOB(row)->id);
    else
        job_id_text(JOB(row), out);
}
FIELD(raw_id) {
    str_addf(out, "%u", JOB(row)->id);
}
FIELD(array_job_id) {
    str_addf(out, "%u", JOB(row)->array ? JOB(row)->array->job_id : JOB(row)->id);
}
FIELD(array_task_id) {
    job_task_text(JOB(row), out);
}
/* A text, or `none` where nothing was added. */
static void text_or(struct str *out, size_t from, const char *none) {
    if (out->n == from)
        str_add(out, none);
}
FIELD(tres_per_node) {
    size_t from = out->n;
    job_tres_per_node(SPEC(row), out);
    text_or(out, from, "N/A");
}
FIELD(tres_per_job) {
    size_t from = out->n;
    job_tres_per_job(SPEC(row), out);
    text_or(out, from, "N/A");
}
FIELD(tres_per_task) {
    size_t from = out->n;
    job_tres_per_task(SPEC(row), out);
    text_or(out, from, "N/A");
}
FIELD(batch_flag) {
    str_add(out, job_spec_more(SPEC(row))->interactive ? "0" : "1");
}
FIELD(exclusive) {
    job_exclusive(SPEC(row), out);
}
FIELD(contiguous) {
    str_add(out, job_spec_more(SPEC(row))->contiguous ? "1" : "0");
}
FIELD(over_subscribe) {
    str_add(out, oversubscribe_word(SPEC(row)));
}
FIELD(features) {
    or_null(job_shown_features(JOB(row)), out);
}
FIELD(prefer) {
    or_null(job_shown_prefer(JOB(row)), out);
}
FIELD(licenses) {
    job_licenses(JOB(row), false, out);
}
FIELD(licenses_alloc) {
    job_licenses(JOB(row), true, out);
}
FIELD(deadline) {
    cli_time(job_spec_more(SPEC(row))->deadline_unix, "N/A", out);
}
FIELD(time_min) {
    uint32_t minutes = job_spec_more(SPEC(row))->time_min_min;
    if (minutes)
        time_limit_print(minutes, out);
    else
        str_add(out, "0:00");
}
FIELD(tasks_per_node) {
    str_addf(out, "%u", job_spec_more(SPEC(row))->tasks_per_node);
}
FIELD(account) {
    or_null(SPEC(row)->account, out);
}
FIELD(qos) {
    or_null(SPEC(row)->qos, out);
}
FIELD(admin_comment) {
    or_null(job_spec_more(SPEC(row))->admin_comment, out);
}
FIELD(comment) {
    or_null(SPEC(row)->comment, out);
}
FIELD(command) {
    or_null(SPEC(row)->command, out);
}
FIELD(name) {
    str_add(out, SPEC(row)->name ? SPEC(row)->name : "");
}
FIELD(batch_host) {
    or_null(JOB(row)->n_nodes ? JOB(row)->nodes[0].name : NULL, out);
}
FIELD(cpus) {
    amount_print(job_cpus(INFO(row)), ' ', ENV(env)->unit, out);
}
FIELD(min_cpus) {
    amount_print(job_cpus_on_node(SPEC(row)), ' ', ENV(env)->unit, out);
}
FIELD(cpus_per_task) {
    if (SPEC(row)->cpus_per_task)
        str_addf(out, "%u", SPEC(row)->cpus_per_task);
    else
        str_add(out, "1");
}
FIELD(n_nodes) {
    amount_print(job_nodes(INFO(row)), ' ', ENV(env)->unit, out);
}
FIELD(max_nodes) {
    amount_print(SPEC(row)->max_nodes, ' ', ENV(env)->unit, out);
}
FIELD(n_tasks) {
    amount_print(job_tasks(INFO(row)), ' ', ENV(env)->unit, out);
}
FIELD(dependency) {
    job_dependency(JOB(row), ENV(env)->now_unix, out);
}
FIELD(end_time) {
    cli_time(job_end_unix(INFO(row)), "N/A", out);
}
FIELD(start_time) {
    cli_time(job_start_unix(INFO(row)), "N/A", out);
}
FIELD(submit_time) {
    cli_time(JOB(row)->submit_ms / 1000, "N/A", out);
}
FIELD(eligible_time) {
    cli_time(job_eligible_unix(JOB(row)), "N/A", out);
}
FIELD(gid) {
    str_addf(out, "%u", SPEC(row)->gid);
}
FIELD(group) {
    if (SPEC(row)->group)
        str_add(out, SPEC(row)->group);
    else
        job_text_gid(row, env, out);
}
FIELD(uid) {
    str_addf(out, "%u", SPEC(row)->uid);
}
FIELD(user) {
    if (SPEC(row)->user)
        str_add(out, SPEC(row)->user);
    else
        job_text_uid(row, env, out);
}
FIELD(time_left) {
    uint32_t limit = job_limit_min(INFO(row));
    if (limit == TIME_LIMIT_NONE)
        str_add(out, "UNLIMITED");
    else if (!limit)
        str_add(out, "NOT_SET");
    else
        duration_print(MAX((int64_t)limit * 60 - job_run_secs(JOB(row), ENV(env)->now_unix), (int64_t)0), out);
}
FIELD(time_limit) {
    uint32_t limit = job_limit_min(INFO(row));
    if (limit)
        time_limit_print(limit, out);
    else
        str_add(out, "NOT_SET");
}
FIELD(time_used) {
    duration_print(job_run_secs(JOB(row), ENV(env)->now_unix), out);
}
FIELD(pending_time) {
    int64_t until = job_is_pending(JOB(row)) || !JOB(row)->start_ms ? ENV(env)->now_unix : JOB(row)->start_ms / 1000;
    str_addf(out, "%lld", (long long)MAX(until - JOB(row)->submit_ms / 1000, (int64_t)0));
}
FIELD(min_memory) {
    uint64_t per_cpu = job_spec_more(SPEC(row))->mem_cpu_mb;
    amount_print(per_cpu ? per_cpu : SPEC(row)->mem_node_mb, 'M', ENV(env)->unit, out);
}
FIELD(node_list) {
    job_node_list(JOB(row), out);
}
static void names(const char *const *name, uint32_t n, struct str *out) {
    if (n)
        hostlist_compact(name, n, out);
}
FIELD(req_nodes) {
    names(SPEC(row)->req_nodes, SPEC(row)->n_req_nodes, out);
}
FIELD(exc_nodes) {
    names(SPEC(row)->exc_nodes, SPEC(row)->n_exc_nodes, out);
}
FIELD(partition) {
    job_partition(JOB(row), out);
}
FIELD(priority_long) {
    str_addf(out, "%llu", (unsigned long long)INFO(row)->priority);
}
FIELD(priority) {
    str_addf(out, "%.14f", (double)INFO(row)->priority / 4294967296.0);
}
FIELD(sched_nodes) {
    const struct job_info *ji = INFO(row);
    if (ji->n_promised_nodes)
        hostlist_compact(ji->promised_nodes, ji->n_promised_nodes, out);
    else
        str_add(out, "(null)");
}
FIELD(reason) {
    job_reason(INFO(row), out);
}
FIELD(reason_list) {
    const struct job *j = JOB(row);
    bool by_reason = j->state == JOB_PENDING || j->state == JOB_TIMEOUT || j->state == JOB_OUT_OF_MEMORY ||
                     j->state == JOB_DEADLINE || j->state == JOB_FAILED;
    if (!by_reason || j->completing) {
        job_node_list(j, out);
        return;
    }
    str_addc(out, '(');
    job_reason(INFO(row), out);
    str_addc(out, ')');
}
FIELD(state) {
    str_add(out, job_shown_state(JOB(row)));
}
FIELD(state_compact) {
    str_add(out, job_shown_state_compact(JOB(row)));
}
FIELD(sluid) {
    str_add(out, JOB(row)->sluid ? JOB(row)->sluid : "");
}
FIELD(nice) {
    str_addf(out, "%lld", (long long)JOB(row)->nice);
}
FIELD(work_dir) {
    or_null(SPEC(row)->work_dir, out);
}
FIELD(exit_code) {
    job_exit(JOB(row)->wait_status, out);
}
FIELD(std_out) {
    if (ENV(env)->expand)
        job_std_out(JOB(row), out);
    else
        str_add(out, job_output_pattern(JOB(row)));
}
FIELD(std_err) {
    if (ENV(env)->expand && SPEC(row)->std_err)
        job_std_err(JOB(row), out);
    else
        or_null(SPEC(row)->std_err, out);
}
FIELD(std_in) {
    str_add(out, SPEC(row)->std_in ? SPEC(row)->std_in : "/dev/null");
}
FIELD(tres) {
    job_tres(INFO(row), JOB(row)->n_nodes > 0, false, ENV(env)->unit, out);
}
FIELD(requeue) {
    str_add(out, SPEC(row)->no_requeue ? "0" : "1");
}
FIELD(restarts) {
    str_addf(out, "%u", JOB(row)->restarts);
}
FIELD(cluster) {
    or_null(ENV(env)->cluster, out);
}
FIELD(alloc_node) {
    or_null(SPEC(row)->submit_host, out);
}
FIELD(array_task_string) {
    if (JOB(row)->array && !JOB(row)->array->task)
        job_task_text(JOB(row), out);
}
FIELD(submit_line) {
    or_null(SPEC(row)->submit_line, out);
}
