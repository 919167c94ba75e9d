/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/salloc.h"

struct list {
    struct arena *a;
    VEC(char *) v;
};

/* As SLURM_… and as SPUR_… */
__attribute__((format(printf, 3, 4))) static void set(struct list *l, const char *name, const char *fmt, ...) {
    auto_str value = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vaddf(&value, fmt, ap);
    va_end(ap);
    vec_push(&l->v, arena_printf(l->a, "SLURM_%s=%s", name, str_text(&value)));
    vec_push(&l->v, arena_printf(l->a, "SPUR_%s=%s", name, str_text(&value)));
}

static void set_text(struct list *l, const char *name, const char *text) {
    if (text)
        set(l, name, "%s", text);
}

static void set_number(struct list *l, const char *name, uint64_t n) {
    if (n)
        set(l, name, "%llu", (unsigned long long)n);
}

/* "2(x2),1": equal neighbours together. */
static void set_runs(struct list *l, const char *name, const struct job *j, uint32_t (*of)(const struct job_node *n)) {
    auto_str text = {0};
    for (uint32_t i = 0; i < j->n_nodes;) {
        uint32_t k = i, n = of(&j->nodes[i]);
        while (k < j->n_nodes && of(&j->nodes[k]) == n)
            k++;
        str_addf(&text, "%s%u", i ? "," : "", n);
        if (k - i > 1)
            str_addf(&text, "(x%u)", k - i);
        i = k;
    }
    set_text(l, name, text.n ? text.p : NULL);
}

static uint32_t cpus_of(const struct job_node *n) {
    return n->cpus;
}

static uint32_t tasks_of(const struct job_node *n) {
    return n->n_tasks;
}

static void set_nodes(struct list *l, const struct job *j) {
    auto_str nodes = {0};
    const char **names = arena_calloc(l->a, MAX(j->n_nodes, 1u), sizeof(*names));
    for (uint32_t i = 0; i < j->n_nodes; i++)
        names[i] = j->nodes[i].name;
    hostlist_compact(names, j->n_nodes, &nodes);
    set_text(l, "JOB_NODELIST", str_text(&nodes));
    set_text(l, "NODELIST", str_text(&nodes));
    set_number(l, "JOB_NUM_NODES", j->n_nodes);
    set_number(l, "NNODES", j->n_nodes);
    set_runs(l, "JOB_CPUS_PER_NODE", j, cpus_of);
    set_runs(l, "TASKS_PER_NODE", j, tasks_of);
}

static void set_asked(struct list *l, const struct job_spec *spec) {
    const struct job_more *m = job_spec_more(spec);
    set_number(l, "NTASKS", spec->n_tasks_given);
    set_number(l, "NPROCS", spec->n_tasks_given);
    set_number(l, "NTASKS_PER_NODE", m->tasks_per_node);
    if (spec->cpus_per_task_given) {
        set_number(l, "CPUS_PER_TASK", spec->cpus_per_task_given);
        set(l, "TRES_PER_TASK", "cpu=%u", spec->cpus_per_task_given);
    }
    set_text(l, "GPUS", m->gpus_text);
    set_number(l, "OVERCOMMIT", m->overcommit); /* steps of the job are asked for in the same way */
}

/* "plane=2" is two variables. */
static void set_distribution(struct list *l, const struct job_more *m) {
    size_t n = m->distribution ? strcspn(m->distribution, "=") : 0;
    auto_str nodes = {0};
    if (!n)
        return;
    set(l, "DISTRIBUTION", "%.*s", (int)n, m->distribution);
    set_number(l, "DIST_PLANESIZE", job_plane_size(m));
    for (uint32_t i = 0; i < m->n_task_nodes; i++)
        str_addf(&nodes, "%s%s", i ? "," : "", m->task_nodes[i]);
    set_text(l, "ARBITRARY_NODELIST", nodes.n ? nodes.p : NULL);
}

char *const *salloc_env(const struct salloc *s, const struct job *j, const char *cluster_name, char *const *environ_) {
    struct list l = {.a = &s->run.job.c->arena};
    for (; *environ_; environ_++)
        if (!sbatch_env_is_outer(*environ_, strcspn(*environ_, "=")))
            vec_push(&l.v, *environ_);
    set_text(&l, "CLUSTER_NAME", cluster_name);
    set_number(&l, "JOB_ID", j->id);
    set_number(&l, "JOBID", j->id);
    set_text(&l, "JOB_NAME", j->spec->name);
    set_text(&l, "JOB_PARTITION", j->partition);
    set_text(&l, "JOB_ACCOUNT", j->spec->account);
    set_text(&l, "JOB_QOS", j->spec->qos);
    set_text(&l, "SUBMIT_DIR", s->run.job.cwd);
    set_text(&l, "SUBMIT_HOST", j->spec->submit_host);
    set_nodes(&l, j);
    set_asked(&l, j->spec);
    set_distribution(&l, &s->run.job.more);
    set_number(&l, "MEM_PER_NODE", s->run.job.spec.mem_node_mb); /* as asked: a default of the cluster's is not told */
    set_number(&l, "MEM_PER_CPU", s->run.job.more.mem_cpu_mb);
    vec_push(&l.v, NULL);
    char *const *out = arena_memdup(l.a, l.v.p, l.v.n * sizeof(*l.v.p));
    vec_fini(&l.v);
    return out;
}
