/* SPDX-License-Identifier: Apache-2.0
 *
 * A field without a function has one value for every job because what could change it isn't there yet; its value is
 * what Slurm prints for a job that didn't ask for it.
 */
#include "spur/job_fields.h"

#include <string.h>

#include "base/mem.h"
#include "spur/cli.h"
#include "spur/job_facts.h"

#define FIELD(fn) static void fn(const void *row, const void *env, struct str *out)
#define INFO(row) ((const struct job_info *)(row))
#define JOB(row) (INFO(row)->job)
#define SPEC(row) (JOB(row)->spec)
#define ENV(env) ((const struct job_env *)(env))

static void or_null(const char *s, struct str *out) {
    str_add(out, s ? s : "(null)");
}

FIELD(id) {
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
FIELD(over_subscribe) {
    str_add(out, job_spec_more(SPEC(row))->oversubscribe ? "YES" : "NO");
}
FIELD(features) {
    or_null(job_spec_more(SPEC(row))->features, out);
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
    cli_time(JOB(row)->eligible_unix, "N/A", out);
}
FIELD(gid) {
    str_addf(out, "%u", SPEC(row)->gid);
}
FIELD(group) {
    if (SPEC(row)->group)
        str_add(out, SPEC(row)->group);
    else
        gid(row, env, out);
}
FIELD(uid) {
    str_addf(out, "%u", SPEC(row)->uid);
}
FIELD(user) {
    if (SPEC(row)->user)
        str_add(out, SPEC(row)->user);
    else
        uid(row, env, out);
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
    str_add(out, job_output_pattern(JOB(row)));
}
FIELD(std_err) {
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

#define CMP(x, y) (((x) > (y)) - ((x) < (y)))
static uint32_t task(const void *row) {
    return JOB(row)->array ? JOB(row)->array->task : 0;
}
static int by_id(const void *a, const void *b) {
    int c = CMP(JOB(a)->id, JOB(b)->id);
    return c ? c : CMP(task(a), task(b));
}
static int by_partition(const void *a, const void *b) {
    const char *x = JOB(a)->partition ? JOB(a)->partition : SPEC(a)->partition;
    const char *y = JOB(b)->partition ? JOB(b)->partition : SPEC(b)->partition;
    return strcmp(x ? x : "", y ? y : "");
}
/* By name: CA CD CG F PD R, as Slurm sorts them. */
static int by_state(const void *a, const void *b) {
    return strcmp(job_shown_state(JOB(a)), job_shown_state(JOB(b)));
}
static int by_name(const void *a, const void *b) {
    return strcmp(SPEC(a)->name ? SPEC(a)->name : "", SPEC(b)->name ? SPEC(b)->name : "");
}
static int by_user(const void *a, const void *b) {
    return strcmp(SPEC(a)->user ? SPEC(a)->user : "", SPEC(b)->user ? SPEC(b)->user : "");
}
static int by_priority(const void *a, const void *b) {
    return CMP(INFO(a)->priority, INFO(b)->priority);
}
static int by_nodes(const void *a, const void *b) {
    return CMP(job_nodes(INFO(a)), job_nodes(INFO(b)));
}
static int by_cpus(const void *a, const void *b) {
    return CMP(job_cpus(INFO(a)), job_cpus(INFO(b)));
}
static int by_uid(const void *a, const void *b) {
    return CMP(SPEC(a)->uid, SPEC(b)->uid);
}
static int by_limit(const void *a, const void *b) {
    return CMP(job_limit_min(INFO(a)), job_limit_min(INFO(b)));
}
/* What isn't known comes last. */
static int by_time(int64_t a, int64_t b) {
    return CMP(a ? a : INT64_MAX, b ? b : INT64_MAX);
}
static int by_start(const void *a, const void *b) {
    return by_time(job_start_unix(INFO(a)), job_start_unix(INFO(b)));
}
static int by_end(const void *a, const void *b) {
    return by_time(job_end_unix(INFO(a)), job_end_unix(INFO(b)));
}
static int by_submit(const void *a, const void *b) {
    return CMP(JOB(a)->submit_ms, JOB(b)->submit_ms);
}
static int by_memory(const void *a, const void *b) {
    return CMP(SPEC(a)->mem_node_mb, SPEC(b)->mem_node_mb);
}
/* All that run are compared as of one moment, so the start decides. */
static int by_used(const void *a, const void *b) {
    const int64_t now = INT64_MAX / 2000;
    return CMP(job_run_secs(JOB(a), now), job_run_secs(JOB(b), now));
}
static int by_nice(const void *a, const void *b) {
    return CMP(JOB(a)->nice, JOB(b)->nice);
}

static const struct table_field rows[] = {
    {'a', "account", "ACCOUNT", account},
    {0, "accruetime", "ACCRUE_TIME", eligible_time},
    {0, "admin_comment", "ADMIN_COMMENT", .fixed = "(null)"},
    {'F', "arrayjobid", "ARRAY_JOB_ID", array_job_id, .compare = by_id},
    {'K', "arraytaskid", "ARRAY_TASK_ID", array_task_id},
    {0, "associd", "ASSOC_ID", .fixed = "0"},
    {0, "batchflag", "BATCH_FLAG", batch_flag},
    {'B', "batchhost", "EXEC_HOST", batch_host},
    {0, "boardspernode", "BOARDS_PER_NODE", .fixed = "0"},
    {0, "burstbuffer", "BURST_BUFFER", .fixed = "(null)"},
    {0, "burstbufferstate", "BURST_BUFFER_STATE", .fixed = "(null)"},
    {0, "cluster", "CLUSTER", cluster},
    {0, "clusterfeature", "CLUSTER_FEATURES", .fixed = "(null)"},
    {'o', "command", "COMMAND", command},
    {'k', "comment", "COMMENT", comment},
    {0, "container", "CONTAINER", .fixed = "(null)"},
    {0, "containerid", "CONTAINERID", .fixed = "(null)"},
    {'O', "contiguous", "CONTIGUOUS", .fixed = "0"},
    {'I', "cores", "CORES_PER_SOCKET", .fixed = "*"},
    {'X', "corespec", "CORE_SPEC", .fixed = "N/A"},
    {0, "cpus-per-task", "CPUS_PER_TASK", cpus_per_task},
    {0, "cpus-per-tres", "CPUS_PER_TRES", .fixed = "N/A"},
    {0, "deadline", "DEADLINE", deadline},
    {0, "delayboot", "DELAY_BOOT", .fixed = "0:00"},
    {'E', "dependency", "DEPENDENCY", dependency},
    {0, "derivedec", "DERIVED_EC", .fixed = "0:0"},
    {0, "eligibletime", "ELIGIBLE_TIME", eligible_time},
    {'e', "endtime", "END_TIME", end_time, .compare = by_end},
    {0, "exclusive", "EXCLUSIVE", exclusive},
    {'x', "excnodes", "EXC_NODES", exc_nodes},
    {0, "exit_code", "EXIT_CODE", exit_code},
    {'f', "feature", "FEATURES", features},
    {0, "gres", "TRES_PER_NODE", tres_per_node},
    {'G', "groupid", "GROUP", gid},
    {'g', "groupname", "GROUP", group},
    {0, "hetjobid", "HET_JOB_ID", .fixed = "N/A"},
    {0, "hetjobidset", "HET_JOB_ID_SET", .fixed = "N/A"},
    {0, "hetjoboffset", "HET_JOB_OFFSET", .fixed = "N/A"},
    {'i', "jobarrayid", "JOBID", id, .compare = by_id},
    {'A', "jobid", "JOBID", raw_id, .compare = by_id},
    {0, "lastschedeval", "LAST_SCHED_EVAL", eligible_time},
    {'w', "wckey", "WCKEY", .fixed = "(null)"},
    {'W', "licenses", "LICENSES", licenses},
    {0, "licensesalloc", "LICENSES_ALLOC", licenses_alloc},
    {0, "maxcpus", "MAX_CPUS", cpus},
    {0, "maxnodes", "MAX_NODES", max_nodes},
    {0, "mcslabel", "MCSLABEL", .fixed = "(null)"},
    {0, "mem-per-tres", "MEM_PER_TRES", .fixed = "N/A"},
    {'c', "mincpus", "MIN_CPUS", min_cpus},
    {'m', "minmemory", "MIN_MEMORY", min_memory, .compare = by_memory},
    {0, "mintime", "TIME_MIN", time_min},
    {'d', "mintmpdisk", "MIN_TMP_DISK", .fixed = "0"},
    {'j', "name", "NAME", name, .compare = by_name},
    {0, "network", "NETWORK", .fixed = "(null)"},
    {'y', "nice", "NICE", nice, .compare = by_nice},
    {'N', "nodelist", "NODELIST", node_list},
    {0, "ntperboard", "NTASKS_PER_BOARD", .fixed = "0"},
    {0, "ntpercore", "NTASKS_PER_CORE", .fixed = "N/A"},
    {0, "ntpernode", "NTASKS_PER_NODE", tasks_per_node},
    {0, "ntpersocket", "NTASKS_PER_SOCKET", .fixed = "N/A"},
    {'C', "numcpus", "CPUS", cpus, .compare = by_cpus},
    {'D', "numnodes", "NODES", n_nodes, .compare = by_nodes},
    {0, "numtasks", "TASKS", n_tasks},
    {0, "origin", "ORIGIN", .fixed = "NA"},
    {0, "originraw", "ORIGIN_RAW", .fixed = "NA"},
    {'h', "oversubscribe", "OVER_SUBSCRIBE", over_subscribe},
    {'P', "partition", "PARTITION", partition, .compare = by_partition},
    {0, "pendingtime", "PENDING_TIME", pending_time},
    {0, "prefer", "PREFER", .fixed = "(null)"},
    {'p', "priority", "PRIORITY", priority, .compare = by_priority},
    {'Q', "prioritylong", "PRIORITY", priority_long, .compare = by_priority},
    {0, "profile", "PROFILE", .fixed = "NotSet"},
    {'q', "qos", "QOS", qos},
    {'r', "reason", "REASON", reason},
    {'R', "reasonlist", "NODELIST(REASON)", reason_list},
    {0, "reboot", "REBOOT", .fixed = "0"},
    {'n', "reqnodes", "REQ_NODES", req_nodes},
    {0, "reqswitch", "REQ_SWITCH", .fixed = "0"},
    {0, "requeue", "REQUEUE", requeue},
    {'v', "reservation", "RESERVATION", .fixed = "(null)"},
    {0, "resizetime", "RESIZE_TIME", .fixed = "N/A"},
    {0, "restartcnt", "RESTART_COUNT", restarts},
    {'Y', "schednodes", "SCHEDNODES", sched_nodes},
    {'z', "sct", "S:C:T", .fixed = "*:*:*"},
    {0, "shared", "OVER_SUBSCRIBE", over_subscribe},
    {0, "siblingsactive", "ACTIVE_SIBLINGS", .fixed = "NA"},
    {'s', "sluid", "SLUID", sluid},
    {'H', "sockets", "SOCKETS_PER_NODE", .fixed = "*"},
    {0, "sperboard", "SOCKETS_PER_BOARD", .fixed = "0"},
    {'S', "starttime", "START_TIME", start_time, .compare = by_start},
    {'T', "state", "STATE", state, .compare = by_state},
    {'t', "statecompact", "ST", state_compact, .compare = by_state},
    {0, "stderr", "STDERR", std_err},
    {0, "stdin", "STDIN", std_in},
    {0, "stdout", "STDOUT", std_out},
    {'V', "submittime", "SUBMIT_TIME", submit_time, .compare = by_submit},
    {'J', "threads", "THREADS_PER_CORE", .fixed = "*"},
    {'L', "timeleft", "TIME_LEFT", time_left, .whole = true},
    {'l', "timelimit", "TIME_LIMIT", time_limit, .compare = by_limit, .whole = true},
    {'M', "timeused", "TIME", time_used, .compare = by_used, .whole = true},
    {0, "tres", "TRES_ALLOC", tres},
    {0, "tres-alloc", "TRES_ALLOC", tres},
    {0, "tres-bind", "TRES_BIND", .fixed = "N/A"},
    {0, "tres-freq", "TRES_FREQ", .fixed = "N/A"},
    {0, "tres-per-job", "TRES_PER_JOB", tres_per_job},
    {'b', "tres-per-node", "TRES_PER_NODE", tres_per_node},
    {0, "tres-per-socket", "TRES_PER_SOCKET", .fixed = "N/A"},
    {0, "tres-per-task", "TRES_PER_TASK", tres_per_task},
    {'U', "userid", "UID", uid, .compare = by_uid},
    {'u', "username", "USER", user, .compare = by_user},
    {0, "wait4switch", "WAIT4SWITCH", .fixed = "0:00"},
    {'Z', "workdir", "WORK_DIR", work_dir},
};

const struct table_fields *job_fields(void) {
    static const struct table_fields f = {rows, ARRAY_LEN(rows)};
    return &f;
}
