/* SPDX-License-Identifier: Apache-2.0
 *
 * The ticket says who, where and how much; the client what. The environment is the client's, with what the job and the
 * step are put over it: what it says of them itself doesn't count.
 */
#include "spurd/launch/step.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "core/model/bind.h"
#include "core/model/text.h"
#include "spurd/launch/env.h"
#include "spurd/launch/gpus.h"

#define UNKILLABLE_SECS 60u
#define UMASK_DEFAULT 022u

struct making {
    const struct step_ticket *k;
    const struct stream_launch *l;
    const struct launch_facts *f;
    const struct step_node *own; /* this node's share of the step */
    uint32_t node_index;         /* in the step */
    struct launch_request q;     /* the job, as the batch script's launch would say it */
    struct arena *a;
};

/* ---- checks ---- */

static int check_launch(const struct making *m, struct err *e) {
    const struct stream_launch *l = m->l;
    if (!l || (!l->n_argv && !l->n_multi_prog))
        return err_set(e, E_SYNTAX, "a step without command");
    for (uint32_t i = 0; l->n_multi_prog && i < m->own->n_ranks; i++) {
        if (m->own->ranks[i] >= l->n_multi_prog || !l->multi_prog[m->own->ranks[i]].n_words)
            return err_set(e, E_SYNTAX, "--multi-prog has no command for task %u", m->own->ranks[i]);
    }
    return 0;
}

static int check(struct making *m, struct err *e) {
    const struct step_ticket *k = m->k;
    if (!k->step || !k->step->spec || !k->spec || !k->n_job_nodes)
        return err_set(e, E_SYNTAX, "a ticket without job or step");
    for (uint32_t i = 0; i < k->step->n_nodes; i++) {
        if (str_eq(k->step->nodes[i].name, m->f->node_name)) {
            m->own = &k->step->nodes[i];
            m->node_index = i;
        }
    }
    for (uint32_t i = 0; i < k->n_job_nodes; i++) {
        if (str_eq(k->job_nodes[i].name, m->f->node_name))
            m->q.node_index = i;
    }
    if (!m->own || !m->own->n_ranks || m->own->n_ranks > STEP_TASKS_MAX ||
        !str_eq(k->job_nodes[m->q.node_index].name, m->f->node_name))
        return err_set(e, E_SYNTAX, "step %u.%u has nothing to do on node %s", k->job_id, k->step_id, m->f->node_name);
    if (!m->f->is_root && k->uid != m->f->own_uid)
        return err_set(e, E_DENIED, "the agent of node %s is not root and runs jobs of user id %u alone, not of %u",
                       m->f->node_name, m->f->own_uid, k->uid);
    return check_launch(m, e);
}

/* ---- environment ---- */

static const char *ranks_text(struct arena *a, const struct step_node *n) {
    auto_str out = {0};
    for (uint32_t i = 0; i < n->n_ranks; i++)
        str_addf(&out, "%s%u", i ? "," : "", n->ranks[i]);
    return arena_strdup(a, str_text(&out));
}

/* "2(x3),1" */
static const char *tasks_text(struct arena *a, const struct step *s) {
    auto_str out = {0};
    for (uint32_t i = 0, j; i < s->n_nodes; i = j) {
        for (j = i + 1; j < s->n_nodes && s->nodes[j].n_ranks == s->nodes[i].n_ranks; j++) {
        }
        str_addf(&out, "%s%u", i ? "," : "", s->nodes[i].n_ranks);
        if (j - i > 1)
            str_addf(&out, "(x%u)", j - i);
    }
    return arena_strdup(a, str_text(&out));
}

static const char *nodes_text(struct arena *a, const struct step *s) {
    const char **names = arena_calloc(a, s->n_nodes, sizeof(*names));
    auto_str out = {0};
    for (uint32_t i = 0; i < s->n_nodes; i++)
        names[i] = s->nodes[i].name;
    hostlist_compact(names, s->n_nodes, &out);
    return arena_strdup(a, str_text(&out));
}

static void add_step(struct env *env, const struct making *m) {
    const struct step *s = m->k->step;
    uint32_t n_tasks = 0;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        n_tasks += s->nodes[i].n_ranks;
    const char *tasks = tasks_text(m->a, s);
    env_twin(env, "STEP_ID", "%u", m->k->step_id);
    env_twin(env, "STEPID", "%u", m->k->step_id);
    env_twin(env, "STEP_NODELIST", "%s", nodes_text(m->a, s));
    env_twin(env, "STEP_NUM_NODES", "%u", s->n_nodes);
    env_twin(env, "STEP_NUM_TASKS", "%u", n_tasks);
    env_twin(env, "STEP_TASKS_PER_NODE", "%s", tasks);
    env_twin(env, "NNODES", "%u", s->n_nodes);
    env_twin(env, "NTASKS", "%u", n_tasks);
    env_twin(env, "NPROCS", "%u", n_tasks);
    env_twin(env, "TASKS_PER_NODE", "%s", tasks);
    if (!str_eq(step_distribution(s->spec), "block") || n_tasks > s->n_nodes) /* one each can be dealt out in one way only */
        env_twin(env, "DISTRIBUTION", "%s", step_distribution(s->spec));
    if (s->spec->plane)
        env_twin(env, "DIST_PLANESIZE", "%u", s->spec->plane);
    env_twin(env, "GTIDS", "%s", ranks_text(m->a, m->own));
    env_twin(env, "NODEID", "%u", m->node_index);
    if (m->own->cpus)
        env_twin(env, "CPUS_ON_NODE", "%u", m->own->cpus);
    if (s->spec->cpus_per_task > 1)
        env_twin(env, "CPUS_PER_TASK", "%u", s->spec->cpus_per_task);
}

static void add_binding(struct env *env, const struct stream_launch *l);

static void add_place(struct env *env, const struct making *m, uint32_t umask) {
    const struct stream_launch *l = m->l;
    if (m->k->cluster_name)
        env_twin(env, "CLUSTER_NAME", "%s", m->k->cluster_name);
    if (m->k->spec->group)
        env_twin(env, "JOB_GROUP", "%s", m->k->spec->group);
    if (m->k->job_start_unix && !env_get(env, "SLURM_JOB_START_TIME"))
        env_twin(env, "JOB_START_TIME", "%" PRId64, m->k->job_start_unix);
    if (m->k->job_end_unix && !env_get(env, "SLURM_JOB_END_TIME"))
        env_twin(env, "JOB_END_TIME", "%lld", (long long)m->k->job_end_unix);
    if (l->launch_address) {
        env_twin(env, "LAUNCH_NODE_IPADDR", "%s", l->launch_address);
        env_twin(env, "SRUN_COMM_HOST", "%s", l->launch_address);
    }
    if (l->launch_port)
        env_twin(env, "SRUN_COMM_PORT", "%u", l->launch_port);
    const char *dir = env_get(env, "SLURM_SUBMIT_DIR") ? env_get(env, "SLURM_SUBMIT_DIR") : l->submit_dir;
    const char *host = env_get(env, "SLURM_SUBMIT_HOST") ? env_get(env, "SLURM_SUBMIT_HOST") : l->submit_host;
    if (dir)
        env_twin(env, "SUBMIT_DIR", "%s", dir);
    if (host)
        env_twin(env, "SUBMIT_HOST", "%s", host);
    if (m->f->config_path)
        env_twin(env, "CONF", "%s", m->f->config_path);
    env_twin(env, "UMASK", "%04o", umask);
    add_binding(env, l);
    env_twin(env, "OOM_KILL_STEP", "0");
    env_twin(env, "PRIO_PROCESS", "0");
    env_twin(env, "TOPOLOGY_ADDR", "%s", m->f->node_name);
    env_twin(env, "TOPOLOGY_ADDR_PATTERN", "node");
    env_set(env, "SLURMD_NODENAME", "%s", m->f->node_name);
    env_set(env, "SPURD_NODENAME", "%s", m->f->node_name);
    env_set(env, "TMPDIR", "%s", env_get(env, "TMPDIR") ? env_get(env, "TMPDIR") : "/tmp");
}

static void held_gres(const struct making *m, const struct gres_held **out, uint32_t *out_n) {
    const struct job_node *job = &m->k->job_nodes[m->q.node_index];
    *out = m->own->n_gres ? m->own->gres : job->gres;
    *out_n = m->own->n_gres ? m->own->n_gres : job->n_gres;
}

static void add_gpus(struct env *env, const struct making *m) {
    const struct gres_held *held;
    uint32_t n;
    held_gres(m, &held, &n);
    if (!gpus_count(held, n))
        return;
    const char *list = gpus_list(m->a, held, n);
    env_twin(env, "GPUS_ON_NODE", "%" PRIu64, gpus_count(held, n));
    env_twin(env, "STEP_GPUS", "%s", list);
    env_add_devices(env, list);
}

static const char *gpus_of(const struct making *m, uint32_t index) {
    const struct gres_held *held;
    const struct step_spec *s = m->k->step->spec;
    uint32_t n;
    held_gres(m, &held, &n);
    if (!gpus_of_task(m->a, s->gres, s->n_gres, held, n, m->own->n_ranks - 1)) /* all of them or none */
        return NULL;
    return gpus_of_task(m->a, s->gres, s->n_gres, held, n, index);
}

/* --gpus-per-task: each task has its own, as Slurm's --gpu-bind=per_task. */
static void add_tasks_gpus(struct env *env, const struct making *m, uint32_t index) {
    const char *list = gpus_of(m, index);
    const struct step_spec *s = m->k->step->spec;
    uint64_t each = 0;
    if (!list)
        return;
    for (uint32_t i = 0; i < s->n_gres; i++)
        each += str_eq(s->gres[i].name, "gpu") && s->gres[i].per == GRES_PER_TASK ? s->gres[i].count : 0;
    env_twin(env, "STEP_GPUS", "%s", list);
    env_set(env, "SLURMD_TRES_BIND", "gres/gpu:per_task:%" PRIu64, each);
    env_add_devices(env, list);
}

/* Those that differ from task to task are in their own lists. */
static const char *const tasks_own[] = {"SLURM_PROCID", "SPUR_PROCID", "SLURM_LOCALID", "SPUR_LOCALID",
                                        "SLURM_TASK_PID", "SPUR_TASK_PID"};

static void make_env(const struct making *m, struct step_plan *out) {
    struct env env = {.a = m->a};
    const char *entry;
    for (size_t at = 0; (entry = env_blob_next(m->l->env, m->l->n_env, &at));) {
        if (strchr(entry, '=') && *entry != '=')
            vec_push(&env.entries, entry);
    }
    env_add_job(&env, &m->q);
    env_add_shape(&env, &m->q);
    add_step(&env, m);
    add_place(&env, m, out->umask);
    add_gpus(&env, m);
    env_set(&env, "SPUR_RUN_ID", "%s", out->run_id);
    for (size_t i = 0; i < ARRAY_LEN(tasks_own); i++)
        env_del(&env, tasks_own[i]);
    struct env per_task = {.a = m->a};
    add_tasks_gpus(&per_task, m, 0);
    for (size_t i = 0; i < per_task.entries.n; i++)
        env_del(&env, arena_printf(m->a, "%.*s", (int)strcspn(per_task.entries.p[i], "="), per_task.entries.p[i]));
    vec_fini(&per_task.entries);
    env_take(&env, &out->env, &out->n_env);
}

/* ---- tasks ---- */

static bool is_number(const char *s) {
    return s && *s && strspn(s, "0123456789") == strlen(s);
}

/* NULL: streamed. */
static const char *path_for(const struct making *m, uint32_t rank, const char *said, struct arena *a) {
    uint64_t only;
    if (!said)
        return NULL;
    if (is_number(said))
        return !str_to_u64(said, UINT32_MAX, &only) && only == rank ? NULL : "/dev/null";
    if (str_eq(said, "none"))
        return "/dev/null";
    const struct job_array *array = m->k->array;
    bool is_array = array && array->task;
    struct name_facts names = {.job_id = m->k->job_id,
                               .array_job_id = is_array ? array->job_id : 0,
                               .array_task_id = is_array ? array->task - 1 : UINT32_MAX,
                               .step_id = m->k->step_id,
                               .node_index = m->node_index,
                               .task_rank = rank,
                               .job_name = m->k->spec->name,
                               .user = m->k->user,
                               .node_name = m->f->node_name,
                               .work_dir = m->l->work_dir};
    auto_str path = {0};
    output_name(said, &names, &path);
    return arena_strdup(a, str_text(&path));
}

/* Whether one of the first `n` tasks writes there as well. */
static bool is_shared(const struct step_task *tasks, uint32_t n, const char *path) {
    for (uint32_t i = 0; path && i < n; i++) {
        if (str_eq(tasks[i].std_out, path) || str_eq(tasks[i].std_err, path))
            return !str_eq(path, "/dev/null");
    }
    return false;
}

static void bind_task(const struct making *m, uint32_t local, struct step_task *t) {
    struct cpu_bind_ask b;
    if (!m->l->cpu_bind || cpu_bind_parse(m->l->cpu_bind, &b))
        return;
    cpu_bind_task(&b, local, m->a, &t->cpus, &t->n_cpus);
    t->cpu_by_rank = b.kind == CPU_BIND_RANK;
    t->tell_cpus = b.verbose;
}

/* As Slurm tells its tasks of it. */
static void add_binding(struct env *env, const struct stream_launch *l) {
    struct cpu_bind_ask b;
    if (!l->cpu_bind || cpu_bind_parse(l->cpu_bind, &b))
        return;
    const char *kind = b.kind == CPU_BIND_RANK ? "rank" : b.kind == CPU_BIND_MAP ? "map_cpu:" : b.kind == CPU_BIND_MASK ? "mask_cpu:" : "none";
    const char *verbose = b.verbose ? "verbose" : "quiet", *list = b.list ? b.list : "";
    env_twin(env, "CPU_BIND", "%s,%s%s", verbose, kind, list);
    env_twin(env, "CPU_BIND_LIST", "%s", list);
    env_twin(env, "CPU_BIND_TYPE", "%s", kind);
    env_twin(env, "CPU_BIND_VERBOSE", "%s", verbose);
}

static void make_task(const struct making *m, struct step_task *all, uint32_t i, struct step_plan *plan) {
    const struct stream_launch *l = m->l;
    struct step_task *t = &all[i];
    struct env env = {.a = m->a};
    t->rank = m->own->ranks[i];
    if (l->n_multi_prog) {
        t->argv = l->multi_prog[t->rank].words;
        t->n_argv = l->multi_prog[t->rank].n_words;
    }
    env_twin(&env, "PROCID", "%u", t->rank);
    env_twin(&env, "LOCALID", "%u", i);
    env_twin(&env, "TASK_PID", "%s", "");
    add_tasks_gpus(&env, m, i);
    bind_task(m, i, t);
    env_take(&env, &t->env, &t->n_env);
    if (l->pty) {
        t->std_in = t->std_out = t->std_err = "/dev/null";
        return;
    }
    t->std_in = path_for(m, t->rank, l->std_in, m->a);
    t->std_out = path_for(m, t->rank, l->std_out, m->a);
    t->std_err = l->std_err ? path_for(m, t->rank, l->std_err, m->a) : t->std_out;
    t->err_to_out = t->std_err && str_eq(t->std_err, t->std_out);
    t->keep_out = is_shared(all, i, t->std_out);
    t->keep_err = !t->err_to_out && is_shared(all, i, t->std_err);
    if (is_number(l->std_in) && !t->std_in)
        plan->input_task = t->rank + 1;
}

static void make_tasks(const struct making *m, struct step_plan *out) {
    struct step_task *tasks = arena_calloc(m->a, m->own->n_ranks, sizeof(*tasks));
    for (uint32_t i = 0; i < m->own->n_ranks; i++)
        make_task(m, tasks, i, out);
    out->tasks = tasks;
    out->n_tasks = m->own->n_ranks;
}

static void make_rlimits(const struct making *m, struct step_plan *out) {
    struct step_rlimit *limits = arena_calloc(m->a, m->l->n_rlimits, sizeof(*limits));
    for (uint32_t i = 0; i < m->l->n_rlimits; i++)
        limits[i] = (struct step_rlimit){m->l->rlimits[i].name, m->l->rlimits[i].soft};
    out->rlimits = limits;
    out->n_rlimits = m->l->n_rlimits;
}

static uint32_t scaled(const struct launch_facts *f, uint64_t ms) {
    uint64_t scale = f->clock_scale ? f->clock_scale : 1;
    return (uint32_t)MIN(ms / scale, UINT32_MAX / 2);
}

int launch_step_plan(const struct step_ticket *k, const struct stream_launch *l, const struct launch_facts *f,
                     struct arena *a, struct step_plan *out, struct err *e) {
    struct making m = {.k = k, .l = l, .f = f, .a = a};
    int code = check(&m, e);
    if (code)
        return code;
    uint32_t own_index = m.q.node_index;
    m.q = (struct launch_request){.job_id = k->job_id, .start_no = k->start_no, .spec = k->spec, .nodes = k->job_nodes,
                                  .n_nodes = k->n_job_nodes, .node_index = own_index, .partition = k->partition,
                                  .cluster_name = k->cluster_name, .restarts = k->restarts, .array = k->array,
                                  .sluid = k->step->sluid};
    const struct step_spec *s = k->step->spec;
    *out = (struct step_plan){
        .version = STEP_PLAN_VERSION,
        .job_id = k->job_id,
        .start_no = k->start_no,
        .step_id = k->step_id + 1,
        .node_name = f->node_name,
        .uid = k->uid,
        .gid = k->gid,
        .groups = f->groups,
        .n_groups = f->n_groups,
        .argv = l->argv,
        .n_argv = l->n_argv,
        .work_dir = l->work_dir,
        .append = l->append,
        .umask = l->umask ? l->umask - 1 : UMASK_DEFAULT,
        .mem_limit_mb = m.own->mem_mb,
        .containment = f->containment,
        .unkillable_ms = scaled(f, (uint64_t)(k->complete_wait_secs ? k->complete_wait_secs : UNKILLABLE_SECS) * 1000),
        .kill_wait_ms = scaled(f, (uint64_t)k->kill_wait_secs * 1000),
        .run_id = arena_printf(a, "%u.%u.%u.%s", k->job_id, k->start_no, k->step_id, f->cgroup),
        .user = k->user,
        .cgroup = f->cgroup,
        .pty = l->pty,
        .rows = l->rows,
        .columns = l->columns,
        .kill_on_bad_exit = l->kill_on_bad_exit || s->kill_on_bad_exit,
        .wait_ms = scaled(f, (uint64_t)s->wait_secs * 1000),
    };
    const struct gres_held *held;
    uint32_t n_held;
    held_gres(&m, &held, &n_held);
    out->n_denied = gpus_denied(a, f->gres, f->n_gres, held, n_held, &out->denied);
    make_tasks(&m, out);
    make_rlimits(&m, out);
    make_env(&m, out);
    return 0;
}
