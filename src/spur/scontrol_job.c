/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/mail.h"
#include "spur/flavor.h"
#include "spur/job_fields.h"
#include "spur/job_facts.h"
#include "spur/job_select.h"
#include "spur/node_facts.h"
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

/* "ArrayJobId=384 ArrayTaskId=2-4%2 ArrayTaskThrottle=2 " */
static void array(const struct job *j, struct str *out) {
    if (!j->array)
        return;
    str_addf(out, "ArrayJobId=%u ", j->array->job_id);
    if (j->array->task || j->array->n_pending) {
        str_add(out, "ArrayTaskId=");
        job_task_text(j, out);
        str_addc(out, ' ');
    }
    /* a task's record leaves it to the array's; show_job asked for both */
    uint32_t most = j->array->max_running ? j->array->max_running : job_spec_more(j->spec)->array_max_running;
    if (most)
        str_addf(out, "ArrayTaskThrottle=%u ", most);
}

/* The worst of what its steps ended with. */
static uint32_t worst_step(const struct job_info *ji) {
    uint32_t worst = 0;
    for (uint32_t i = 0; i < ji->n_steps; i++)
        if (ji->steps[i].end_ms)
            worst = MAX(worst, ji->steps[i].wait_status);
    return worst;
}

static void head(const struct job_info *ji, int64_t now_unix, const char *nl, bool details, struct str *out) {
    const struct job *j = ji->job;
    const struct job_spec *s = j->spec;
    str_addf(out, "JobId=%u ", j->id);
    array(j, out);
    str_addf(out, "JobName=%s", s->name ? s->name : "");
    if (details)
        str_addf(out, "%sSLUID=%s", nl, j->sluid ? j->sluid : "");
    str_addf(out, "%sUserId=", nl);
    user(s->user, s->uid, out);
    str_add(out, " GroupId=");
    user(s->group, s->gid, out);
    str_addf(out, " MCS_label=N/A%sPriority=%llu Nice=%lld Account=%s QOS=%s%sJobState=%s Reason=", nl,
             (unsigned long long)ji->priority, (long long)j->nice, or_null(s->account), or_null(s->qos), nl,
             job_shown_state(j));
    reason(ji, out);
    str_add(out, " Dependency=");
    job_dependency(j, now_unix, out);
    str_addf(out, "%sRequeue=%d Restarts=%u BatchFlag=%d Reboot=0 ExitCode=", nl, !s->no_requeue, j->restarts,
             !job_spec_more(s)->interactive);
    job_exit(j->wait_status, out);
    if (details) {
        str_addf(out, "%sDerivedExitCode=", nl);
        job_exit(worst_step(ji), out);
    }
}

static void suspended(const struct job *j, const char *nl, struct str *out) {
    int64_t since = job_rare_of(j)->suspended_ms;
    str_addf(out, "%sSuspendTime=", nl);
    cli_time(since / 1000, "None", out);
    str_addf(out, " SecsPreSuspend=%lld", since ? (long long)job_run_secs(j, since / 1000) : 0LL);
}

static void limit_of(const struct job_info *ji, struct str *out) {
    uint32_t limit = job_limit_min(ji);
    if (cli_policy()->shows_no_limit)
        return;
    str_add(out, " TimeLimit=");
    if (limit == TIME_LIMIT_NONE)
        str_add(out, "UNLIMITED");
    else if (limit)
        duration_print_long((int64_t)limit * 60, out);
    else
        str_add(out, "Partition_Limit");
}

static void times(const struct job_info *ji, int64_t now_unix, const char *nl, struct str *out) {
    const struct job *j = ji->job;
    const struct job_more *m = job_spec_more(j->spec);
    int64_t start = job_start_unix(ji), end = job_end_unix(ji);
    if (!start && job_is_over(j) && j->reason != REASON_DEP_NEVER) /* cancelled while it waited: as Slurm */
        start = end;
    int64_t eligible = job_is_pending(j) && j->hold ? 0 : job_eligible_unix(j);
    str_addf(out, "%sRunTime=", nl);
    duration_print_long(job_run_secs(j, now_unix), out);
    limit_of(ji, out);
    str_add(out, " TimeMin=");
    if (m->time_min_min)
        duration_print_long((int64_t)m->time_min_min * 60, out);
    else
        str_add(out, "N/A");
    str_addf(out, "%sSubmitTime=", nl);
    cli_time(j->submit_ms / 1000, "Unknown", out);
    str_add(out, " EligibleTime=");
    cli_time(eligible, "Unknown", out);
    str_addf(out, "%sAccrueTime=", nl);
    cli_time(eligible && eligible <= now_unix ? eligible : 0, "Unknown", out);
    str_addf(out, "%sStartTime=", nl);
    cli_time(start, "Unknown", out);
    str_add(out, " EndTime=");
    cli_time(end, "Unknown", out);
    str_add(out, " Deadline=");
    cli_time(m->deadline_unix, "N/A", out);
    suspended(j, nl, out);
    str_add(out, " LastSchedEval=");
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

static void asked_nodes(const struct job_spec *s, const char *nl, struct str *out) {
    str_addf(out, "%sReqNodeList=", nl);
    names(s->req_nodes, s->n_req_nodes, out);
    str_add(out, " ExcNodeList=");
    names(s->exc_nodes, s->n_exc_nodes, out);
}

static void place(const struct job_info *ji, const char *nl, struct str *out) {
    const struct job *j = ji->job;
    const struct job_spec *s = j->spec;
    bool last = cli_policy()->allocation_first;
    str_addf(out, "%sPartition=", nl);
    job_partition(j, out);
    str_addf(out, " AllocNode:Sid=%s:%u", or_null(s->submit_host), s->session_id);
    if (!last)
        asked_nodes(s, nl, out);
    str_addf(out, "%sNodeList=", nl);
    job_node_list(j, out);
    if (last)
        asked_nodes(s, nl, out);
    if (j->n_nodes)
        str_addf(out, "%sBatchHost=%s", nl, or_null(j->nodes[0].name));
}

static void held_gres(const struct job_node *n, bool with_index, struct str *out) {
    for (uint32_t i = 0; i < n->n_gres; i++) {
        const struct gres_held *g = &n->gres[i];
        str_addf(out, "%s%s%s%s:%llu", i ? "," : "", g->name, g->type ? ":" : "", g->type ? g->type : "",
                 (unsigned long long)g->count);
        if (!with_index || !g->n_indexes)
            continue;
        str_add(out, "(IDX:");
        index_list(g->indexes, g->n_indexes, out);
        str_addc(out, ')');
    }
}

/* Of each kind what all of its nodes have of it. */
static void held_in_all(const struct job *j, struct str *out) {
    struct gres_held sum[64];
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->n_nodes; i++)
        for (uint32_t k = 0; k < j->nodes[i].n_gres; k++) {
            const struct gres_held *g = &j->nodes[i].gres[k];
            uint32_t at = 0;
            while (at < n && !(str_eq(sum[at].name, g->name) && str_eq(sum[at].type, g->type)))
                at++;
            if (at < n)
                sum[at].count += g->count;
            else if (n < ARRAY_LEN(sum))
                sum[n++] = *g;
        }
    held_gres(&(struct job_node){.gres = sum, .n_gres = n}, false, out);
}

static bool alike(const struct job_node *a, const struct job_node *b) {
    auto_str x = {0}, y = {0};
    held_gres(a, true, &x);
    held_gres(b, true, &y);
    return a->cpus == b->cpus && a->mem_mb == b->mem_mb && str_eq(str_text(&x), str_text(&y));
}

/* -d: what it has, and where. A line for each set of neighbours that have the same. Which CPUs they are is the
 * kernel's business here: their number is told. */
static void shares(const struct job *j, const char *nl, struct str *out) {
    auto_str all = {0};
    held_in_all(j, &all);
    str_addf(out, "%sJOB_GRES=%s", nl, all.n ? all.p : "(null)");
    for (uint32_t i = 0, to; i < j->n_nodes; i = to) {
        const char *names[1024];
        for (to = i; to < j->n_nodes && to - i < ARRAY_LEN(names) && alike(&j->nodes[i], &j->nodes[to]); to++)
            names[to - i] = j->nodes[to].name;
        str_addf(out, "%s%sNodes=", nl, *nl == ' ' ? "" : "  ");
        hostlist_compact(names, to - i, out);
        str_addf(out, " CPUs=%u Mem=%llu GRES=", j->nodes[i].cpus, (unsigned long long)j->nodes[i].mem_mb);
        held_gres(&j->nodes[i], true, out);
    }
}

/* 0 is any. */
static void at_least(const char *before, uint32_t n, struct str *out) {
    str_add(out, before);
    if (n)
        str_addf(out, "%u", n);
    else
        str_addc(out, '*');
}

static void sizes(const struct job_info *ji, const char *nl, bool details, struct str *out) {
    const struct job *j = ji->job;
    const struct job_spec *s = j->spec;
    const struct job_more *m = job_spec_more(s);
    str_addf(out, "%sNumNodes=", nl);
    node_count(ji, out);
    const struct job_seldom *d = job_spec_seldom(s);
    str_addf(out, " NumCPUs=%u NumTasks=%u CPUs/Task=%u ReqB:S:C:T=0:0", job_cpus(ji), job_tasks(ji), MAX(s->cpus_per_task, 1u));
    at_least(":", d->cores, out);
    at_least(":", d->threads, out);
    str_addf(out, "%sReqTRES=", nl);
    job_tres(ji, false, false, 0, out);
    str_addf(out, "%sAllocTRES=", nl);
    if (j->n_nodes)
        job_tres(ji, true, false, 0, out);
    else
        str_add(out, "(null)");
    str_add(out, nl);
    at_least("Socks/Node=", d->sockets, out);
    str_addf(out, " NtasksPerN:B:S:C=%u:0", m->tasks_per_node);
    at_least(":", d->tasks_per_socket, out);
    at_least(":", d->tasks_per_core, out);
    str_add(out, " CoreSpec=*");
    if (details && j->n_nodes)
        shares(j, nl, out);
    str_addf(out, "%sMinCPUsNode=%u %s=", nl, job_cpus_on_node(s), m->mem_cpu_mb ? "MinMemoryCPU" : "MinMemoryNode");
    size_mb_print(m->mem_cpu_mb ? m->mem_cpu_mb : s->mem_node_mb, out);
    str_add(out, " MinTmpDiskNode=");
    size_mb_print(d->tmp_mb, out);
    str_addf(out, "%sFeatures=%s DelayBoot=", nl, or_null(job_shown_features(j)));
    duration_print_long(d->delay_boot_secs, out);
    if (job_shown_prefer(j))
        str_addf(out, "%sPrefer=%s", nl, job_shown_prefer(j));
    str_addf(out, "%sOverSubscribe=%s Exclusive=", nl, oversubscribe_word(s));
    job_exclusive(s, out);
    str_addf(out, " Contiguous=%d Licenses=", m->contiguous);
    job_licenses(j, false, out);
    str_add(out, " LicensesAlloc=");
    job_licenses(j, true, out);
    str_add(out, " Network=(null)");
}

/* Only where there is something to say. */
static void named(const char *name, void (*text)(const struct job_spec *s, struct str *out), const struct job_spec *s,
                  const char *nl, struct str *out) {
    auto_str value = {0};
    text(s, &value);
    if (value.n)
        str_addf(out, "%s%s=%s", nl, name, value.p);
}

static void switches(const struct job_spec *s, const char *nl, struct str *out) {
    const struct job_seldom *d = job_spec_seldom(s);
    if (!d->switches)
        return;
    str_addf(out, "%sSwitches=%u@", nl, d->switches);
    duration_print_long(d->switches_secs, out);
}

static void cpus_per_gpu(const struct job_spec *s, struct str *out) {
    if (job_spec_seldom(s)->cpus_per_gpu)
        str_addf(out, "gres/gpu:%u", job_spec_seldom(s)->cpus_per_gpu);
}

static void mem_per_gpu(const struct job_spec *s, struct str *out) {
    if (job_spec_seldom(s)->mem_gpu_mb)
        str_addf(out, "gres/gpu:%llu", (unsigned long long)job_spec_seldom(s)->mem_gpu_mb);
}

static void mail(const struct job_spec *s, const char *nl, struct str *out) {
    const struct job_seldom *d = job_spec_seldom(s);
    if (!d->mail_type)
        return;
    str_addf(out, "%sMailUser=%s MailType=", nl, d->mail_user ? d->mail_user : or_null(s->user));
    mail_type_print(d->mail_type, out);
}

static void files(const struct job_info *ji, const char *nl, struct str *out) {
    const struct job *j = ji->job;
    const struct job_spec *s = j->spec;
    str_addf(out, "%sCommand=%s%sSubmitLine=%s%sWorkDir=%s", nl, or_null(s->command), nl, or_null(s->submit_line), nl,
             or_null(s->work_dir));
    if (job_spec_more(s)->admin_comment)
        str_addf(out, "%sAdminComment=%s", nl, job_spec_more(s)->admin_comment);
    if (s->comment)
        str_addf(out, "%sComment=%s", nl, s->comment);
    if (job_spec_seldom(s)->extra)
        str_addf(out, "%sExtra=%s", nl, job_spec_seldom(s)->extra);
    str_addf(out, "%sStdErr=", nl);
    job_std_err(j, out);
    str_addf(out, "%sStdIn=", nl);
    job_std_in(j, out);
    str_addf(out, "%sStdOut=", nl);
    job_std_out(j, out);
    switches(s, nl, out);
    named("CpusPerTres", cpus_per_gpu, s, nl, out);
    named("MemPerTres", mem_per_gpu, s, nl, out);
    named("TresPerJob", job_tres_per_job, s, nl, out);
    named("TresPerNode", job_tres_per_node, s, nl, out);
    named("TresPerTask", job_tres_per_task, s, nl, out);
    mail(s, nl, out);
    if (job_spec_more(s)->kill_invalid_dep)
        str_addf(out, "%sKillOnInvalidDependent=%s", nl, job_spec_more(s)->kill_invalid_dep == 2 ? "Yes" : "No");
}

void scontrol_job_text(const struct job_info *ji, int64_t now_unix, bool one_line, bool details, struct str *out) {
    const char *nl = RECORD_BREAK(one_line);
    head(ji, now_unix, nl, details, out);
    times(ji, now_unix, nl, out);
    place(ji, nl, out);
    sizes(ji, nl, details, out);
    files(ji, nl, out);
    str_add(out, RECORD_END(one_line));
}

/* As Slurm: of an array the rest that waits first, then its tasks from the highest id down. */
static int compare(const void *a, const void *b) {
    const struct job *x = ((const struct job_info *)a)->job, *y = ((const struct job_info *)b)->job;
    uint32_t p = x->array ? x->array->job_id : x->id, q = y->array ? y->array->job_id : y->id;
    bool x_waits = x->array && !x->array->task, y_waits = y->array && !y->array->task;
    if (p != q)
        return p < q ? -1 : 1;
    if (x_waits != y_waits)
        return x_waits ? -1 : 1;
    return (x->id < y->id) - (x->id > y->id);
}

/* The limit that is in force for a task is its array's. */
static void take_limit(struct cli *c, struct job_info *row, const struct jobs_reply *all) {
    if (!row->job->array || !row->job->array->task)
        return;
    for (uint32_t i = 0; i < all->n_jobs; i++) {
        const struct job *head = all->jobs[i].job;
        if (!head || !head->array || head->id != row->job->array->job_id)
            continue;
        struct job *j = arena_memdup(&c->arena, row->job, sizeof(*j));
        struct job_array *a = arena_memdup(&c->arena, j->array, sizeof(*a));
        a->max_running = head->array->max_running;
        j->array = a;
        row->job = j;
    }
}

static void jobs_as_json(struct scontrol *s, struct job_rows *rows, const struct jobs_reply *reply) {
    struct job_env env = {.now_unix = reply->now_unix, .cluster = reply->cluster_name};
    auto_str out = {0};
    struct json w = {.out = &out};
    json_doc_begin(&w);
    json_open(&w, "jobs", '[');
    for (size_t i = 0; i < rows->v.n; i++) {
        json_open(&w, NULL, '{');
        table_json(job_fields(), &w, &rows->v.p[i], &env);
        json_close(&w, '}');
        json_doc_flush(&w);
    }
    vec_fini(&rows->v);
    json_close(&w, ']');
    json_no_val(&w, "last_backfill", reply->now_unix);
    json_no_val(&w, "last_update", reply->now_unix);
    json_doc_end(&w, s->c, reply->cluster_name);
}

int scontrol_show_job(struct scontrol *s, const char *name) {
    struct err e = {0};
    struct jobs_reply reply = {0};
    struct job_select pick;
    struct job_name wanted;
    job_select_init(&pick, s->c);
    pick.states = ~0u;
    if (name && *name) {
        if (job_name_parse(cli_sluids(s->c, name), JOB_NAME_TASKS, &s->c->arena, &wanted, NULL)) {
            fprintf(stderr, "scontrol_print_job error: %s\n", err_sentence(E_JOB_ID));
            return 1;
        }
        job_select_names(&pick, &wanted, 1);
    }
    struct jobs_request request = {.job_ids = pick.ids, .n_job_ids = pick.n_ids, .with_ended = true, .with_steps = s->details};
    if (cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, &e)) {
        fprintf(stderr, "slurm_load_jobs error: %s\n", e.text);
        return 1;
    }
    auto_str out = {0};
    struct job_rows rows = {0};
    for (uint32_t i = 0; i < reply.n_jobs; i++)
        job_select_rows(&pick, &reply.jobs[i], false, &rows);
    if (rows.v.n)
        qsort(rows.v.p, rows.v.n, sizeof(*rows.v.p), compare);
    for (size_t i = 0; i < rows.v.n; i++)
        take_limit(s->c, &rows.v.p[i], &reply);
    if (s->json) {
        bool is_gone = !rows.v.n && pick.n_names;
        jobs_as_json(s, &rows, &reply);
        return is_gone;
    }
    for (size_t i = 0; i < rows.v.n; i++)
        scontrol_job_text(&rows.v.p[i], reply.now_unix, s->one_line, s->details, &out);
    bool is_missing = !rows.v.n && pick.n_names;
    vec_fini(&rows.v);
    if (is_missing) {
        fprintf(stderr, "Job %s not found\n", name);
        return 1;
    }
    if (!reply.n_jobs)
        str_add(&out, "No jobs in the system\n");
    cli_out(&out);
    return 0;
}
