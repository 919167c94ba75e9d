/* SPDX-License-Identifier: Apache-2.0
 *
 * srun's options, all of Slurm 26.05's: those that work, and those that are refused by name until they do.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/srun.h"

#define RUN(r) ((struct srun *)(r)->ctx)

static int set_immediate(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t secs = 1;
    if (value && str_to_u64(value, INT32_MAX, &secs))
        return opt_bad_value(r, o);
    RUN(r)->immediate_secs = (uint32_t)secs + 1;
    return 0;
}

static int set_bad_exit(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t yes = 1;
    if (value && str_to_u64(value, INT32_MAX, &yes))
        return opt_bad(r, 1, "Invalid numeric value \"%s\" for --%s.", value, o->name);
    RUN(r)->bad_exit = yes ? BAD_EXIT_KILLS : BAD_EXIT_GOES_ON;
    return 0;
}

static int set_wait(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t secs;
    if (str_to_u64(value, INT32_MAX, &secs))
        return opt_bad(r, 1, "Invalid numeric value \"%s\" for --%s.", value, o->name);
    RUN(r)->wait_secs = (uint32_t)secs;
    return 0;
}

static int set_distribution(struct opt_run *r, const struct opt_row *o, const char *value) {
    static const char *const there[] = {"block", "cyclic"};
    static const char *const later[] = {"arbitrary", "plane", "fcyclic", "pack", "nopack", "*"};
    size_t n = strcspn(value, ":=,");
    for (size_t i = 0; i < ARRAY_LEN(there); i++)
        if (strncasecmp(value, there[i], n) == 0 && strlen(there[i]) == n && !value[n]) {
            RUN(r)->distribution = there[i];
            return 0;
        }
    for (size_t i = 0; i < ARRAY_LEN(later); i++)
        if ((strncasecmp(value, later[i], n) == 0 && strlen(later[i]) == n) || value[n])
            return opt_bad(r, 1, "option --%s=%s is not supported yet (see docs/compatibility.md)", o->name, value);
    return opt_bad_value(r, o);
}

/* For a step: CPUs of its own. For a job: nodes of its own. Which one it is turns out later. */
static int set_exclusive(struct opt_run *r, const struct opt_row *o, const char *value) {
    int rc = ask_exclusive(r, o, value);
    RUN(r)->is_exclusive = rc == 0;
    return rc;
}

static int set_job_id(struct opt_run *r, const struct opt_row *o, const char *value) {
    RUN(r)->job_id_text = value;
    return 0;
}

static int set_pty(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t fd = 0;
    if (value && str_to_u64(value, 1023, &fd))
        return opt_bad_value(r, o);
    RUN(r)->pty = true;
    RUN(r)->pty_fd = (int)fd;
    return 0;
}

static int set_mpi(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (str_eq(value, "list")) {
        str_add(&r->out, "MPI plugin types are...\n\tnone\n");
        r->exit_code = 0;
        return -1;
    }
    if (str_eq(value, "none"))
        return 0;
    opt_bad(r, 1, "MPI: Cannot create context for mpi/%s", value);
    opt_bad(r, 1, "MPI: Unable to load any plugin");
    return opt_bad(r, 1, "Invalid MPI type '%s', --mpi=list for acceptable types", value);
}

static int set_nodes(struct opt_run *r, const struct opt_row *o, const char *value) {
    int rc = ask_nodes(r, o, value);
    if (!rc && !RUN(r)->job.spec.min_nodes)
        rc = opt_bad(r, 1, "Unable to allocate resources: Node count specification invalid");
    return rc;
}

static int set_het(struct opt_run *r, const struct opt_row *o, const char *value) {
    return opt_bad(r, 1, "--het-group expected to be used within an HetJob allocation");
}

#define R(field) offsetof(struct srun, field)
#define S(field) offsetof(struct srun, job.field)
#define J(field) offsetof(struct srun, job.spec.field)
#define M(field) offsetof(struct srun, job.more.field)
#define ALL OPT_ENV_ALL
#define TEXT(name, letter, arg, at, env, help) {name, letter, arg, OPT_TEXT, ALL, at, NULL, env, help}
#define FLAG(name, letter, at, env, help) {name, letter, NULL, OPT_BOOL, ALL, at, NULL, env, help}
#define CALL(name, letter, arg, flags, set, env, help) {name, letter, arg, OPT_CALL, ALL | (flags), 0, set, env, help}
#define LATER(name, letter, arg, env) {name, letter, arg, OPT_NOT_YET, ALL, 0, NULL, env, NULL}
#define LATER_MAYBE(name, letter, arg, env) {name, letter, arg, OPT_NOT_YET, ALL | OPT_MAYBE, 0, NULL, env, NULL}
static const struct opt_row rows[] = {
    LATER("accel-bind", 0, "opts", NULL),
    TEXT("account", 'A', "name", J(account), "ACCOUNT", "charge job to specified account"),
    LATER("acctg-freq", 0, "list", "ACCTG_FREQ"),
    LATER("async", 0, NULL, NULL),
    LATER("bb", 0, "spec", "BURST_BUFFER"),
    LATER("bbf", 0, "file", NULL),
    LATER_MAYBE("bcast", 0, "dest", "BCAST"),
    LATER("bcast-exclude", 0, "paths", "BCAST_EXCLUDE"),
    CALL("begin", 'b', "time", 0, ask_moment, NULL, "defer job until HH:MM MM/DD/YY"),
    TEXT("chdir", 'D', "path", J(work_dir), "REMOTE_CWD", "change the working directory of the tasks"),
    LATER("cluster-constraint", 0, "list", "CLUSTER_CONSTRAINT"),
    LATER("clusters", 'M', "names", NULL),
    TEXT("comment", 0, "name", J(comment), "JOB_COMMENT", "arbitrary comment"),
    LATER("compress", 0, "lib", "COMPRESS"),
    LATER("consolidate-segments", 0, NULL, NULL),
    TEXT("constraint", 'C', "list", S(features), "CONSTRAINT", "features of nodes: a&b, a|b, [a|b], a*2"),
    LATER("container", 0, "path", "CONTAINER"),
    LATER("container-id", 0, "id", "CONTAINER_ID"),
    LATER("contiguous", 0, NULL, NULL),
    LATER("core-spec", 'S', "cores", "CORE_SPEC"),
    LATER("cores-per-socket", 0, "n", NULL),
    LATER("cpu-bind", 0, "type", "CPU_BIND"),
    LATER("cpu-freq", 0, "min", "CPU_FREQ_REQ"),
    LATER("cpus-per-gpu", 0, "n", "CPUS_PER_GPU"),
    CALL("cpus-per-task", 'c', "ncpus", 0, ask_count, "CPUS_PER_TASK", "number of cpus required per task"),
    CALL("deadline", 0, "time", 0, ask_moment, NULL, "remove the job if it can't end before this time"),
    LATER("debugger-test", 0, NULL, NULL),
    LATER("delay-boot", 0, "mins", "DELAY_BOOT"),
    TEXT("dependency", 'd', "type:jobid[,…]", J(dependency), "DEPENDENCY", "defer job until others began or ended"),
    FLAG("disable-status", 'X', R(disable_status), "DISABLE_STATUS", "send Ctrl-C to the tasks at once"),
    CALL("distribution", 'm', "block|cyclic", 0, set_distribution, "DISTRIBUTION", "how tasks are dealt out to nodes"),
    LATER("epilog", 0, "program", "EPILOG"),
    TEXT("error", 'e', "err", R(error), "STDERRMODE", "location of stderr redirection"),
    FLAG("exact", 0, R(exact), "EXACT", "give a step the resources that it asks for and no more"),
    TEXT("exclude", 'x', "hosts", S(exclude), NULL, "exclude a specific list of hosts"),
    CALL("exclusive", 0, "user", OPT_MAYBE, set_exclusive, "EXCLUSIVE",
         "share nodes with no other job; inside a job as --exact"),
    TEXT("export", 0, "names", S(export), "EXPORT_ENV", "environment to export: ALL, NONE, A,B=x"),
    LATER("external-launcher", 0, NULL, NULL),
    LATER("extra", 0, "text", NULL),
    LATER("extra-node-info", 'B', "S[:C[:T]]", NULL),
    LATER("gpu-bind", 0, "type", "GPU_BIND"),
    LATER("gpu-freq", 0, "freq", "GPU_FREQ"),
    TEXT("gpus", 'G', "[type:]n", S(gpus), "GPUS", "GPUs of the job"),
    TEXT("gpus-per-node", 0, "[type:]n", S(gpus_per_node), "GPUS_PER_NODE", "GPUs of each node"),
    LATER("gpus-per-socket", 0, "n", "GPUS_PER_SOCKET"),
    TEXT("gpus-per-task", 0, "[type:]n", S(gpus_per_task), "GPUS_PER_TASK", "GPUs of each task"),
    TEXT("gres", 0, "list", S(gres), "GRES", "generic resources of each node: gpu:2, gpu:a100:1"),
    LATER("gres-flags", 0, "type", "GRES_FLAGS"),
    {"help", 'h', NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help message"},
    CALL("het-group", 0, "value", OPT_HIDDEN, set_het, NULL, ""),
    LATER("hint", 0, "type", "HINT"),
    FLAG("hold", 'H', J(hold), NULL, "submit job in held state"),
    CALL("immediate", 'I', "secs", OPT_MAYBE, set_immediate, "IMMEDIATE", "exit if resources are not there within secs (1)"),
    TEXT("input", 'i', "in", R(input), "STDINMODE", "location of stdin redirection: a file, none, or a task"),
    LATER("interactive", 0, NULL, NULL),
    TEXT("job-name", 'J', "jobname", J(name), "JOB_NAME", "name of job"),
    CALL("jobid", 0, "id", 0, set_job_id, "JOB_ID", "run under already allocated job"),
    CALL("kill-on-bad-exit", 'K', "0|1", OPT_MAYBE, set_bad_exit, "KILL_BAD_EXIT",
         "terminate the step if any task has a non-zero exit code"),
    FLAG("label", 'l', R(label), "LABELIO", "prepend task number to lines of stdout/err"),
    TEXT("licenses", 'L', "names", S(licenses), NULL, "required licences: a:2,b"),
    LATER("mail-type", 0, "type", NULL),
    LATER("mail-user", 0, "user", NULL),
    LATER("mcs-label", 0, "mcs", NULL),
    CALL("mem", 0, "MB", 0, ask_mem, "MEM_PER_NODE", "amount of memory of each node; 0: all of it"),
    LATER("mem-bind", 0, "type", "MEM_BIND"),
    CALL("mem-per-cpu", 0, "MB", 0, ask_mem, "MEM_PER_CPU", "amount of memory of each CPU"),
    LATER("mem-per-gpu", 0, "MB", "MEM_PER_GPU"),
    LATER("mincpus", 0, "n", NULL),
    CALL("mpi", 0, "type", 0, set_mpi, "MPI_TYPE", "type of MPI being used: none"),
    LATER("msg-timeout", 0, "secs", NULL),
    FLAG("multi-prog", 0, R(multi_prog), "MULTI_PROG", "the command is a file that says what each task runs"),
    LATER("network", 0, "type", "NETWORK"),
    CALL("nice", 0, "value", OPT_MAYBE, ask_nice, NULL, "decrease scheduling priority by value; alone: 100"),
    LATER("no-allocate", 'Z', NULL, NULL),
    LATER_MAYBE("no-kill", 'k', "off", "NO_KILL"),
    LATER("nodefile", 'F', "file", NULL),
    TEXT("nodelist", 'w', "hosts", S(node_list), NULL, "request a specific list of hosts"),
    CALL("nodes", 'N', "nnodes", 0, set_nodes, "JOB_NUM_NODES", "number of nodes on which to run (N = min[-max])"),
    CALL("ntasks", 'n', "ntasks", 0, ask_count, "NTASKS", "number of tasks to run"),
    LATER("ntasks-per-core", 0, "n", "NTASKS_PER_CORE"),
    LATER("ntasks-per-gpu", 0, "n", "NTASKS_PER_GPU"),
    CALL("ntasks-per-node", 0, "n", 0, ask_count, "NTASKS_PER_NODE", "number of tasks to invoke on each node"),
    LATER("ntasks-per-socket", 0, "n", NULL),
    LATER("ntasks-per-tres", 0, "n", "NTASKS_PER_TRES"),
    LATER_MAYBE("oom-kill-step", 0, "0|1", NULL /* a job has SLURM_OOM_KILL_STEP=0, which asks for nothing */),
    CALL("open-mode", 0, "append|truncate", 0, ask_open_mode, "OPEN_MODE", "how output files are opened"),
    TEXT("output", 'o', "out", R(output), "STDOUTMODE", "location of stdout redirection: a file, none, or a task"),
    LATER("overcommit", 'O', NULL, "OVERCOMMIT"),
    FLAG("overlap", 0, R(overlap), "OVERLAP", "share resources with other steps of the job"),
    FLAG("oversubscribe", 's', M(oversubscribe), NULL, "let the job's nodes be shared with others"),
    TEXT("partition", 'p', "partition", J(partition), "PARTITION", "partition requested"),
    LATER("prefer", 0, "list", "PREFER"),
    LATER("preserve-env", 'E', NULL, "PRESERVE_ENV"),
    LATER("priority", 0, "value", NULL),
    LATER("profile", 0, "value", "PROFILE"),
    LATER("prolog", 0, "program", "PROLOG"),
    TEXT("propagate", 0, "rlimits", S(propagate), "PROPAGATE", "propagate all [or specific list of] rlimits"),
    CALL("pty", 0, "fd", OPT_MAYBE, set_pty, NULL, "run task zero in a terminal of its own"),
    TEXT("qos", 'q', "qos", J(qos), "QOS", "quality of service"),
    {"quiet", 'Q', NULL, OPT_COUNT, 0, S(quiet), NULL, NULL, "quiet mode (suppress informational messages)"},
    FLAG("quit-on-interrupt", 0, R(quit_on_interrupt), NULL, "quit on single Ctrl-C"),
    LATER("reboot", 0, NULL, NULL),
    LATER("relative", 'r', "n", NULL),
    LATER("reservation", 0, "name", "RESERVATION"),
    LATER_MAYBE("resv-ports", 0, "n", "RESV_PORTS"),
    LATER("segment", 0, "n", "SEGMENT_SIZE"),
    LATER_MAYBE("send-libs", 0, "yes|no", "SEND_LIBS"),
    CALL("signal", 0, "[R][B]:num[@time]", 0, ask_signal, "SIGNAL", "signal the job before its time limit"),
    LATER("slurmd-debug", 0, "level", "SLURMD_DEBUG"),
    LATER("sockets-per-node", 0, "n", NULL),
    LATER("spread-job", 0, NULL, "SPREAD_JOB"),
    LATER("stepmgr", 0, NULL, NULL),
    LATER("switches", 0, "n[@time]", "REQ_SWITCH"),
    LATER("task-epilog", 0, "program", "TASK_EPILOG"),
    LATER("task-prolog", 0, "program", "TASK_PROLOG"),
    {"tasks-per-node", 0, "n", OPT_NOT_YET, OPT_HIDDEN},
    FLAG("test-only", 0, S(test_only), NULL, "say when and where it could start, and run nothing"),
    LATER("thread-spec", 0, "n", "THREAD_SPEC"),
    LATER("threads", 'T', "n", "THREADS"),
    LATER("threads-per-core", 0, "n", "THREADS_PER_CORE"),
    CALL("time", 't', "minutes", 0, ask_time, "TIMELIMIT", "time limit"),
    CALL("time-min", 0, "minutes", 0, ask_time, NULL, "least time limit, if that lets it start earlier"),
    LATER("tmp", 0, "MB", NULL),
    LATER("tres-bind", 0, "spec", "TRES_BIND"),
    LATER("tres-per-task", 0, "list", NULL),
    FLAG("unbuffered", 'u', R(unbuffered), "UNBUFFEREDIO", "do not line-buffer the tasks' output"),
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "display brief usage message"},
    LATER("use-min-nodes", 0, NULL, "USE_MIN_NODES"),
    {"verbose", 'v', NULL, OPT_COUNT, 0, S(verbose), NULL, NULL, "verbose mode (multiple -v's increase verbosity)"},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "output version information and exit"},
    CALL("wait", 'W', "sec", 0, set_wait, "WAIT", "seconds to wait after first task ends before killing the others"),
    LATER("wckey", 0, "name", "WCKEY"),
    LATER("whole", 0, NULL, "WHOLE"),
    LATER_MAYBE("x11", 0, "all", NULL),
};

const struct opt_table *cmd_srun_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS...] executable [args...]",
        .brief = "[-N nnodes] [-n ntasks] [-c ncpus] [-i in] [-o out] [-e err] [-p partition] [-l]\n"
                 "     [-t minutes] [-D path] [-J jobname] [--jobid=id] [-I[secs]] [-K[0|1]] [-W sec]\n"
                 "     [--mem=MB] [--gres=list] [--gpus=n] [--overlap] [--exact] [--exclusive[=user]]\n"
                 "     [--multi-prog] [--pty] [--export=names] [-m block|cyclic] [-w hosts] [-x hosts]\n"
                 "     executable [args...]",
        .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 255, .stop_at_word = true,
        .env_prefix = {"SLURM_", "SRUN_", "SPUR_"},
        .note = "Options of Slurm that are not listed are refused by name: see docs/compatibility.md."};
    return &t;
}

/* ---- the environment ---- */

static bool is_in_job(void) {
    return getenv("SLURM_JOB_ID") || getenv("SPUR_JOB_ID");
}

/* Names that mean the same; and what a job's environment says of itself, which is no wish. */
const char *srun_env_get(const char *name) {
    static const struct {
        const char *name, *other;
    } same[] = {
        {"SLURM_NTASKS", "SLURM_NPROCS"},        {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"},
        {"SLURM_STDOUTMODE", "SRUN_OUTPUT"},     {"SLURM_STDERRMODE", "SRUN_ERROR"},
        {"SLURM_STDINMODE", "SRUN_INPUT"},       {"SLURM_REMOTE_CWD", "SLURM_WORKING_DIR"},
        {"SLURM_JOB_ID", "SLURM_JOBID"},
    };
    /* SLURM_EXPORT_ENV in a job says what sbatch was told: what the job has now is what its steps get. */
    static const char *const own[] = {"SLURM_EXPORT_ENV", "SPUR_EXPORT_ENV", "SLURM_JOB_NAME", "SRUN_JOB_NAME", "SPUR_JOB_NAME", "SLURM_JOB_COMMENT"};
    for (size_t i = 0; is_in_job() && i < ARRAY_LEN(own); i++)
        if (str_eq(name, own[i]))
            return NULL;
    const char *value = getenv(name);
    for (size_t i = 0; !value && i < ARRAY_LEN(same); i++)
        if (str_eq(name, same[i].name))
            value = getenv(same[i].other);
    if (value && str_eq(name, "SLURM_OOM_KILL_STEP") && str_eq(value, "0")) /* a job's environment says so of itself */
        return NULL;
    if (value && !*value && (strstr(name, "GPUS") || strstr(name, "GRES") || strstr(name, "MEM")))
        return NULL;
    return value;
}

/* ---- all together ---- */

static uint32_t exit_code_of(const char *variable) {
    uint64_t code;
    const char *text = getenv(variable);
    return text && !str_to_u64(text, 255, &code) ? (uint32_t)code : 1;
}

/* Both given, and differing: a job of 22.05 to 23.11 would silently have run on one of them. */
static bool check_cpus_per_task(const struct srun *s, const struct opt_run *r) {
    const char *a = getenv("SLURM_CPUS_PER_TASK"), *b = getenv("SRUN_CPUS_PER_TASK");
    bool typed = false;
    for (size_t i = 0; i < r->items.n; i++)
        typed |= str_eq(r->items.p[i].row->name, "cpus-per-task") && !r->items.p[i].env;
    if (typed || !a || !b || str_eq(a, b))
        return true;
    cli_say(s->job.c, "fatal: SRUN_CPUS_PER_TASK=%s and SLURM_CPUS_PER_TASK=%s differ: use one of them, or -c", b, a);
    return false;
}

static bool take_words(struct srun *s, const struct opt_run *r) {
    struct arena *a = &s->job.c->arena;
    for (size_t i = 0; i < r->words.n; i++)
        if (str_eq(r->words.p[i], ":")) {
            cli_error(s->job.c, "heterogeneous jobs are not supported yet (see docs/compatibility.md)");
            return false;
        }
    s->argv = arena_memdup(a, r->words.p, r->words.n * sizeof(*r->words.p));
    s->n_argv = (uint32_t)r->words.n;
    return true;
}

bool srun_settle(struct srun *s, const struct opt_run *r) {
    struct job_spec *j = &s->job.spec;
    s->exit_error = (int)exit_code_of("SLURM_EXIT_ERROR");
    s->exit_immediate = (int)exit_code_of("SLURM_EXIT_IMMEDIATE");
    s->job.refused = "Unable to allocate resources";
    if (!take_words(s, r) || (str_eq(s->kind, "srun") && !check_cpus_per_task(s, r)))
        return false;
    if (s->job_id_text) {
        uint64_t id;
        if (str_to_u64(s->job_id_text, JOB_ID_MAX, &id) || !id) {
            cli_error(s->job.c, "Invalid job id: %s", s->job_id_text);
            return false;
        }
        s->job_id = (uint32_t)id;
        s->is_inside = true;
        s->job.more.interactive = false;
    }
    if (s->is_inside && s->is_exclusive) {
        s->exact = true;
        s->job.more.exclusive = EXCLUSIVE_NO;
    }
    if (!job_ask_settle(&s->job.ask))
        return false;
    if (!s->is_inside && !j->min_nodes && j->n_req_nodes) { /* all of the nodes that are named */
        j->min_nodes = j->n_tasks_given ? MIN(j->n_req_nodes, j->n_tasks_given) : j->n_req_nodes;
        j->min_nodes_given = true;
    }
    if (s->is_inside && s->job.test_only) {
        cli_error(s->job.c, "option --test-only of a step is not supported yet (see docs/compatibility.md)");
        return false;
    }
    if (!j->name && s->n_argv) {
        const char *slash = strrchr(s->argv[0], '/');
        j->name = slash && slash[1] ? slash + 1 : s->argv[0];
    }
    return true;
}
