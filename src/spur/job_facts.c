/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/job_facts.h"

#include <string.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "core/model/text.h"
#include "spur/flavor.h"

bool job_is_pending(const struct job *j) {
    return j->state == JOB_PENDING && !j->completing;
}

uint32_t job_uid(const struct job *j) {
    return j->spec ? j->spec->uid : 0;
}

#define TASKS_SHOWN 64 /* bytes: Slurm's SLURM_BITSTR_LEN */

static void task_list(const struct job_array *a, struct str *out) {
    const char *env = getenv("SLURM_BITSTR_LEN");
    uint64_t most = TASKS_SHOWN, asked;
    if (env && str_to_u64(env, 4096, &asked) == 0)
        most = asked ? asked : 4096;
    auto_str list = {0};
    array_print(a->pending, a->n_pending, &list);
    if (list.n >= most && most > 4) {
        str_addn(out, list.p, (size_t)most - 4);
        str_add(out, "...");
    } else {
        str_add(out, str_text(&list));
    }
    if (a->max_running)
        str_addf(out, "%%%u", a->max_running);
}

void job_task_text(const struct job *j, struct str *out) {
    if (!j->array)
        str_add(out, "N/A");
    else if (j->array->task)
        str_addf(out, "%u", j->array->task - 1);
    else
        task_list(j->array, out);
}

/* An array that was cancelled as a whole while it waited has nothing left to list. */
void job_id_text(const struct job *j, struct str *out) {
    bool raw = cli_policy()->raw_task_ids && j->array && j->array->task;
    if (!j->array || raw || (!j->array->task && !j->array->n_pending)) {
        str_addf(out, "%u", j->array && !raw ? j->array->job_id : j->id);
        return;
    }
    str_addf(out, j->array->task ? "%u_" : "%u_[", j->array->job_id);
    job_task_text(j, out);
    if (!j->array->task)
        str_addc(out, ']');
}

uint32_t job_cpus_on_node(const struct job_spec *s) {
    uint64_t n = (uint64_t)MAX(s->cpus_per_task, 1u) * MAX(job_spec_more(s)->tasks_per_node, 1u);
    return (uint32_t)MIN(MAX(n, (uint64_t)job_spec_seldom(s)->min_cpus), (uint64_t)UINT32_MAX);
}

/* What it asks for in all. */
static uint64_t gpus_asked(const struct job_info *ji) {
    const struct job_more *m = job_spec_more(ji->job->spec);
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->n_gres; i++)
        if (str_eq(m->gres[i].name, "gpu"))
            n += m->gres[i].count * (m->gres[i].per == GRES_PER_NODE ? job_nodes(ji) : m->gres[i].per == GRES_PER_TASK ? job_tasks(ji) : 1);
    return n;
}

uint64_t job_mem_mb(const struct job_info *ji) {
    const struct job_spec *s = ji->job->spec;
    uint64_t per_cpu = job_spec_more(s)->mem_cpu_mb, per_gpu = job_spec_seldom(s)->mem_gpu_mb;
    if (per_gpu)
        return per_gpu * gpus_asked(ji);
    return per_cpu ? per_cpu * job_cpus(ji) : s->mem_node_mb * job_nodes(ji);
}

uint32_t job_tasks(const struct job_info *ji) {
    const struct job_spec *s = ji->job->spec;
    return s->n_tasks ? s->n_tasks : MAX(s->n_tasks_given, 1u);
}

uint32_t job_nodes(const struct job_info *ji) {
    const struct job *j = ji->job;
    return j->n_nodes ? j->n_nodes : MAX(ji->least_nodes, MAX(j->spec->min_nodes, 1u));
}

uint32_t job_cpus(const struct job_info *ji) {
    const struct job *j = ji->job;
    if (j->n_cpus)
        return j->n_cpus;
    uint64_t n = (uint64_t)job_tasks(ji) * MAX(j->spec->cpus_per_task, 1u);
    if (job_spec_seldom(j->spec)->cpus_per_gpu)
        n = MAX(n, gpus_asked(ji) * job_spec_seldom(j->spec)->cpus_per_gpu);
    return (uint32_t)MIN(MAX(n, (uint64_t)job_nodes(ji)), (uint64_t)UINT32_MAX);
}

uint64_t job_alloc_mem_mb(const struct job *j) {
    uint64_t mb = 0;
    for (uint32_t i = 0; i < j->n_nodes; i++)
        mb += j->nodes[i].mem_mb;
    return mb;
}

uint32_t job_limit_min(const struct job_info *ji) {
    const struct job *j = ji->job;
    if (j->time_limit_min)
        return j->time_limit_min;
    return ji->limit_min ? ji->limit_min : j->spec->time_limit_min;
}

int64_t job_eligible_unix(const struct job *j) {
    bool is_delayed = job_is_pending(j) && !j->launch_failures; /* the pause after failed launches is none of its own */
    return is_delayed ? MAX(j->eligible_unix, j->retry_unix) : j->eligible_unix;
}

int64_t job_start_unix(const struct job_info *ji) {
    const struct job *j = ji->job;
    if (!job_is_pending(j))
        return j->start_ms / 1000;
    if (ji->expected_start_unix)
        return ji->expected_start_unix;
    return j->spec->begin_unix;
}

/* How long it has stood still so far; now_ms 0: up to the last resume. */
static int64_t suspended_ms(const struct job *j, int64_t now_ms) {
    const struct job_rare *r = job_rare_of(j);
    int64_t ms = r->suspended_total_ms;
    if (r->suspended_ms && now_ms > r->suspended_ms)
        ms += now_ms - r->suspended_ms;
    return ms;
}

int64_t job_end_unix(const struct job_info *ji) {
    const struct job *j = ji->job;
    uint32_t limit = job_limit_min(ji);
    int64_t start = job_start_unix(ji);
    if (j->end_ms)
        return j->end_ms / 1000;
    if (!start || !limit || limit == TIME_LIMIT_NONE)
        return 0;
    return start + (int64_t)limit * 60 + (job_is_pending(j) ? 0 : suspended_ms(j, 0) / 1000);
}

int64_t job_run_secs(const struct job *j, int64_t now_unix) {
    if (job_is_pending(j) || !j->start_ms)
        return 0;
    int64_t end = j->end_ms ? j->end_ms / 1000 : now_unix;
    int64_t still = suspended_ms(j, j->end_ms ? j->end_ms : now_unix * 1000) / 1000;
    return MAX(end - j->start_ms / 1000 - still, (int64_t)0);
}

static void raised(uint32_t wait_status, struct str *out) {
    int sig = WTERMSIG((int)wait_status);
    const char *name = sigdescr_np(sig);
    if (name)
        str_addf(out, "RaisedSignal:%d(%s)", sig, name);
    else
        str_addf(out, "RaisedSignal:%d(Real-time signal %d)", sig, sig - 34);
}

void job_reason(const struct job_info *ji, struct str *out) {
    const struct job *j = ji->job;
    uint32_t reason = job_is_pending(j) && ji->reason ? ji->reason : j->reason;
    if (reason == REASON_RAISED_SIGNAL && WIFSIGNALED((int)j->wait_status)) {
        raised(j->wait_status, out);
    } else if (job_is_pending(j) && ji->reason_text) {
        str_add(out, ji->reason_text);
    } else {
        str_add(out, job_reason_word(reason));
    }
}

/* A dependency that holds from a later time on is not fulfilled before. */
void job_dependency(const struct job *j, int64_t now_unix, struct str *out) {
    size_t from = out->n;
    struct dep *deps = xcalloc(j->n_deps + 1, sizeof(*deps));
    bool has_begun = !job_is_pending(j) && j->start_no; /* then nothing is left, singleton neither */
    for (uint32_t i = 0; i < j->n_deps && !has_begun; i++) {
        deps[i] = j->deps[i];
        if (deps[i].state == DEP_DONE && deps[i].from_unix > now_unix && job_is_pending(j))
            deps[i].state = DEP_WAITING;
    }
    deps_print(deps, has_begun ? 0 : j->n_deps, out);
    free(deps);
    if (out->n == from)
        str_add(out, "(null)");
}

void job_node_list(const struct job *j, struct str *out) {
    const char **name = xcalloc(j->n_nodes + 1, sizeof(*name));
    for (uint32_t i = 0; i < j->n_nodes; i++)
        name[i] = j->nodes[i].name ? j->nodes[i].name : "";
    hostlist_compact(name, j->n_nodes, out);
    free(name);
}

void job_partition(const struct job *j, struct str *out) {
    const char *p = j->partition ? j->partition : j->spec->partition;
    str_add(out, p ? p : "");
}

void job_exit(uint32_t wait_status, struct str *out) {
    int status = (int)wait_status;
    str_addf(out, "%d:%d", WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

#define NO_TASK 4294967294u /* as Slurm shows the tasks that wait */

const char *job_output_pattern(const struct job *j) {
    if (j->spec->std_out)
        return j->spec->std_out;
    return j->array ? "slurm-%A_%a.out" : "slurm-%j.out";
}

static void file(const struct job *j, const char *pattern, struct str *out) {
    struct name_facts f = {
        .job_id = j->id, .array_task_id = UINT32_MAX, .step_id = STEP_BATCH,
        .job_name = j->spec->name ? j->spec->name : "", .user = j->spec->user ? j->spec->user : "",
        .node_name = j->n_nodes && j->nodes[0].name ? j->nodes[0].name : "",
        .work_dir = j->spec->work_dir ? j->spec->work_dir : "",
    };
    if (j->array) {
        f.array_job_id = j->array->job_id;
        f.array_task_id = j->array->task ? j->array->task - 1 : NO_TASK;
    }
    output_name(pattern, &f, out);
}

void job_std_out(const struct job *j, struct str *out) {
    file(j, job_output_pattern(j), out);
}

void job_std_err(const struct job *j, struct str *out) {
    if (j->spec->std_err)
        file(j, j->spec->std_err, out);
}

void job_std_in(const struct job *j, struct str *out) {
    file(j, j->spec->std_in ? j->spec->std_in : "/dev/null", out);
}

void amount_print(uint64_t n, char unit, char want, struct str *out) {
    static const char units[] = " KMGTPE";
    const char *at = strchr(units, unit), *to = want && want != '=' ? strchr(units, want) : NULL;
    double amount = (double)n;
    must(at);
    if (to)
        for (; at < to; at++)
            amount /= 1024;
    else if (!want && n && n % 512 == 0)
        for (; amount >= 1024 && at[1]; at++)
            amount /= 1024;
    if (amount == (double)(uint64_t)amount)
        str_addf(out, "%llu", (unsigned long long)amount);
    else
        str_addf(out, "%.2f", amount);
    if (*at != ' ' && (n || to))
        str_addc(out, *at);
}

void count_print(uint64_t n, struct str *out) {
    amount_print(n, ' ', 0, out);
}
