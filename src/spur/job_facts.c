/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/job_facts.h"

#include <string.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "core/model/text.h"

bool job_is_pending(const struct job *j) {
    return j->state == JOB_PENDING && !j->completing;
}

uint32_t job_uid(const struct job *j) {
    return j->spec ? j->spec->uid : 0;
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

int64_t job_start_unix(const struct job_info *ji) {
    const struct job *j = ji->job;
    if (!job_is_pending(j))
        return j->start_ms / 1000;
    if (ji->expected_start_unix)
        return ji->expected_start_unix;
    return j->hold ? 0 : j->spec->begin_unix;
}

int64_t job_end_unix(const struct job_info *ji) {
    const struct job *j = ji->job;
    uint32_t limit = job_limit_min(ji);
    int64_t start = job_start_unix(ji);
    if (j->end_ms)
        return j->end_ms / 1000;
    return start && limit && limit != TIME_LIMIT_NONE ? start + (int64_t)limit * 60 : 0;
}

int64_t job_run_secs(const struct job *j, int64_t now_unix) {
    if (job_is_pending(j) || !j->start_ms)
        return 0;
    int64_t end = j->end_ms ? j->end_ms / 1000 : now_unix;
    return MAX(end - j->start_ms / 1000, (int64_t)0);
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

void job_tres(const struct job_info *ji, bool allocated, bool sorted, char unit, struct str *out) {
    const struct job *j = ji->job;
    uint32_t cpus = job_cpus(ji), nodes = job_nodes(ji);
    uint64_t mem = job_alloc_mem_mb(j);
    if (allocated && !j->n_nodes)
        return;
    if (!allocated && !mem)
        mem = j->spec->mem_node_mb * nodes;
    if (sorted)
        str_addf(out, "billing=%u,", cpus);
    str_addf(out, "cpu=%u,", cpus);
    if (mem) {
        str_add(out, "mem=");
        amount_print(mem, 'M', unit, out);
        str_addc(out, ',');
    }
    str_addf(out, "node=%u", nodes);
    if (!sorted)
        str_addf(out, ",billing=%u", cpus);
}

void job_exit(uint32_t wait_status, struct str *out) {
    int status = (int)wait_status;
    str_addf(out, "%d:%d", WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void file(const struct job *j, const char *pattern, struct str *out) {
    struct name_facts f = {
        .job_id = j->id, .array_task_id = UINT32_MAX, .step_id = STEP_BATCH,
        .job_name = j->spec->name ? j->spec->name : "", .user = j->spec->user ? j->spec->user : "",
        .node_name = j->n_nodes && j->nodes[0].name ? j->nodes[0].name : "",
        .work_dir = j->spec->work_dir ? j->spec->work_dir : "",
    };
    output_name(pattern, &f, out);
}

void job_std_out(const struct job *j, struct str *out) {
    file(j, j->spec->std_out ? j->spec->std_out : "slurm-%j.out", out);
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
