/* SPDX-License-Identifier: Apache-2.0
 *
 * sprio: what the priorities of waiting jobs are made of, a row for each job and partition.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/hint.h"
#include "spur/job_select.h"
#include "spur/table_order.h"

struct sprio {
    struct job_select pick;
    const char *format, *job_list, *user_list, *part_list, *sort;
    bool long_list, no_header, normalized, weights, help_format;
};

#define AT(field) offsetof(struct sprio, field)
static const struct opt_row rows[] = {
    {"cluster", 'M', "name", OPT_CLUSTERS, 0, 0, NULL, NULL, "this cluster by its name, or all"},
    {"federation", 0, NULL, OPT_NOT_YET},
    {"format", 'o', "format", OPT_TEXT, 0, AT(format), NULL, "FORMAT", "columns by letter: %[.][WIDTH]LETTER…"},
    OPT_ROW_HELP_LONG,
    {"helpformat", 0, NULL, OPT_BOOL, 0, AT(help_format), NULL, NULL, "list the letters for -o"},
    {"jobs", 'j', "job(s)", OPT_TEXT, OPT_MAYBE | OPT_NEXT, AT(job_list), NULL, NULL, "only these jobs"},
    {"local", 0, NULL, OPT_NOT_YET},
    {"long", 'l', NULL, OPT_BOOL, 0, AT(long_list), NULL, NULL, "more columns"},
    {"noheader", 'h', NULL, OPT_BOOL, 0, AT(no_header), NULL, NULL, "no headings"},
    {"norm", 'n', NULL, OPT_BOOL, 0, AT(normalized), NULL, NULL, "parts as fractions of their weights"},
    {"partition", 'p', "partition(s)", OPT_TEXT, 0, AT(part_list), NULL, "PARTITION", "only jobs of these partitions"},
    {"sibling", 0, NULL, OPT_NOT_YET},
    {"sort", 'S', "fields", OPT_TEXT, 0, AT(sort), NULL, NULL, "order by letters of -o, - in front: descending"},
    OPT_ROW_STALE,
    OPT_ROW_USAGE,
    {"user", 'u', "user(s)", OPT_TEXT, 0, AT(user_list), NULL, NULL, "only jobs of these users"},
    {"verbose", 'v', NULL, OPT_NOT_YET},
    OPT_ROW_VERSION,
    {"weights", 'w', NULL, OPT_BOOL, 0, AT(weights), NULL, NULL, "the weights of the parts"},
};

const struct opt_table *cmd_sprio_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS]", .brief = "[-j jobs] [-o format] [-p partitions] [-S fields] [-u users] [-hlnw]", .row = rows,
        .n = ARRAY_LEN(rows), .usage_exit = 1, .env_prefix = {"SPRIO_"}};
    return &t;
}

/* ---- columns ---- */

struct prio_row {
    const struct job_info *ji; /* NULL: the weights */
    const struct priority_parts *parts;
    const struct priority_weights *w;
};

#define ROW(row) ((const struct prio_row *)(row))
#define SPEC(row) (ROW(row)->ji->job->spec)
#define FIELD(fn) static void fn(const void *row, const void *env, struct str *out)

FIELD(job_id) {
    if (ROW(row)->ji)
        str_addf(out, "%u", ROW(row)->ji->job->id);
    else
        str_add(out, "Weights");
}
FIELD(sluid) {
    if (ROW(row)->ji)
        str_add(out, ROW(row)->ji->job->sluid ? ROW(row)->ji->job->sluid : "");
}
FIELD(partition) {
    str_add(out, ROW(row)->ji && ROW(row)->parts->partition ? ROW(row)->parts->partition : "");
}
FIELD(user) {
    if (ROW(row)->ji)
        str_add(out, SPEC(row)->user ? SPEC(row)->user : "");
}
FIELD(account) {
    if (ROW(row)->ji)
        str_add(out, SPEC(row)->account ? SPEC(row)->account : "");
}
FIELD(qos_name) {
    if (ROW(row)->ji)
        str_add(out, SPEC(row)->qos ? SPEC(row)->qos : "");
}
FIELD(cluster) {
    if (ROW(row)->ji)
        str_add(out, env ? env : "");
}
FIELD(priority) {
    if (ROW(row)->ji)
        str_addf(out, "%llu", (unsigned long long)ROW(row)->parts->priority);
}
FIELD(priority_norm) {
    if (ROW(row)->ji)
        str_addf(out, "%.14f", (double)ROW(row)->parts->priority / 4294967295.0);
}
FIELD(nice) {
    if (ROW(row)->ji)
        str_addf(out, "%lld", (long long)ROW(row)->parts->nice);
}
/* A part that there is no source of: an administrator's program, accounts, fair shares, QOS. */
FIELD(none) {
    str_add(out, "0");
}
FIELD(none_norm) {
    str_add(out, ROW(row)->ji ? "0.0000000" : "0");
}
FIELD(site) {
    str_add(out, ROW(row)->ji ? "0" : "1");
}
#define PART(name, points, weight)                                                                                    \
    static int64_t name##_number(const void *row, const void *env) {                                                  \
        return ROW(row)->ji ? (int64_t)ROW(row)->parts->points : (int64_t)ROW(row)->w->weight;                        \
    }                                                                                                                 \
    FIELD(name) {                                                                                                     \
        str_addf(out, "%lld", (long long)name##_number(row, env));                                                    \
    }                                                                                                                 \
    FIELD(name##_norm) {                                                                                              \
        uint32_t w = ROW(row)->w->weight;                                                                             \
        if (ROW(row)->ji)                                                                                             \
            str_addf(out, "%.7f", w ? (double)ROW(row)->parts->points / w : 0.0);                                     \
        else                                                                                                          \
            name(row, env, out);                                                                                      \
    }
PART(age, age, age)
PART(size, size, size)
PART(points, partition_points, partition)
static int64_t priority_number(const void *row, const void *env) {
    return ROW(row)->ji ? (int64_t)MIN(ROW(row)->parts->priority, (uint64_t)INT64_MAX - 1) : 0;
}
static int64_t id_number(const void *row, const void *env) {
    return ROW(row)->ji ? ROW(row)->ji->job->id : 0;
}
FIELD(nothing) {
}

static const struct table_field field_rows[] = {
    {'a', "age-norm", "AGE", age_norm, .number = age_number},
    {'A', "age", "AGE", age, .number = age_number},
    {'b', "assoc-norm", "ASSOC", none_norm},
    {'B', "assoc", "ASSOC", none},
    {'c', "cluster", "CLUSTER", cluster},
    {'f', "fairshare-norm", "FAIRSHARE", none_norm},
    {'F', "fairshare", "FAIRSHARE", none},
    {'i', "jobid", "JOBID", job_id, .number = id_number},
    {'j', "jobsize-norm", "JOBSIZE", size_norm, .number = size_number},
    {'J', "jobsize", "JOBSIZE", size, .number = size_number},
    {'n', "qosname", "QOSNAME", qos_name},
    {'N', "nice", "NICE", nice},
    {'o', "account", "ACCOUNT", account},
    {'p', "partition-norm", "PARTITION", points_norm, .number = points_number},
    {'P', "partition-weighted", "PARTITION", points, .number = points_number},
    {'q', "qos-norm", "QOS", none_norm},
    {'Q', "qos", "QOS", none},
    {'r', "partition", "PARTITION", partition},
    {'s', "sluid", "SLUID", sluid},
    {'S', "site", "SITE", site},
    {'t', "tres-norm", "TRES", nothing},
    {'T', "tres", "TRES", nothing},
    {'u', "user", "USER", user},
    {'y', "priority-norm", "PRIORITY", priority_norm, .number = priority_number},
    {'Y', "priority", "PRIORITY", priority, .number = priority_number},
};

static const struct table_fields *fields(void) {
    static const struct table_fields f = {field_rows, ARRAY_LEN(field_rows)};
    return &f;
}

/* ---- all of it ---- */

/* Parts whose weight is 0 have no column, as Slurm has it. */
static void default_format(const struct sprio *s, const struct priority_weights *w, struct str *out) {
    bool n = s->normalized;
    if (s->long_list) {
        str_add(out, "%.15i %9r %.8u %.8o %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10n %.10Q %.11N %.20T");
        return;
    }
    str_add(out, s->user_list ? "%.15i %9r %.8u" : "%.15i %9r");
    str_add(out, n ? " %.16y" : " %.10Y %.10S");
    if (w->age)
        str_add(out, n ? " %.10a" : " %.10A");
    if (w->size)
        str_add(out, n ? " %.10j" : " %.10J");
    if (w->partition)
        str_add(out, n ? " %.10p" : " %.10P");
}

static bool is_in(const struct sprio *s, struct cli *c, const char *partition) {
    uint32_t n;
    const char *const *word = cli_words(c, s->part_list ? s->part_list : "", ",", &n);
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(word[i], partition))
            return true;
    return !s->part_list;
}

typedef VEC(struct prio_row) row_list;

static void pick_rows(struct cli *c, const struct sprio *s, const struct jobs_reply *reply, row_list *out) {
    for (uint32_t i = 0; i < reply->n_jobs; i++) {
        const struct job_info *ji = &reply->jobs[i];
        for (uint32_t k = 0; job_selected(&s->pick, ji) && !ji->job->hold && k < ji->n_parts; k++)
            if (is_in(s, c, ji->parts[k].partition))
                vec_push(out, ((struct prio_row){ji, &ji->parts[k], reply->weights}));
    }
}

static int print(struct cli *c, const struct sprio *s, const struct jobs_reply *reply) {
    static const struct priority_weights none_at_all;
    const struct priority_weights *w = reply->weights ? reply->weights : &none_at_all;
    struct table t;
    struct table_order o = {.fields = fields(), .env = reply->cluster_name};
    row_list list = {0};
    auto_str out = {0}, format = {0};
    char bad = 0;
    default_format(s, w, &format);
    table_init(&t, fields());
    table_parse_percent(&t, s->format ? s->format : str_text(&format));
    for (size_t i = 0; i < t.bad.n; i++) {
        cli_error(c, "Invalid job format specification: %s", t.bad.p[i]);
        hint_field(c, t.fields, t.bad.p[i], strlen(t.bad.p[i]));
    }
    if (!s->no_header)
        table_head(&t, &out);
    bool ok = table_order_parse(&o, s->sort ? s->sort : "i", &bad);
    if (s->weights)
        vec_push(&list, ((struct prio_row){.w = w}));
    else if (ok)
        pick_rows(c, s, reply, &list);
    if (list.n && s->sort)
        qsort_r(list.p, list.n, sizeof(*list.p), table_order_compare, &o);
    for (size_t i = 0; i < list.n; i++)
        table_line(&t, &list.p[i], reply->cluster_name, &out);
    cli_out(&out);
    if (!ok)
        cli_error(c, "Invalid sort specification: %c", bad);
    vec_fini(&list);
    table_fini(&t);
    return ok ? 0 : 1;
}

static bool select_jobs(struct cli *c, struct sprio *s) {
    job_select_init(&s->pick, c);
    return job_select_states(&s->pick, "PD") && job_select_ids(&s->pick, s->job_list) &&
           job_select_users(&s->pick, s->user_list, false);
}

static int show(struct cli *c, const struct sprio *s) {
    struct jobs_request request = {.job_ids = s->pick.ids, .n_job_ids = s->pick.n_ids, .user = s->pick.one_user,
                                   .with_parts = true};
    struct jobs_reply reply = {0};
    struct err e = {0};
    int code = cli_call(c, WIRE_Controller_Jobs, &request, &reply, &e);
    if (code && code != E_JOB_ID) {
        cli_error(c, "Couldn't get priority factors: %s", e.text);
        return 1;
    }
    if (code == E_JOB_ID || s->pick.is_nothing) { /* the weights are needed for the heading */
        struct jobs_request all = {.user = "", .with_parts = true};
        if (cli_call(c, WIRE_Controller_Jobs, &all, &reply, &e))
            return 1;
        reply.n_jobs = 0;
    }
    return print(c, s, &reply);
}

int cmd_sprio(struct cli *c) {
    struct sprio s = {0};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_sprio_options(), &s, &r, false, &exit_code)) {
        if (s.help_format) {
            auto_str out = {0};
            table_names(fields(), &out);
            cli_out(&out);
            exit_code = 0;
        } else if (select_jobs(c, &s)) {
            exit_code = show(c, &s);
        }
    }
    opt_fini(&r);
    return exit_code;
}
