/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/step_facts.h"

#include <string.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "spur/cli.h"

static uint32_t batch_state(const struct job *j) {
    int status = (int)j->wait_status;
    if (!job_is_over(j) && !j->completing)
        return j->state;
    if (j->state == JOB_OUT_OF_MEMORY)
        return JOB_OUT_OF_MEMORY;
    if (WIFSIGNALED(status) || j->state == JOB_CANCELLED || j->state == JOB_NODE_FAIL || j->state == JOB_TIMEOUT ||
        j->state == JOB_REQUEUED)
        return JOB_CANCELLED;
    return WEXITSTATUS(status) ? JOB_FAILED : JOB_COMPLETED;
}

bool step_of_batch(const struct job *j, struct step_batch *out) {
    /* a job that was cancelled while it waited has a start time as well, but had no nodes */
    if (!j->start_ms || !j->n_nodes || job_spec_more(j->spec)->interactive)
        return false;
    const struct job_node *n = &j->nodes[0];
    *out = (struct step_batch){
        .step = {.job_id = j->id, .start_no = j->start_no, .id = STEP_BATCH, .uid = j->spec->uid,
                 .state = batch_state(j), .n_nodes = 1, .start_ms = j->start_ms, .end_ms = j->end_ms,
                 .wait_status = j->wait_status, .max_rss_kb = j->max_rss_kb, .user_cpu_us = j->user_cpu_us,
                 .sys_cpu_us = j->sys_cpu_us, .n_cpus = n->cpus},
        .spec = {.name = "batch", .n_tasks = 1},
        .node = {.node_id = n->node_id, .name = n->name, .cpus = n->cpus, .mem_mb = n->mem_mb, .n_tasks = 1,
                 .gres = n->gres, .n_gres = n->n_gres},
    };
    out->step.spec = &out->spec;
    out->step.nodes = &out->node;
    return true;
}

uint32_t step_shown_state(const struct step *s) {
    return s->state == JOB_FAILED && WIFSIGNALED((int)s->wait_status) ? JOB_CANCELLED : s->state;
}

void step_id_text(const struct job *j, const struct step *s, struct str *out) {
    job_id_text(j, out);
    str_addc(out, '.');
    step_print_id(s->id, out);
}

const char *step_layout_word(const struct step_spec *s) {
    return !s ? "Block" : s->n_task_nodes ? "arbitrary task distribution" : s->plane ? "Plane" : s->cyclic ? "Cyclic" : "Block";
}

void step_node_list(const struct step *s, struct str *out) {
    const char **name = xcalloc(s->n_nodes + 1, sizeof(*name));
    for (uint32_t i = 0; i < s->n_nodes; i++)
        name[i] = s->nodes[i].name ? s->nodes[i].name : "";
    hostlist_compact(name, s->n_nodes, out);
    free(name);
}

int64_t step_run_secs(const struct job *j, const struct step *s, int64_t now_unix) {
    int64_t end = s->end_ms ? s->end_ms : j->end_ms ? j->end_ms : 0;
    if (s->id == STEP_BATCH)
        return job_run_secs(j, now_unix);
    return MAX((end ? end / 1000 : now_unix) - s->start_ms / 1000, (int64_t)0);
}

void step_tres(const struct step *s, char unit, struct str *out) {
    uint64_t mem = 0;
    struct tres_gres gres = {0};
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        mem += s->nodes[i].mem_mb;
        tres_gres_hold(&gres, s->nodes[i].gres, s->nodes[i].n_gres);
    }
    str_addf(out, "cpu=%u", s->n_cpus);
    tres_gres_print(&gres, true, out);
    if (mem) {
        str_add(out, ",mem=");
        amount_print(mem, 'M', unit, out);
    }
    str_addf(out, ",node=%u", s->n_nodes);
    tres_gres_fini(&gres);
}

/* ---- squeue -s ---- */

#define FIELD(fn) static void fn(const void *row, const void *env, struct str *out)
#define ROW(row) ((const struct step_row *)(row))
#define STEP(row) (ROW(row)->step)
#define JOB(row) (ROW(row)->ji->job)
#define ENV(env) ((const struct job_env *)(env))

FIELD(id) {
    step_id_text(JOB(row), STEP(row), out);
}
FIELD(name) {
    str_add(out, STEP(row)->spec && STEP(row)->spec->name ? STEP(row)->spec->name : "");
}
FIELD(n_tasks) {
    str_addf(out, "%u", STEP(row)->spec ? STEP(row)->spec->n_tasks : 1);
}
FIELD(limit) {
    uint32_t minutes = STEP(row)->spec ? STEP(row)->spec->time_limit_min : 0;
    time_limit_print(minutes ? minutes : TIME_LIMIT_NONE, out);
}
FIELD(used) {
    duration_print(step_run_secs(JOB(row), STEP(row), ENV(env)->now_unix), out);
}
FIELD(node_list) {
    step_node_list(STEP(row), out);
}
FIELD(n_nodes) {
    str_addf(out, "%u", STEP(row)->n_nodes);
}
FIELD(n_cpus) {
    str_addf(out, "%u", STEP(row)->n_cpus);
}
FIELD(partition) {
    job_partition(JOB(row), out);
}
FIELD(start) {
    cli_time(STEP(row)->start_ms / 1000, "N/A", out);
}
FIELD(state) {
    str_add(out, job_state_name(STEP(row)->state));
}
FIELD(uid) {
    str_addf(out, "%u", JOB(row)->spec->uid);
}
FIELD(user) {
    if (JOB(row)->spec->user)
        str_add(out, JOB(row)->spec->user);
    else
        uid(row, env, out);
}
FIELD(job_id) {
    str_addf(out, "%u", JOB(row)->id);
}
FIELD(array_job_id) {
    str_addf(out, "%u", JOB(row)->array ? JOB(row)->array->job_id : JOB(row)->id);
}
FIELD(array_task_id) {
    job_task_text(JOB(row), out);
}
FIELD(tres_alloc) {
    step_tres(STEP(row), ENV(env)->unit, out);
}
FIELD(submit_line) {
    str_add(out, STEP(row)->spec && STEP(row)->spec->submit_line ? STEP(row)->spec->submit_line : "(null)");
}

static int by_step(const void *a, const void *b) {
    const struct step *x = STEP(a), *y = STEP(b);
    uint64_t p = step_key(JOB(a)->id, x->id), q = step_key(JOB(b)->id, y->id);
    return (p > q) - (p < q);
}
static int by_start(const void *a, const void *b) {
    return (STEP(a)->start_ms > STEP(b)->start_ms) - (STEP(a)->start_ms < STEP(b)->start_ms);
}

/* In the order of names. */
static const struct table_field rows[] = {
    {0, "arrayjobid", "ARRAY_JOB_ID", array_job_id},
    {0, "arraytaskid", "ARRAY_TASK_ID", array_task_id},
    {0, "jobid", "JOBID", job_id},
    {'N', "nodes", "NODELIST", node_list},
    {0, "numcpus", "CPUS", n_cpus},
    {0, "numnodes", "NODES", n_nodes},
    {'A', "numtasks", "TASKS", n_tasks},
    {'P', "partition", "PARTITION", partition},
    {'S', "starttime", "START_TIME", start, .compare = by_start},
    {'i', "stepid", "STEPID", id, .compare = by_step},
    {'j', "stepname", "NAME", name},
    {0, "stepstate", "STATE", state},
    {0, "submitline", "SUBMIT_LINE", submit_line},
    {'l', "timelimit", "TIME_LIMIT", limit},
    {'M', "timeused", "TIME", used},
    {0, "tres-alloc", "TRES_ALLOC", tres_alloc},
    {'b', "tres-per-job", "TRES_PER_JOB", .fixed = "(null)"},
    {'U', "userid", "UID", uid},
    {'u', "username", "USER", user},
};

const struct table_fields *step_fields(void) {
    static const struct table_fields f = {rows, ARRAY_LEN(rows)};
    return &f;
}

void step_nodes_json(struct json *w, const struct step *s) {
    auto_str range = {0};
    step_node_list(s, &range);
    json_open(w, "nodes", '{');
    json_number(w, "count", s->n_nodes);
    json_text(w, "range", str_text(&range));
    json_open(w, "list", '[');
    for (uint32_t i = 0; i < s->n_nodes; i++)
        json_text(w, NULL, s->nodes[i].name);
    json_close(w, ']');
    json_close(w, '}');
}
