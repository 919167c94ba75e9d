/* SPDX-License-Identifier: Apache-2.0
 *
 * srun's options that are not sbatch's too (the rows of all of them are in job_options.c), its variables, and what follows from
 * all of them together.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/model/bind.h"
#include "spur/command.h"
#include "spur/job_options.h"
#include "spur/srun.h"

#define RUN(r) ((struct srun *)(r)->ctx)

int srun_ask_immediate(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t secs = 1;
    if (value && str_to_u64(value, INT32_MAX, &secs))
        return opt_bad_value(r, o);
    RUN(r)->immediate_secs = (uint32_t)secs + 1;
    return 0;
}

int srun_ask_bad_exit(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t yes = 1;
    if (value && str_to_u64(value, INT32_MAX, &yes))
        return opt_bad(r, 1, "Invalid numeric value \"%s\" for --%s.", value, o->name);
    RUN(r)->bad_exit = yes ? BAD_EXIT_KILLS : BAD_EXIT_GOES_ON;
    return 0;
}

int srun_ask_wait(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t secs;
    if (str_to_u64(value, INT32_MAX, &secs))
        return opt_bad(r, 1, "Invalid numeric value \"%s\" for --%s.", value, o->name);
    RUN(r)->wait_secs = (uint32_t)secs;
    return 0;
}

int srun_ask_job(struct opt_run *r, const struct opt_row *o, const char *value) {
    RUN(r)->job_id_text = value;
    return 0;
}

int srun_ask_pty(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t fd = 0;
    if (value && str_to_u64(value, 1023, &fd))
        return opt_bad_value(r, o);
    RUN(r)->pty = true;
    RUN(r)->pty_fd = (int)fd;
    return 0;
}

int srun_ask_mpi(struct opt_run *r, const struct opt_row *o, const char *value) {
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

int srun_ask_nodes(struct opt_run *r, const struct opt_row *o, const char *value) {
    int rc = ask_nodes(r, o, value);
    if (!rc && !RUN(r)->job.spec.min_nodes)
        rc = opt_bad(r, 1, "Unable to allocate resources: Node count specification invalid");
    return rc;
}

static const char bind_help[] =
    "CPU bind options:\n"
    "    --cpu-bind=         Bind tasks to CPUs\n"
    "        q[uiet]         quietly bind before task runs (default)\n"
    "        v[erbose]       verbosely report binding before task runs\n"
    "        no[ne]          don't bind tasks to CPUs (default)\n"
    "        rank            bind by task rank\n"
    "        map_cpu:<list>  specify a CPU ID binding for each task\n"
    "                        where <list> is <cpuid1>,<cpuid2>,...<cpuidN>\n"
    "        mask_cpu:<list> specify a CPU ID binding mask for each task\n"
    "                        where <list> is <mask1>,<mask2>,...<maskN>\n"
    "        help            show this help message\n";

int srun_ask_cpu_bind(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct cpu_bind_ask b;
    if (cpu_bind_parse(value, &b)) {
        opt_bad(r, 1, "unrecognized --cpu-bind argument \"%s\"", value);
        str_addf(&r->err, "%s: fatal: Failed to parse --cpu-bind= values.\n", r->prog);
        return -1;
    }
    if (b.is_help) {
        str_add(&r->out, bind_help);
        r->exit_code = 0;
        return -1;
    }
    if (b.kind == CPU_BIND_LATER)
        return opt_bad(r, 1, "option --%s=%s is not supported yet (see docs/compatibility.md)", o->name, value);
    RUN(r)->cpu_bind = b.kind == CPU_BIND_NONE && !b.verbose ? NULL : value;
    return 0;
}

int srun_ask_het(struct opt_run *r, const struct opt_row *o, const char *value) {
    return opt_bad(r, 1, "--het-group expected to be used within an HetJob allocation");
}

const struct opt_table *cmd_srun_options(void) {
    static struct opt_table t = {
        .usage = "[OPTIONS...] executable [args...]",
        .brief = "[-N nnodes] [-n ntasks] [-c ncpus] [-i in] [-o out] [-e err] [-p partition] [-l]\n"
                 "     [-t minutes] [-D path] [-J jobname] [--jobid=id] [-I[secs]] [-K[0|1]] [-W sec]\n"
                 "     [--mem=MB] [--gres=list] [--gpus=n] [--overlap] [--exact] [--exclusive[=user]]\n"
                 "     [--multi-prog] [--pty] [--export=names] [-m block|cyclic] [-w hosts] [-x hosts]\n"
                 "     executable [args...]",
        .usage_exit = 255, .stop_at_word = true, .words = "commands",
        .env_prefix = {"SLURM_", "SRUN_", "SPUR_"},
        .note = "Options of Slurm that are not listed are refused by name: see docs/compatibility.md."};
    t.row = job_option_rows(JOB_SRUN, &t.n);
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

/* As Slurm: a program named without a path is looked for in the working directory first, then (by the task) in PATH. */
static void look_here(struct srun *s) {
    struct arena *a = &s->job.c->arena;
    const char *name = s->n_argv ? s->argv[0] : "", *dir = s->job.spec.work_dir;
    autofree char *here = dir && *dir ? realpath(dir, NULL) : getcwd(NULL, 0);
    struct stat st;
    if (!*name || strchr(name, '/') || !here)
        return;
    const char *path = arena_printf(a, "%s/%s", here, name);
    if (stat(path, &st) || !S_ISREG(st.st_mode) || access(path, X_OK))
        return;
    const char **argv = arena_memdup(a, s->argv, s->n_argv * sizeof(*argv));
    argv[0] = path;
    s->argv = argv;
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
    if (!s->multi_prog)
        look_here(s);
    return true;
}

/* The task of an array that is named "12_3": the job that it has become. One that waits is none yet, and never stands for
 * a sibling. */
static bool find_task(struct srun *s, uint32_t array_id, uint32_t task) {
    struct cli *c = s->job.c;
    struct jobs_request request = {.job_ids = &array_id, .n_job_ids = 1, .with_ended = true};
    struct jobs_reply reply = {0};
    struct err e = {0};
    int rc = cli_call(c, WIRE_Controller_Jobs, &request, &reply, &e);
    for (uint32_t i = 0; !rc && i < reply.n_jobs; i++) {
        const struct job *j = reply.jobs[i].job;
        if (j->array && j->array->task == task + 1)
            s->job_id = j->id;
        if (j->array && !j->array->task && array_has(j->array->pending, j->array->n_pending, task))
            rc = E_JOB_PENDING;
    }
    if (!rc && !s->job_id)
        rc = E_JOB_ID;
    if (rc)
        cli_error(c, "Unable to confirm allocation for job %s: %s", s->job_id_text, err_sentence(rc));
    return rc == 0;
}

static bool find_job(struct srun *s) {
    struct cli *c = s->job.c;
    struct job_name name;
    if (job_name_parse(cli_sluids(c, s->job_id_text), 0, &c->arena, &name, NULL)) {
        cli_error(c, "Invalid job id: %s", s->job_id_text);
        return false;
    }
    if (name.target.n_tasks)
        return find_task(s, name.target.job_id, name.target.tasks->first);
    s->job_id = name.target.job_id;
    return true;
}

/* What goes with a GPU is the job's: a step has of it what it asks for. */
static bool leave_to_the_job(struct srun *s, const struct opt_run *r) {
    bool has_gpus = false, has_tasks = false; /* of its own, not by the job's variables */
    for (size_t i = 0; i < r->items.n; i++) {
        const char *name = r->items.p[i].row->name;
        has_gpus |= !r->items.p[i].env && str_eq(name, "gpus-per-node");
        has_tasks |= !r->items.p[i].env && str_eq(name, "ntasks-per-gpu");
        if (r->items.p[i].env || (!str_eq(name, "cpus-per-gpu") && !str_eq(name, "mem-per-gpu")))
            continue;
        cli_error(s->job.c, "option --%s of a step is not supported yet (see docs/compatibility.md)", name);
        return false;
    }
    s->job.gpus_per_node = has_gpus ? s->job.gpus_per_node : NULL;
    s->job.tasks_per_gpu = has_tasks ? s->job.tasks_per_gpu : 0;
    s->job.seldom.cpus_per_gpu = 0;
    s->job.mem[ASK_MEM_GPU].level = 0;
    return true;
}

/* With -m arbitrary the numbers of tasks and nodes are the list's, not the job's: its list, where none is given. */
static bool deal_out(struct srun *s, const struct opt_run *r) {
    struct job_ask *a = &s->job.ask;
    const struct opt_item *tasks = opt_find(r, "ntasks"), *nodes = opt_find(r, "nodes");
    if (!job_ask_hostfile(a))
        return false;
    if (!str_eq(a->more.distribution, "arbitrary"))
        return true;
    if (!a->node_list && s->is_inside)
        a->node_list = srun_env_get("SLURM_ARBITRARY_NODELIST");
    if (tasks && tasks->env)
        a->spec.n_tasks_given = 0;
    if (nodes && nodes->env) {
        a->spec.min_nodes = a->spec.max_nodes = a->more.nodes_given = 0;
        a->spec.min_nodes_given = false;
    }
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
        if (!find_job(s))
            return false;
        s->is_inside = true;
        s->job.more.interactive = false;
    }
    if (s->is_inside && s->job.more.exclusive) { /* of a step: CPUs of its own */
        s->exact = true;
        s->job.more.exclusive = EXCLUSIVE_NO;
    }
    if (s->is_inside && !leave_to_the_job(s, r))
        return false;
    if (!deal_out(s, r) || !job_ask_settle(&s->job.ask))
        return false;
    if (!s->is_inside)
        job_ask_all_named(&s->job.ask);
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
