/* SPDX-License-Identifier: Apache-2.0
 *
 * squeue: asks for the jobs, keeps those that were asked for, sorts and prints them.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/job_fields.h"
#include "spur/json_doc.h"
#include "spur/squeue.h"
#include "spur/step_facts.h"

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

static int set_json(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct squeue *q = r->ctx;
    q->json = true;
    q->json_version = value;
    return 0;
}

#define AT(field) offsetof(struct squeue, field)
static const struct opt_row rows[] = {
    {"Format", 'O', "format", OPT_CALL, 0, 0, set_format, "FORMAT2", "columns by name: NAME[:[.][WIDTH][SUFFIX]],…"},
    {"account", 'A', "account(s)", OPT_TEXT, 0, AT(account_list), NULL, "ACCOUNT", "only jobs of these accounts"},
    {"all", 'a', NULL, OPT_BOOL, 0, AT(all), NULL, "ALL", "jobs of hidden partitions too"},
    {"array", 'r', NULL, OPT_BOOL, 0, AT(array), NULL, "ARRAY", "a line for each task of an array"},
    {"array-unique", 0, NULL, OPT_BOOL, 0, AT(array), NULL, "ARRAY_UNIQUE", "a line for each task of an array that waits"},
    {"clusters", 'M', "names", OPT_CLUSTERS, 0, 0, NULL, "CLUSTERS", "this cluster by its name, or all"},
    {"expand-patterns", 0, NULL, OPT_BOOL, 0, AT(expand), NULL, "EXPAND_PATTERNS", "names of files without their patterns"},
    {"federation", 0, NULL, OPT_NOT_YET},
    {"format", 'o', "format", OPT_CALL, 0, 0, set_format, "FORMAT", "columns by letter: %[.][WIDTH]LETTER…"},
    OPT_ROW_HELP_LONG,
    {"helpformat", 0, NULL, OPT_BOOL, 0, AT(help_format), NULL, NULL, "list the names for -O"},
    {"hide", 0, NULL, OPT_NOT_YET},
    {"iterate", 'i', "seconds", OPT_TEXT, 0, AT(iterate), NULL, NULL, "again and again, with so long a pause"},
    {"jobs", 'j', "job(s)", OPT_TEXT, OPT_MAYBE | OPT_NEXT, AT(job_list), NULL, NULL, "only these jobs"},
    {"json", 0, "version", OPT_CALL, OPT_MAYBE, 0, set_json, NULL, "all of it, as JSON (list: which versions there are)"},
    {"licenses", 'L', "names", OPT_TEXT, 0, AT(license_list), NULL, "LICENSES", "only jobs that ask for one of these licences"},
    {"local", 0, NULL, OPT_NOT_YET},
    {"long", 'l', NULL, OPT_BOOL, 0, AT(long_list), NULL, NULL, "more columns"},
    {"me", 0, NULL, OPT_BOOL, 0, AT(me), NULL, NULL, "only your jobs"},
    {"name", 'n', "job_name(s)", OPT_TEXT, 0, AT(name_list), NULL, "NAMES", "only jobs of these names"},
    {"noconvert", 0, NULL, OPT_BOOL, 0, AT(no_convert), NULL, NULL, "sizes and counts in the units they are kept in"},
    {"nodelist", 'w', "hostlist", OPT_TEXT, 0, AT(node_list), NULL, NULL, "only jobs on these nodes"},
    {"noheader", 'h', NULL, OPT_BOOL, 0, AT(no_header), NULL, NULL, "no headings"},
    {"notme", 0, NULL, OPT_BOOL, 0, AT(not_me), NULL, NULL, "only jobs of others"},
    {"only-job-state", 0, NULL, OPT_BOOL, 0, AT(only_state), NULL, NULL, "ids and states of jobs, and nothing else of them"},
    {"partition", 'p', "partition(s)", OPT_TEXT, 0, AT(part_list), NULL, "PARTITION", "only jobs of these partitions"},
    {"priority", 'P', NULL, OPT_BOOL, 0, AT(by_partition), NULL, "PRIORITY", "a job that waits for several partitions in a line each"},
    {"qos", 'q', "qos(s)", OPT_TEXT, 0, AT(qos_list), NULL, "QOS", "only jobs of these QOS"},
    {"reservation", 'R', "name(s)", OPT_TEXT, 0, AT(reservation_list), NULL, NULL, "only jobs in these reservations"},
    {"sibling", 0, NULL, OPT_NOT_YET},
    {"sort", 'S', "fields", OPT_TEXT, 0, AT(sort), NULL, "SORT", "order by letters of -o, - in front: descending"},
    OPT_ROW_STALE,
    {"start", 0, NULL, OPT_BOOL, 0, AT(start), NULL, NULL, "expected start times of jobs that wait"},
    {"states", 't', "state(s)", OPT_TEXT, 0, AT(state_list), NULL, "STATES", "only jobs in these states; all: ended ones too"},
    {"steps", 's', "step(s)", OPT_CALL, OPT_MAYBE | OPT_NEXT, 0, set_steps, NULL, "steps that run: all, or these"},
    OPT_ROW_USAGE,
    {"user", 'u', "user(s)", OPT_TEXT, 0, AT(user_list), NULL, "USERS", "only jobs of these users"},
    {"verbose", 'v', NULL, OPT_NOT_YET},
    OPT_ROW_VERSION,
    {"yaml", 0, "version", OPT_NOT_YET, OPT_MAYBE},
};

const struct opt_table *cmd_squeue_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS]", .brief = "[-A account] [-j jobs] [-n names] [-o format] [-O fields] [-p partitions]\n"
        "     [-q qos] [-S fields] [-t states] [-u users] [-w nodes] [-ahlr] [--me] [--start]",
        .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 1, .env_prefix = {"SQUEUE_"}};
    return &t;
}

static bool select_jobs(struct cli *c, struct squeue *q) {
    struct job_select *s = &q->pick;
    job_select_init(s, c);
    s->only_pending = q->start;
    s->not_me = q->not_me;
    return job_select_states(s, q->start && !q->state_list ? "PD" : q->state_list) &&
           job_select_ids(s, q->step_list ? q->step_list : q->job_list) && job_select_users(s, q->user_list, q->me) &&
           job_select_nodes(s, q->node_list) && job_select_texts(s, JOB_SELECT_PARTITION, q->part_list) &&
           job_select_texts(s, JOB_SELECT_NAME, q->name_list) &&
           job_select_texts(s, JOB_SELECT_ACCOUNT, q->account_list) &&
           job_select_texts(s, JOB_SELECT_QOS, q->qos_list) &&
           job_select_texts(s, JOB_SELECT_LICENSE, q->license_list) &&
           job_select_texts(s, JOB_SELECT_RESERVATION, q->reservation_list);
}

static int show_once(struct cli *c, const struct squeue *q) {
    struct jobs_request request = {.job_ids = q->pick.ids, .n_job_ids = q->pick.n_ids, .user = q->pick.one_user,
                                   .with_ended = q->pick.with_ended, .with_steps = q->steps || q->json,
                                   .show_hidden = q->all};
    struct jobs_reply reply = {0};
    struct err e = {0};
    int rc = q->pick.is_nothing ? 0 : cli_call(c, WIRE_Controller_Jobs, &request, &reply, &e);
    if (rc) {
        fprintf(stderr, "slurm_load_jobs error: %s\n", e.text);
        return 1;
    }
    if (c->cluster && !q->json)
        printf("CLUSTER: %s\n", c->cluster);
    return q->json    ? squeue_print_json(c, q, &reply)
           : q->steps ? squeue_print_steps(c, q, &reply)
                      : squeue_print_jobs(c, q, &reply);
}

static int show(struct cli *c, const struct squeue *q) {
    int exit_code = show_once(c, q);
    while (q->interval_secs) {
        putchar('\n');
        fflush(stdout);
        sleep(q->interval_secs);
        exit_code = show_once(c, q);
    }
    return exit_code;
}

static int help_format(const struct squeue *q) {
    auto_str out = {0};
    table_names(q->steps ? step_fields() : job_fields(), &out);
    cli_out(&out);
    return 0;
}

int cmd_squeue(struct cli *c) {
    struct squeue q = {0};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_squeue_options(), &q, &r, false, &exit_code)) {
        if (q.help_format)
            exit_code = help_format(&q);
        else if ((!q.json || json_doc_version(c, q.json_version, &exit_code)) && (!q.iterate || cli_interval(c, q.iterate, &q.interval_secs)) && select_jobs(c, &q))
            exit_code = show(c, &q);
    }
    opt_fini(&r);
    return exit_code;
}
