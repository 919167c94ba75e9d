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

struct squeue {
    struct job_select pick;
    const char *format, *long_format, *sort;
    bool all, array, long_list, no_convert, no_header, start;
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

#define AT(field) offsetof(struct squeue, field)
static const struct opt_row rows[] = {
    {"Format", 'O', "format", OPT_CALL, 0, 0, set_format, "FORMAT2", "columns by name: NAME[:[.][WIDTH][SUFFIX]],…"},
    {"account", 'A', "account(s)", OPT_TEXT, 0, AT(account_list), NULL, "ACCOUNT", "only jobs of these accounts"},
    {"all", 'a', NULL, OPT_BOOL, 0, AT(all), NULL, "ALL", "jobs of all partitions (none is hidden)"},
    {"array", 'r', NULL, OPT_BOOL, 0, AT(array), NULL, "ARRAY", "a line for each job (as without it: no arrays yet)"},
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
    {"steps", 's', "step(s)", OPT_NOT_YET, OPT_MAYBE | OPT_NEXT},
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
};

/* "P,t,-p": false with the first letter that is none. */
static bool order_parse(const char *text, struct order *o, char *bad) {
    for (const char *at = text; *at && o->n < ARRAY_LEN(o->field); at++) {
        at += strspn(at, ", ");
        bool down = *at == '-';
        at += *at == '-' || *at == '+';
        if (!*at)
            break;
        const struct table_field *f = table_letter(job_fields(), *at);
        if (!f) {
            *bad = *at;
            return false;
        }
        o->field[o->n] = f;
        o->down[o->n++] = down;
    }
    return true;
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
    uint32_t x = ((const struct job_info *)a)->job->id, y = ((const struct job_info *)b)->job->id;
    int c = (x > y) - (x < y);
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
    struct order o = {.env = &env, .ids_down = !q->sort && !q->start};
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
    VEC(struct job_info) jobs = {0};
    for (uint32_t i = 0; ok && i < reply->n_jobs; i++)
        if (job_selected(&q->pick, &reply->jobs[i]))
            vec_push(&jobs, reply->jobs[i]);
    if (jobs.n)
        qsort_r(jobs.p, jobs.n, sizeof(*jobs.p), compare, &o);
    for (size_t i = 0; i < jobs.n; i++)
        table_line(&t, &jobs.p[i], &env, &out);
    cli_out(&out);
    if (!ok)
        cli_error(c, "Invalid sort specification: %c", bad);
    vec_fini(&jobs);
    table_fini(&t);
    return ok ? 0 : 1;
}

static bool select_jobs(struct cli *c, struct squeue *q) {
    struct job_select *s = &q->pick;
    job_select_init(s, c);
    s->only_pending = q->start;
    return job_select_states(s, q->start && !q->state_list ? "PD" : q->state_list) &&
           job_select_ids(s, q->job_list) && job_select_users(s, q->user_list, q->me) &&
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
                                       .with_ended = q.pick.with_ended};
        struct jobs_reply reply = {0};
        struct err e = {0};
        int rc = q.pick.is_nothing ? 0 : cli_call(c, WIRE_Controller_Jobs, &request, &reply, &e);
        if (rc)
            fprintf(stderr, "slurm_load_jobs error: %s\n", e.text);
        else
            exit_code = print(c, &q, &reply);
    }
    opt_fini(&r);
    return exit_code;
}
