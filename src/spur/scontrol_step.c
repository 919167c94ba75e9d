/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol show step: the steps that run, the batch script's too. scontrol update StepId=: the time limit of one of them.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/job_select.h"
#include "spur/scontrol.h"
#include "spur/step_facts.h"

void scontrol_step_text(const struct job_info *ji, const struct step *st, bool one_line, struct str *out) {
    const char *nl = RECORD_BREAK(one_line);
    const struct step_spec *spec = st->spec;
    bool is_batch = st->id == STEP_BATCH;
    str_add(out, "StepId=");
    step_id_text(ji->job, st, out);
    str_addf(out, " UserId=%u StartTime=", ji->job->spec->uid);
    cli_time(st->start_ms / 1000, "Unknown", out);
    str_add(out, " TimeLimit=");
    if (spec && spec->time_limit_min && spec->time_limit_min != TIME_LIMIT_NONE)
        duration_print_long((int64_t)spec->time_limit_min * 60, out);
    else
        str_add(out, "UNLIMITED");
    str_addf(out, "%sState=%s Partition=", nl, job_state_name(st->state));
    job_partition(ji->job, out);
    str_add(out, " NodeList=");
    step_node_list(st, out);
    str_addf(out, "%sNodes=%u CPUs=%u Tasks=%u Name=%s Network=(null)%sTRES=", nl, st->n_nodes, is_batch ? 0 : st->n_cpus,
             spec ? spec->n_tasks : 1, spec && spec->name ? spec->name : "", nl);
    if (is_batch)
        str_add(out, "(null)");
    else
        step_tres(st, 0, out);
    str_addf(out, "%sResvPorts=(null)%sCPUFreqReq=Default", nl, nl);
    if (!is_batch)
        str_addf(out, " Dist=%s", step_layout_word(spec));
    str_addf(out, "%sSrunHost:Pid=%s:0", nl, !is_batch && spec && spec->submit_host ? spec->submit_host : "(null)");
    if (!is_batch && spec && spec->cpus_per_task > 1)
        str_addf(out, "%sTresPerTask=cpu=%u", nl, spec->cpus_per_task);
    str_add(out, RECORD_END(one_line));
}

static bool is_wanted(const struct job_name *n, bool any, const struct step *st) {
    return any || !n->has_step || n->step_id == st->id;
}

/* Where they go: records, or a list in JSON. */
struct steps_out {
    struct str text;
    struct json json;
    int64_t now_unix;
    uint32_t n;
};

static void add_step(const struct scontrol *s, const struct job_info *ji, const struct step *st, struct steps_out *to) {
    to->n++;
    if (s->json)
        scontrol_step_json(&to->json, ji, st, to->now_unix);
    else
        scontrol_step_text(ji, st, s->one_line, &to->text);
}

static void add_job(const struct scontrol *s, const struct job_info *ji, const struct job_name *n, bool any,
                    struct steps_out *to) {
    struct step_batch batch;
    if (!job_holds_nodes(ji->job))
        return;
    if (step_of_batch(ji->job, &batch) && is_wanted(n, any, &batch.step))
        add_step(s, ji, &batch.step, to);
    for (uint32_t i = 0; i < ji->n_steps; i++)
        if (!ji->steps[i].end_ms && is_wanted(n, any, &ji->steps[i]))
            add_step(s, ji, &ji->steps[i], to);
}

int scontrol_show_step(struct scontrol *s, const char *name) {
    struct err e = {0};
    struct jobs_reply reply = {0};
    struct job_select pick;
    struct job_name wanted;
    bool any = !name || !*name;
    job_select_init(&pick, s->c);
    pick.states = ~0u;
    if (!any && job_name_parse(cli_sluids(s->c, name), JOB_NAME_STEP, &s->c->arena, &wanted, NULL)) {
        cli_error(s->c, "scontrol_print_step: slurm_get_job_steps(%s) failed: %s", name, err_sentence(E_JOB_ID));
        return 1;
    }
    if (!any)
        job_select_names(&pick, &wanted, 1);
    struct jobs_request request = {.job_ids = pick.ids, .n_job_ids = pick.n_ids, .with_steps = true};
    int rc = cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, &e);
    if (rc) {
        cli_error(s->c, "scontrol_print_step: slurm_get_job_steps(%s) failed: %s", any ? "" : name, e.text);
        return 1;
    }
    struct steps_out to = {.now_unix = reply.now_unix};
    struct job_rows rows = {0};
    to.json.out = &to.text;
    if (s->json) {
        json_doc_begin(&to.json);
        json_open(&to.json, "steps", '[');
    }
    for (uint32_t i = 0; i < reply.n_jobs; i++)
        job_select_rows(&pick, &reply.jobs[i], false, &rows);
    for (size_t i = 0; i < rows.v.n; i++)
        add_job(s, &rows.v.p[i], &wanted, any, &to);
    vec_fini(&rows.v);
    if (s->json) {
        json_close(&to.json, ']');
        json_no_val(&to.json, "last_update", reply.now_unix);
        json_doc_end(&to.json, s->c, reply.cluster_name);
    } else {
        cli_out(&to.text);
    }
    str_fini(&to.text);
    if (to.n || s->json)
        return to.n || any ? 0 : 1;
    if (any)
        puts("No job steps in the system");
    else
        printf("Job step %s not found\n", name);
    return any ? 0 : 1;
}

/* ---- update ---- */

static int update_fails(const char *text) {
    fprintf(stderr, "slurm_update error: %s\n", text);
    return 1;
}

static int send_limit(struct scontrol *s, const struct job_target *t, uint32_t step_id, uint32_t limit_min) {
    uint8_t token[TOKEN_SIZE];
    struct results reply = {0};
    struct err e = {0};
    struct job_spec spec = {.time_limit_min = limit_min};
    spur_token(token);
    struct update_request request = {.token = token, .n_token = sizeof(token), .targets = t, .n_targets = 1, .spec = &spec,
                                     .changes = CHANGE_TIME_LIMIT, .step_plus_1 = step_id + 1};
    if (cli_call(s->c, WIRE_Controller_Update, &request, &reply, &e))
        return update_fails(e.text);
    for (uint32_t i = 0; i < reply.n_results; i++)
        if (reply.results[i].error)
            return update_fails(err_sentence(-(int)reply.results[i].error));
    return 0;
}

/* All steps of the job that run. */
static int send_limits(struct scontrol *s, const struct job_target *t, uint32_t limit_min) {
    struct jobs_request request = {.job_ids = &t->job_id, .n_job_ids = 1, .with_steps = true};
    struct jobs_reply reply = {0};
    struct err e = {0};
    uint32_t n = 0;
    if (cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, &e))
        return update_fails(e.text);
    for (uint32_t i = 0; i < reply.n_jobs; i++)
        for (uint32_t k = 0; reply.jobs[i].job && reply.jobs[i].job->id == t->job_id && k < reply.jobs[i].n_steps; k++)
            if (!reply.jobs[i].steps[k].end_ms && ++n && send_limit(s, t, reply.jobs[i].steps[k].id, limit_min))
                return 1;
    return n ? 0 : update_fails(err_sentence(E_JOB_ID));
}

int scontrol_update_step(struct scontrol *s) {
    const char *value, *step = NULL;
    struct job_name name;
    uint32_t limit_min = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (scontrol_key(s->word[i], "StepId", 4, &value)) {
            step = value;
        } else if (scontrol_key(s->word[i], "TimeLimit", 5, &value)) {
            if (time_limit_parse(value, &limit_min) || !limit_min) {
                cli_error(s->c, "Invalid TimeLimit value");
                return 1;
            }
        } else {
            fprintf(stderr, "Update of this parameter is not supported: %s\nRequest aborted\n", s->word[i]);
            return 1;
        }
    }
    if (!step || !limit_min) {
        fprintf(stderr, step ? "No changes specified\n" : "Update of this parameter is not supported: %s\nRequest aborted\n", s->word[0]);
        return 1;
    }
    if (job_name_parse(cli_sluids(s->c, step), JOB_NAME_STEP, &s->c->arena, &name, NULL))
        return update_fails(err_sentence(E_JOB_ID));
    if (!name.has_step)
        return send_limits(s, &name.target, limit_min);
    return name.step_id > STEP_ID_MAX ? update_fails(err_sentence(E_JOB_ID)) : send_limit(s, &name.target, name.step_id, limit_min);
}
