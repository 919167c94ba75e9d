/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "spur/hint.h"
#include "spur/job_fields.h"
#include "spur/json_doc.h"
#include "spur/table_json.h"
#include "spur/squeue.h"
#include "spur/table_order.h"

#define FLUSH_BYTES 65536

/* Tasks of an array that wait have one id between them. */
static int by_id(const void *a, const void *b) {
    const struct job *x = ((const struct job_info *)a)->job, *y = ((const struct job_info *)b)->job;
    if (x->id == y->id && x->array && y->array)
        return (x->array->task < y->array->task) - (x->array->task > y->array->task);
    return (x->id > y->id) - (x->id < y->id);
}

static void make_table(const struct cli *c, const struct squeue *q, struct table *t) {
    table_init(t, job_fields());
    if (q->long_format)
        table_parse_long(t, q->long_format);
    else if (q->format)
        table_parse_percent(t, q->format);
    else if (q->start)
        table_parse_percent(t, "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R");
    else if (q->long_list)
        table_parse_percent(t, "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R");
    else
        table_parse_percent(t, "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R");
    for (size_t i = 0; i < t->bad.n; i++) {
        cli_error(c, "Invalid job format specification: %s", t->bad.p[i]);
        hint_field(c, t->fields, t->bad.p[i], strlen(t->bad.p[i]));
    }
}

/* The jobs that are asked for; with -P one that waits is a row for each of its partitions. */
static void add_by_partition(struct cli *c, const struct job_info *ji, struct job_rows *out) {
    uint32_t n = 0;
    const char *list = ji->job->spec->partition;
    const char *const *word = job_is_pending(ji->job) && list ? cli_words(c, list, ",", &n) : NULL;
    if (n < 2) {
        vec_push(&out->v, *ji);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct job_info row = *ji;
        struct job *j = arena_memdup(&c->arena, ji->job, sizeof(*j));
        j->partition = word[i];
        row.job = j;
        vec_push(&out->v, row);
    }
}

/* Which job it is and how far, of an array which tasks. The rest is as of a job that asked for nothing. */
static const struct job *bare(struct cli *c, const struct job *j) {
    static const struct job_spec nothing;
    struct job *b = arena_calloc(&c->arena, 1, sizeof(*b));
    b->id = j->id;
    b->sluid = j->sluid;
    b->state = j->state;
    b->completing = j->completing;
    b->configuring = j->configuring;
    b->array = j->array;
    b->spec = &nothing;
    return b;
}

static void pick_rows(struct cli *c, const struct squeue *q, const struct jobs_reply *reply, struct job_rows *out) {
    struct job_rows all = {0};
    for (uint32_t i = 0; i < reply->n_jobs; i++)
        job_select_rows(&q->pick, &reply->jobs[i], q->array, q->by_partition ? &all : out);
    for (size_t i = 0; i < all.v.n; i++)
        add_by_partition(c, &all.v.p[i], out);
    vec_fini(&all.v);
    for (size_t i = 0; q->only_state && i < out->v.n; i++)
        out->v.p[i] = (struct job_info){.job = bare(c, out->v.p[i].job), .is_yours = out->v.p[i].is_yours};
}

void squeue_date(const struct squeue *q, struct str *out) {
    if ((!q->long_list && !q->interval_secs) || q->no_header)
        return;
    cli_date(time(NULL), out);
    str_addc(out, '\n');
}

static void print_rows(const struct table *t, const struct job_rows *rows, const struct job_env *env, struct str *out) {
    for (size_t i = 0; i < rows->v.n; i++) {
        table_line(t, &rows->v.p[i], env, out);
        if (out->n < FLUSH_BYTES)
            continue;
        cli_out(out);
        str_clear(out);
    }
    cli_out(out);
}

static struct job_env env_of(const struct squeue *q, const struct jobs_reply *reply) {
    return (struct job_env){reply->now_unix, reply->cluster_name, q->no_convert ? '=' : 0, q->expand};
}

int squeue_print_jobs(struct cli *c, const struct squeue *q, const struct jobs_reply *reply) {
    struct job_env env = env_of(q, reply);
    struct table_order o = {.env = &env, .last_down = !q->sort && !q->start, .fields = job_fields(), .last = by_id};
    auto_str out = {0};
    struct table t;
    struct job_rows rows = {0};
    char bad = 0;
    make_table(c, q, &t);
    squeue_date(q, &out);
    if (!q->no_header)
        table_head(&t, &out);
    bool ok = table_order_parse(&o, q->sort ? q->sort : q->start ? "S" : "P,t,-p", &bad);
    if (ok)
        pick_rows(c, q, reply, &rows);
    if (rows.v.n)
        qsort_r(rows.v.p, rows.v.n, sizeof(*rows.v.p), table_order_compare, &o);
    print_rows(&t, &rows, &env, &out);
    if (!ok)
        cli_error(c, "Invalid sort specification: %c", bad);
    vec_fini(&rows.v);
    table_fini(&t);
    return ok ? 0 : 1;
}

int squeue_print_json(struct cli *c, const struct squeue *q, const struct jobs_reply *reply) {
    struct job_env env = env_of(q, reply);
    struct job_rows rows = {0};
    auto_str out = {0};
    struct json w = {.out = &out};
    struct table_json shape;
    pick_rows(c, q, reply, &rows);
    table_json_init(&shape, job_fields(), 3);
    json_doc_begin(&w);
    json_open(&w, "jobs", '[');
    for (size_t i = 0; i < rows.v.n; i++) {
        table_json_row(&shape, &w, &rows.v.p[i], &env);
        json_doc_flush(&w);
    }
    json_close(&w, ']');
    json_no_val(&w, "last_backfill", reply->now_unix);
    json_no_val(&w, "last_update", reply->now_unix);
    table_json_fini(&shape);
    json_doc_end(&w, c, reply->cluster_name);
    vec_fini(&rows.v);
    return 0;
}
