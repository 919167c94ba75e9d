/* SPDX-License-Identifier: Apache-2.0
 *
 * squeue: asks for the jobs, keeps those that were asked for, sorts and prints them.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/cli.h"
#include "spur/command.h"
#include "spur/job_facts.h"
#include "spur/job_fields.h"
#include "spur/job_select.h"
#include "spur/step_facts.h"

struct squeue {
    struct job_select pick;
    const char *format, *long_format, *sort;
    bool all, array, long_list, no_convert, no_header, start, steps;
    const char *step_list;
    const char *job_list, *user_list, *state_list, *part_list, *name_list, *account_list, *qos_list, *node_list;
    bool me;
};

/* The later of -o and -O counts. */
static int set_format(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct squeue *q = r->ctx;
    bool is_long = str_eq(o->name, "Format");
    q->format = is_long ? NULL : value;
    q->long_format = is_long ? value : NULL;
    return 0;
}

static int set_steps(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct squeue *q = r->ctx;
    q->steps = true;
    q->step_list = value;
    return 0;
}

#define AT(field) offsetof(struct squeue, field)
static const struct opt_row rows[] = {
    {"Format", 'O', "format", OPT_CALL, 0, 0, set_format, "FORMAT2", "columns by name: NAME[:[.][WIDTH][SUFFIX]],…"},
    {"account", 'A', "account(s)", OPT_TEXT, 0, AT(account_list), NULL, "ACCOUNT", "only jobs of these accounts"},
    {"all", 'a', NULL, OPT_BOOL, 0, AT(all), NULL, "ALL", "jobs of all partitions (none is hidden)"},
    {"array", 'r', NULL, OPT_BOOL, 0, AT(array), NULL, "ARRAY", "a line for each task of an array"},
    {"array-unique", 0, NULL, OPT_NOT_YET},
    {"clusters", 'M', "names", OPT_NOT_YET},
    {"expand-patterns", 0, NULL, OPT_NOT_YET},
    {"federation", 0, NULL, OPT_NOT_YET},
    {"format", 'o', "format", OPT_CALL, 0, 0, set_format, "FORMAT", "columns by letter: %[.][WIDTH]LETTER…"},
    {"help", 0, NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help"},
    {"hide", 0, NULL, OPT_NOT_YET},
    {"iterate", 'i', "seconds", OPT_NOT_YET},
    {"jobs", 'j', "job(s)", OPT_TEXT, OPT_MAYBE | OPT_NEXT, AT(job_list), NULL, NULL, "only these jobs"},
    {"json", 0, "version", OPT_NOT_YET, OPT_MAYBE},
    {"licenses", 'L', "names", OPT_NOT_YET},
    {"local", 0, NULL, OPT_NOT_YET},
    {"long", 'l', NULL, OPT_BOOL, 0, AT(long_list), NULL, NULL, "more columns"},
    {"me", 0, NULL, OPT_BOOL, 0, AT(me), NULL, NULL, "only your jobs"},
    {"name", 'n', "job_name(s)", OPT_TEXT, 0, AT(name_list), NULL, "NAMES", "only jobs of these names"},
    {"noconvert", 0, NULL, OPT_BOOL, 0, AT(no_convert), NULL, NULL, "sizes and counts in the units they are kept in"},
    {"nodelist", 'w', "hostlist", OPT_TEXT, 0, AT(node_list), NULL, NULL, "only jobs on these nodes"},
    {"noheader", 'h', NULL, OPT_BOOL, 0, AT(no_header), NULL, NULL, "no headings"},
    {"notme", 0, NULL, OPT_NOT_YET},
    {"only-job-state", 0, NULL, OPT_NOT_YET},
    {"partition", 'p', "partition(s)", OPT_TEXT, 0, AT(part_list), NULL, "PARTITION", "only jobs of these partitions"},
    {"priority", 'P', NULL, OPT_NOT_YET},
    {"qos", 'q', "qos(s)", OPT_TEXT, 0, AT(qos_list), NULL, "QOS", "only jobs of these QOS"},
    {"reservation", 'R', "name(s)", OPT_NOT_YET},
    {"sibling", 0, NULL, OPT_NOT_YET},
    {"sort", 'S', "fields", OPT_TEXT, 0, AT(sort), NULL, "SORT", "order by letters of -o, - in front: descending"},
    {"start", 0, NULL, OPT_BOOL, 0, AT(start), NULL, NULL, "expected start times of jobs that wait"},
    {"states", 't', "state(s)", OPT_TEXT, 0, AT(state_list), NULL, "STATES", "only jobs in these states; all: ended ones too"},
    {"steps", 's', "step(s)", OPT_CALL, OPT_MAYBE | OPT_NEXT, 0, set_steps, NULL, "steps that run: all, or these"},
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "show a short usage"},
    {"user", 'u', "user(s)", OPT_TEXT, 0, AT(user_list), NULL, "USERS", "only jobs of these users"},
    {"verbose", 'v', NULL, OPT_NOT_YET},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "show the version"},
    {"yaml", 0, "version", OPT_NOT_YET, OPT_MAYBE},
};

const struct opt_table *cmd_squeue_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS]", .brief = "[-A account] [-j jobs] [-n names] [-o format] [-O fields] [-p partitions]\n"
        "     [-q qos] [-S fields] [-t states] [-u users] [-w nodes] [-ahlr] [--me] [--start]",
        .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 1, .env_prefix = {"SQUEUE_"}};
    return &t;
}

/* ---- order ---- */

struct order {
    const struct table_field *field[16];
    bool down[16];
    size_t n;
    bool ids_down; /* at last */
    const struct job_env *env;
    const struct table_fields *fields;
    int (*last)(const void *a, const void *b); /* where all else is equal */
};

/* "P,t,-p": false with the first letter that is none. */
static bool order_parse(const char *text, struct order *o, char *bad) {
    for (const char *at = text; *at && o->n < ARRAY_LEN(o->field); at++) {
        at += strspn(at, ", ");
        bool down = *at == '-';
        at += *at == '-' || *at == '+';
        if (!*at)
            break;
        const struct table_field *f = table_letter(o->fields, *at);
        if (!f) {
            *bad = *at;
            return false;
        }
        o->field[o->n] = f;
        o->down[o->n++] = down;
    }
    return true;
}

/* Tasks of an array that wait have one id between them. */
static int by_id(const void *a, const void *b) {
    const struct job *x = ((const struct job_info *)a)->job, *y = ((const struct job_info *)b)->job;
    if (x->id == y->id && x->array && y->array)
        return (x->array->task < y->array->task) - (x->array->task > y->array->task);
    return (x->id > y->id) - (x->id < y->id);
}

static int by_step_id(const void *a, const void *b) {
    const struct step_row *x = a, *y = b;
    uint64_t p = step_key(x->ji->job->id, x->step->id), q = step_key(y->ji->job->id, y->step->id);
    return (p > q) - (p < q);
}

static int compare(const void *a, const void *b, void *arg) {
    const struct order *o = arg;
    for (size_t i = 0; i < o->n; i++) {
        const struct table_field *f = o->field[i];
        int c = 0;
        if (f->compare) {
            c = f->compare(a, b);
        } else if (f->text) {
            auto_str left = {0}, right = {0};
            f->text(a, o->env, &left);
            f->text(b, o->env, &right);
            c = strcmp(str_text(&left), str_text(&right));
        }
        if (c)
            return o->down[i] ? -c : c;
    }
    int c = o->last(a, b);
    return o->ids_down ? -c : c;
}

/* ---- what is printed ---- */

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
    for (size_t i = 0; i < t->bad.n; i++)
        cli_error(c, "Invalid job format specification: %s", t->bad.p[i]);
}

static int print(struct cli *c, const struct squeue *q, const struct jobs_reply *reply) {
    struct job_env env = {reply->now_unix, reply->cluster_name, q->no_convert ? '=' : 0};
    struct order o = {.env = &env, .ids_down = !q->sort && !q->start, .fields = job_fields(), .last = by_id};
    auto_str out = {0};
    struct table t;
    make_table(c, q, &t);
    if (q->long_list && !q->no_header) {
        cli_date(time(NULL), &out);
        str_addc(&out, '\n');
    }
    if (!q->no_header)
        table_head(&t, &out);
    char bad = 0;
    bool ok = order_parse(q->sort ? q->sort : q->start ? "S" : "P,t,-p", &o, &bad);
    struct job_rows jobs = {0};
    for (uint32_t i = 0; ok && i < reply->n_jobs; i++)
        job_select_rows(&q->pick, &reply->jobs[i], q->array, &jobs);
    if (jobs.v.n)
        qsort_r(jobs.v.p, jobs.v.n, sizeof(*jobs.v.p), compare, &o);
    for (size_t i = 0; i < jobs.v.n; i++)
        table_line(&t, &jobs.v.p[i], &env, &out);
    cli_out(&out);
    if (!ok)
        cli_error(c, "Invalid sort specification: %c", bad);
    vec_fini(&jobs.v);
    table_fini(&t);
    return ok ? 0 : 1;
}

/* ---- steps ---- */

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

static int print_steps(struct cli *c, const struct squeue *q, const struct jobs_reply *reply) {
    struct job_env env = {reply->now_unix, reply->cluster_name, q->no_convert ? '=' : 0};
    struct order o = {.env = &env, .fields = step_fields(), .last = by_step_id};
    auto_str out = {0};
    struct table t;
    struct step_list steps = {0};
    char bad = 0;
    table_init(&t, step_fields());
    if (q->long_format)
        table_parse_long(&t, q->long_format);
    else
        table_parse_percent(&t, q->format ? q->format : "%.15i %.8j %.9P %.8u %.9M %N");
    for (size_t i = 0; i < t.bad.n; i++)
        cli_error(c, "Invalid job step format specification: %s", t.bad.p[i]);
    if (!q->no_header)
        table_head(&t, &out);
    bool ok = order_parse(q->sort ? q->sort : "", &o, &bad);
    for (uint32_t i = 0; ok && i < reply->n_jobs; i++)
        if (reply->jobs[i].job && reply->jobs[i].job->spec)
            add_steps(c, q, &reply->jobs[i], &steps);
    if (steps.v.n)
        qsort_r(steps.v.p, steps.v.n, sizeof(*steps.v.p), compare, &o);
    for (size_t i = 0; i < steps.v.n; i++)
        table_line(&t, &steps.v.p[i], &env, &out);
    cli_out(&out);
    if (!ok)
        cli_error(c, "Invalid sort specification: %c", bad);
    vec_fini(&steps.v);
    table_fini(&t);
    return ok ? 0 : 1;
}

static bool select_jobs(struct cli *c, struct squeue *q) {
    struct job_select *s = &q->pick;
    job_select_init(s, c);
    s->only_pending = q->start;
    return job_select_states(s, q->start && !q->state_list ? "PD" : q->state_list) &&
           job_select_ids(s, q->step_list ? q->step_list : q->job_list) && job_select_users(s, q->user_list, q->me) &&
           job_select_nodes(s, q->node_list) && job_select_texts(s, JOB_SELECT_PARTITION, q->part_list) &&
           job_select_texts(s, JOB_SELECT_NAME, q->name_list) &&
           job_select_texts(s, JOB_SELECT_ACCOUNT, q->account_list) &&
           job_select_texts(s, JOB_SELECT_QOS, q->qos_list);
}

int cmd_squeue(struct cli *c) {
    struct squeue q = {0};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_squeue_options(), &q, &r, false, &exit_code) && select_jobs(c, &q)) {
        struct jobs_request request = {.job_ids = q.pick.ids, .n_job_ids = q.pick.n_ids, .user = q.pick.one_user,
                                       .with_ended = q.pick.with_ended, .with_steps = q.steps};
        struct jobs_reply reply = {0};
        struct err e = {0};
        int rc = q.pick.is_nothing ? 0 : cli_call(c, WIRE_Controller_Jobs, &request, &reply, &e);
        if (rc)
            fprintf(stderr, "slurm_load_jobs error: %s\n", e.text);
        else
            exit_code = q.steps ? print_steps(c, &q, &reply) : print(c, &q, &reply);
    }
    opt_fini(&r);
    return exit_code;
}
