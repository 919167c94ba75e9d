/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "spur/cli.h"
#include "spur/sacct.h"
#include "spur/step_facts.h"

#define FIELD(fn) static void fn(const void *row, const void *env, struct str *out)
#define STEP(row) (((const struct sacct_row *)(row))->step)
#define IS_STEP(row) (STEP(row) != NULL)
#define INFO(row) (((const struct sacct_row *)(row))->ji)
#define JOB(row) (INFO(row)->job)
#define SPEC(row) (JOB(row)->spec)
#define ENV(env) ((const struct job_env *)(env))

/* Of the job's own row only. */
static void own(const void *row, const char *s, struct str *out) {
    if (!IS_STEP(row) && s)
        str_add(out, s);
}

FIELD(id) {
    if (IS_STEP(row))
        step_id_text(JOB(row), STEP(row), out);
    else
        job_id_text(JOB(row), out);
}
FIELD(id_raw) {
    str_addf(out, "%u", JOB(row)->id);
    if (!IS_STEP(row))
        return;
    str_addc(out, '.');
    step_print_id(STEP(row)->id, out);
}
FIELD(name) {
    const char *name = IS_STEP(row) ? STEP(row)->spec ? STEP(row)->spec->name : NULL : SPEC(row)->name;
    str_add(out, name ? name : "");
}
FIELD(partition) {
    if (!IS_STEP(row))
        job_partition(JOB(row), out);
}
FIELD(account) {
    str_add(out, SPEC(row)->account ? SPEC(row)->account : "");
}

static uint32_t cpus_of(const void *row) {
    const struct job *j = JOB(row);
    if (IS_STEP(row))
        return STEP(row)->n_cpus;
    return j->n_nodes ? j->n_cpus : 0;
}
static uint32_t nodes_of(const void *row) {
    return IS_STEP(row) ? STEP(row)->n_nodes : JOB(row)->n_nodes;
}
static int64_t secs_of(const void *row, const void *env) {
    int64_t now = ENV(env)->now_unix;
    return IS_STEP(row) ? step_run_secs(JOB(row), STEP(row), now) : job_run_secs(JOB(row), now);
}
FIELD(alloc_cpus) {
    str_addf(out, "%u", cpus_of(row));
}
FIELD(alloc_nodes) {
    str_addf(out, "%u", nodes_of(row));
}
FIELD(n_nodes) {
    str_addf(out, "%u", IS_STEP(row) ? nodes_of(row) : job_nodes(INFO(row)));
}
FIELD(req_cpus) {
    str_addf(out, "%u", IS_STEP(row) ? cpus_of(row) : job_tasks(INFO(row)) * MAX(SPEC(row)->cpus_per_task, 1u));
}
FIELD(req_nodes) {
    str_addf(out, "%u", IS_STEP(row) ? nodes_of(row) : MAX(SPEC(row)->min_nodes, 1u));
}
FIELD(n_tasks) {
    if (IS_STEP(row))
        str_addf(out, "%u", STEP(row)->spec ? MAX(STEP(row)->spec->n_tasks, 1u) : 1);
}

FIELD(state) {
    const struct job *j = JOB(row);
    uint32_t state = IS_STEP(row) ? step_shown_state(STEP(row)) : j->state, uid = IS_STEP(row) ? STEP(row)->end_uid : j->end_uid;
    str_add(out, job_state_name(state));
    if (state == JOB_CANCELLED && uid)
        str_addf(out, " by %u", uid - 1);
}
FIELD(exit_code) {
    const struct job *j = JOB(row);
    bool is_ended_from_outside = j->state == JOB_CANCELLED || j->state == JOB_TIMEOUT || j->state == JOB_REQUEUED;
    if (IS_STEP(row))
        job_exit(STEP(row)->wait_status, out);
    else if (j->state == JOB_NODE_FAIL)
        str_add(out, "1:0");
    else
        job_exit(is_ended_from_outside ? 0 : j->wait_status, out);
}
/* The highest exit code of its steps; a signal where none has one. */
FIELD(derived_exit_code) {
    const struct job_info *ji = INFO(row);
    uint32_t worst = 0;
    if (IS_STEP(row))
        return;
    for (uint32_t i = 0; i < ji->n_steps; i++) {
        uint32_t status = ji->steps[i].wait_status;
        if (WEXITSTATUS((int)status) > WEXITSTATUS((int)worst) || !worst)
            worst = status;
    }
    job_exit(worst, out);
}

FIELD(elapsed) {
    duration_print_long(secs_of(row, env), out);
}
FIELD(elapsed_raw) {
    str_addf(out, "%lld", (long long)secs_of(row, env));
}
FIELD(submit) {
    cli_time((IS_STEP(row) ? STEP(row)->start_ms : JOB(row)->submit_ms) / 1000, "Unknown", out);
}
FIELD(eligible) {
    cli_time(IS_STEP(row) ? STEP(row)->start_ms / 1000 : job_eligible_unix(JOB(row)), "Unknown", out);
}
FIELD(start) {
    bool never = job_is_over(JOB(row)) && !JOB(row)->n_nodes; /* cancelled while it waited */
    int64_t ms = IS_STEP(row) ? STEP(row)->start_ms : never ? 0 : JOB(row)->start_ms;
    cli_time(ms / 1000, job_is_over(JOB(row)) ? "None" : "Unknown", out);
}
FIELD(end) {
    cli_time((IS_STEP(row) ? STEP(row)->end_ms : JOB(row)->end_ms) / 1000, "Unknown", out);
}
FIELD(planned) {
    const struct job *j = JOB(row);
    int64_t from = j->eligible_unix ? job_eligible_unix(j) : j->submit_ms / 1000;
    int64_t to = j->start_ms ? j->start_ms / 1000 : j->end_ms ? j->end_ms / 1000 : ENV(env)->now_unix;
    if (!IS_STEP(row))
        duration_print_long(MAX(to - from, (int64_t)0), out);
}
FIELD(time_limit) {
    uint32_t minutes = job_limit_min(INFO(row));
    if (IS_STEP(row))
        return;
    if (minutes == TIME_LIMIT_NONE)
        str_add(out, "UNLIMITED");
    else if (minutes)
        duration_print_long((int64_t)minutes * 60, out);
    else
        str_add(out, "Partition_Limit");
}
FIELD(time_limit_raw) {
    uint32_t minutes = job_limit_min(INFO(row));
    if (IS_STEP(row))
        return;
    if (minutes == TIME_LIMIT_NONE)
        str_add(out, "UNLIMITED");
    else if (minutes)
        str_addf(out, "%u", minutes);
    else
        str_add(out, "Partition_Limit");
}
FIELD(suspended) {
    const struct job_rare *r = job_rare_of(JOB(row));
    int64_t ms = r->suspended_total_ms, now_ms = ENV(env)->now_unix * 1000;
    if (r->suspended_ms && now_ms > r->suspended_ms)
        ms += now_ms - r->suspended_ms;
    duration_print_long(ms / 1000, out);
}

FIELD(node_list) {
    if (!nodes_of(row))
        str_add(out, "None assigned");
    else if (IS_STEP(row))
        step_node_list(STEP(row), out);
    else
        job_node_list(JOB(row), out);
}
FIELD(req_mem) {
    uint64_t mb = job_mem_mb(INFO(row));
    if (!mb)
        mb = job_alloc_mem_mb(JOB(row));
    if (!IS_STEP(row))
        amount_print(mb, 'M', ENV(env)->unit, out);
}
FIELD(req_tres) {
    if (!IS_STEP(row))
        job_tres(INFO(row), false, true, ENV(env)->unit, out);
}
FIELD(alloc_tres) {
    if (IS_STEP(row))
        step_tres(STEP(row), ENV(env)->unit, out);
    else
        job_tres(INFO(row), true, true, ENV(env)->unit, out);
}
FIELD(user) {
    own(row, SPEC(row)->user, out);
}
FIELD(group) {
    own(row, SPEC(row)->group, out);
}
FIELD(uid) {
    if (!IS_STEP(row))
        str_addf(out, "%u", SPEC(row)->uid);
}
FIELD(gid) {
    if (!IS_STEP(row))
        str_addf(out, "%u", SPEC(row)->gid);
}
FIELD(qos) {
    own(row, SPEC(row)->qos, out);
}
FIELD(admin_comment) {
    own(row, job_spec_more(SPEC(row))->admin_comment, out);
}
FIELD(comment) {
    own(row, SPEC(row)->comment, out);
}
FIELD(reason) {
    if (!IS_STEP(row) && !job_is_pending(JOB(row)) && JOB(row)->reason == REASON_DEP_NEVER)
        str_add(out, "None"); /* as recorded: the history has no such reason */
    else if (!IS_STEP(row))
        job_reason(INFO(row), out);
}
FIELD(cluster) {
    str_add(out, ENV(env)->cluster ? ENV(env)->cluster : "");
}
FIELD(work_dir) {
    own(row, SPEC(row)->work_dir, out);
}
FIELD(submit_line) {
    own(row, SPEC(row)->submit_line, out);
    if (IS_STEP(row) && STEP(row)->spec && STEP(row)->spec->submit_line)
        str_add(out, STEP(row)->spec->submit_line);
}
FIELD(std_out) {
    own(row, job_output_pattern(JOB(row)), out);
}
FIELD(std_err) {
    own(row, SPEC(row)->std_err, out);
}
FIELD(std_in) {
    own(row, SPEC(row)->std_in ? SPEC(row)->std_in : "/dev/null", out);
}
FIELD(constraints) {
    own(row, job_shown_features(JOB(row)), out);
}
FIELD(licenses) {
    own(row, job_spec_more(SPEC(row))->licenses_text, out);
}
FIELD(priority) {
    if (!IS_STEP(row))
        str_addf(out, "%llu", (unsigned long long)INFO(row)->priority);
}
FIELD(exclusive) {
    if (!IS_STEP(row))
        job_exclusive(SPEC(row), out);
}
FIELD(restarts) {
    if (!IS_STEP(row))
        str_addf(out, "%u", JOB(row)->restarts);
}
FIELD(sluid) {
    str_add(out, JOB(row)->sluid ? JOB(row)->sluid : "");
}

/* ---- usage: a step's own, a job's the sum of its steps ---- */

FIELD(max_rss) {
    if (IS_STEP(row) && STEP(row)->end_ms && STEP(row)->max_rss_kb)
        amount_print(STEP(row)->max_rss_kb, 'K', ENV(env)->unit, out);
}
FIELD(max_rss_node) {
    if (IS_STEP(row) && STEP(row)->max_rss_kb && STEP(row)->n_nodes)
        str_add(out, STEP(row)->nodes[0].name);
}
FIELD(max_rss_task) {
    if (IS_STEP(row) && STEP(row)->max_rss_kb)
        str_add(out, "0");
}
static uint64_t user_us(const void *row) {
    const struct job_info *ji = INFO(row);
    uint64_t us = IS_STEP(row) ? STEP(row)->user_cpu_us : ji->job->user_cpu_us;
    for (uint32_t i = 0; !IS_STEP(row) && i < ji->n_steps; i++)
        us += ji->steps[i].user_cpu_us;
    return us;
}
static uint64_t sys_us(const void *row) {
    const struct job_info *ji = INFO(row);
    uint64_t us = IS_STEP(row) ? STEP(row)->sys_cpu_us : ji->job->sys_cpu_us;
    for (uint32_t i = 0; !IS_STEP(row) && i < ji->n_steps; i++)
        us += ji->steps[i].sys_cpu_us;
    return us;
}
/* "MM:SS.mmm", with hours "HH:MM:SS", with days "D-HH:MM:SS". */
static void cpu_time(uint64_t us, const void *row, struct str *out) {
    uint64_t secs = us / 1000000;
    if (secs >= 3600 || !(IS_STEP(row) ? STEP(row)->end_ms : JOB(row)->end_ms))
        duration_print_long((int64_t)secs, out);
    else
        str_addf(out, "%02u:%02u.%03u", (unsigned)(secs / 60), (unsigned)(secs % 60), (unsigned)(us / 1000 % 1000));
}
FIELD(total_cpu) {
    cpu_time(user_us(row) + sys_us(row), row, out);
}
FIELD(user_cpu) {
    cpu_time(user_us(row), row, out);
}
FIELD(system_cpu) {
    cpu_time(sys_us(row), row, out);
}
FIELD(ave_cpu) {
    if (IS_STEP(row) && STEP(row)->end_ms)
        duration_print_long((int64_t)((user_us(row) + sys_us(row)) / 1000000), out);
}
FIELD(cpu_time_alloc) {
    duration_print_long(secs_of(row, env) * cpus_of(row), out);
}
FIELD(cpu_time_raw) {
    str_addf(out, "%lld", (long long)(secs_of(row, env) * cpus_of(row)));
}

/* What no job here can have yet, as for one that didn't ask for it. */
FIELD(nothing) {
}
FIELD(over_subscribe) {
    if (!IS_STEP(row))
        str_add(out, oversubscribe_word(SPEC(row)));
}
static int64_t planned_cpu_secs(const void *row, const void *env) {
    const struct job *j = JOB(row);
    int64_t from = j->eligible_unix ? job_eligible_unix(j) : j->submit_ms / 1000;
    int64_t to = j->start_ms ? j->start_ms / 1000 : j->end_ms ? j->end_ms / 1000 : ENV(env)->now_unix;
    return MAX(to - from, (int64_t)0) * job_cpus(INFO(row));
}
FIELD(planned_cpu) {
    if (!IS_STEP(row))
        duration_print_long(planned_cpu_secs(row, env), out);
}
FIELD(planned_cpu_raw) {
    if (!IS_STEP(row))
        str_addf(out, "%lld", (long long)planned_cpu_secs(row, env));
}

#define COL(head, width, fn) {0, #head, #head, fn, NULL, width}
static const struct table_field rows[] = {
    COL(Account, 10, account), COL(AdminComment, 14, admin_comment), COL(AllocCPUS, 10, alloc_cpus), COL(AllocNodes, 10, alloc_nodes),
    COL(AllocTRES, 10, alloc_tres), COL(AveCPU, 10, ave_cpu), COL(AveRSS, 10, max_rss), COL(BlockID, 16, nothing), COL(Cluster, 10, cluster),
    COL(Comment, 14, comment), COL(Constraints, 15, constraints), COL(Container, 19, nothing), COL(CPUTime, 10, cpu_time_alloc), COL(CPUTimeRAW, 10, cpu_time_raw),
    COL(DerivedExitCode, 15, derived_exit_code), COL(Elapsed, 10, elapsed), COL(ElapsedRaw, 10, elapsed_raw),
    COL(Eligible, 19, eligible), COL(End, 19, end), COL(Exclusive, 10, exclusive), COL(ExitCode, 8, exit_code), COL(Extra, 19, nothing), COL(GID, 6, gid),
    COL(Group, 9, group), COL(JobID, -12, id), COL(JobIDRaw, -12, id_raw), COL(JobName, 10, name),
    COL(Licenses, 10, licenses), COL(MaxRSS, 10, max_rss), COL(MaxRSSNode, 10, max_rss_node), COL(MaxRSSTask, 10, max_rss_task),
    COL(McsLabel, 20, nothing), COL(MinCPU, 10, ave_cpu), COL(MinCPUNode, 10, max_rss_node), COL(MinCPUTask, 10, max_rss_task),
    COL(NCPUS, 10, alloc_cpus), COL(NNodes, 8, n_nodes), COL(NodeList, 15, node_list), COL(NTasks, 8, n_tasks),
    COL(OverSubscribe, 13, over_subscribe), COL(Partition, 10, partition), COL(Planned, 10, planned),
    COL(PlannedCPU, 10, planned_cpu), COL(PlannedCPURAW, 13, planned_cpu_raw), COL(Priority, 10, priority), COL(QOS, 10, qos), COL(QOSREQ, 10, qos), COL(Reason, 22, reason),
    COL(ReqCPUS, 8, req_cpus), COL(ReqMem, 10, req_mem), COL(ReqNodes, 8, req_nodes), COL(ReqReservation, 20, nothing), COL(ReqTRES, 10, req_tres), COL(Reservation, 20, nothing), COL(ReservationId, 13, nothing),
    COL(Restarts, 8, restarts), COL(SLUID, 14, sluid), COL(Start, 19, start), COL(State, 10, state),
    COL(StdErr, 20, std_err), COL(StdIn, 20, std_in), COL(StdOut, 20, std_out), COL(Submit, 19, submit),
    COL(SubmitLine, 20, submit_line), COL(Suspended, 10, suspended), COL(SystemComment, 20, nothing), COL(SystemCPU, 10, system_cpu),
    COL(Timelimit, 10, time_limit), COL(TimelimitRaw, 12, time_limit_raw), COL(TotalCPU, 10, total_cpu),
    COL(UID, 6, uid), COL(User, 9, user), COL(UserCPU, 10, user_cpu), COL(WCKey, 10, nothing), COL(WorkDir, 20, work_dir),
};

const struct table_fields *sacct_fields(void) {
    static const struct table_fields f = {rows, ARRAY_LEN(rows)};
    return &f;
}

static const char later[] =
    "AssocID,AveCPUFreq,AveDiskRead,AveDiskWrite,AvePages,AveVMSize,ConsumedEnergy,"
    "ConsumedEnergyRaw,DBIndex,FailedNode,Flags,Layout,MaxDiskRead,MaxDiskReadNode,"
    "MaxDiskReadTask,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,MaxPages,MaxPagesNode,MaxPagesTask,MaxVMSize,"
    "MaxVMSizeNode,MaxVMSizeTask,OriginalSLUID,QOSRAW,"
    "ReqCPUFreq,ReqCPUFreqGov,ReqCPUFreqMax,ReqCPUFreqMin,SegmentSize,"
    "TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,TRESUsageInMin,"
    "TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutAve,TRESUsageOutMax,TRESUsageOutMaxNode,"
    "TRESUsageOutMaxTask,TRESUsageOutMin,TRESUsageOutMinNode,TRESUsageOutMinTask,TRESUsageOutTot,WCKeyID";

bool sacct_field_is_later(const char *name, size_t n) {
    for (const char *at = later; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && strncasecmp(at, name, n) == 0)
            return true;
    return false;
}
