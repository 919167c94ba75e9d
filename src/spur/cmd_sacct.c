/* SPDX-License-Identifier: Apache-2.0
 *
 * sacct: what became of jobs, from the controller's history merged with its state, page by page.
 */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "spur/command.h"
#include "spur/hint.h"
#include "spur/job_select.h"
#include "spur/json_doc.h"
#include "spur/sacct.h"
#include "spur/sacct_json.h"
#include "spur/sacct_more.h"
#include "spur/step_facts.h"

#define DEFAULT_FORMAT "jobid,jobname,partition,account,alloccpus,state,exitcode"
#define BRIEF_FORMAT "jobid,state,exitcode"
/* Slurm's, less what is not measured here */
#define LONG_FORMAT                                                                                                    \
    "jobid,jobidraw,jobname,partition,maxrss,maxrssnode,maxrsstask,averss,mincpu,mincpunode,mincputask,avecpu,ntasks," \
    "alloccpus,elapsed,state,exitcode,reqmem,reqtres,alloctres"

struct life {
    uint32_t job_id;
    const char *sluid; /* and what may follow it */
};

struct sacct {
    struct cli *c;
    struct str format, jobs; /* options that may be repeated add up */
    const char *since_text, *until_text, *state_list, *user_list, *part_list, *name_list, *account_list, *qos_list;
    const char *node_list, *delimiter, *json_version;
    bool all_users, allocations, brief, long_list, duplicates, help_format, no_header, parsable, parsable2, array, json, truncate;
    const char *const *users;
    uint32_t n_users, states; /* 0: any */
    char unit; /* of job_env */
    int64_t since, until;     /* 0: no bound; the controller's now */
    struct sacct_more more;
    struct job_select pick;   /* names, partitions … */
    VEC(struct life) lives;   /* jobs that are named by a second id are shown in that life alone */
};

static int add_text(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct sacct *s = r->ctx;
    struct str *to = str_eq(o->name, "jobs") ? &s->jobs : &s->format;
    str_addf(to, "%s%s", to->n ? "," : "", value);
    return 0;
}

static int set_unit(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct sacct *s = r->ctx;
    if (!value) {
        s->unit = '=';
        return 0;
    }
    s->unit = *value >= 'a' ? (char)(*value - 'a' + 'A') : *value;
    return strlen(value) == 1 && strchr("KMGTP", s->unit) ? 0 : opt_bad(r, 1, "Invalid --units specification: %s", value);
}

static int set_json(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct sacct *s = r->ctx;
    s->json = true;
    s->json_version = value;
    return 0;
}

#define AT(field) offsetof(struct sacct, field)
static const struct opt_row rows[] = {
    {"accounts", 'A', "account(s)", OPT_TEXT, 0, AT(account_list), NULL, NULL, "only jobs of these accounts"},
    {"allclusters", 'L', NULL, OPT_NOT_YET},
    {"allocations", 'X', NULL, OPT_BOOL, 0, AT(allocations), NULL, NULL, "a line for each job, none for its steps"},
    {"allusers", 'a', NULL, OPT_BOOL, 0, AT(all_users), NULL, NULL, "jobs of all users"},
    {"array", 0, NULL, OPT_BOOL, 0, AT(array), NULL, NULL, "a line for each task of an array that waits"},
    {"associations", 'x', "ids", OPT_NOT_YET},
    {"batch-script", 'B', NULL, OPT_NOT_YET},
    {"brief", 'b', NULL, OPT_BOOL, 0, AT(brief), NULL, NULL, "the columns " BRIEF_FORMAT},
    {"clusters", 'M', "names", OPT_CLUSTERS, 0, 0, NULL, NULL, "this cluster by its name, or all"},
    {"completion", 'c', NULL, OPT_NOT_YET},
    {"constraints", 'C', "list", OPT_TEXT, 0, AT(more.features), NULL, NULL, "only jobs that asked for one of these features"},
    {"delimiter", 0, "text", OPT_TEXT, 0, AT(delimiter), NULL, NULL, "what stands between columns with -p and -P"},
    {"duplicates", 'D', NULL, OPT_BOOL, 0, AT(duplicates), NULL, NULL, "all jobs that an id has had: each life of one that was requeued"},
    {"endtime", 'E', "time", OPT_TEXT, 0, AT(until_text), NULL, NULL, "jobs that were there before this time"},
    {"env-vars", 0, NULL, OPT_NOT_YET},
    {"federation", 0, NULL, OPT_NOT_YET},
    {"flags", 'F', "list", OPT_NOT_YET},
    {"format", 'o', "format", OPT_CALL, 0, 0, add_text, "FORMAT", "columns: NAME[%[-]WIDTH],… (see -e)"},
    {"gid", 'g', "group(s)", OPT_TEXT, 0, AT(more.groups), NULL, NULL, "only jobs of these groups"},
    {"group", 0, "group(s)", OPT_TEXT, OPT_HIDDEN, AT(more.groups), NULL, NULL, ""},
    OPT_ROW_HELP,
    {"helpformat", 'e', NULL, OPT_BOOL, 0, AT(help_format), NULL, NULL, "list the columns there are"},
    {"jobs", 'j', "job(s)", OPT_CALL, 0, 0, add_text, NULL, "only these jobs, tasks of arrays (12_3), steps (12.0, 12.batch)"},
    {"json", 0, "version", OPT_CALL, OPT_MAYBE, 0, set_json, NULL, "all of it, as JSON (list: which versions there are)"},
    {"local", 0, NULL, OPT_NOT_YET},
    {"long", 'l', NULL, OPT_BOOL, 0, AT(long_list), NULL, NULL, "many columns: what was asked for, given and used"},
    {"name", 0, "jobname(s)", OPT_TEXT, 0, AT(name_list), NULL, NULL, "only jobs of these names"},
    {"ncpus", 'i', "n[-max]", OPT_TEXT, 0, AT(more.cpus), NULL, NULL, "only jobs with so many CPUs"},
    {"nnodes", 'I', "n[-max]", OPT_TEXT, 0, AT(more.nodes), NULL, NULL, "only jobs with so many nodes"},
    {"noconvert", 0, NULL, OPT_CALL, 0, 0, set_unit, NULL, "sizes in the units they are kept in"},
    {"nodelist", 'N', "nodes", OPT_TEXT, 0, AT(node_list), NULL, NULL, "only jobs that ran on these nodes"},
    {"noheader", 'n', NULL, OPT_BOOL, 0, AT(no_header), NULL, NULL, "no headings"},
    {"parsable", 'p', NULL, OPT_BOOL, 0, AT(parsable), NULL, NULL, "columns separated by |, one at the end too"},
    {"parsable2", 'P', NULL, OPT_BOOL, 0, AT(parsable2), NULL, NULL, "columns separated by |"},
    {"partition", 'r', "partition(s)", OPT_TEXT, 0, AT(part_list), NULL, NULL, "only jobs of these partitions"},
    {"qos", 'q', "qos(s)", OPT_TEXT, 0, AT(qos_list), NULL, NULL, "only jobs of these QOS"},
    {"reason", 'R', "list", OPT_TEXT, 0, AT(more.reasons), NULL, NULL, "only jobs with one of these reasons"},
    OPT_ROW_STALE,
    {"starttime", 'S', "time", OPT_TEXT, 0, AT(since_text), NULL, NULL, "jobs that were there behind this time"},
    {"state", 's', "state(s)", OPT_TEXT, 0, AT(state_list), NULL, NULL, "only jobs that were in these states then"},
    {"timelimit-max", 'K', "time", OPT_TEXT, 0, AT(more.limit_max), NULL, NULL, "with -k: up to this limit"},
    {"timelimit-min", 'k', "time", OPT_TEXT, 0, AT(more.limit_min), NULL, NULL, "only jobs with this time limit"},
    {"truncate", 'T', NULL, OPT_BOOL, 0, AT(truncate), NULL, NULL, "times no earlier than -S and no later than -E"},
    {"uid", 0, "user(s)", OPT_TEXT, OPT_HIDDEN, AT(user_list), NULL, NULL, ""},
    {"units", 0, "K|M|G|T|P", OPT_CALL, 0, 0, set_unit, NULL, "sizes in this unit"},
    OPT_ROW_USAGE,
    {"use-local-uid", 0, NULL, OPT_NOT_YET},
    {"user", 'u', "user(s)", OPT_TEXT, 0, AT(user_list), NULL, NULL, "only jobs of these users"},
    {"verbose", 'v', NULL, OPT_NOT_YET},
    OPT_ROW_VERSION,
    {"wckeys", 'W', "list", OPT_NOT_YET},
    {"whole-hetjob", 0, "yes|no", OPT_NOT_YET, OPT_MAYBE},
    {"yaml", 0, "version", OPT_NOT_YET, OPT_MAYBE},
};

const struct opt_table *cmd_sacct_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS]", .brief = "[-abehlnpPX] [-A accounts] [-E time] [-j jobs] [-N nodes] [-o format]\n"
        "     [-q qos] [-r partitions] [-s states] [-S time] [-u users] [--name names] [--delimiter text]",
        .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 1, .env_prefix = {"SACCT_"},
        .note = "Without -S the jobs since midnight are shown, with -j all of them, with -s those of now."};
    return &t;
}

/* ---- which ---- */

static bool read_jobs(struct sacct *s) {
    uint32_t n;
    const char *const *word = cli_job_words(s->c, str_text(&s->jobs), &n);
    struct job_name *names = arena_alloc(&s->c->arena, (n + 1) * sizeof(*names));
    for (uint32_t i = 0; i < n; i++) {
        if (!cli_job_name(s->c, word[i], JOB_NAME_TASKS, &names[i])) {
            cli_say(s->c, "fatal: Bad job/step specified: %s", word[i]);
            return false;
        }
        if (cli_is_sluid(word[i])) { /* that life of it, be it over */
            struct life life = {names[i].target.job_id, word[i]};
            vec_push(&s->lives, life);
            s->duplicates = true;
        }
    }
    job_select_names(&s->pick, names, n);
    return true;
}

static bool read_users(struct sacct *s) {
    if (!s->user_list) {
        s->all_users |= geteuid() == 0; /* as Slurm */
        return true;
    }
    uint32_t n;
    const char *const *word = cli_words(s->c, s->user_list, ", ", &n);
    const char **name = arena_alloc(&s->c->arena, (n + 1) * sizeof(*name));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t uid;
        if (!cli_user(word[i], &uid)) {
            cli_say(s->c, "fatal: Invalid user id: %s", word[i]);
            return false;
        }
        struct passwd *pw = getpwuid(uid);
        name[i] = pw ? arena_strdup(&s->c->arena, pw->pw_name) : word[i];
    }
    s->users = name;
    s->n_users = n;
    return true;
}

static bool read_moment(struct sacct *s, const char *text, int64_t *out) {
    struct text_clock clock = cli_clock();
    struct err e = {0};
    clock.past = true;
    if (!text || moment_parse(text, &clock, out, &e) == 0)
        return true;
    fprintf(stderr, "%s\n", e.text);
    return false;
}

static int64_t midnight(void) {
    struct text_clock clock = cli_clock();
    int t[6];
    clock.to_local(clock.arg, clock.now_unix, t);
    return clock.to_unix(clock.arg, t[0], t[1], t[2], 0, 0, 0);
}

/* The window of time, by the rules of Slurm's sacct(1): with states it is a moment unless both ends are given. */
static bool read_window(struct sacct *s) {
    int64_t now = time(NULL);
    if (!read_moment(s, s->since_text, &s->since) || !read_moment(s, s->until_text, &s->until))
        return false;
    bool has_jobs = s->pick.n_names > 0, has_states = s->states != 0;
    if (!s->since_text)
        s->since = has_jobs ? 0 : has_states ? now : midnight();
    if (!s->until_text)
        s->until = has_states && s->since_text ? s->since : 0;
    if (s->until && s->until < s->since) {
        cli_error(s->c, "Start time (%s) requested is after end time (%s).", s->since_text ? s->since_text : "now",
                  s->until_text ? s->until_text : "now");
        return false;
    }
    return true;
}

static bool read_states(struct sacct *s) {
    const char *bad = NULL;
    if (!s->state_list)
        return true;
    s->states = job_states_parse(s->state_list, &bad, s->c);
    if (!s->states && bad)
        cli_say(s->c, "fatal: unrecognized job state value %s", bad);
    return !bad;
}

static bool read_all(struct sacct *s) {
    job_select_init(&s->pick, s->c);
    s->pick.states = ~0u;
    return sacct_more_read(s->c, &s->more) && read_jobs(s) && read_users(s) && read_states(s) && read_window(s) &&
           job_select_nodes(&s->pick, s->node_list) &&
           job_select_texts(&s->pick, JOB_SELECT_PARTITION, s->part_list) &&
           job_select_texts(&s->pick, JOB_SELECT_NAME, s->name_list) &&
           job_select_texts(&s->pick, JOB_SELECT_ACCOUNT, s->account_list) &&
           job_select_texts(&s->pick, JOB_SELECT_QOS, s->qos_list);
}

static bool overlaps(int64_t from, int64_t to, const struct sacct *s) {
    return (!s->until || from <= s->until) && to >= s->since;
}

/* Whether the job was in one of the states within the window. */
static bool was_in_state(const struct sacct *s, const struct job *j) {
    int64_t submit = j->submit_ms / 1000, start = j->start_ms / 1000;
    int64_t end = j->end_ms ? j->end_ms / 1000 : INT64_MAX;
    if (!s->states)
        return true;
    if (s->states & 1u << JOB_PENDING && overlaps(submit, start ? start : end, s))
        return true;
    if (s->states & 1u << JOB_RUNNING && start && overlaps(start, end, s))
        return true;
    if (j->state == JOB_SUSPENDED || job_state_is_end(j->state))
        return s->states & 1u << j->state && (j->state == JOB_SUSPENDED || overlaps(end, end, s));
    return false;
}

static bool is_life_wanted(const struct sacct *s, const struct job *j) {
    bool any = false;
    for (size_t i = 0; i < s->lives.n; i++) {
        if (s->lives.p[i].job_id == j->id && j->sluid && strncmp(s->lives.p[i].sluid, j->sluid, strlen(j->sluid)) == 0)
            return true;
        any |= s->lives.p[i].job_id == j->id;
    }
    return !any;
}

/* ---- rows ---- */

/* Which rows of a selected job: without names all; a step's name asks for that one alone. */
static bool wants(const struct sacct *s, const struct job *j, bool is_job, uint32_t step_id) {
    for (uint32_t i = 0; i < s->pick.n_names; i++) {
        const struct job_name *n = &s->pick.names[i];
        struct job_select one = s->pick;
        struct job_info ji = {.job = j};
        one.names = n;
        one.n_names = 1;
        if ((!n->has_step || (!is_job && n->step_id == step_id)) && job_selected(&one, &ji))
            return true;
    }
    return !s->pick.n_names;
}

static void add_steps(const struct sacct *s, const struct table *t, const struct sacct_style *style,
                      const struct job_info *ji, const struct job_env *env, struct str *out) {
    const struct job *j = ji->job;
    struct sacct_row row = {.ji = ji};
    struct step_batch batch;
    if (step_of_batch(j, &batch) && wants(s, j, false, STEP_BATCH)) {
        row.step = &batch.step;
        sacct_line(t, style, &row, env, out);
    }
    for (uint32_t i = 0; i < ji->n_steps; i++) {
        row.step = &ji->steps[i];
        if (wants(s, j, false, row.step->id))
            sacct_line(t, style, &row, env, out);
    }
}

/* -T: as if it had begun and ended within the window. */
static void truncate_times(const struct sacct *s, struct job_info *ji, int64_t now_unix) {
    struct job *j = arena_memdup(&s->c->arena, ji->job, sizeof(*j));
    int64_t since = s->since * 1000, until = (s->until ? s->until : now_unix) * 1000;
    if (j->start_ms && j->start_ms < since)
        j->start_ms = since;
    if (j->start_ms && (!j->end_ms || j->end_ms > until))
        j->end_ms = until;
    ji->job = j;
}

/* The tasks of an array follow each other, though the last of them has the array's number. */
static int by_task(const void *a, const void *b) {
    const struct job *x = ((const struct job_info *)a)->job, *y = ((const struct job_info *)b)->job;
    uint32_t p = x->array ? x->array->job_id : x->id, q = y->array ? y->array->job_id : y->id;
    if (p != q || !x->array || !y->array)
        return (p > q) - (p < q);
    p = x->array->task - 1; /* the rest that waits comes last */
    q = y->array->task - 1;
    return (p > q) - (p < q);
}

static void pick_rows(const struct sacct *s, const struct history_reply *reply, struct job_rows *out) {
    for (uint32_t i = 0; i < reply->n_jobs; i++)
        if (reply->jobs[i].job && reply->jobs[i].job->spec && was_in_state(s, reply->jobs[i].job) &&
            is_life_wanted(s, reply->jobs[i].job) && sacct_more_wants(&s->more, &reply->jobs[i]))
            job_select_rows(&s->pick, &reply->jobs[i], s->array, out);
    job_rows_sort(out, by_task);
    for (size_t i = 0; s->truncate && i < out->v.n; i++)
        truncate_times(s, &out->v.p[i], reply->now_unix);
}

static void add_json(const struct sacct *s, struct json *w, const struct history_reply *reply) {
    struct job_env env = {reply->now_unix, reply->cluster_name, s->unit};
    struct job_rows found = {0};
    pick_rows(s, reply, &found);
    for (size_t i = 0; i < found.v.n; i++)
        sacct_json_job(w, &found.v.p[i], &env, !s->allocations);
    vec_fini(&found.v);
}

static void add_rows(const struct sacct *s, const struct table *t, const struct sacct_style *style,
                     const struct history_reply *reply, struct str *out) {
    struct job_env env = {reply->now_unix, reply->cluster_name, s->unit};
    struct job_rows found = {0};
    pick_rows(s, reply, &found);
    for (size_t i = 0; i < found.v.n; i++) {
        struct sacct_row row = {.ji = &found.v.p[i]};
        if (wants(s, row.ji->job, true, 0))
            sacct_line(t, style, &row, &env, out);
        if (!s->allocations)
            add_steps(s, t, style, row.ji, &env, out);
    }
    vec_fini(&found.v);
}

static int print(struct sacct *s, const struct table *t, const struct sacct_style *style) {
    auto_str out = {0};
    struct history_request request = {.job_ids = s->pick.ids, .n_job_ids = s->pick.n_ids, .users = s->users,
                                      .n_users = s->n_users, .all_users = s->all_users, .since_unix = s->since,
                                      .until_unix = s->until, .duplicates = s->duplicates};
    struct history_reply reply = {.is_cut = true};
    struct json w = {.out = &out};
    if (s->json) {
        json_doc_begin(&w);
        json_open(&w, "jobs", '[');
    } else if (!s->no_header) {
        sacct_head(t, style, &out);
    }
    while (reply.is_cut) {
        struct err e = {0};
        reply = (struct history_reply){0};
        if (cli_call(s->c, WIRE_Controller_History, &request, &reply, &e)) {
            cli_out(&out);
            cli_error(s->c, "slurmdb_jobs_get: %s", e.text);
            return 1;
        }
        if (s->json)
            add_json(s, &w, &reply);
        else
            add_rows(s, t, style, &reply, &out);
        cli_out(&out);
        str_clear(&out);
        if (!reply.n_jobs)
            break;
        request.after_id = reply.jobs[reply.n_jobs - 1].job->id;
    }
    if (s->json) {
        json_close(&w, ']');
        json_doc_end(&w, s->c, reply.cluster_name);
    }
    cli_out(&out);
    return 0;
}

static void list_fields(void) {
    const struct table_fields *f = sacct_fields();
    for (size_t i = 0; i < f->n; i++)
        printf("%-19s%s", f->row[i].head, i % 4 == 3 || i + 1 == f->n ? "\n" : " ");
}

static int run(struct sacct *s) {
    struct table t;
    const char *bad = NULL, *format = s->format.n ? s->format.p : s->long_list ? LONG_FORMAT
                                             : s->brief ? BRIEF_FORMAT : DEFAULT_FORMAT;
    size_t n_bad = 0;
    struct sacct_style style = {.no_header = s->no_header, .parsable = s->parsable || s->parsable2,
                                .no_ending = s->parsable2, .delimiter = s->delimiter ? s->delimiter : "|"};
    if (s->help_format) {
        list_fields();
        return 0;
    }
    int json_exit_code = 0;
    if (s->json && !json_doc_version(s->c, s->json_version, &json_exit_code))
        return json_exit_code;
    table_init(&t, sacct_fields());
    int exit_code = 1;
    if (!sacct_parse(&t, format, &bad, &n_bad)) {
        if (sacct_field_is_later(bad, n_bad))
            cli_error(s->c, "field %.*s is not supported yet (see docs/compatibility.md)", (int)n_bad, bad);
        else
            cli_error(s->c, "Invalid field requested: \"%.*s\"", (int)n_bad, bad);
        hint_field(s->c, sacct_fields(), bad, n_bad);
    } else if (read_all(s)) {
        exit_code = print(s, &t, &style);
    }
    table_fini(&t);
    return exit_code;
}

int cmd_sacct(struct cli *c) {
    struct sacct s = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_sacct_options(), &s, &r, false, &exit_code))
        exit_code = run(&s);
    opt_fini(&r);
    str_fini(&s.format);
    str_fini(&s.jobs);
    vec_fini(&s.lives);
    return exit_code;
}
