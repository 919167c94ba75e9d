/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/job_facts.h"
#include "spur/scontrol.h"

static const char *or_null(const char *s) {
    return s ? s : "(null)";
}

static void user(const char *name, uint32_t id, struct str *out) {
    if (name)
        str_addf(out, "%s(%u)", name, id);
    else
        str_addf(out, "%u(%u)", id, id);
}

/* A reason is one word here. */
static void reason(const struct job_info *ji, struct str *out) {
    size_t from = out->n;
    job_reason(ji, out);
    for (size_t i = from; i < out->n; i++)
        if (out->p[i] == ' ')
            out->p[i] = '_';
}

static void head(const struct job_info *ji, const char *nl, struct str *out) {
    const struct job *j = ji->job;
    const struct job_spec *s = j->spec;
    str_addf(out, "JobId=%u JobName=%s%sUserId=", j->id, s->name ? s->name : "", nl);
    user(s->user, s->uid, out);
    str_add(out, " GroupId=");
    user(s->group, s->gid, out);
    str_addf(out, " MCS_label=N/A%sPriority=%llu Nice=%lld Account=%s QOS=%s%sJobState=%s Reason=", nl,
             (unsigned long long)ji->priority, (long long)j->nice, or_null(s->account), or_null(s->qos), nl,
             job_shown_state(j));
    reason(ji, out);
    str_add(out, " Dependency=");
    if (j->n_deps)
        deps_print(j->deps, j->n_deps, out);
    else
        str_add(out, "(null)");
    str_addf(out, "%sRequeue=%d Restarts=%u BatchFlag=1 Reboot=0 ExitCode=", nl, !s->no_requeue, j->restarts);
    job_exit(j->wait_status, out);
}

static void times(const struct job_info *ji, int64_t now_unix, const char *nl, struct str *out) {
    const struct job *j = ji->job;
    uint32_t limit = job_limit_min(ji);
    int64_t start = job_start_unix(ji), end = job_end_unix(ji);
    if (!start && job_is_over(j)) /* cancelled while it waited: as Slurm */
        start = end;
    int64_t eligible = job_is_pending(j) && j->hold ? 0 : j->eligible_unix;
    str_addf(out, "%sRunTime=", nl);
    duration_print_long(job_run_secs(j, now_unix), out);
    str_add(out, " TimeLimit=");
    if (limit == TIME_LIMIT_NONE)
        str_add(out, "UNLIMITED");
    else if (limit)
        duration_print_long((int64_t)limit * 60, out);
    else
        str_add(out, "Partition_Limit");
    str_addf(out, " TimeMin=N/A%sSubmitTime=", nl);
    cli_time(j->submit_ms / 1000, "Unknown", out);
    str_add(out, " EligibleTime=");
    cli_time(eligible, "Unknown", out);
    str_addf(out, "%sAccrueTime=", nl);
    cli_time(eligible && eligible <= now_unix ? eligible : 0, "Unknown", out);
    str_addf(out, "%sStartTime=", nl);
    cli_time(start, "Unknown", out);
    str_add(out, " EndTime=");
    cli_time(end, "Unknown", out);
    str_addf(out, " Deadline=N/A%sSuspendTime=None SecsPreSuspend=0 LastSchedEval=", nl);
    cli_time(j->start_ms / 1000, "Unknown", out);
    str_add(out, " Scheduler=Main");
}

static void names(const char *const *name, uint32_t n, struct str *out) {
    if (n)
        hostlist_compact(name, n, out);
    else
        str_add(out, "(null)");
}

/* "1-4" while it waits: at least, at most. */
static void node_count(const struct job_info *ji, struct str *out) {
    const struct job_spec *s = ji->job->spec;
    count_print(job_nodes(ji), out);
    uint32_t most = s->max_nodes ? s->max_nodes : s->cpus_per_task_given ? 0 : job_tasks(ji);
    if (job_is_pending(ji->job) && most)
        str_addf(out, "-%u", MAX(most, job_nodes(ji)));
}

static void place(const struct job_info *ji, const char *nl, struct str *out) {
    const struct job *j = ji->job;
    const struct job_spec *s = j->spec;
    str_addf(out, "%sPartition=", nl);
    job_partition(j, out);
    str_addf(out, " AllocNode:Sid=%s:%u%sReqNodeList=", or_null(s->submit_host), s->session_id, nl);
    names(s->req_nodes, s->n_req_nodes, out);
    str_add(out, " ExcNodeList=");
    names(s->exc_nodes, s->n_exc_nodes, out);
    str_addf(out, "%sNodeList=", nl);
    job_node_list(j, out);
    if (j->n_nodes)
        str_addf(out, "%sBatchHost=%s", nl, or_null(j->nodes[0].name));
}

static void sizes(const struct job_info *ji, const char *nl, struct str *out) {
    const struct job *j = ji->job;
    const struct job_spec *s = j->spec;
    str_addf(out, "%sNumNodes=", nl);
    node_count(ji, out);
    str_addf(out, " NumCPUs=%u NumTasks=%u CPUs/Task=%u ReqB:S:C:T=0:0:*:*%sReqTRES=", job_cpus(ji), job_tasks(ji),
             MAX(s->cpus_per_task, 1u), nl);
    job_tres(ji, false, false, 0, out);
    str_addf(out, "%sAllocTRES=", nl);
    if (j->n_nodes)
        job_tres(ji, true, false, 0, out);
    else
        str_add(out, "(null)");
    str_addf(out, "%sSocks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*%sMinCPUsNode=%u MinMemoryNode=", nl, nl,
             MAX(s->cpus_per_task, 1u));
    size_mb_print(s->mem_node_mb, out);
    str_addf(out, " MinTmpDiskNode=0%sFeatures=(null) DelayBoot=00:00:00%s"
             "OverSubscribe=NO Exclusive=NO Contiguous=0 Licenses=(null) LicensesAlloc=(null) Network=(null)", nl, nl);
}

static void files(const struct job_info *ji, const char *nl, struct str *out) {
    const struct job *j = ji->job;
    const struct job_spec *s = j->spec;
    str_addf(out, "%sCommand=%s%sSubmitLine=%s%sWorkDir=%s", nl, or_null(s->command), nl, or_null(s->submit_line), nl,
             or_null(s->work_dir));
    if (s->comment)
        str_addf(out, "%sComment=%s", nl, s->comment);
    str_addf(out, "%sStdErr=", nl);
    job_std_err(j, out);
    str_addf(out, "%sStdIn=", nl);
    job_std_in(j, out);
    str_addf(out, "%sStdOut=", nl);
    job_std_out(j, out);
    if (s->cpus_per_task_given)
        str_addf(out, "%sTresPerTask=cpu=%u", nl, s->cpus_per_task_given);
}

void scontrol_job_text(const struct job_info *ji, int64_t now_unix, bool one_line, struct str *out) {
    const char *nl = RECORD_BREAK(one_line);
    head(ji, nl, out);
    times(ji, now_unix, nl, out);
    place(ji, nl, out);
    sizes(ji, nl, out);
    files(ji, nl, out);
    str_add(out, RECORD_END(one_line));
}

int scontrol_show_job(struct scontrol *s, const char *name) {
    uint32_t id = 0;
    struct err e = {0};
    struct jobs_reply reply = {0};
    if (name && *name && (strchr(name, '.') || !cli_job_id(name, &id))) {
        fprintf(stderr, "scontrol_print_job error: %s\n", err_sentence(E_JOB_ID));
        return 1;
    }
    struct jobs_request request = {.job_ids = &id, .n_job_ids = id ? 1 : 0, .with_ended = true};
    if (cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, &e)) {
        fprintf(stderr, "slurm_load_jobs error: %s\n", e.text);
        return 1;
    }
    auto_str out = {0};
    for (uint32_t i = 0; i < reply.n_jobs; i++)
        if (reply.jobs[i].job && reply.jobs[i].job->spec)
            scontrol_job_text(&reply.jobs[i], reply.now_unix, s->one_line, &out);
    if (!reply.n_jobs)
        str_add(&out, "No jobs in the system\n");
    cli_out(&out);
    return 0;
}
