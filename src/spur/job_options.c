/* SPDX-License-Identifier: Apache-2.0
 *
 * All options of sbatch, srun and salloc, all of Slurm 26.05's: those that work, and those that are refused by name until
 * they do. One row an option, with a column for each of the three: whether it has the option, and which variable stands
 * for it. Options of the same name that mean something else are rows of their own.
 *
 *   NO       has no such option
 *   YES      has it, without a variable
 *   V("X")   the variable is X behind the command's first prefix (srun: behind each of them)
 *   W("X")   behind each of sbatch's prefixes
 */
#include "spur/job_options.h"

#include "base/mem.h"
#include "spur/salloc.h"

struct place {
    bool has, all_prefixes;
    const char *env;
};
struct job_row {
    struct opt_row row;
    struct place in[JOB_N_COMMANDS]; /* in the order of enum job_command */
};

/* The context of all three begins with struct sbatch, so that these offsets hold for each. */
#define S(field) offsetof(struct sbatch, field)
#define J(field) offsetof(struct sbatch, spec.field)
#define M(field) offsetof(struct sbatch, more.field)
#define D(field) offsetof(struct sbatch, seldom.field)
#define R(field) offsetof(struct srun, field)
#define L(field) offsetof(struct salloc, field)
#define NO {false}
#define YES {true}
#define V(env) {true, false, env}
#define W(env) {true, true, env}
#define TEXT(name, letter, arg, at, a, b, c, help)                                                                     \
    {{name, letter, arg, OPT_TEXT, 0, at, NULL, NULL, help}, {a, b, c}}
#define FLAG(name, letter, at, a, b, c, help) {{name, letter, NULL, OPT_BOOL, 0, at, NULL, NULL, help}, {a, b, c}}
#define TIMES(name, letter, at, a, b, c, help) {{name, letter, NULL, OPT_COUNT, 0, at, NULL, NULL, help}, {a, b, c}}
#define COUNT(name, letter, arg, at, a, b, c, help)                                                                    \
    {{name, letter, arg, OPT_CALL, 0, at, ask_count, NULL, help}, {a, b, c}}
#define SIZE(name, letter, arg, at, a, b, c, help)                                                                     \
    {{name, letter, arg, OPT_CALL, 0, at, ask_mem, NULL, help}, {a, b, c}}
#define MOMENT(name, letter, arg, at, a, b, c, help)                                                                   \
    {{name, letter, arg, OPT_CALL, 0, at, ask_moment, NULL, help}, {a, b, c}}
#define LIMIT(name, letter, arg, at, a, b, c, help)                                                                    \
    {{name, letter, arg, OPT_CALL, 0, at, ask_limit, NULL, help}, {a, b, c}}
#define CALL(name, letter, arg, flags, set, a, b, c, help)                                                             \
    {{name, letter, arg, OPT_CALL, flags, 0, set, NULL, help}, {a, b, c}}
#define HIDDEN(name, letter, arg, set, at, a, b, c)                                                                    \
    {{name, letter, arg, OPT_CALL, OPT_HIDDEN, at, set, NULL, ""}, {a, b, c}}
#define WORD(name, letter, kind, help) {{name, letter, NULL, kind, 0, 0, NULL, NULL, help}, {YES, YES, YES}}
#define LATER(name, letter, arg, a, b, c) {{name, letter, arg, OPT_NOT_YET, 0, 0, NULL, NULL, NULL}, {a, b, c}}
#define LATER_IF(name, letter, arg, flags, check, a, b, c)                                                             \
    {{name, letter, arg, OPT_NOT_YET, flags, 0, check, NULL, NULL}, {a, b, c}}
#define LATER_MAYBE(name, letter, arg, a, b, c)                                                                        \
    {{name, letter, arg, OPT_NOT_YET, OPT_MAYBE, 0, NULL, NULL, NULL}, {a, b, c}}

/* By name: the order of "possibilities" and of --help.                              sbatch, srun, salloc */
static const struct job_row all[] = {
    LATER("accel-bind", 0, "opts", NO, YES, NO),
    TEXT("account", 'A', "name", J(account), W("ACCOUNT"), V("ACCOUNT"), V("ACCOUNT"), "charge job to specified account"),
    LATER_IF("acctg-freq", 0, "list", 0, check_acctg_freq, V("ACCTG_FREQ"), V("ACCTG_FREQ"), V("ACCTG_FREQ")),
    TEXT("array", 'a', "indexes", S(array), V("ARRAY_INX"), NO, NO, "job array: 0-15, 1,3,5-9:2, with %N at most N at once"),
    LATER("async", 0, NULL, NO, YES, NO),
    LATER_IF("batch", 0, "list", 0, check_batch, V("BATCH"), NO, NO),
    LATER("bb", 0, "spec", V("BURST_BUFFER"), V("BURST_BUFFER"), V("BURST_BUFFER")),
    LATER("bbf", 0, "file", YES, YES, YES),
    LATER_MAYBE("bcast", 0, "dest", NO, V("BCAST"), NO),
    LATER("bcast-exclude", 0, "paths", NO, V("BCAST_EXCLUDE"), NO),
    MOMENT("begin", 'b', "time", J(begin_unix), YES, YES, YES, "defer job until HH:MM MM/DD/YY"),
    LATER("bell", 0, NULL, NO, NO, V("BELL")),
    TEXT("chdir", 'D', "directory", J(work_dir), YES, V("REMOTE_CWD"), YES, "working directory of the batch script, the tasks or the command"),
    LATER("cluster-constraint", 0, "list", V("CLUSTER_CONSTRAINT"), V("CLUSTER_CONSTRAINT"), V("CLUSTER_CONSTRAINT")),
    {{"clusters", 'M', "names", OPT_CLUSTERS, 0, 0, NULL, NULL, "this cluster by its name, or all"}, {V("CLUSTERS"), YES, YES}},
    TEXT("comment", 0, "name", J(comment), YES, V("JOB_COMMENT"), YES, "arbitrary comment"),
    LATER("compress", 0, "lib", NO, V("COMPRESS"), NO),
    CALL("consolidate-segments", 0, NULL, 0, ask_segment, YES, YES, YES, "groups of nodes near each other: without a topology all are"),
    TEXT("constraint", 'C', "list", S(features), V("CONSTRAINT"), V("CONSTRAINT"), V("CONSTRAINT"), "features of nodes: a&b, a|b, [a|b], a*2"),
    LATER("container", 0, "path", V("CONTAINER"), V("CONTAINER"), V("CONTAINER")),
    LATER("container-id", 0, "id", V("CONTAINER_ID"), V("CONTAINER_ID"), V("CONTAINER_ID")),
    FLAG("contiguous", 0, M(contiguous), YES, YES, YES, "nodes that are neighbours in the order of their names"),
    CALL("core-spec", 'S', "cores", 0, ask_spec_cores, V("CORE_SPEC"), V("CORE_SPEC"), V("CORE_SPEC"), "not allowed here: told, and left out of the request"),
    {{"cores-per-socket", 0, "n", OPT_CALL, 0, D(cores), ask_at_least, NULL, "nodes with at least so many cores in a socket"}, {YES, YES, YES}},
    CALL("cpu-bind", 0, "type", 0, srun_ask_cpu_bind, NO, V("CPU_BIND"), NO, "CPUs of each task: rank, map_cpu:list, mask_cpu:list; none; verbose"),
    LATER_IF("cpu-freq", 0, "min", 0, check_cpu_freq, V("CPU_FREQ_REQ"), V("CPU_FREQ_REQ"), V("CPU_FREQ_REQ")),
    COUNT("cpus-per-gpu", 0, "n", D(cpus_per_gpu), V("CPUS_PER_GPU"), V("CPUS_PER_GPU"), V("CPUS_PER_GPU"), "number of CPUs that go with each GPU"),
    COUNT("cpus-per-task", 'c', "ncpus", J(cpus_per_task_given), YES, V("CPUS_PER_TASK"), YES, "number of cpus required per task"),
    MOMENT("deadline", 0, "time", M(deadline_unix), V("DEADLINE"), YES, V("DEADLINE"), "remove the job if it can't end before this time"),
    LATER("debugger-test", 0, NULL, NO, YES, NO),
    CALL("delay-boot", 0, "mins", 0, ask_delay_boot, V("DELAY_BOOT"), V("DELAY_BOOT"), V("DELAY_BOOT"), "wait for nodes that need no reboot: none is ever rebooted for a job"),
    TEXT("dependency", 'd', "type:jobid[,…]", J(dependency), YES, V("DEPENDENCY"), YES, "defer job: after[:+min] afterany afterok afternotok aftercorr, singleton"),
    FLAG("disable-status", 'X', R(disable_status), NO, V("DISABLE_STATUS"), NO, "send Ctrl-C to the tasks at once"),
    CALL("distribution", 'm', "block|cyclic|plane=n|arbitrary", 0, ask_distribution, V("DISTRIBUTION"), V("DISTRIBUTION"), V("DISTRIBUTION"), "how steps deal their tasks out to nodes; arbitrary: -w names the node of each task"),
    LATER("epilog", 0, "program", NO, V("EPILOG"), NO),
    TEXT("error", 'e', "err", J(std_err), W("ERROR"), NO, NO, "file for batch script's standard error"),
    TEXT("error", 'e', "err", R(error), NO, V("STDERRMODE"), NO, "location of stderr redirection"),
    FLAG("exact", 0, R(exact), NO, V("EXACT"), NO, "give a step the resources that it asks for and no more"),
    TEXT("exclude", 'x', "hosts", S(exclude), YES, YES, YES, "exclude a specific list of hosts"),
    CALL("exclusive", 0, "user", OPT_MAYBE, ask_exclusive, V("EXCLUSIVE"), V("EXCLUSIVE"), V("EXCLUSIVE"), "share nodes with no other job, or with yours only (user), or as -s (oversubscribe); of a step: as --exact"),
    TEXT("export", 0, "names", S(export), W("EXPORT"), V("EXPORT_ENV"), NO, "environment to export: ALL, NIL, NONE, A,B=x, ALL,B=x"),
    TEXT("export-file", 0, "file", S(export_file), YES, NO, NO, "variables for the job, NAME=value with a zero byte behind each; or a descriptor"),
    LATER("external-launcher", 0, NULL, NO, YES, NO),
    TEXT("extra", 0, "text", D(extra), YES, YES, YES, "arbitrary text: kept and shown"),
    CALL("extra-node-info", 'B', "S[:C[:T]]", 0, ask_extra_info, YES, YES, YES, "the three of them together; tasks as many, where -n isn't given"),
    CALL("get-user-env", 0, "mode", OPT_MAYBE, ask_user_env, V("GET_USER_ENV"), NO, NO, "what a login on the node sets, where the job's environment lacks it"),
    HIDDEN("gid", 0, "group", ask_uid, 0, YES, NO, YES),
    LATER_IF("gpu-bind", 0, "type", 0, check_gpu_bind, V("GPU_BIND"), V("GPU_BIND"), V("GPU_BIND")),
    LATER_IF("gpu-freq", 0, "freq", 0, check_gpu_freq, V("GPU_FREQ"), V("GPU_FREQ"), V("GPU_FREQ")),
    TEXT("gpus", 'G', "[type:]n", S(gpus), V("GPUS"), V("GPUS"), V("GPUS"), "GPUs of the job"),
    TEXT("gpus-per-node", 0, "[type:]n", S(gpus_per_node), V("GPUS_PER_NODE"), V("GPUS_PER_NODE"), V("GPUS_PER_NODE"), "GPUs of each node"),
    LATER_IF("gpus-per-socket", 0, "n", 0, check_gpus_per_socket, V("GPUS_PER_SOCKET"), V("GPUS_PER_SOCKET"), V("GPUS_PER_SOCKET")),
    TEXT("gpus-per-task", 0, "[type:]n", S(gpus_per_task), V("GPUS_PER_TASK"), V("GPUS_PER_TASK"), V("GPUS_PER_TASK"), "GPUs of each task"),
    TEXT("gres", 0, "list", S(gres), V("GRES"), V("GRES"), V("GRES"), "generic resources of each node: name[:type][:count],…"),
    LATER_IF("gres-flags", 0, "type", 0, check_gres_flags, V("GRES_FLAGS"), V("GRES_FLAGS"), V("GRES_FLAGS")),
    WORD("help", 'h', OPT_HELP, "show this help message"),
    HIDDEN("het-group", 0, "value", srun_ask_het, 0, NO, YES, NO),
    CALL("hint", 0, "type", 0, ask_hint, V("HINT"), V("HINT"), V("HINT"), "compute_bound, memory_bound, nomultithread: one thread of each core; multithread"),
    FLAG("hold", 'H', J(hold), YES, YES, YES, "submit job in held state"),
    FLAG("ignore-pbs", 0, S(ignore_pbs), V("IGNORE_PBS"), NO, NO, "ignore #PBS lines (as without it: none is read)"),
    CALL("immediate", 'I', "secs", OPT_MAYBE, srun_ask_immediate, NO, V("IMMEDIATE"), V("IMMEDIATE"), "exit if resources are not there within secs (1)"),
    TEXT("input", 'i', "in", J(std_in), W("INPUT"), NO, NO, "file for batch script's standard input"),
    TEXT("input", 'i', "in", R(input), NO, V("STDINMODE"), NO, "location of stdin redirection: a file, none, or a task"),
    LATER("interactive", 0, NULL, NO, YES, NO),
    TEXT("job-name", 'J', "jobname", J(name), V("JOB_NAME"), V("JOB_NAME"), V("JOB_NAME"), "name of job"),
    CALL("jobid", 0, "id", 0, srun_ask_job, NO, V("JOB_ID"), NO, "run under already allocated job"),
    CALL("kill-command", 'K', "signal", OPT_MAYBE, salloc_ask_kill, NO, NO, V("KILL_CMD"), "signal the command when its allocation is revoked"),
    CALL("kill-on-bad-exit", 'K', "0|1", OPT_MAYBE, srun_ask_bad_exit, NO, V("KILL_BAD_EXIT"), NO, "terminate the step if any task has a non-zero exit code"),
    CALL("kill-on-invalid-dep", 0, "yes|no", 0, ask_kill_invalid_dep, YES, NO, NO, "end the job when what it depends on can't come any more"),
    FLAG("label", 'l', R(label), NO, V("LABELIO"), NO, "prepend task number to lines of stdout/err"),
    TEXT("licenses", 'L', "names", S(licenses), YES, YES, YES, "required licenses: name[:count], with , for all, | for one"),
    CALL("mail-type", 0, "type", 0, ask_mail_type, YES, YES, YES, "what mail would be sent for: kept and shown, no mail is sent"),
    TEXT("mail-user", 0, "user", D(mail_user), YES, YES, YES, "who would get it: kept and shown"),
    LATER("mcs-label", 0, "mcs", YES, YES, YES),
    SIZE("mem", 0, "MB", S(mem[ASK_MEM_NODE]), V("MEM_PER_NODE"), V("MEM_PER_NODE"), V("MEM_PER_NODE"), "amount of memory of each node; 0: all of it"),
    LATER_IF("mem-bind", 0, "type", 0, check_mem_bind, V("MEM_BIND"), V("MEM_BIND"), V("MEM_BIND")),
    SIZE("mem-per-cpu", 0, "MB", S(mem[ASK_MEM_CPU]), V("MEM_PER_CPU"), V("MEM_PER_CPU"), V("MEM_PER_CPU"), "amount of memory of each CPU"),
    SIZE("mem-per-gpu", 0, "MB", S(mem[ASK_MEM_GPU]), V("MEM_PER_GPU"), V("MEM_PER_GPU"), V("MEM_PER_GPU"), "amount of memory that goes with each GPU"),
    COUNT("mincpus", 0, "n", D(min_cpus), YES, YES, YES, "least number of CPUs of each node"),
    CALL("mpi", 0, "type", 0, srun_ask_mpi, NO, V("MPI_TYPE"), NO, "type of MPI being used: none"),
    LATER("msg-timeout", 0, "secs", NO, YES, NO),
    FLAG("multi-prog", 0, R(multi_prog), NO, V("MULTI_PROG"), NO, "the command is a file that says what each task runs"),
    LATER("network", 0, "type", V("NETWORK"), V("NETWORK"), V("NETWORK")),
    CALL("nice", 0, "value", OPT_MAYBE, ask_nice, YES, YES, YES, "decrease scheduling priority by value; alone: 100"),
    LATER("no-allocate", 'Z', NULL, NO, YES, NO),
    LATER("no-bell", 0, NULL, NO, NO, V("NO_BELL")),
    CALL("no-kill", 'k', "off", OPT_MAYBE, ask_no_kill, V("NO_KILL"), V("NO_KILL"), V("NO_KILL"), "go on without a node that fails; off: as without it"),
    CALL("no-requeue", 0, NULL, 0, ask_requeue, V("NO_REQUEUE"), NO, NO, "if set, do not permit the job to be requeued"),
    FLAG("no-shell", 0, L(no_shell), NO, NO, YES, "keep the allocation and run nothing"),
    CALL("nodefile", 'F', "file", 0, ask_nodefile, YES, YES, YES, "request the hosts that the file names"),
    TEXT("nodelist", 'w', "hosts", S(node_list), YES, YES, YES, "request a specific list of hosts"),
    CALL("nodes", 'N', "nnodes", 0, ask_nodes, YES, NO, YES, "number of nodes on which to run (N = min[-max])"),
    CALL("nodes", 'N', "nnodes", 0, srun_ask_nodes, NO, V("JOB_NUM_NODES"), NO, "number of nodes on which to run (N = min[-max])"),
    COUNT("ntasks", 'n', "ntasks", J(n_tasks_given), YES, V("NTASKS"), YES, "number of tasks to run"),
    COUNT("ntasks-per-core", 0, "n", D(tasks_per_core), YES, V("NTASKS_PER_CORE"), YES, "at most so many tasks for each core of a node"),
    COUNT("ntasks-per-gpu", 0, "n", S(tasks_per_gpu), YES, V("NTASKS_PER_GPU"), YES, "tasks for each GPU, where one of the two numbers is not given"),
    COUNT("ntasks-per-node", 0, "n", M(tasks_per_node), YES, V("NTASKS_PER_NODE"), YES, "number of tasks to invoke on each node"),
    COUNT("ntasks-per-socket", 0, "n", D(tasks_per_socket), YES, YES, YES, "at most so many tasks for each socket of a node"),
    LATER("ntasks-per-tres", 0, "n", YES, V("NTASKS_PER_TRES"), YES),
    LATER_IF("oom-kill-step", 0, "0|1", OPT_MAYBE, check_yes_no, V("OOM_KILL_STEP"), YES, V("OOM_KILL_STEP")), /* a job has SLURM_OOM_KILL_STEP=0, which asks for nothing */
    CALL("open-mode", 0, "append|truncate", 0, ask_open_mode, W("OPEN_MODE"), V("OPEN_MODE"), NO, "how output files are opened"),
    TEXT("output", 'o', "out", J(std_out), W("OUTPUT"), NO, NO, "file for batch script's standard output"),
    TEXT("output", 'o', "out", R(output), NO, V("STDOUTMODE"), NO, "location of stdout redirection: a file, none, or a task"),
    FLAG("overcommit", 'O', M(overcommit), V("OVERCOMMIT"), V("OVERCOMMIT"), V("OVERCOMMIT"), "more tasks than CPUs: take one CPU for each node"),
    FLAG("overlap", 0, R(overlap), NO, V("OVERLAP"), NO, "share resources with other steps of the job"),
    FLAG("oversubscribe", 's', M(oversubscribe), YES, YES, YES, "let the job's nodes be shared with others, where the partition allows it"),
    FLAG("parsable", 0, S(parsable), YES, NO, NO, "outputs only the jobid"),
    TEXT("partition", 'p', "partition", J(partition), W("PARTITION"), V("PARTITION"), V("PARTITION"), "partition requested"),
    TEXT("prefer", 0, "list", S(prefer), YES, YES, YES, "features that are tried first, in place of those of -C; then those"),
    LATER("preserve-env", 'E', NULL, NO, V("PRESERVE_ENV"), NO),
    CALL("priority", 0, "value", 0, ask_priority, YES, YES, YES, "set the priority of the job (administrators); 0: hold it"),
    LATER("profile", 0, "value", V("PROFILE"), V("PROFILE"), V("PROFILE")),
    LATER("prolog", 0, "program", NO, V("PROLOG"), NO),
    CALL("propagate", 0, "rlimits", OPT_MAYBE, ask_propagate, YES, NO, NO, "propagate all [or specific list of] rlimits"),
    TEXT("propagate", 0, "rlimits", S(propagate), NO, V("PROPAGATE"), NO, "propagate all [or specific list of] rlimits"),
    CALL("pty", 0, "fd", OPT_MAYBE, srun_ask_pty, NO, YES, NO, "run task zero in a terminal of its own"),
    TEXT("qos", 'q', "qos", J(qos), W("QOS"), V("QOS"), V("QOS"), "quality of service"),
    TIMES("quiet", 'Q', S(quiet), YES, YES, YES, "quiet mode (suppress informational messages)"),
    FLAG("quit-on-interrupt", 0, R(quit_on_interrupt), NO, YES, NO, "quit on single Ctrl-C"),
    LATER_IF("reboot", 0, NULL, 0, check_reboot, YES, YES, YES),
    LATER("relative", 'r', "n", NO, YES, NO),
    CALL("requeue", 0, NULL, 0, ask_requeue, V("REQUEUE"), NO, NO, "if set, permit the job to be requeued (the default)"),
    LATER_IF("reservation", 0, "name", 0, check_reservation, V("RESERVATION"), V("RESERVATION"), V("RESERVATION")),
    LATER_IF("resv-ports", 0, "n", OPT_MAYBE, check_number, V("RESV_PORTS"), V("RESV_PORTS"), NO),
    CALL("segment", 0, "n", 0, ask_segment, V("SEGMENT_SIZE"), V("SEGMENT_SIZE"), V("SEGMENT_SIZE"), "size of groups of nodes that are near each other: without a topology all are"),
    LATER_MAYBE("send-libs", 0, "yes|no", NO, V("SEND_LIBS"), NO),
    CALL("signal", 0, "[R][B]:num[@time]", 0, ask_signal, V("SIGNAL"), V("SIGNAL"), V("SIGNAL"), "signal the job so many seconds before its time limit"),
    LATER("slurmd-debug", 0, "level", NO, V("SLURMD_DEBUG"), NO),
    {{"sockets-per-node", 0, "n", OPT_CALL, 0, D(sockets), ask_at_least, NULL, "nodes with at least so many sockets"}, {YES, YES, YES}},
    FLAG("spread-job", 0, D(spread), V("SPREAD_JOB"), V("SPREAD_JOB"), V("SPREAD_JOB"), "on as many nodes as there are tasks and nodes for"),
    LATER("stepmgr", 0, NULL, YES, YES, YES),
    CALL("switches", 0, "n[@time]", 0, ask_switches, V("REQ_SWITCH"), V("REQ_SWITCH"), V("REQ_SWITCH"), "number of switches, and how long to wait for it: without a topology all nodes are on one"),
    LATER("task-epilog", 0, "program", NO, V("TASK_EPILOG"), NO),
    LATER("task-prolog", 0, "program", NO, V("TASK_PROLOG"), NO),
    HIDDEN("tasks-per-node", 0, "n", ask_count, M(tasks_per_node), YES, YES, YES),
    FLAG("test-only", 0, S(test_only), YES, YES, NO, "say when and where it could start, and submit nothing"),
    CALL("thread-spec", 0, "n", 0, ask_spec_cores, V("THREAD_SPEC"), V("THREAD_SPEC"), V("THREAD_SPEC"), "not allowed here: told, and left out of the request"),
    LATER("threads", 'T', "n", NO, V("THREADS"), NO),
    CALL("threads-per-core", 0, "n", 0, ask_threads, V("THREADS_PER_CORE"), V("THREADS_PER_CORE"), V("THREADS_PER_CORE"), "nodes with at least so many threads in a core; 1: use one of each core"),
    CALL("time", 't', "minutes", 0, ask_time, W("TIMELIMIT"), V("TIMELIMIT"), V("TIMELIMIT"), "time limit"),
    LIMIT("time-min", 0, "minutes", M(time_min_min), YES, YES, YES, "least time limit, if that lets it start earlier"),
    CALL("tmp", 0, "MB", 0, ask_tmp, YES, YES, YES, "least temporary disk of each node"),
    LATER("tres-bind", 0, "spec", V("TRES_BIND"), V("TRES_BIND"), V("TRES_BIND")),
    TEXT("tres-per-task", 0, "list", S(tres_per_task), V("TRES_PER_TASK"), YES, V("TRES_PER_TASK"), "resources of each task: cpu=n, gres/gpu[:type]=n"),
    HIDDEN("uid", 0, "user", ask_uid, 0, YES, NO, YES),
    FLAG("unbuffered", 'u', R(unbuffered), NO, V("UNBUFFEREDIO"), NO, "do not line-buffer the tasks' output"),
    WORD("usage", 0, OPT_USAGE, "display brief usage message"),
    FLAG("use-min-nodes", 0, D(use_min_nodes), V("USE_MIN_NODES"), V("USE_MIN_NODES"), V("USE_MIN_NODES"), "of a range of nodes as few as hold the job"),
    TIMES("verbose", 'v', S(verbose), YES, YES, YES, "verbose mode (multiple -v's increase verbosity)"),
    WORD("version", 'V', OPT_VERSION, "output version information and exit"),
    FLAG("wait", 'W', S(wait), V("WAIT"), NO, NO, "wait for completion of submitted job"),
    CALL("wait", 'W', "sec", 0, srun_ask_wait, NO, V("WAIT"), NO, "seconds to wait after first task ends before killing the others"),
    CALL("wait-all-nodes", 0, "num", 0, ask_wait_nodes, V("WAIT_ALL_NODES"), NO, V("WAIT_ALL_NODES"), "0 or 1: a job begins when all of its nodes are ready, in any case"),
    TEXT("wckey", 0, "name", D(wckey), V("WCKEY"), V("WCKEY"), V("WCKEY"), "workload key: kept and shown"),
    LATER("whole", 0, NULL, NO, V("WHOLE"), NO),
    TEXT("wrap", 0, "command string", S(wrap), YES, NO, NO, "wrap command string in a sh script and submit"),
    LATER_MAYBE("x11", 0, "all", NO, YES, YES),
};

/* A command's column as rows of its own: made once a process. */
const struct opt_row *job_option_rows(enum job_command c, size_t *out_n) {
    static struct opt_row rows[JOB_N_COMMANDS][ARRAY_LEN(all)];
    static size_t n[JOB_N_COMMANDS];
    for (size_t i = 0; i < ARRAY_LEN(all) && (i || !n[c]); i++) {
        const struct place *p = &all[i].in[c];
        if (!p->has)
            continue;
        struct opt_row *o = &rows[c][n[c]++];
        *o = all[i].row;
        o->env = p->env;
        o->flags |= p->all_prefixes || c == JOB_SRUN ? OPT_ENV_ALL : 0;
    }
    *out_n = n[c];
    return rows[c];
}
