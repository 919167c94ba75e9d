/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/sacct_json.h"

#include <pwd.h>
#include <string.h>

#include "base/mem.h"
#include "spur/step_facts.h"

static void one(struct json *w, const char *key, const char *name, const char *value) {
    json_open(w, key, '{');
    json_text(w, name, value);
    json_close(w, '}');
}

static void cpu_time(struct json *w, const char *key, uint64_t us) {
    json_open(w, key, '{');
    json_number(w, "seconds", (int64_t)(us / 1000000));
    json_number(w, "microseconds", (int64_t)(us % 1000000));
    json_close(w, '}');
}

static void cpu_times(struct json *w, uint64_t user_us, uint64_t sys_us) {
    cpu_time(w, "system", sys_us);
    cpu_time(w, "total", user_us + sys_us);
    cpu_time(w, "user", user_us);
}

/* Slurm's numbers of the resources that every cluster has. */
static void tres(struct json *w, const char *type, const char *name, int64_t id, uint64_t count) {
    if (!count)
        return;
    json_open(w, NULL, '{');
    json_text(w, "type", type);
    json_text(w, "name", name);
    json_number(w, "id", id);
    json_number(w, "count", (int64_t)count);
    json_close(w, '}');
}

static uint64_t gres_of(const struct gres_held *g, uint32_t n, const char *name) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(g[i].name, name))
            count += g[i].count;
    return count;
}

static void job_tres_list(struct json *w, const char *key, const struct job_info *ji, bool allocated) {
    const struct job *j = ji->job;
    uint64_t gpus = 0;
    for (uint32_t i = 0; i < j->n_nodes; i++)
        gpus += gres_of(j->nodes[i].gres, j->nodes[i].n_gres, "gpu");
    json_open(w, key, '[');
    if (!allocated || j->n_nodes) {
        tres(w, "cpu", "", 1, job_cpus(ji));
        tres(w, "mem", "", 2, allocated ? job_alloc_mem_mb(j) : job_mem_mb(ji));
        tres(w, "node", "", 4, job_nodes(ji));
        tres(w, "billing", "", 5, job_cpus(ji));
        tres(w, "gres", "gpu", 1001, allocated ? gpus : 0);
    }
    json_close(w, ']');
}

static const char *name_of(uint32_t uid_plus_one) {
    struct passwd *pw = uid_plus_one ? getpwuid(uid_plus_one - 1) : NULL;
    return pw ? pw->pw_name : "";
}

/* ---- steps ---- */

static void step_state(struct json *w, const struct step *s) {
    json_words(w, "state", job_state_name(step_shown_state(s)));
}

static void step_times(struct json *w, const struct job *j, const struct step *s, const struct job_env *env) {
    json_open(w, "time", '{');
    json_number(w, "elapsed", step_run_secs(j, s, env->now_unix));
    json_no_val(w, "end", s->end_ms / 1000);
    json_no_val(w, "start", s->start_ms / 1000);
    json_number(w, "suspended", 0);
    json_no_val(w, "limit", JSON_UNSET);
    cpu_times(w, s->user_cpu_us, s->sys_cpu_us);
    json_close(w, '}');
}

static void step_tres_list(struct json *w, const struct step *s) {
    json_open(w, "tres", '{');
    json_open(w, "allocated", '[');
    tres(w, "cpu", "", 1, s->n_cpus);
    tres(w, "node", "", 4, s->n_nodes);
    json_close(w, ']');
    json_close(w, '}');
}

static void step(struct json *w, const struct job *j, const struct step *s, const struct job_env *env) {
    auto_str id = {0};
    step_id_text(j, s, &id);
    json_open(w, NULL, '{');
    step_times(w, j, s, env);
    json_exit(w, "exit_code", s->wait_status, !s->end_ms);
    step_nodes_json(w, s);
    json_open(w, "tasks", '{');
    json_number(w, "count", s->spec ? MAX(s->spec->n_tasks, 1u) : 1);
    json_close(w, '}');
    json_text(w, "kill_request_user", name_of(s->end_uid));
    step_state(w, s);
    json_open(w, "step", '{');
    json_text(w, "id", str_text(&id));
    json_text(w, "name", s->spec ? s->spec->name : "");
    json_close(w, '}');
    json_text(w, "submit_line", s->spec ? s->spec->submit_line : "");
    step_tres_list(w, s);
    json_close(w, '}');
}

static void steps(struct json *w, const struct job_info *ji, const struct job_env *env, bool with_steps) {
    struct step_batch batch;
    json_open(w, "steps", '[');
    if (with_steps && step_of_batch(ji->job, &batch))
        step(w, ji->job, &batch.step, env);
    for (uint32_t i = 0; with_steps && i < ji->n_steps; i++)
        step(w, ji->job, &ji->steps[i], env);
    json_close(w, ']');
}

/* ---- the job ---- */

static void comments(struct json *w, const struct job_spec *s) {
    json_open(w, "comment", '{');
    json_text(w, "administrator", job_spec_more(s)->admin_comment);
    json_text(w, "job", s->comment);
    json_text(w, "system", "");
    json_close(w, '}');
}

static void array(struct json *w, const struct job *j) {
    const struct job_array *a = j->array;
    auto_str tasks = {0};
    if (a && !a->task)
        job_task_text(j, &tasks);
    json_open(w, "array", '{');
    json_number(w, "job_id", a ? a->job_id : 0);
    json_open(w, "limits", '{');
    json_open(w, "max", '{');
    json_open(w, "running", '{');
    json_number(w, "tasks", a ? a->max_running : 0);
    json_close(w, '}');
    json_close(w, '}');
    json_close(w, '}');
    json_no_val(w, "task_id", a && a->task ? (int64_t)a->task - 1 : JSON_UNSET);
    json_text(w, "task", str_text(&tasks));
    json_close(w, '}');
}

static void association(struct json *w, const struct job_spec *s, const struct job_env *env) {
    json_open(w, "association", '{');
    json_text(w, "account", s->account);
    json_text(w, "cluster", env->cluster);
    json_text(w, "partition", "");
    json_text(w, "user", s->user);
    json_number(w, "id", 0);
    json_close(w, '}');
}

static int64_t limit_of(const struct job_info *ji) {
    uint32_t minutes = job_limit_min(ji);
    return minutes == TIME_LIMIT_NONE ? JSON_INFINITE : minutes ? (int64_t)minutes : JSON_UNSET;
}

static void times(struct json *w, const struct job_info *ji, const struct job_env *env) {
    const struct job *j = ji->job;
    uint64_t user = j->user_cpu_us, sys = j->sys_cpu_us;
    for (uint32_t i = 0; i < ji->n_steps; i++) {
        user += ji->steps[i].user_cpu_us;
        sys += ji->steps[i].sys_cpu_us;
    }
    int64_t began = j->start_ms ? j->start_ms / 1000 : j->end_ms ? j->end_ms / 1000 : env->now_unix;
    int64_t could = j->eligible_unix ? job_eligible_unix(j) : j->submit_ms / 1000;
    json_open(w, "time", '{');
    json_number(w, "elapsed", job_run_secs(j, env->now_unix));
    json_number(w, "eligible", job_eligible_unix(j));
    json_number(w, "end", j->end_ms / 1000);
    json_no_val(w, "planned", MAX(began - could, (int64_t)0));
    json_number(w, "start", j->start_ms / 1000);
    json_number(w, "submission", j->submit_ms / 1000);
    json_number(w, "suspended", job_rare_of(j)->suspended_total_ms / 1000);
    json_no_val(w, "limit", limit_of(ji));
    cpu_times(w, user, sys);
    json_close(w, '}');
}

static void required(struct json *w, const struct job_info *ji) {
    const struct job_more *m = job_spec_more(ji->job->spec);
    json_open(w, "required", '{');
    json_number(w, "CPUs", job_tasks(ji) * MAX(ji->job->spec->cpus_per_task, 1u));
    json_no_val(w, "memory_per_cpu", m->mem_cpu_mb ? (int64_t)m->mem_cpu_mb : JSON_UNSET);
    json_no_val(w, "memory_per_node", ji->job->spec->mem_node_mb ? (int64_t)ji->job->spec->mem_node_mb : JSON_UNSET);
    json_close(w, '}');
}

static void state(struct json *w, const struct job_info *ji) {
    auto_str reason = {0};
    job_reason(ji, &reason);
    json_open(w, "state", '{');
    json_words(w, "current", job_state_name(ji->job->state));
    json_text(w, "reason", str_text(&reason));
    json_close(w, '}');
}

static void files(struct json *w, const struct job *j) {
    static const char *const key[] = {"stdin_expanded", "stdout_expanded", "stderr_expanded"};
    void (*const print[])(const struct job *, struct str *) = {job_std_in, job_std_out, job_std_err};
    for (unsigned i = 0; i < ARRAY_LEN(key); i++) {
        auto_str text = {0};
        print[i](j, &text);
        json_text(w, key[i], str_text(&text));
    }
    json_text(w, "stdout", job_output_pattern(j));
    json_text(w, "stderr", j->spec->std_err);
    json_text(w, "stdin", j->spec->std_in ? j->spec->std_in : "/dev/null");
}

static void texts(struct json *w, const struct job_info *ji) {
    const struct job *j = ji->job;
    auto_str nodes = {0}, part = {0}, exclusive = {0};
    if (j->n_nodes)
        job_node_list(j, &nodes);
    else
        str_add(&nodes, "None assigned");
    job_partition(j, &part);
    job_exclusive(j->spec, &exclusive);
    json_text(w, "constraints", job_shown_features(j));
    json_text(w, "container", "");
    json_text(w, "sluid", j->sluid);
    json_text(w, "exclusive", str_text(&exclusive));
    json_text(w, "extra", "");
    json_text(w, "failed_node", "");
    json_text(w, "group", j->spec->group);
    json_text(w, "name", j->spec->name);
    json_text(w, "licenses", job_spec_more(j->spec)->licenses_text);
    json_text(w, "nodes", str_text(&nodes));
    json_text(w, "oversubscribe", job_spec_more(j->spec)->oversubscribe ? "YES" : "NO");
    json_text(w, "partition", str_text(&part));
    json_text(w, "qos", j->spec->qos);
    json_text(w, "qosreq", j->spec->qos);
    json_text(w, "kill_request_user", name_of(j->end_uid));
    json_text(w, "script", "");
    json_text(w, "submit_line", j->spec->submit_line);
    json_text(w, "used_gres", "");
    json_text(w, "user", j->spec->user);
    json_text(w, "working_directory", j->spec->work_dir);
}

static void exits(struct json *w, const struct job_info *ji) {
    const struct job *j = ji->job;
    uint32_t worst = 0;
    for (uint32_t i = 0; i < ji->n_steps; i++)
        worst = MAX(worst, ji->steps[i].wait_status >> 8 & 0xff);
    bool from_outside = j->state == JOB_CANCELLED || j->state == JOB_TIMEOUT;
    json_exit(w, "derived_exit_code", worst << 8, false);
    json_exit(w, "exit_code", from_outside ? 0 : j->wait_status, !j->end_ms);
}

void sacct_json_job(struct json *w, const struct job_info *ji, const struct job_env *env, bool with_steps) {
    const struct job *j = ji->job;
    json_open(w, NULL, '{');
    json_text(w, "account", j->spec->account);
    comments(w, j->spec);
    json_number(w, "allocation_nodes", j->n_nodes);
    array(w, j);
    association(w, j->spec, env);
    json_text(w, "block", "");
    json_text(w, "cluster", env->cluster);
    exits(w, ji);
    times(w, ji, env);
    json_empty(w, "flags", "[]");
    json_number(w, "job_id", j->id);
    one(w, "mcs", "label", "");
    texts(w, ji);
    json_flag(w, "hold", j->hold != HOLD_NONE);
    json_no_val(w, "priority", (int64_t)ji->priority);
    required(w, ji);
    json_number(w, "restart_cnt", j->restarts);
    files(w, j);
    state(w, ji);
    steps(w, ji, env, with_steps);
    json_open(w, "tres", '{');
    job_tres_list(w, "allocated", ji, true);
    job_tres_list(w, "requested", ji, false);
    json_close(w, '}');
    json_close(w, '}');
}
