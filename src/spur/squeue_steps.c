/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spur/hint.h"
#include "spur/squeue.h"
#include "spur/step_facts.h"
#include "spur/table_order.h"

static int by_step_id(const void *a, const void *b) {
    const struct step_row *x = a, *y = b;
    uint64_t p = step_key(x->ji->job->id, x->step->id), q = step_key(y->ji->job->id, y->step->id);
    return (p > q) - (p < q);
}

struct step_list {
    VEC(struct step_row) v;
};

/* A step's name asks for that one, a job's for all of its. */
static bool is_step_wanted(const struct squeue *q, const struct job *j, uint32_t step_id) {
    for (uint32_t i = 0; i < q->pick.n_names; i++) {
        struct job_select one = q->pick;
        struct job_info ji = {.job = j};
        one.names = &q->pick.names[i];
        one.n_names = 1;
        if (job_selected(&one, &ji) && (!one.names->has_step || one.names->step_id == step_id))
            return true;
    }
    return q->pick.n_names == 0;
}

static void add_steps(struct cli *c, const struct squeue *q, const struct job_info *ji, struct step_list *out) {
    struct step_batch *batch = arena_calloc(&c->arena, 1, sizeof(*batch));
    const struct job *j = ji->job;
    if (!job_selected(&q->pick, ji) || !job_holds_nodes(j))
        return;
    if (step_of_batch(j, batch) && !batch->step.end_ms && is_step_wanted(q, j, STEP_BATCH))
        vec_push(&out->v, ((struct step_row){ji, &batch->step}));
    for (uint32_t i = 0; i < ji->n_steps; i++)
        if (!ji->steps[i].end_ms && is_step_wanted(q, j, ji->steps[i].id))
            vec_push(&out->v, ((struct step_row){ji, &ji->steps[i]}));
}

int squeue_print_steps(struct cli *c, const struct squeue *q, const struct jobs_reply *reply) {
    struct job_env env = {reply->now_unix, reply->cluster_name, q->no_convert ? '=' : 0, q->expand};
    struct table_order o = {.env = &env, .fields = step_fields(), .last = by_step_id};
    auto_str out = {0};
    struct table t;
    struct step_list steps = {0};
    char bad = 0;
    table_init(&t, step_fields());
    if (q->long_format)
        table_parse_long(&t, q->long_format);
    else
        table_parse_percent(&t, q->format ? q->format : "%.15i %.8j %.9P %.8u %.9M %N");
    for (size_t i = 0; i < t.bad.n; i++) {
        cli_error(c, "Invalid job step format specification: %s", t.bad.p[i]);
        hint_field(c, t.fields, t.bad.p[i], strlen(t.bad.p[i]));
    }
    squeue_date(q, &out);
    if (!q->no_header)
        table_head(&t, &out);
    bool ok = table_order_parse(&o, q->sort ? q->sort : "", &bad);
    for (uint32_t i = 0; ok && i < reply->n_jobs; i++)
        if (reply->jobs[i].job && reply->jobs[i].job->spec)
            add_steps(c, q, &reply->jobs[i], &steps);
    if (steps.v.n)
        qsort_r(steps.v.p, steps.v.n, sizeof(*steps.v.p), table_order_compare, &o);
    for (size_t i = 0; i < steps.v.n; i++)
        table_line(&t, &steps.v.p[i], &env, &out);
    cli_out(&out);
    if (!ok)
        cli_error(c, "Invalid sort specification: %c", bad);
    vec_fini(&steps.v);
    table_fini(&t);
    return ok ? 0 : 1;
}
