/* SPDX-License-Identifier: Apache-2.0
 *
 * salloc: nodes for a command or a shell that runs here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/salloc.h"

static int set_immediate(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t secs = 1;
    if (value && str_to_u64(value, INT32_MAX, &secs))
        return opt_bad_value(r, o);
    ((struct srun *)r->ctx)->immediate_secs = (uint32_t)secs + 1;
    return 0;
}

static int set_kill(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint32_t signo = 0;
    if (value && signal_parse(value, &signo))
        return opt_bad_value(r, o);
    ((struct salloc *)r->ctx)->kill_signal = signo + 1;
    return 0;
}

#define L(field) offsetof(struct salloc, field)
#define S(field) offsetof(struct salloc, run.job.field)
#define J(field) offsetof(struct salloc, run.job.spec.field)
#define M(field) offsetof(struct salloc, run.job.more.field)
#define TEXT(name, letter, arg, at, env, help) {name, letter, arg, OPT_TEXT, 0, at, NULL, env, help}
#define FLAG(name, letter, at, env, help) {name, letter, NULL, OPT_BOOL, 0, at, NULL, env, help}
#define CALL(name, letter, arg, flags, set, env, help) {name, letter, arg, OPT_CALL, flags, 0, set, env, help}
#define LATER(name, letter, arg, env) {name, letter, arg, OPT_NOT_YET, 0, 0, NULL, env, NULL}
#define LATER_MAYBE(name, letter, arg, env) {name, letter, arg, OPT_NOT_YET, OPT_MAYBE, 0, NULL, env, NULL}
static const struct opt_row rows[] = {
    TEXT("account", 'A', "name", J(account), "ACCOUNT", "charge job to specified account"),
    LATER("acctg-freq", 0, "list", "ACCTG_FREQ"),
    LATER("bb", 0, "spec", "BURST_BUFFER"),
    LATER("bbf", 0, "file", NULL),
    CALL("begin", 'b', "time", 0, ask_moment, NULL, "defer job until HH:MM MM/DD/YY"),
    LATER("bell", 0, NULL, "BELL"),
    TEXT("chdir", 'D', "path", J(work_dir), NULL, "change working directory of the command"),
    LATER("cluster-constraint", 0, "list", "CLUSTER_CONSTRAINT"),
    LATER("clusters", 'M', "names", NULL),
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
    TEXT("dependency", 'd', "type:jobid[,…]", J(dependency), NULL, "defer job until others began or ended"),
    LATER("distribution", 'm', "type", "DISTRIBUTION"),
    TEXT("exclude", 'x', "hosts", S(exclude), NULL, "exclude a specific list of hosts"),
    CALL("exclusive", 0, "user", OPT_MAYBE, ask_exclusive, "EXCLUSIVE", "share nodes with no other job"),
    LATER("extra", 0, "text", NULL),
    LATER("extra-node-info", 'B', "S[:C[:T]]", NULL),
    CALL("gid", 0, "group", OPT_HIDDEN, ask_uid, NULL, ""),
    LATER("gpu-bind", 0, "type", "GPU_BIND"),
    LATER("gpu-freq", 0, "freq", "GPU_FREQ"),
    TEXT("gpus", 'G', "[type:]n", S(gpus), "GPUS", "GPUs of the job"),
    TEXT("gpus-per-node", 0, "[type:]n", S(gpus_per_node), "GPUS_PER_NODE", "GPUs of each node"),
    LATER("gpus-per-socket", 0, "n", "GPUS_PER_SOCKET"),
    TEXT("gpus-per-task", 0, "[type:]n", S(gpus_per_task), "GPUS_PER_TASK", "GPUs of each task"),
    TEXT("gres", 0, "list", S(gres), "GRES", "generic resources of each node: gpu:2, gpu:a100:1"),
    LATER("gres-flags", 0, "type", "GRES_FLAGS"),
    {"help", 'h', NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help message"},
    LATER("hint", 0, "type", "HINT"),
    FLAG("hold", 'H', J(hold), NULL, "submit job in held state"),
    CALL("immediate", 'I', "secs", OPT_MAYBE, set_immediate, "IMMEDIATE", "exit if resources are not there within secs (1)"),
    TEXT("job-name", 'J', "jobname", J(name), "JOB_NAME", "name of job"),
    CALL("kill-command", 'K', "signal", OPT_MAYBE, set_kill, "KILL_CMD",
         "signal the command when its allocation is revoked"),
    TEXT("licenses", 'L', "names", S(licenses), NULL, "required licences: a:2,b"),
    LATER("mail-type", 0, "type", NULL),
    LATER("mail-user", 0, "user", NULL),
    LATER("mcs-label", 0, "mcs", NULL),
    CALL("mem", 0, "MB", 0, ask_mem, "MEM_PER_NODE", "amount of memory of each node; 0: all of it"),
    LATER("mem-bind", 0, "type", "MEM_BIND"),
    CALL("mem-per-cpu", 0, "MB", 0, ask_mem, "MEM_PER_CPU", "amount of memory of each CPU"),
    LATER("mem-per-gpu", 0, "MB", "MEM_PER_GPU"),
    LATER("mincpus", 0, "n", NULL),
    LATER("network", 0, "type", "NETWORK"),
    CALL("nice", 0, "value", OPT_MAYBE, ask_nice, NULL, "decrease scheduling priority by value; alone: 100"),
    LATER("no-bell", 0, NULL, "NO_BELL"),
    LATER_MAYBE("no-kill", 'k', "off", "NO_KILL"),
    FLAG("no-shell", 0, L(no_shell), NULL, "keep the allocation and run nothing"),
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
    LATER("overcommit", 'O', NULL, "OVERCOMMIT"),
    FLAG("oversubscribe", 's', M(oversubscribe), NULL, "let the job's nodes be shared with others"),
    TEXT("partition", 'p', "partition", J(partition), "PARTITION", "partition requested"),
    LATER("prefer", 0, "list", NULL),
    LATER("priority", 0, "value", NULL),
    LATER("profile", 0, "value", "PROFILE"),
    TEXT("qos", 'q', "qos", J(qos), "QOS", "quality of service"),
    {"quiet", 'Q', NULL, OPT_COUNT, 0, S(quiet), NULL, NULL, "quiet mode (suppress informational messages)"},
    LATER("reboot", 0, NULL, NULL),
    LATER("reservation", 0, "name", "RESERVATION"),
    LATER("segment", 0, "n", "SEGMENT_SIZE"),
    CALL("signal", 0, "[R][B]:num[@time]", 0, ask_signal, "SIGNAL", "signal the job before its time limit"),
    LATER("sockets-per-node", 0, "n", NULL),
    LATER("spread-job", 0, NULL, "SPREAD_JOB"),
    LATER("stepmgr", 0, NULL, NULL),
    LATER("switches", 0, "n[@time]", "REQ_SWITCH"),
    {"tasks-per-node", 0, "n", OPT_NOT_YET, OPT_HIDDEN},
    LATER("thread-spec", 0, "n", "THREAD_SPEC"),
    LATER("threads-per-core", 0, "n", "THREADS_PER_CORE"),
    CALL("time", 't', "minutes", 0, ask_time, "TIMELIMIT", "time limit"),
    CALL("time-min", 0, "minutes", 0, ask_time, NULL, "least time limit, if that lets it start earlier"),
    LATER("tmp", 0, "MB", NULL),
    LATER("tres-bind", 0, "spec", "TRES_BIND"),
    LATER("tres-per-task", 0, "list", "TRES_PER_TASK"),
    CALL("uid", 0, "user", OPT_HIDDEN, ask_uid, NULL, ""),
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "display brief usage message"},
    LATER("use-min-nodes", 0, NULL, "USE_MIN_NODES"),
    {"verbose", 'v', NULL, OPT_COUNT, 0, S(verbose), NULL, NULL, "verbose mode (multiple -v's increase verbosity)"},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "output version information and exit"},
    LATER("wait-all-nodes", 0, "num", "WAIT_ALL_NODES"),
    LATER("wckey", 0, "name", "WCKEY"),
    LATER_MAYBE("x11", 0, "all", NULL),
};

const struct opt_table *cmd_salloc_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS...] [command [args...]]",
        .brief = "[-N numnodes|[min nodes]-[max nodes]] [-n num-processors] [-c ncpus] [-p partition]\n"
                 "     [-t minutes] [-D path] [-J jobname] [-I[secs]] [--mem=MB] [--gres=list] [--gpus=n]\n"
                 "     [--exclusive[=user]] [-w hosts] [-x hosts] [-K[signal]] [--no-shell] [command [args...]]",
        .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 255, .stop_at_word = true, .env_prefix = {"SALLOC_"},
        .note = "Options of Slurm that are not listed are refused by name: see docs/compatibility.md."};
    return &t;
}

static bool read_options(struct salloc *s, struct opt_run *r) {
    struct cli *c = s->run.job.c;
    bool ok = opt_scan(r, c->argc - 1, (const char *const *)c->argv + 1);
    size_t typed = r->items.n;
    if (!ok)
        return false;
    opt_scan_env(r, cli_env);
    s->run.job.level = 1;
    ok = opt_apply(r, typed, r->items.n);
    s->run.job.level = 2;
    return ok && opt_apply(r, 0, typed);
}

static void say_granted(const struct salloc *s, const struct srun_alloc *a) {
    struct cli *c = s->run.job.c;
    const struct job *j = srun_alloc_job(a);
    if (s->run.job.quiet)
        return;
    auto_str nodes = {0};
    const char **names = arena_calloc(&c->arena, MAX(j->n_nodes, 1u), sizeof(*names));
    for (uint32_t i = 0; i < j->n_nodes; i++)
        names[i] = j->nodes[i].name;
    hostlist_compact(names, j->n_nodes, &nodes);
    cli_say(c, "Granted job allocation %u", a->job_id);
    cli_say(c, "Nodes %s are ready for job", str_text(&nodes));
}

/* What the record of a job does not say. Without it the command runs as well. */
static const char *cluster_name(struct salloc *s, uint32_t job_id) {
    struct jobs_request request = {.job_ids = &job_id, .n_job_ids = 1};
    struct jobs_reply reply = {0};
    struct err e = {0};
    return cli_call(s->run.job.c, WIRE_Controller_Jobs, &request, &reply, &e) ? NULL : reply.cluster_name;
}

static int run(struct salloc *s) {
    struct srun_alloc a = {.s = &s->run, .signal_fd = srun_signals()};
    int rc = srun_alloc_get(&a);
    if (rc)
        return rc;
    say_granted(s, &a);
    if (!s->no_shell) {
        extern char **environ;
        char *const *env = salloc_env(s, srun_alloc_job(&a), cluster_name(s, a.job_id), environ);
        rc = salloc_command(s, &a, env);
    }
    srun_alloc_fini(&a);
    return rc;
}

int cmd_salloc(struct cli *c) {
    struct salloc s = {.run = {.job = {.c = c}, .kind = "salloc"}};
    struct opt_run r;
    struct err e = {0};
    int rc = 1;
    opt_init(&r, cmd_salloc_options(), c->prog, &s);
    if (!read_options(&s, &r)) {
        rc = cli_stop(&r);
        opt_fini(&r);
        return rc;
    }
    s.run.job.more.interactive = true;
    s.run.job.more.no_shell = s.no_shell;
    if (!s.run.job.spec.name)
        s.run.job.spec.name = "interactive";
    if (!srun_settle(&s.run, &r)) {
        rc = s.run.exit_error;
    } else if (sbatch_facts(&s.run.job, &e)) {
        cli_error(c, "%s", e.text);
    } else {
        rc = run(&s);
    }
    opt_fini(&r);
    return rc;
}
