/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of a batch script: the submitter's, without what an outer job put into it, then what Slurm gives its
 * batch scripts, each SLURM_ variable with a SPUR_ twin.
 *
 * A user may well have SLURM_ variables of their own (SLURM_CONF, SLURM_HINT, SLURM_MPI_TYPE): those stay, as long as
 * the environment is no job's. In a job's environment nobody can tell the job's from the user's, and a wrong SLURM_
 * variable makes the inner job's srun fail: there all go but those of a short list.
 */
#include "spurd/launch/env.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/model/text.h"
#include "spurd/launch/gpus.h"

#define YEAR_SECS (365ll * 86400) /* what Slurm writes as the end of a job without limit */

/* ---- what comes from the submitter ---- */

/* Names behind SLURM_ or SPUR_ that speak of a job's shape; a trailing * stands for any rest. */
static const char *const shape[] = {
    "ARRAY_*",      "CLUSTER_NAME", "CPUS_ON_NODE", "CPUS_PER_GPU", "CPUS_PER_TASK", "CPU_FREQ_REQ", "DISTRIBUTION",
    "DIST_PLANESIZE", "ARBITRARY_NODELIST",
    "EXIT_CODE",    "GPUS*",        "GTIDS",        "HET_*",        "JOB*",          "LAUNCH_NODE_IPADDR",
    "LOCALID",      "MEM_PER_*",    "NNODES",       "NODEID",       "NODELIST",      "NODE_ALIASES", "NPROCS",
    "NTASKS*",      "OOM_KILL_STEP", "OPEN_MODE",   "PACK_*",       "PRIO_PROCESS",  "PROCID",       "RESTART_COUNT",
    "RESV_*",       "RLIMIT_*",     "RUN_ID",       "SRUN_COMM_*",  "STEP*",         "TASKS_PER_NODE", "TASK_PID",
    "TOPOLOGY_*",   "TRES_*",       "UMASK",        "THREADS_PER_CORE", "PROFILE",   "WORKING_CLUSTER", "NODE_RANK",
};

/* What of a job's environment is surely not the job's: where the cluster is, and what the submitting command says. */
static const char *const kept[] = {
    "CONF", "CONTROLLER", "CONTROLLER_ADDR", "JWT", "COMPAT", "EXPORT_ENV", "GET_USER_ENV", "TIME_FORMAT", "DEBUG_FLAGS",
};

static const char *const devices[] = {
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
    "NVIDIA_VISIBLE_DEVICES",
};

static bool listed(const char *const *list, size_t n, const char *name, size_t n_name) {
    for (size_t i = 0; i < n; i++) {
        size_t n_word = strlen(list[i]);
        bool open = list[i][n_word - 1] == '*';
        n_word -= open;
        if ((open ? n_name >= n_word : n_name == n_word) && !memcmp(list[i], name, n_word))
            return true;
    }
    return false;
}

static bool comes_along(const char *entry, bool from_job) {
    size_t n = strcspn(entry, "=");
    if (!n || entry[n] != '=')
        return false;
    if (str_starts(entry, "SLURMD_") || str_starts(entry, "SPURD_"))
        return false;
    if (from_job && listed(devices, ARRAY_LEN(devices), entry, n))
        return false;
    size_t prefix = str_starts(entry, "SLURM_") ? 6 : str_starts(entry, "SPUR_") ? 5 : 0;
    if (!prefix)
        return true;
    const char *name = entry + prefix;
    n -= prefix;
    if (listed(kept, ARRAY_LEN(kept), name, n))
        return true;
    return !from_job && !listed(shape, ARRAY_LEN(shape), name, n);
}

static bool blob_next(const struct launch_request *q, size_t *at, const char **out) {
    *out = env_blob_next(q->env, q->n_env, at);
    return *out != NULL;
}

static bool is_jobs(const struct launch_request *q) {
    const char *entry;
    for (size_t at = 0; blob_next(q, &at, &entry);) {
        if (str_starts(entry, "SLURM_JOB_ID=") || str_starts(entry, "SPUR_JOB_ID="))
            return true;
    }
    return false;
}

static void add_submitters(struct env *env, const struct launch_request *q) {
    bool from_job = is_jobs(q);
    const char *entry;
    for (size_t at = 0; blob_next(q, &at, &entry);) {
        if (comes_along(entry, from_job))
            vec_push(&env->entries, entry); /* of two of one name the first counts, as getenv(3) has it */
    }
}

/* --export=NIL, the only one of the three without ALL that asks for no login. */
static bool is_bare(const struct env *env, const struct job_spec *s) {
    const char *export = env_get(env, "SLURM_EXPORT_ENV");
    return s->env_minimal && export && !strcasecmp(export, "NIL");
}

/* What a login would have given, where it is missing. */
static void add_user(struct env *env, const struct launch_request *q, const struct launch_facts *f) {
    const struct job_spec *s = q->spec;
    if (!env_get(env, "TMPDIR"))
        env_set(env, "TMPDIR", "/tmp");
    if (s->work_dir && env_get(env, "PWD"))
        env_set(env, "PWD", "%s", s->work_dir);
    if (is_bare(env, s))
        return;
    const struct {
        const char *name, *value;
    } wanted[] = {
        {"USER", s->user},
        {"LOGNAME", s->user},
        {"HOME", f->home},
        {"SHELL", f->shell},
        {"PATH", s->uid == 0 ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                             : "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        if (job_spec_more(s)->login_env && str_eq(wanted[i].name, "PATH"))
            continue; /* the login's */
        if (wanted[i].value && !env_get(env, wanted[i].name))
            env_set(env, wanted[i].name, "%s", wanted[i].value);
    }
}

/* What --export has put in, by both names. */
static void add_export(struct env *env) {
    static const char *const names[] = {"EXPORT_ENV", "GET_USER_ENV"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = env_get(env, arena_printf(env->a, "SLURM_%s", names[i]));
        if (value)
            env_set(env, arena_printf(env->a, "SPUR_%s", names[i]), "%s", value);
    }
}

/* ---- what Slurm gives ---- */

/* "2(x3),1": runs of equal numbers. */
static const char *runs_of(struct arena *a, const struct launch_request *q,
                           uint32_t (*number)(const struct launch_request *, uint32_t i)) {
    auto_str out = {0};
    for (uint32_t i = 0, j; i < q->n_nodes; i = j) {
        for (j = i + 1; j < q->n_nodes && number(q, j) == number(q, i); j++) {
        }
        str_addf(&out, "%s%u", i ? "," : "", number(q, i));
        if (j - i > 1)
            str_addf(&out, "(x%u)", j - i);
    }
    return arena_strdup(a, str_text(&out));
}

static uint32_t cpus_of(const struct launch_request *q, uint32_t i) {
    return q->nodes[i].cpus;
}

static uint32_t tasks_of(const struct launch_request *q, uint32_t i) {
    uint32_t each = q->spec->cpus_per_task ? q->spec->cpus_per_task : 1;
    return q->spec->n_tasks_given ? q->nodes[i].n_tasks : MAX(q->nodes[i].cpus / each, 1u);
}

static const char *node_list(struct arena *a, const struct launch_request *q) {
    const char **names = arena_calloc(a, q->n_nodes, sizeof(*names));
    for (uint32_t i = 0; i < q->n_nodes; i++)
        names[i] = q->nodes[i].name;
    auto_str out = {0};
    hostlist_compact(names, q->n_nodes, &out);
    return arena_strdup(a, str_text(&out));
}

/* As it was submitted, whatever was cancelled since. */
static void add_array(struct env *env, const struct job_spec *s, const struct job_array *array) {
    const struct job_more *more = job_spec_more(s);
    const char *step = more->array ? strchr(more->array, ':') : NULL;
    env_twin(env, "ARRAY_JOB_ID", "%u", array->job_id);
    env_twin(env, "ARRAY_TASK_ID", "%u", array->task - 1);
    if (!more->n_array_ranges)
        return;
    env_twin(env, "ARRAY_TASK_COUNT", "%u", array_count(more->array_ranges, more->n_array_ranges));
    env_twin(env, "ARRAY_TASK_MIN", "%u", more->array_ranges[0].first);
    env_twin(env, "ARRAY_TASK_MAX", "%u", more->array_ranges[more->n_array_ranges - 1].last);
    env_twin(env, "ARRAY_TASK_STEP", "%lu", step ? strtoul(step + 1, NULL, 10) : 1ul);
}

void env_add_job(struct env *env, const struct launch_request *q) {
    const struct job_spec *s = q->spec;
    bool limited = q->time_limit_min && q->time_limit_min != TIME_LIMIT_NONE;
    int64_t lasts = limited ? (int64_t)q->time_limit_min * 60 : YEAR_SECS;
    env_twin(env, "JOB_ID", "%u", q->job_id);
    env_twin(env, "JOBID", "%u", q->job_id);
    if (s->name)
        env_twin(env, "JOB_NAME", "%s", s->name);
    if (s->account)
        env_twin(env, "JOB_ACCOUNT", "%s", s->account);
    if (s->qos)
        env_twin(env, "JOB_QOS", "%s", s->qos);
    if (q->partition)
        env_twin(env, "JOB_PARTITION", "%s", q->partition);
    if (q->sluid)
        env_twin(env, "JOB_SLUID", "%s", q->sluid);
    env_twin(env, "JOB_UID", "%u", s->uid);
    env_twin(env, "JOB_GID", "%u", s->gid);
    if (s->user)
        env_twin(env, "JOB_USER", "%s", s->user);
    if (q->start_unix) {
        env_twin(env, "JOB_START_TIME", "%" PRId64, q->start_unix);
        env_twin(env, "JOB_END_TIME", "%" PRId64, q->start_unix + lasts);
    }
    if (q->restarts)
        env_twin(env, "RESTART_COUNT", "%u", q->restarts);
    if (s->open_mode)
        env_twin(env, "OPEN_MODE", "%s", s->open_mode == OPEN_APPEND ? "a" : "t");
    if (q->array && q->array->task)
        add_array(env, s, q->array);
}

static void add_tres_per_task(struct env *env, const struct job_spec *s) {
    const struct job_more *more = job_spec_more(s);
    auto_str text = {0};
    if (s->cpus_per_task_given)
        str_addf(&text, "cpu=%u", s->cpus_per_task_given);
    for (uint32_t i = 0; i < more->n_gres; i++) {
        const struct gres_ask *g = &more->gres[i];
        if (g->per == GRES_PER_TASK)
            str_addf(&text, "%sgres/%s%s%s=%" PRIu64, text.n ? "," : "", g->name, g->type ? ":" : "", g->type ? g->type : "", g->count);
    }
    if (text.n)
        env_twin(env, "TRES_PER_TASK", "%s", text.p);
}

/* "plane=2" is two variables. */
static void add_distribution(struct env *env, const struct job_more *m) {
    size_t n = m->distribution ? strcspn(m->distribution, "=") : 0;
    auto_str nodes = {0};
    if (!n)
        return;
    env_twin(env, "DISTRIBUTION", "%.*s", (int)n, m->distribution);
    if (m->distribution[n])
        env_twin(env, "DIST_PLANESIZE", "%s", m->distribution + n + 1);
    for (uint32_t i = 0; i < m->n_task_nodes; i++)
        str_addf(&nodes, "%s%s", i ? "," : "", m->task_nodes[i]);
    if (nodes.n)
        env_twin(env, "ARBITRARY_NODELIST", "%s", nodes.p);
}

static void add_seldom(struct env *env, const struct job_seldom *d) {
    const struct {
        const char *name;
        uint64_t value;
    } number[] = {{"NTASKS_PER_CORE", d->tasks_per_core}, {"NTASKS_PER_SOCKET", d->tasks_per_socket}, {"THREADS_PER_CORE", d->threads},
                  {"CPUS_PER_GPU", d->cpus_per_gpu}, {"MEM_PER_GPU", d->mem_gpu_mb}, {"NTASKS_PER_GPU", d->tasks_per_gpu}};
    for (size_t i = 0; i < ARRAY_LEN(number); i++)
        if (number[i].value)
            env_twin(env, number[i].name, "%" PRIu64, number[i].value);
    if (d->gpus_per_node)
        env_twin(env, "GPUS_PER_NODE", "%s", d->gpus_per_node);
}

void env_add_shape(struct env *env, const struct launch_request *q) {
    const struct job_spec *s = q->spec;
    const char *nodes = node_list(env->a, q);
    env_twin(env, "JOB_NODELIST", "%s", nodes);
    env_twin(env, "NODELIST", "%s", nodes);
    env_twin(env, "JOB_NUM_NODES", "%u", q->n_nodes);
    env_twin(env, "NNODES", "%u", q->n_nodes);
    env_twin(env, "JOB_CPUS_PER_NODE", "%s", runs_of(env->a, q, cpus_of));
    env_twin(env, "TASKS_PER_NODE", "%s", runs_of(env->a, q, tasks_of));
    env_twin(env, "CPUS_ON_NODE", "%u", q->nodes[q->node_index].cpus);
    if (s->n_tasks_given) {
        env_twin(env, "NTASKS", "%u", s->n_tasks_given);
        env_twin(env, "NPROCS", "%u", s->n_tasks_given);
    }
    if (s->cpus_per_task_given) {
        env_twin(env, "CPUS_PER_TASK", "%u", s->cpus_per_task_given);
    }
    add_tres_per_task(env, s);
    const struct job_more *more = job_spec_more(s);
    if (more->tasks_per_node)
        env_twin(env, "NTASKS_PER_NODE", "%u", more->tasks_per_node);
    if (more->seldom)
        add_seldom(env, more->seldom);
    add_distribution(env, more);
    if (more->gpus_text)
        env_twin(env, "GPUS", "%s", more->gpus_text);
    uint64_t gpus = gpus_count(q->nodes[q->node_index].gres, q->nodes[q->node_index].n_gres);
    if (!gpus)
        return;
    const char *list = gpus_list(env->a, q->nodes[q->node_index].gres, q->nodes[q->node_index].n_gres);
    env_twin(env, "GPUS_ON_NODE", "%" PRIu64, gpus);
    env_twin(env, "JOB_GPUS", "%s", list);
    env_add_devices(env, list);
}

static void add_place(struct env *env, const struct launch_request *q, const struct launch_facts *f) {
    const struct job_spec *s = q->spec;
    if (q->cluster_name)
        env_twin(env, "CLUSTER_NAME", "%s", q->cluster_name);
    if (f->config_path)
        env_twin(env, "CONF", "%s", f->config_path);
    if (f->controllers && !env_get(env, "SPUR_CONTROLLER_ADDR") && !env_get(env, "SPUR_CONTROLLER"))
        env_set(env, "SPUR_CONTROLLER_ADDR", "%s", f->controllers);
    /* the submitting command knows where it was started; what an outer job left has not come along */
    const char *dir = env_get(env, "SLURM_SUBMIT_DIR") ? env_get(env, "SLURM_SUBMIT_DIR") : s->work_dir;
    const char *host = env_get(env, "SLURM_SUBMIT_HOST") ? env_get(env, "SLURM_SUBMIT_HOST") : s->submit_host;
    if (dir)
        env_twin(env, "SUBMIT_DIR", "%s", dir);
    if (host)
        env_twin(env, "SUBMIT_HOST", "%s", host);
    env_twin(env, "NODEID", "%u", q->node_index);
    env_set(env, "SPUR_NODE_RANK", "%u", q->node_index);
    auto_str peers = {0}; /* AMD Spur's names for the job's nodes, one by one */
    for (uint32_t i = 0; i < q->n_nodes; i++)
        str_addf(&peers, "%s%s", i ? "," : "", q->nodes[i].name);
    env_set(env, "SPUR_PEER_NODES", "%s", str_text(&peers));
    env_twin(env, "TOPOLOGY_ADDR", "%s", f->node_name);
    env_twin(env, "TOPOLOGY_ADDR_PATTERN", "node");
    env_set(env, "SLURMD_NODENAME", "%s", f->node_name);
    env_set(env, "SPURD_NODENAME", "%s", f->node_name);
    env_set(env, "HOSTNAME", "%s", f->node_name);
}

/* What a script is told of its job and a task of srun's own job is not. */
static void add_terms(struct env *env, const struct job_spec *s) {
    const struct job_more *more = job_spec_more(s);
    env_twin(env, "JOB_EXCLUSIVE", "%s", exclusive_word(s));
    env_twin(env, "JOB_OVERSUBSCRIBE", "%s", oversubscribe_word(s));
    if (s->mem_node_mb)
        env_twin(env, "MEM_PER_NODE", "%" PRIu64, s->mem_node_mb);
    else if (more->mem_cpu_mb)
        env_twin(env, "MEM_PER_CPU", "%" PRIu64, more->mem_cpu_mb);
}

static void add_step(struct env *env) {
    static const struct {
        const char *name, *value;
    } fixed[] = {{"GTIDS", "0"},         {"LOCALID", "0"}, {"PROCID", "0"},  {"STEP_ID", "-5"}, {"STEPID", "-5"},
                 {"OOM_KILL_STEP", "0"}, {"TASK_PID", ""}, {"PRIO_PROCESS", "0"}};
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        env_twin(env, fixed[i].name, "%s", fixed[i].value);
    /* MPI launchers take these as: start your daemons through srun */
    static const char *const hints[] = {
        "ENVIRONMENT=BATCH",
        "HYDRA_BOOTSTRAP=slurm",
        "HYDRA_LAUNCHER_EXTRA_ARGS=--external-launcher",
        "I_MPI_HYDRA_BOOTSTRAP=slurm",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=--external-launcher",
        "OMPI_MCA_plm_slurm_args=--external-launcher",
        "PRTE_MCA_plm_slurm_args=--external-launcher",
    };
    for (size_t i = 0; i < ARRAY_LEN(hints); i++)
        env_put(env, hints[i]);
}

/* Where each node runs the script: what frameworks with one process a node look for, as AMD Spur gives it. */
static void add_ranks(struct env *env, const struct launch_request *q) {
    env_twin(env, "PROCID", "%u", q->node_index);
    env_set(env, "RANK", "%u", q->node_index);
    env_set(env, "WORLD_SIZE", "%u", q->n_nodes);
    env_set(env, "MASTER_ADDR", "%s", q->first_address ? q->first_address : q->nodes[0].name);
    env_set(env, "MASTER_PORT", "%u", 29500u);
    if (!env_get(env, "OMP_NUM_THREADS"))
        env_set(env, "OMP_NUM_THREADS", "%u", MAX(q->spec->cpus_per_task, 1u));
}

void launch_env(const struct launch_request *q, const struct launch_facts *f, const char *run_id, struct arena *a,
                const char *const **out, uint32_t *out_n) {
    struct env env = {.a = a};
    add_submitters(&env, q);
    add_export(&env);
    add_user(&env, q, f);
    add_place(&env, q, f);
    env_add_job(&env, q);
    env_add_shape(&env, q);
    add_terms(&env, q->spec);
    add_step(&env);
    if (q->everywhere)
        add_ranks(&env, q);
    env_set(&env, "SPUR_RUN_ID", "%s", run_id);
    env_take(&env, out, out_n);
}
