/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of a submission, step by step: sizes, who, the script, what was left out, the partition, the array, the
 * times, the dependencies, whether it could ever run. The words are Slurm's.
 */
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/text.h"
#include "core/sched/sched.h"
#include "spurctld/admit/submission.h"

#define DEFAULT_MAX_SCRIPT (4u << 20)
#define DEFAULT_MAX_ENV (1u << 20)
#define DEFAULT_MAX_ARRAY_SIZE 1001u
#define NAME_MAX_BYTES 1024u
#define NODES_ASKED_MAX 65536u
#define SPEC_MAX_BYTES (1u << 20) /* of all that is not script or environment: it goes into the log and stays in memory */
#define SIGNAL_SECS_MAX 65535u

/* What the steps share. */
struct check {
    struct submission *sub;
    const struct who *who;
    const struct submit_request *req;
    struct view view;
    struct err *e;
};

static int check_sizes(struct check *st) {
    const struct rconf *conf = room_rconf(st->sub->room);
    uint64_t max_script = conf->max_script_bytes ? conf->max_script_bytes : DEFAULT_MAX_SCRIPT;
    uint64_t max_env = conf->max_env_bytes ? conf->max_env_bytes : DEFAULT_MAX_ENV;
    if (st->req->n_script > max_script)
        return err_set(st->e, E_SCRIPT_SIZE, "Job script of %u bytes exceeds the size limit of %llu bytes",
                       st->req->n_script, (unsigned long long)max_script);
    if (st->req->n_env > max_env)
        return err_set(st->e, E_USER_ENV, "Job environment of %u bytes exceeds the size limit of %llu bytes",
                       st->req->n_env, (unsigned long long)max_env);
    if (st->sub->n_spec > SPEC_MAX_BYTES)
        return err_set(st->e, E_TOO_BIG, "Job description of %zu bytes exceeds the size limit of %u bytes",
                       st->sub->n_spec, SPEC_MAX_BYTES);
    const struct job_spec *s = &st->sub->spec;
    const struct {
        const char *what, *text;
    } texts[] = {{"name", s->name}, {"account", s->account}, {"qos", s->qos}, {"comment", s->comment},
                 {"partition", s->partition}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].text && strlen(texts[i].text) > NAME_MAX_BYTES)
            return err_set(st->e, E_TOO_BIG, "The job's %s is longer than %u bytes", texts[i].what, NAME_MAX_BYTES);
    if (s->n_req_nodes > NODES_ASKED_MAX || s->n_exc_nodes > NODES_ASKED_MAX)
        return err_set(st->e, E_NODE_NAME, "%s", err_sentence(E_NODE_NAME));
    return 0;
}

static int check_caller(struct check *st) {
    struct job_spec *s = &st->sub->spec;
    s->uid = st->who->uid;
    s->gid = st->who->gid;
    if (job_spec_more(s)->admin_comment && !st->who->is_admin)
        return err_set(st->e, E_DENIED, NULL);
    if (job_spec_more(s)->priority && !st->who->is_admin) { /* as Slurm: not taken, and not told */
        struct job_more *more = arena_memdup(&st->sub->arena, s->more, sizeof(*more));
        more->priority = 0;
        s->more = more;
    }
    s->user = arena_strdup(&st->sub->arena, st->who->user);
    s->group = arena_strdup(&st->sub->arena, st->who->group);
    return 0;
}

static int check_script(struct check *st) {
    const struct job_more *more = job_spec_more(&st->sub->spec);
    if (more->interactive) {
        if (st->req->n_script || st->req->n_env || more->n_array_ranges)
            return err_set(st->e, E_USAGE, "an interactive job has no script and is no array");
        return 0;
    }
    if (!st->req->n_script)
        return err_set(st->e, E_SCRIPT, "%s", err_sentence(E_SCRIPT));
    return script_check((const char *)st->req->script, st->req->n_script, st->e);
}

/* As Slurm: a job that names no memory shows DefMemPerCPU as its own wish, and keeps it when the configuration changes. */
static void fill_memory(struct check *st) {
    struct job_spec *s = &st->sub->spec;
    uint64_t each = room_rconf(st->sub->room)->def_mem_per_cpu_mb;
    if (!each || s->mem_all || s->mem_node_mb || job_spec_more(s)->mem_cpu_mb || job_spec_seldom(s)->mem_gpu_mb)
        return;
    struct job_more *more = arena_memdup(&st->sub->arena, job_spec_more(s), sizeof(*more));
    more->mem_cpu_mb = each;
    s->more = more;
}

static int fill_defaults(struct check *st) {
    struct job_spec *s = &st->sub->spec;
    uint32_t tasks_per_node = MIN(job_spec_more(s)->tasks_per_node, NODES_ASKED_MAX);
    if (!s->name || !*s->name)
        s->name = "sbatch";
    if (!s->work_dir || s->work_dir[0] != '/')
        return err_set(st->e, E_SYNTAX, "the working directory must be an absolute path");
    s->cpus_per_task = s->cpus_per_task ? s->cpus_per_task : 1;
    if (s->max_nodes && s->max_nodes < s->min_nodes)
        return err_set(st->e, E_SYNTAX, "Node count specification invalid");
    if (!s->n_tasks)
        s->n_tasks = s->n_tasks_given ? s->n_tasks_given : MAX(s->min_nodes, 1u) * MAX(tasks_per_node, 1u);
    if (s->min_nodes > s->n_tasks) {
        st->sub->warnings[st->sub->n_warnings++] =
            arena_printf(&st->sub->arena, "can't run %u processes on %u nodes, setting nnodes to %u", s->n_tasks,
                         s->min_nodes, s->n_tasks);
        s->min_nodes = s->n_tasks;
        if (s->max_nodes)
            s->max_nodes = MAX(s->max_nodes > s->n_tasks ? s->n_tasks : s->max_nodes, 1u);
    }
    s->min_nodes = MAX(s->min_nodes, 1u);
    s->no_requeue |= room_rconf(st->sub->room)->no_requeue && !job_spec_more(s)->requeue; /* as of now, as Slurm */
    fill_memory(st);
    if (s->nice > NICE_MAX || s->nice < -NICE_MAX)
        return err_set(st->e, E_SYNTAX, "Invalid nice value, must be between -%d and %d", NICE_MAX, NICE_MAX);
    if (s->nice < 0 && !st->who->is_admin)
        return err_set(st->e, E_NICE, NULL); /* only an administrator raises a priority */
    return 0;
}

int check_partitions(const struct view *v, const char *partitions, struct arena *a, struct err *e) {
    const char *at = partitions;
    while (*at) {
        size_t n = strcspn(at, ",");
        const char *name = arena_strndup(a, at, n);
        if (!view_find_part(v, name))
            return err_set(e, E_PARTITION, "invalid partition specified: %s\n%s", name, err_sentence(E_PARTITION));
        at += n + (at[n] == ',');
    }
    return *partitions ? 0 : err_set(e, E_PARTITION, "%s", err_sentence(E_PARTITION));
}

static int check_partition(struct check *st) {
    struct job_spec *s = &st->sub->spec;
    const struct part *p;
    if (s->partition)
        return check_partitions(&st->view, s->partition, &st->sub->arena, st->e);
    for (uint64_t k = 0; (p = view_next_part(&st->view, &k)); k++)
        if (p->is_default)
            s->partition = arena_strdup(&st->sub->arena, p->name);
    return s->partition ? 0 : err_set(st->e, E_PARTITION, "No partition specified or system default partition");
}

static int check_array(struct check *st) {
    const struct job_more *more = job_spec_more(&st->sub->spec);
    const struct rconf *conf = room_rconf(st->sub->room);
    uint32_t size = conf->max_array_size ? conf->max_array_size : DEFAULT_MAX_ARRAY_SIZE;
    if (!more->n_array_ranges)
        return more->array ? err_set(st->e, E_ARRAY, NULL) : 0;
    for (uint32_t i = 0; i < more->n_array_ranges; i++) {
        const struct array_range *r = &more->array_ranges[i];
        if (r->first > r->last || r->last >= size || (i && r->first <= more->array_ranges[i - 1].last))
            return err_set(st->e, E_ARRAY, NULL);
    }
    return 0;
}

static int check_times(struct check *st) {
    const struct job_spec *s = &st->sub->spec;
    const struct job_more *more = job_spec_more(s);
    uint32_t limit = s->time_limit_min;
    if (more->time_min_min && limit && limit != TIME_LIMIT_NONE && more->time_min_min > limit)
        return err_set(st->e, E_TIME_MIN, NULL);
    if (more->signal > 64 || more->signal_secs > SIGNAL_SECS_MAX)
        return err_set(st->e, E_SYNTAX, "%u is no signal", more->signal);
    if (!more->deadline_unix)
        return 0;
    struct job j = {.spec = s};
    int64_t from = MAX(room_now_unix(st->sub->room), s->begin_unix);
    return from > sched_last_start(&st->view, &j) ? err_set(st->e, E_TIME_LIMIT, NULL) : 0;
}

/* An id that is an array's means all of its tasks, and is shown so. */
int check_dependencies(const struct view *v, const char *text, struct arena *a, const struct dep **out, uint32_t *out_n,
                       struct err *e) {
    int rc = deps_parse(text, UINT32_MAX, a, out, out_n, e);
    struct dep *deps = rc || !*out_n ? NULL : arena_memdup(a, *out, *out_n * sizeof(*deps));
    for (uint32_t i = 0; deps && i < *out_n; i++) {
        const struct job *j = deps[i].job_id ? view_job(v, deps[i].job_id) : NULL;
        if (j && j->array && j->array->job_id == j->id && !deps[i].task)
            deps[i].task = DEP_ALL_TASKS;
    }
    if (deps)
        *out = deps;
    return rc;
}

static int check_dependency(struct check *st) {
    struct job_spec *s = &st->sub->spec;
    s->deps = NULL;
    s->n_deps = 0;
    if (!s->dependency || !*s->dependency)
        return 0;
    return check_dependencies(&st->view, s->dependency, &st->sub->arena, &s->deps, &s->n_deps, st->e);
}

int check_possible(const struct view *v, const struct job *j, struct err *e) {
    int rc = sched_possible(v, j, e);
    const char *sentence = err_sentence(rc);
    if (rc && strcmp(e->text, sentence) != 0) {
        autofree char *both = xasprintf("%s\n%s", e->text, sentence);
        err_set(e, rc, "%s", both);
    }
    return rc;
}

/* A node for each task, and those together are what it asks for. */
static int check_dealt(struct check *st) {
    const struct job_spec *s = &st->sub->spec;
    const struct job_more *m = job_spec_more(s);
    struct maps seen = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_task_nodes; i++) {
        n += !maps_get(&seen, m->task_nodes[i]);
        maps_put(&seen, m->task_nodes[i], st);
    }
    for (uint32_t i = 0; i < s->n_req_nodes && m->n_task_nodes; i++)
        n += !maps_get(&seen, s->req_nodes[i]);
    maps_fini(&seen);
    if (!m->n_task_nodes)
        return 0;
    if (n != s->n_req_nodes || n != s->min_nodes || n != s->max_nodes)
        return err_set(st->e, E_NODE_COUNT, NULL);
    return m->n_task_nodes != s->n_tasks ? err_set(st->e, E_TASK_COUNT, NULL) : 0;
}

static int check_could_run(struct check *st) {
    struct job j = {.spec = &st->sub->spec, .nice = st->sub->spec.nice};
    return check_possible(&st->view, &j, st->e);
}

/* What there is in a partition. A node that is named and not there yet may have anything. */
struct extent {
    uint64_t nodes, cpus;
    bool is_open;
};

static struct extent extent_of(const struct view *v, const struct part *p) {
    struct extent x = {0};
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
        bool is_in = part_has_node(p, n);
        x.nodes += is_in;
        x.cpus += is_in ? n->cpus : 0;
    }
    x.is_open = !x.nodes || (!p->all_nodes && p->n_nodes > x.nodes);
    return x;
}

/* 0, or which limit of the partition the job breaks. */
static int broken_limit(const struct check *st, const struct part *p) {
    const struct job_spec *s = &st->sub->spec;
    struct extent x = extent_of(&st->view, p);
    uint64_t cpus = job_spec_more(s)->overcommit ? s->min_nodes : (uint64_t)s->n_tasks * MAX(s->cpus_per_task, 1u);
    if (!x.is_open && cpus > x.cpus)
        return E_STEP_TOO_BIG;
    if ((p->max_nodes && s->min_nodes > p->max_nodes) || (s->max_nodes && s->max_nodes < p->min_nodes))
        return E_NODES_UNAVAIL;
    if (!x.is_open && s->min_nodes > x.nodes)
        return E_NODES_UNAVAIL;
    if (s->time_limit_min && p->max_time_min && s->time_limit_min > p->max_time_min)
        return E_TIME_LIMIT;
    return 0;
}

static int check_part_limits(struct check *st) {
    uint32_t enforce = room_rconf(st->sub->room)->enforce_part_limits;
    int first = 0;
    bool any_good = false;
    for (const char *at = st->sub->spec.partition; enforce != ENFORCE_NO && *at;) {
        size_t n = strcspn(at, ",");
        const struct part *p = view_find_part(&st->view, arena_strndup(&st->sub->arena, at, n));
        int rc = p ? broken_limit(st, p) : 0;
        any_good |= !rc;
        first = first ? first : rc;
        at += n + (at[n] == ',');
    }
    return first && (enforce == ENFORCE_ALL || !any_good) ? err_set(st->e, first, NULL) : 0;
}

static int (*const steps[])(struct check *st) = {
    check_sizes, check_caller, check_script,     fill_defaults,   check_partition,
    check_array, check_times,  check_dependency, check_dealt,   check_could_run, check_part_limits,
};

int submission_check(struct submission *sub, const struct who *who, const struct submit_request *req, struct err *e) {
    struct check st = {.sub = sub, .who = who, .req = req, .e = e};
    state_peek(sub->room->state, &st.view);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int rc = steps[i](&st);
        if (rc)
            return e->text[0] ? rc : err_set(e, rc, NULL);
    }
    return 0;
}
