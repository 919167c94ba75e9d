/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "spur/cli.h"
#include "spur/sacct.h"

#define FIELD(fn) static void fn(const void *row, const void *env, struct str *out)
#define IS_BATCH(row) (((const struct sacct_row *)(row))->is_batch)
#define INFO(row) (((const struct sacct_row *)(row))->ji)
#define JOB(row) (INFO(row)->job)
#define SPEC(row) (JOB(row)->spec)
#define ENV(env) ((const struct job_env *)(env))

/* Of the job's own row only. */
static void own(const void *row, const char *s, struct str *out) {
    if (!IS_BATCH(row) && s)
        str_add(out, s);
}

FIELD(id) {
    str_addf(out, "%u%s", JOB(row)->id, IS_BATCH(row) ? ".batch" : "");
}
FIELD(name) {
    str_add(out, IS_BATCH(row) ? "batch" : SPEC(row)->name ? SPEC(row)->name : "");
}
FIELD(partition) {
    if (!IS_BATCH(row))
        job_partition(JOB(row), out);
}
FIELD(account) {
    str_add(out, SPEC(row)->account ? SPEC(row)->account : "");
}

/* The script runs on the first node, with all of the job's CPUs there. */
static uint32_t cpus_of(const void *row) {
    const struct job *j = JOB(row);
    if (IS_BATCH(row))
        return j->n_nodes ? j->nodes[0].cpus : 0;
    return j->n_nodes ? j->n_cpus : 0;
}
FIELD(alloc_cpus) {
    str_addf(out, "%u", cpus_of(row));
}
FIELD(alloc_nodes) {
    str_addf(out, "%u", IS_BATCH(row) ? 1 : JOB(row)->n_nodes);
}
FIELD(n_nodes) {
    str_addf(out, "%u", IS_BATCH(row) ? 1 : job_nodes(INFO(row)));
}
FIELD(req_cpus) {
    str_addf(out, "%u", IS_BATCH(row) ? cpus_of(row) : job_tasks(INFO(row)) * MAX(SPEC(row)->cpus_per_task, 1u));
}
FIELD(req_nodes) {
    str_addf(out, "%u", IS_BATCH(row) ? 1 : MAX(SPEC(row)->min_nodes, 1u));
}
FIELD(n_tasks) {
    str_add(out, IS_BATCH(row) ? "1" : "");
}

static const char *batch_state(const struct job *j) {
    int status = (int)j->wait_status;
    if (!job_is_over(j) && !j->completing)
        return job_state_name(j->state);
    if (WIFSIGNALED(status) || j->state == JOB_CANCELLED || j->state == JOB_NODE_FAIL || j->state == JOB_TIMEOUT)
        return job_state_name(JOB_CANCELLED);
    return job_state_name(WEXITSTATUS(status) ? JOB_FAILED : JOB_COMPLETED);
}
FIELD(state) {
    const struct job *j = JOB(row);
    if (IS_BATCH(row)) {
        str_add(out, batch_state(j));
        return;
    }
    str_add(out, job_state_name(j->state));
    if (j->state == JOB_CANCELLED && j->end_uid)
        str_addf(out, " by %u", j->end_uid - 1);
}
FIELD(exit_code) {
    const struct job *j = JOB(row);
    bool is_ended_from_outside = j->state == JOB_CANCELLED || j->state == JOB_TIMEOUT;
    job_exit(!IS_BATCH(row) && is_ended_from_outside ? 0 : j->wait_status, out);
}
FIELD(derived_exit_code) {
    own(row, "0:0", out); /* of steps, of which there are none yet */
}

FIELD(elapsed) {
    duration_print_long(job_run_secs(JOB(row), ENV(env)->now_unix), out);
}
FIELD(elapsed_raw) {
    str_addf(out, "%lld", (long long)job_run_secs(JOB(row), ENV(env)->now_unix));
}
FIELD(submit) {
    cli_time((IS_BATCH(row) ? JOB(row)->start_ms : JOB(row)->submit_ms) / 1000, "Unknown", out);
}
FIELD(eligible) {
    cli_time(IS_BATCH(row) ? JOB(row)->start_ms / 1000 : JOB(row)->eligible_unix, "Unknown", out);
}
FIELD(start) {
    cli_time(JOB(row)->start_ms / 1000, job_is_over(JOB(row)) ? "None" : "Unknown", out);
}
FIELD(end) {
    cli_time(JOB(row)->end_ms / 1000, "Unknown", out);
}
FIELD(planned) {
    const struct job *j = JOB(row);
    int64_t from = j->eligible_unix ? j->eligible_unix : j->submit_ms / 1000;
    int64_t to = j->start_ms ? j->start_ms / 1000 : j->end_ms ? j->end_ms / 1000 : ENV(env)->now_unix;
    if (!IS_BATCH(row))
        duration_print_long(MAX(to - from, (int64_t)0), out);
}
FIELD(time_limit) {
    uint32_t minutes = job_limit_min(INFO(row));
    if (IS_BATCH(row))
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
    if (IS_BATCH(row))
        return;
    if (minutes == TIME_LIMIT_NONE)
        str_add(out, "UNLIMITED");
    else if (minutes)
        str_addf(out, "%u", minutes);
    else
        str_add(out, "Partition_Limit");
}
FIELD(suspended) {
    str_add(out, "00:00:00");
}

FIELD(node_list) {
    const struct job *j = JOB(row);
    if (!j->n_nodes)
        str_add(out, "None assigned");
    else if (IS_BATCH(row))
        str_add(out, j->nodes[0].name ? j->nodes[0].name : "");
    else
        job_node_list(j, out);
}
FIELD(req_mem) {
    uint64_t mb = SPEC(row)->mem_node_mb * job_nodes(INFO(row));
    if (!mb)
        mb = job_alloc_mem_mb(JOB(row));
    if (!IS_BATCH(row))
        amount_print(mb, 'M', ENV(env)->unit, out);
}
FIELD(req_tres) {
    if (!IS_BATCH(row))
        job_tres(INFO(row), false, true, ENV(env)->unit, out);
}
FIELD(alloc_tres) {
    const struct job *j = JOB(row);
    if (!IS_BATCH(row)) {
        job_tres(INFO(row), true, true, ENV(env)->unit, out);
        return;
    }
    if (!j->n_nodes)
        return;
    str_addf(out, "cpu=%u,", j->nodes[0].cpus);
    if (j->nodes[0].mem_mb) {
        str_add(out, "mem=");
        amount_print(j->nodes[0].mem_mb, 'M', ENV(env)->unit, out);
        str_addc(out, ',');
    }
    str_add(out, "node=1");
}
FIELD(user) {
    own(row, SPEC(row)->user, out);
}
FIELD(group) {
    own(row, SPEC(row)->group, out);
}
FIELD(uid) {
    if (!IS_BATCH(row))
        str_addf(out, "%u", SPEC(row)->uid);
}
FIELD(gid) {
    if (!IS_BATCH(row))
        str_addf(out, "%u", SPEC(row)->gid);
}
FIELD(qos) {
    own(row, SPEC(row)->qos, out);
}
FIELD(comment) {
    own(row, SPEC(row)->comment, out);
}
FIELD(reason) {
    if (!IS_BATCH(row))
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
}
FIELD(std_out) {
    own(row, SPEC(row)->std_out ? SPEC(row)->std_out : "slurm-%j.out", out);
}
FIELD(std_err) {
    own(row, SPEC(row)->std_err, out);
}
FIELD(std_in) {
    own(row, SPEC(row)->std_in ? SPEC(row)->std_in : "/dev/null", out);
}
FIELD(restarts) {
    if (!IS_BATCH(row))
        str_addf(out, "%u", JOB(row)->restarts);
}
FIELD(sluid) {
    str_add(out, JOB(row)->sluid ? JOB(row)->sluid : "");
}

/* ---- usage, which is the batch script's ---- */

FIELD(max_rss) {
    uint64_t kb = JOB(row)->max_rss_kb;
    if (IS_BATCH(row) && JOB(row)->end_ms && kb)
        amount_print(kb, 'K', ENV(env)->unit, out);
}
FIELD(max_rss_node) {
    if (IS_BATCH(row) && JOB(row)->max_rss_kb && JOB(row)->n_nodes)
        str_add(out, JOB(row)->nodes[0].name);
}
FIELD(max_rss_task) {
    if (IS_BATCH(row) && JOB(row)->max_rss_kb)
        str_add(out, "0");
}
/* "MM:SS.mmm", with hours "HH:MM:SS", with days "D-HH:MM:SS". */
static void cpu_time(uint64_t us, const void *row, struct str *out) {
    uint64_t secs = us / 1000000;
    if (secs >= 3600 || !JOB(row)->end_ms)
        duration_print_long((int64_t)secs, out);
    else
        str_addf(out, "%02u:%02u.%03u", (unsigned)(secs / 60), (unsigned)(secs % 60), (unsigned)(us / 1000 % 1000));
}
FIELD(total_cpu) {
    cpu_time(JOB(row)->user_cpu_us + JOB(row)->sys_cpu_us, row, out);
}
FIELD(user_cpu) {
    cpu_time(JOB(row)->user_cpu_us, row, out);
}
FIELD(system_cpu) {
    cpu_time(JOB(row)->sys_cpu_us, row, out);
}
FIELD(ave_cpu) {
    if (IS_BATCH(row) && JOB(row)->end_ms)
        duration_print_long((int64_t)((JOB(row)->user_cpu_us + JOB(row)->sys_cpu_us) / 1000000), out);
}
FIELD(cpu_time_alloc) {
    duration_print_long(job_run_secs(JOB(row), ENV(env)->now_unix) * cpus_of(row), out);
}
FIELD(cpu_time_raw) {
    str_addf(out, "%lld", (long long)(job_run_secs(JOB(row), ENV(env)->now_unix) * cpus_of(row)));
}

#define COL(head, width, fn) {0, #head, #head, fn, NULL, width}
static const struct table_field rows[] = {
    COL(Account, 10, account), COL(AllocCPUS, 10, alloc_cpus), COL(AllocNodes, 10, alloc_nodes),
    COL(AllocTRES, 10, alloc_tres), COL(AveCPU, 10, ave_cpu), COL(AveRSS, 10, max_rss), COL(Cluster, 10, cluster),
    COL(Comment, 14, comment), COL(CPUTime, 10, cpu_time_alloc), COL(CPUTimeRAW, 10, cpu_time_raw),
    COL(DerivedExitCode, 15, derived_exit_code), COL(Elapsed, 10, elapsed), COL(ElapsedRaw, 10, elapsed_raw),
    COL(Eligible, 19, eligible), COL(End, 19, end), COL(ExitCode, 8, exit_code), COL(GID, 6, gid),
    COL(Group, 9, group), COL(JobID, -12, id), COL(JobIDRaw, -12, id), COL(JobName, 10, name),
    COL(MaxRSS, 10, max_rss), COL(MaxRSSNode, 10, max_rss_node), COL(MaxRSSTask, 10, max_rss_task),
    COL(MinCPU, 10, ave_cpu), COL(MinCPUNode, 10, max_rss_node), COL(MinCPUTask, 10, max_rss_task),
    COL(NCPUS, 10, alloc_cpus), COL(NNodes, 8, n_nodes), COL(NodeList, 15, node_list), COL(NTasks, 8, n_tasks),
    COL(Partition, 10, partition), COL(Planned, 10, planned), COL(QOS, 10, qos), COL(Reason, 22, reason),
    COL(ReqCPUS, 8, req_cpus), COL(ReqMem, 10, req_mem), COL(ReqNodes, 8, req_nodes), COL(ReqTRES, 10, req_tres),
    COL(Restarts, 8, restarts), COL(SLUID, 14, sluid), COL(Start, 19, start), COL(State, 10, state),
    COL(StdErr, 20, std_err), COL(StdIn, 20, std_in), COL(StdOut, 20, std_out), COL(Submit, 19, submit),
    COL(SubmitLine, 20, submit_line), COL(Suspended, 10, suspended), COL(SystemCPU, 10, system_cpu),
    COL(Timelimit, 10, time_limit), COL(TimelimitRaw, 12, time_limit_raw), COL(TotalCPU, 10, total_cpu),
    COL(UID, 6, uid), COL(User, 9, user), COL(UserCPU, 10, user_cpu), COL(WorkDir, 20, work_dir),
};

const struct table_fields *sacct_fields(void) {
    static const struct table_fields f = {rows, ARRAY_LEN(rows)};
    return &f;
}

static const char later[] =
    "AdminComment,AssocID,AveCPUFreq,AveDiskRead,AveDiskWrite,AvePages,AveVMSize,BlockID,Constraints,ConsumedEnergy,"
    "ConsumedEnergyRaw,Container,DBIndex,Exclusive,Extra,FailedNode,Flags,Layout,Licenses,MaxDiskRead,MaxDiskReadNode,"
    "MaxDiskReadTask,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,MaxPages,MaxPagesNode,MaxPagesTask,MaxVMSize,"
    "MaxVMSizeNode,MaxVMSizeTask,McsLabel,OriginalSLUID,OverSubscribe,PlannedCPU,PlannedCPURAW,Priority,QOSRAW,QOSREQ,"
    "ReqCPUFreq,ReqCPUFreqGov,ReqCPUFreqMax,ReqCPUFreqMin,Reservation,ReservationId,ReqReservation,SegmentSize,"
    "SystemComment,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,TRESUsageInMin,"
    "TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutAve,TRESUsageOutMax,TRESUsageOutMaxNode,"
    "TRESUsageOutMaxTask,TRESUsageOutMin,TRESUsageOutMinNode,TRESUsageOutMinTask,TRESUsageOutTot,WCKey,WCKeyID";

bool sacct_field_is_later(const char *name, size_t n) {
    for (const char *at = later; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && strncasecmp(at, name, n) == 0)
            return true;
    return false;
}
