/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/launch/plan.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/model/text.h"
#include "spurd/launch/gpus.h"

#define UNKILLABLE_SECS 60u /* Slurm's UnkillableStepTimeout; of a controller that says nothing */
#define UMASK_DEFAULT 022u

static uint32_t scaled(const struct launch_facts *f, uint64_t ms) {
    uint64_t scale = f->clock_scale ? f->clock_scale : 1;
    return (uint32_t)MIN(ms / scale, UINT32_MAX / 2);
}

static int check(const struct launch_request *q, const struct launch_facts *f, struct err *e) {
    if (!q->spec || !q->job_id || !q->start_no)
        return err_set(e, E_SYNTAX, "a launch without job");
    if (q->node_index >= q->n_nodes || !str_eq(q->nodes[q->node_index].name, f->node_name))
        return err_set(e, E_SYNTAX, "job %u has no node %s at place %u", q->job_id, f->node_name, q->node_index);
    if ((q->node_index == 0 || q->everywhere) && q->n_script == 0 && !job_spec_more(q->spec)->interactive)
        return err_set(e, E_SCRIPT, NULL);
    if (!f->is_root && q->spec->uid != f->own_uid)
        return err_set(e, E_DENIED, "the agent of node %s is not root and runs jobs of user id %u alone, not of %u",
                       f->node_name, f->own_uid, q->spec->uid);
    return 0;
}

static const char *path_of(const struct launch_request *q, const struct launch_facts *f, const char *pattern,
                           struct arena *a) {
    const struct job_spec *s = q->spec;
    bool is_array = q->array && q->array->task;
    struct name_facts names = {.job_id = q->job_id,
                               .array_job_id = is_array ? q->array->job_id : 0,
                               .array_task_id = is_array ? q->array->task - 1 : UINT32_MAX,
                               .step_id = STEP_BATCH,
                               .node_index = q->node_index, /* 0, but where each node runs the script */
                               .job_name = s->name,
                               .user = s->user,
                               .node_name = f->node_name,
                               .work_dir = s->work_dir};
    auto_str path = {0};
    output_name(pattern, &names, &path);
    return arena_strdup(a, str_text(&path));
}

static void set_files(const struct launch_request *q, const struct launch_facts *f, struct arena *a,
                      struct step_plan *out) {
    const struct job_spec *s = q->spec;
    out->std_in = s->std_in ? path_of(q, f, s->std_in, a) : NULL;
    const char *usual = q->array && q->array->task ? "slurm-%A_%a.out" : "slurm-%j.out";
    out->std_out = path_of(q, f, s->std_out ? s->std_out : usual, a);
    out->std_err = s->std_err ? path_of(q, f, s->std_err, a) : NULL;
    out->append = s->open_mode == OPEN_APPEND;
}

static void set_argv(const struct launch_request *q, const struct launch_facts *f, struct arena *a,
                     struct step_plan *out) {
    const struct job_spec *s = q->spec;
    const char **argv = arena_calloc(a, (size_t)s->n_args + 1, sizeof(*argv));
    argv[0] = arena_printf(a, "%s/%s", f->run_dir, STEP_SCRIPT_FILE);
    for (uint32_t i = 0; i < s->n_args; i++)
        argv[i + 1] = s->args[i];
    out->argv = argv;
    out->n_argv = s->n_args + 1;
}

static void set_rlimits(const struct job_spec *s, struct arena *a, struct step_plan *out) {
    struct step_rlimit *limits = arena_calloc(a, s->n_rlimits, sizeof(*limits));
    for (uint32_t i = 0; i < s->n_rlimits; i++)
        limits[i] = (struct step_rlimit){s->rlimits[i].name, s->rlimits[i].soft};
    out->rlimits = limits;
    out->n_rlimits = s->n_rlimits;
}

int launch_plan(const struct launch_request *q, const struct launch_facts *f, struct arena *a, struct step_plan *out,
                struct err *e) {
    int code = check(q, f, e);
    if (code)
        return code;
    const struct job_spec *s = q->spec;
    *out = (struct step_plan){
        .version = STEP_PLAN_VERSION,
        .job_id = q->job_id,
        .start_no = q->start_no,
        .node_name = f->node_name,
        .uid = s->uid,
        .gid = s->gid,
        .groups = f->groups,
        .n_groups = f->n_groups,
        .work_dir = s->work_dir,
        .umask = s->umask ? s->umask - 1 : UMASK_DEFAULT,
        .mem_limit_mb = q->nodes[q->node_index].mem_mb,
        .containment = f->containment,
        .unkillable_ms = scaled(f, (uint64_t)(q->complete_wait_secs ? q->complete_wait_secs : UNKILLABLE_SECS) * 1000),
        .kill_wait_ms = scaled(f, (uint64_t)q->kill_wait_secs * 1000),
        .everywhere = q->everywhere && q->n_nodes > 1,
        .run_id = arena_printf(a, "%u.%u.%s", q->job_id, q->start_no, f->cgroup),
        .user = s->user,
        .cgroup = f->cgroup,
    };
    const struct job_node *own = &q->nodes[q->node_index];
    out->n_denied = gpus_denied(a, f->gres, f->n_gres, own->gres, own->n_gres, &out->denied);
    if ((q->node_index > 0 && !q->everywhere) || job_spec_more(s)->interactive)
        return 0; /* only the first node runs the script, where not each does; here the allocation is held for steps */
    set_files(q, f, a, out);
    set_argv(q, f, a, out);
    out->login_shell = job_spec_more(q->spec)->login_env && f->shell && *f->shell ? f->shell : NULL;
    set_rlimits(s, a, out);
    launch_env(q, f, out->run_id, a, &out->env, &out->n_env);
    return 0;
}
