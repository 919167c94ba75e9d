/* SPDX-License-Identifier: Apache-2.0
 *
 * squeue's fields, a line each: letter of -o, name of -O, heading, text; the key and kind of --json; what -S goes by
 * where that is not the text. A field without a function has one value for every job because what could change it isn't
 * there yet; its value is what Slurm prints for a job that didn't ask for it.
 */
#include "spur/job_fields.h"

#include <string.h>

#include "base/mem.h"
#include "spur/job_facts.h"
#include "spur/job_json.h"
#include "spur/job_text.h"

#define INFO(row) ((const struct job_info *)(row))
#define JOB(row) (INFO(row)->job)
#define SPEC(row) (JOB(row)->spec)

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
/* All that run are compared as of one moment, so the start decides. */
static int by_used(const void *a, const void *b) {
    const int64_t now = INT64_MAX / 2000;
    return CMP(job_run_secs(JOB(a), now), job_run_secs(JOB(b), now));
}


#define T(fn) job_text_##fn
#define N(fn) job_number_##fn
#define NUMBER(key, fn) .json = key, .as = JSON_NUMBER, .number = N(fn)
#define NO_VAL(key, fn) .json = key, .as = JSON_NO_VAL, .number = N(fn)
#define FLAG(key, fn) .json = key, .as = JSON_FLAG, .number = N(fn)
#define OWN(key, fn) .json = key, .as = JSON_OWN, .write = job_json_##fn

static const struct table_field rows[] = {
    {'a', "account", "ACCOUNT", T(account), .json = "account"},
    {0, "accruetime", "ACCRUE_TIME", T(eligible_time), NO_VAL("accrue_time", eligible)},
    {0, "admin_comment", "ADMIN_COMMENT", T(admin_comment), .json = "admin_comment"},
    {'F', "arrayjobid", "ARRAY_JOB_ID", T(array_job_id), .compare = by_id, NO_VAL("array_job_id", array_job_id)},
    {'K', "arraytaskid", "ARRAY_TASK_ID", T(array_task_id), NO_VAL("array_task_id", array_task_id)},
    {0, "associd", "ASSOC_ID", .fixed = "0", .json = "association_id", .as = JSON_NUMBER},
    {0, "batchflag", "BATCH_FLAG", T(batch_flag), FLAG("batch_flag", batch_flag)},
    {'B', "batchhost", "EXEC_HOST", T(batch_host), .json = "batch_host"},
    {0, "boardspernode", "BOARDS_PER_NODE", .fixed = "0"},
    {0, "burstbuffer", "BURST_BUFFER", .fixed = "(null)", .json = "burst_buffer"},
    {0, "burstbufferstate", "BURST_BUFFER_STATE", .fixed = "(null)", .json = "burst_buffer_state"},
    {0, "cluster", "CLUSTER", T(cluster), .json = "cluster"},
    {0, "clusterfeature", "CLUSTER_FEATURES", .fixed = "(null)", .json = "cluster_features"},
    {'o', "command", "COMMAND", T(command), .json = "command"},
    {'k', "comment", "COMMENT", T(comment), .json = "comment"},
    {0, "container", "CONTAINER", .fixed = "(null)", .json = "container"},
    {0, "containerid", "CONTAINERID", .fixed = "(null)", .json = "container_id"},
    {'O', "contiguous", "CONTIGUOUS", T(contiguous), FLAG("contiguous", contiguous)},
    {'I', "cores", "CORES_PER_SOCKET", T(cores), NO_VAL("cores_per_socket", cores)},
    {'X', "corespec", "CORE_SPEC", .fixed = "N/A", .json = "core_spec", .as = JSON_NUMBER},
    {0, "cpus-per-task", "CPUS_PER_TASK", T(cpus_per_task), NO_VAL("cpus_per_task", cpus_per_task)},
    {0, "cpus-per-tres", "CPUS_PER_TRES", T(cpus_per_tres), .json = "cpus_per_tres"},
    {0, "deadline", "DEADLINE", T(deadline), NO_VAL("deadline", deadline)},
    {0, "delayboot", "DELAY_BOOT", T(delay_boot), NO_VAL("delay_boot", delay_boot)},
    {'E', "dependency", "DEPENDENCY", T(dependency), .json = "dependency"},
    {0, "derivedec", "DERIVED_EC", .fixed = "0:0", OWN("derived_exit_code", derived_exit)},
    {0, "eligibletime", "ELIGIBLE_TIME", T(eligible_time), NO_VAL("eligible_time", eligible)},
    {'e', "endtime", "END_TIME", T(end_time), .compare = by_end, NO_VAL("end_time", end)},
    {0, "exclusive", "EXCLUSIVE", T(exclusive)},
    {'x', "excnodes", "EXC_NODES", T(exc_nodes), .json = "excluded_nodes"},
    {0, "exit_code", "EXIT_CODE", T(exit_code), OWN("exit_code", exit_code)},
    {'f', "feature", "FEATURES", T(features), .json = "features"},
    {0, "gres", "TRES_PER_NODE", T(tres_per_node)},
    {'G', "groupid", "GROUP", T(gid), NUMBER("group_id", gid)},
    {'g', "groupname", "GROUP", T(group), .json = "group_name"},
    {0, "hetjobid", "HET_JOB_ID", .fixed = "N/A", NO_VAL("het_job_id", zero)},
    {0, "hetjobidset", "HET_JOB_ID_SET", .fixed = "N/A", .json = "het_job_id_set"},
    {0, "hetjoboffset", "HET_JOB_OFFSET", .fixed = "N/A", NO_VAL("het_job_offset", zero)},
    {'i', "jobarrayid", "JOBID", T(id), .compare = by_id},
    {'A', "jobid", "JOBID", T(raw_id), .compare = by_id, NUMBER("job_id", id)},
    {0, "lastschedeval", "LAST_SCHED_EVAL", T(eligible_time), NO_VAL("last_sched_evaluation", eligible)},
    {'w', "wckey", "WCKEY", T(wckey), .json = "wckey"},
    {'W', "licenses", "LICENSES", T(licenses), .json = "licenses"},
    {0, "licensesalloc", "LICENSES_ALLOC", T(licenses_alloc), .json = "licenses_allocated"},
    {0, "maxcpus", "MAX_CPUS", T(cpus), NO_VAL("max_cpus", zero)},
    {0, "maxnodes", "MAX_NODES", T(max_nodes), NO_VAL("max_nodes", max_nodes)},
    {0, "mcslabel", "MCSLABEL", .fixed = "(null)", .json = "mcs_label"},
    {0, "mem-per-tres", "MEM_PER_TRES", T(mem_per_tres), .json = "memory_per_tres"},
    {'c', "mincpus", "MIN_CPUS", T(min_cpus), NO_VAL("minimum_cpus_per_node", min_cpus)},
    {'m', "minmemory", "MIN_MEMORY", T(min_memory), .number = N(memory)},
    {0, "mintime", "TIME_MIN", T(time_min), NO_VAL("time_minimum", time_min)},
    {'d', "mintmpdisk", "MIN_TMP_DISK", T(tmp_disk), NO_VAL("minimum_tmp_disk_per_node", tmp_disk)},
    {'j', "name", "NAME", T(name), .compare = by_name, .json = "name"},
    {0, "network", "NETWORK", .fixed = "(null)", .json = "network"},
    {'y', "nice", "NICE", T(nice), NUMBER("nice", nice)},
    {'N', "nodelist", "NODELIST", T(node_list), .json = "nodes"},
    {0, "ntperboard", "NTASKS_PER_BOARD", .fixed = "0", NO_VAL("tasks_per_board", zero)},
    {0, "ntpercore", "NTASKS_PER_CORE", T(tasks_per_core), NO_VAL("tasks_per_core", tasks_per_core)},
    {0, "ntpernode", "NTASKS_PER_NODE", T(tasks_per_node), NO_VAL("tasks_per_node", tasks_per_node)},
    {0, "ntpersocket", "NTASKS_PER_SOCKET", T(tasks_per_socket), NO_VAL("tasks_per_socket", tasks_per_socket)},
    {'C', "numcpus", "CPUS", T(cpus), NO_VAL("cpus", cpus)},
    {'D', "numnodes", "NODES", T(n_nodes), NO_VAL("node_count", nodes)},
    {0, "numtasks", "TASKS", T(n_tasks), NO_VAL("tasks", tasks)},
    {0, "origin", "ORIGIN", .fixed = "NA", .json = "federation_origin"},
    {0, "originraw", "ORIGIN_RAW", .fixed = "NA"},
    {'h', "oversubscribe", "OVER_SUBSCRIBE", T(over_subscribe)},
    {'P', "partition", "PARTITION", T(partition), .compare = by_partition, .json = "partition"},
    {0, "pendingtime", "PENDING_TIME", T(pending_time)},
    {0, "prefer", "PREFER", T(prefer), .json = "prefer"},
    {'p', "priority", "PRIORITY", T(priority), .number = N(priority)},
    {'Q', "prioritylong", "PRIORITY", T(priority_long), NO_VAL("priority", priority)},
    {0, "profile", "PROFILE", .fixed = "NotSet", OWN("profile", profile)},
    {'q', "qos", "QOS", T(qos), .json = "qos"},
    {'r', "reason", "REASON", T(reason), .json = "state_reason"},
    {'R', "reasonlist", "NODELIST(REASON)", T(reason_list)},
    {0, "reboot", "REBOOT", .fixed = "0", .json = "reboot", .as = JSON_FLAG},
    {'n', "reqnodes", "REQ_NODES", T(req_nodes), .json = "required_nodes"},
    {0, "reqswitch", "REQ_SWITCH", T(switches), NUMBER("required_switches", switches)},
    {0, "requeue", "REQUEUE", T(requeue), FLAG("requeue", requeue)},
    {'v', "reservation", "RESERVATION", .fixed = "(null)", .json = "resv_name"},
    {0, "resizetime", "RESIZE_TIME", .fixed = "N/A", NO_VAL("resize_time", zero)},
    {0, "restartcnt", "RESTART_COUNT", T(restarts), NUMBER("restart_cnt", restarts)},
    {'Y', "schednodes", "SCHEDNODES", T(sched_nodes), .json = "scheduled_nodes"},
    {'z', "sct", "S:C:T", T(sct)},
    {0, "shared", "OVER_SUBSCRIBE", T(over_subscribe)},
    {0, "siblingsactive", "ACTIVE_SIBLINGS", .fixed = "NA", .json = "federation_siblings_active"},
    {'s', "sluid", "SLUID", T(sluid)},
    {'H', "sockets", "SOCKETS_PER_NODE", T(sockets), NO_VAL("sockets_per_node", sockets)},
    {0, "sperboard", "SOCKETS_PER_BOARD", .fixed = "0", .json = "sockets_per_board", .as = JSON_NUMBER},
    {'S', "starttime", "START_TIME", T(start_time), .compare = by_start, NO_VAL("start_time", start)},
    {'T', "state", "STATE", T(state), .compare = by_state, OWN("job_state", state)},
    {'t', "statecompact", "ST", T(state_compact), .compare = by_state},
    {0, "stderr", "STDERR", T(std_err), .json = "standard_error"},
    {0, "stdin", "STDIN", T(std_in), .json = "standard_input"},
    {0, "stdout", "STDOUT", T(std_out), .json = "standard_output"},
    {'V', "submittime", "SUBMIT_TIME", T(submit_time), NO_VAL("submit_time", submit)},
    {'J', "threads", "THREADS_PER_CORE", T(threads), NO_VAL("threads_per_core", threads)},
    {'L', "timeleft", "TIME_LEFT", T(time_left), .whole = true},
    {'l', "timelimit", "TIME_LIMIT", T(time_limit), .compare = by_limit, .whole = true, NO_VAL("time_limit", limit)},
    {'M', "timeused", "TIME", T(time_used), .compare = by_used, .whole = true},
    {0, "tres", "TRES_ALLOC", T(tres)},
    {0, "tres-alloc", "TRES_ALLOC", T(tres), OWN("tres_alloc_str", tres_alloc)},
    {0, "tres-bind", "TRES_BIND", .fixed = "N/A", .json = "tres_bind"},
    {0, "tres-freq", "TRES_FREQ", .fixed = "N/A", .json = "tres_freq"},
    {0, "tres-per-job", "TRES_PER_JOB", T(tres_per_job), .json = "tres_per_job"},
    {'b', "tres-per-node", "TRES_PER_NODE", T(tres_per_node), .json = "tres_per_node"},
    {0, "tres-per-socket", "TRES_PER_SOCKET", .fixed = "N/A", .json = "tres_per_socket"},
    {0, "tres-per-task", "TRES_PER_TASK", T(tres_per_task), .json = "tres_per_task"},
    {'U', "userid", "UID", T(uid), NUMBER("user_id", uid)},
    {'u', "username", "USER", T(user), .compare = by_user, .json = "user_name"},
    {0, "wait4switch", "WAIT4SWITCH", T(switches_wait), NUMBER("maximum_switch_wait_time", switches_wait)},
    {'Z', "workdir", "WORK_DIR", T(work_dir), .json = "current_working_directory"},
    /* only in --json */
    {.json = "allocating_node", .text = T(alloc_node)},
    {NO_VAL("array_max_tasks", array_max_tasks)},
    {.json = "array_task_string", .text = T(array_task_string)},
    {.json = "batch_features", .fixed = ""},
    {.json = "flags", .as = JSON_LIST},
    {OWN("billable_tres", billable)},
    {.json = "container_type", .fixed = ""},
    {.json = "cpu_frequency_minimum", .as = JSON_NO_VAL},
    {.json = "cpu_frequency_maximum", .as = JSON_NO_VAL},
    {.json = "cpu_frequency_governor", .as = JSON_NO_VAL},
    {.json = "cron", .fixed = ""},
    {.json = "extra", .text = T(extra)},
    {.json = "failed_node", .fixed = ""},
    {.json = "federation_siblings_viable", .fixed = ""},
    {OWN("gres_detail", gres_detail)},
    {OWN("job_resources", resources)},
    {.json = "job_size_str", .as = JSON_LIST},
    {OWN("mail_type", mail_type)},
    {.json = "mail_user", .text = T(mail_user)},
    {NO_VAL("memory_per_cpu", mem_cpu)},
    {NO_VAL("memory_per_node", mem_node)},
    {.json = "memory_update_delay", .as = JSON_NUMBER},
    {.json = "memory_update_margin", .as = JSON_NUMBER},
    {.json = "tasks_per_tres", .as = JSON_NO_VAL},
    {NO_VAL("preempt_time", zero)},
    {NO_VAL("preemptable_time", zero)},
    {NO_VAL("pre_sus_time", pre_suspend)},
    {FLAG("hold", hold)},
    {.json = "priority_by_partition", .as = JSON_LIST},
    {.json = "segment_size", .as = JSON_NUMBER},
    {.json = "selinux_context", .fixed = ""},
    {OWN("shared", shared)},
    {OWN("step_id", step_id)},
    {OWN("state_description", state_text)},
    {OWN("stdin_expanded", std_in)},
    {OWN("stdout_expanded", std_out)},
    {OWN("stderr_expanded", std_err)},
    {.json = "submit_line", .text = T(submit_line)},
    {NO_VAL("suspend_time", suspend)},
    {.json = "system_comment", .fixed = ""},
    {.json = "thread_spec", .as = JSON_NUMBER},
    {OWN("tres_req_str", tres_req)},
#ifdef JOB_FIELDS_MORE
#include JOB_FIELDS_MORE /* of a test: what one line more gives */
#endif
};

const struct table_fields *job_fields(void) {
    static const struct table_fields f = {rows, ARRAY_LEN(rows)};
    return &f;
}
