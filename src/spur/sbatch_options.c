/* SPDX-License-Identifier: Apache-2.0
 *
 * sbatch's options, all of Slurm 26.05's: those that work, and those that are refused by name until they do.
 */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/sbatch.h"

static const char *const limit_names[] = {"ALL", "NONE", "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE",
                                          "NPROC", "RSS", "STACK"};

static int set_propagate(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct sbatch *s = r->ctx;
    s->propagate = value ? value : "ALL";
    uint32_t n;
    const char *const *word = cli_words(s->c, s->propagate, ", ", &n);
    for (uint32_t i = 0; i < n; i++) {
        bool is_known = false;
        for (size_t k = 0; k < ARRAY_LEN(limit_names); k++)
            is_known |= strcasecmp(str_starts(word[i], "RLIMIT_") ? word[i] + 7 : word[i], limit_names[k]) == 0;
        if (!is_known) {
            opt_bad(r, 1, "Bad rlimit name: %s", word[i]);
            return opt_bad(r, 1, "--propagate=%s is not valid.", s->propagate);
        }
    }
    return 0;
}

#define S(field) offsetof(struct sbatch, field)
#define J(field) offsetof(struct sbatch, spec.field)
#define M(field) offsetof(struct sbatch, more.field)
#define TEXT(name, letter, arg, at, env, help) {name, letter, arg, OPT_TEXT, 0, at, NULL, env, help}
#define WIDE(name, letter, arg, at, env, help) {name, letter, arg, OPT_TEXT, OPT_ENV_ALL, at, NULL, env, help}
#define FLAG(name, letter, at, env, help) {name, letter, NULL, OPT_BOOL, 0, at, NULL, env, help}
#define CALL(name, letter, arg, flags, set, env, help) {name, letter, arg, OPT_CALL, flags, 0, set, env, help}
#define LATER(name, letter, arg, env) {name, letter, arg, OPT_NOT_YET, 0, 0, NULL, env, NULL}
#define LATER_MAYBE(name, letter, arg, env) {name, letter, arg, OPT_NOT_YET, OPT_MAYBE, 0, NULL, env, NULL}
static const struct opt_row rows[] = {
    WIDE("account", 'A', "name", J(account), "ACCOUNT", "charge job to specified account"),
    LATER("acctg-freq", 0, "list", "ACCTG_FREQ"),
    TEXT("array", 'a', "indexes", S(array), "ARRAY_INX", "job array: 0-15, 1,3,5-9:2, with %N at most N at once"),
    LATER("batch", 0, "list", "BATCH"),
    LATER("bb", 0, "spec", "BURST_BUFFER"),
    LATER("bbf", 0, "file", NULL),
    CALL("begin", 'b', "time", 0, ask_moment, NULL, "defer job until HH:MM MM/DD/YY"),
    TEXT("chdir", 'D', "directory", J(work_dir), NULL, "set working directory for batch script"),
    LATER("cluster-constraint", 0, "list", "CLUSTER_CONSTRAINT"),
    LATER("clusters", 'M', "names", "CLUSTERS"),
    TEXT("comment", 0, "name", J(comment), NULL, "arbitrary comment"),
    LATER("consolidate-segments", 0, NULL, NULL),
    TEXT("constraint", 'C', "list", S(features), "CONSTRAINT", "features of nodes: a&b, a|b, [a|b], a*2"),
    LATER("container", 0, "path", "CONTAINER"),
    LATER("container-id", 0, "id", "CONTAINER_ID"),
    LATER("contiguous", 0, NULL, NULL),
    LATER("core-spec", 'S', "cores", "CORE_SPEC"),
    LATER("cores-per-socket", 0, "n", NULL),
    LATER("cpu-freq", 0, "min", "CPU_FREQ_REQ"),
    LATER("cpus-per-gpu", 0, "n", "CPUS_PER_GPU"),
    CALL("cpus-per-task", 'c', "ncpus", 0, ask_count, NULL, "number of cpus required per task"),
    CALL("deadline", 0, "time", 0, ask_moment, "DEADLINE", "remove the job if it can't end before this time"),
    LATER("delay-boot", 0, "mins", "DELAY_BOOT"),
    TEXT("dependency", 'd', "type:jobid[,…]", J(dependency), NULL, "defer job: after[:+min] afterany afterok afternotok aftercorr, singleton"),
    LATER("distribution", 'm', "type", "DISTRIBUTION"),
    WIDE("error", 'e', "err", J(std_err), "ERROR", "file for batch script's standard error"),
    TEXT("exclude", 'x', "hosts", S(exclude), NULL, "exclude a specific list of hosts"),
    CALL("exclusive", 0, "user", OPT_MAYBE, ask_exclusive, "EXCLUSIVE", "share nodes with nobody, or with jobs of yours only"),
    {"export", 0, "names", OPT_TEXT, OPT_ENV_ALL, S(export), NULL, "EXPORT",
     "environment to export: ALL, NIL, NONE, A,B=x, ALL,B=x"},
    LATER("export-file", 0, "file", NULL),
    LATER("extra", 0, "text", NULL),
    LATER("extra-node-info", 'B', "S[:C[:T]]", NULL),
    LATER_MAYBE("get-user-env", 0, "mode", "GET_USER_ENV"),
    CALL("gid", 0, "group", OPT_HIDDEN, ask_uid, NULL, ""),
    LATER("gpu-bind", 0, "type", "GPU_BIND"),
    LATER("gpu-freq", 0, "freq", "GPU_FREQ"),
    TEXT("gpus", 'G', "[type:]n", S(gpus), "GPUS", "count of GPUs required for the job"),
    TEXT("gpus-per-node", 0, "[type:]n", S(gpus_per_node), "GPUS_PER_NODE", "number of GPUs required per allocated node"),
    LATER("gpus-per-socket", 0, "n", "GPUS_PER_SOCKET"),
    TEXT("gpus-per-task", 0, "[type:]n", S(gpus_per_task), "GPUS_PER_TASK", "number of GPUs required per spawned task"),
    TEXT("gres", 0, "list", S(gres), "GRES", "required generic resources of each node: name[:type][:count],…"),
    LATER("gres-flags", 0, "type", "GRES_FLAGS"),
    {"help", 'h', NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help message"},
    LATER("hint", 0, "type", "HINT"),
    FLAG("hold", 'H', J(hold), NULL, "submit job in held state"),
    FLAG("ignore-pbs", 0, S(ignore_pbs), "IGNORE_PBS", "ignore #PBS lines (as without it: none is read)"),
    WIDE("input", 'i', "in", J(std_in), "INPUT", "file for batch script's standard input"),
    {"job-name", 'J', "jobname", OPT_TEXT, 0, J(name), NULL, "JOB_NAME", "name of job"},
    LATER("kill-on-invalid-dep", 0, "yes|no", NULL),
    TEXT("licenses", 'L', "names", S(licenses), NULL, "required licenses: name[:count], with , for all, | for one"),
    LATER("mail-type", 0, "type", NULL),
    LATER("mail-user", 0, "user", NULL),
    LATER("mcs-label", 0, "mcs", NULL),
    CALL("mem", 0, "MB", 0, ask_mem, "MEM_PER_NODE", "amount of memory of each node; 0: all of it"),
    LATER("mem-bind", 0, "type", "MEM_BIND"),
    CALL("mem-per-cpu", 0, "MB", 0, ask_mem, "MEM_PER_CPU", "amount of memory per allocated cpu"),
    {"mem-per-gpu", 0, "MB", OPT_NOT_YET, 0, 0, NULL, "MEM_PER_GPU", NULL},
    LATER("mincpus", 0, "n", NULL),
    LATER("network", 0, "type", "NETWORK"),
    CALL("nice", 0, "value", OPT_MAYBE, ask_nice, NULL, "decrease scheduling priority by value; alone: 100"),
    LATER_MAYBE("no-kill", 'k', "off", "NO_KILL"),
    CALL("no-requeue", 0, NULL, 0, ask_requeue, "NO_REQUEUE", "if set, do not permit the job to be requeued"),
    LATER("nodefile", 'F', "file", NULL),
    TEXT("nodelist", 'w', "hosts", S(node_list), NULL, "request a specific list of hosts"),
    CALL("nodes", 'N', "nnodes", 0, ask_nodes, NULL, "number of nodes on which to run (N = min[-max])"),
    CALL("ntasks", 'n', "ntasks", 0, ask_count, NULL, "number of processors required"),
    LATER("ntasks-per-core", 0, "n", NULL),
    LATER("ntasks-per-gpu", 0, "n", NULL),
    CALL("ntasks-per-node", 0, "n", 0, ask_count, NULL, "number of tasks to invoke on each node"),
    LATER("ntasks-per-socket", 0, "n", NULL),
    LATER("ntasks-per-tres", 0, "n", NULL),
    LATER_MAYBE("oom-kill-step", 0, "0|1", "OOM_KILL_STEP"),
    CALL("open-mode", 0, "append|truncate", OPT_ENV_ALL, ask_open_mode, "OPEN_MODE", "how output files are opened"),
    WIDE("output", 'o', "out", J(std_out), "OUTPUT", "file for batch script's standard output"),
    LATER("overcommit", 'O', NULL, "OVERCOMMIT"),
    FLAG("oversubscribe", 's', M(oversubscribe), NULL, "over-subscribe resources with other jobs, where the partition allows it"),
    FLAG("parsable", 0, S(parsable), NULL, "outputs only the jobid"),
    WIDE("partition", 'p', "partition", J(partition), "PARTITION", "partition requested"),
    LATER("prefer", 0, "list", "PREFER"),
    LATER("priority", 0, "value", NULL),
    LATER("profile", 0, "value", "PROFILE"),
    CALL("propagate", 0, "rlimits", OPT_MAYBE, set_propagate, NULL, "propagate all [or specific list of] rlimits"),
    WIDE("qos", 'q', "qos", J(qos), "QOS", "quality of service"),
    {"quiet", 'Q', NULL, OPT_COUNT, 0, S(quiet), NULL, NULL, "quiet mode (suppress informational messages)"},
    LATER("reboot", 0, NULL, NULL),
    CALL("requeue", 0, NULL, 0, ask_requeue, "REQUEUE", "if set, permit the job to be requeued (the default)"),
    LATER("reservation", 0, "name", "RESERVATION"),
    LATER_MAYBE("resv-ports", 0, "n", "RESV_PORTS"),
    LATER("segment", 0, "n", "SEGMENT_SIZE"),
    CALL("signal", 0, "[B:]num[@time]", 0, ask_signal, "SIGNAL", "send signal when time limit within time seconds"),
    LATER("sockets-per-node", 0, "n", NULL),
    LATER("spread-job", 0, NULL, "SPREAD_JOB"),
    LATER("stepmgr", 0, NULL, NULL),
    LATER("switches", 0, "n[@time]", "REQ_SWITCH"),
    CALL("tasks-per-node", 0, "n", OPT_HIDDEN, ask_count, NULL, ""),
    FLAG("test-only", 0, S(test_only), NULL, "validate batch script but do not submit: say when it could start"),
    LATER("thread-spec", 0, "n", "THREAD_SPEC"),
    LATER("threads-per-core", 0, "n", "THREADS_PER_CORE"),
    CALL("time", 't', "minutes", OPT_ENV_ALL, ask_time, "TIMELIMIT", "time limit"),
    CALL("time-min", 0, "minutes", 0, ask_time, NULL, "minimum time limit (if distinct)"),
    LATER("tmp", 0, "MB", NULL),
    LATER("tres-bind", 0, "spec", "TRES_BIND"),
    LATER("tres-per-task", 0, "list", "TRES_PER_TASK"),
    CALL("uid", 0, "user", OPT_HIDDEN, ask_uid, NULL, ""),
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "display brief usage message"},
    LATER("use-min-nodes", 0, NULL, "USE_MIN_NODES"),
    {"verbose", 'v', NULL, OPT_COUNT, 0, S(verbose), NULL, NULL, "verbose mode (multiple -v's increase verbosity)"},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "output version information and exit"},
    FLAG("wait", 'W', S(wait), "WAIT", "wait for completion of submitted job"),
    LATER("wait-all-nodes", 0, "num", "WAIT_ALL_NODES"),
    LATER("wckey", 0, "name", "WCKEY"),
    TEXT("wrap", 0, "command string", S(wrap), NULL, "wrap command string in a sh script and submit"),
};

const struct opt_table *cmd_sbatch_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS...] script [args...]",
        .brief = "[-N nnodes] [-n ntasks] [-c ncpus] [-p partition] [--hold] [--parsable] [-a indexes]\n"
                 "     [-t minutes] [-D path] [--mem=MB] [--output file] [--error file] [--input file]\n"
                 "     [--job-name=name] [--account=name] [--qos=qos] [--dependency=type:jobid]\n"
                 "     [--begin=time] [--nice[=value]] [--comment=name] [--export=names]\n"
                 "     [--nodelist=hosts] [--exclude=hosts] [--open-mode=append|truncate]\n"
                 "     [--gres=list] [-G n] [-C list] [-L names] [--exclusive] [-s] [--signal=[B:]num[@time]]\n"
                 "     [--ntasks-per-node=n] [--mem-per-cpu=MB] [--time-min=minutes] [--deadline=time]\n"
                 "     [--test-only] [--propagate[=rlimits]] [--requeue] [--no-requeue] [--wait] [--quiet]\n"
                 "     executable [args...] | --wrap=command",
        .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 255, .stop_at_word = true,
        .env_prefix = {"SBATCH_", "SPUR_"},
        .note = "Options of Slurm that are not listed are refused by name: see docs/compatibility.md."};
    return &t;
}
