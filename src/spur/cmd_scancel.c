/* SPDX-License-Identifier: Apache-2.0
 *
 * scancel: which jobs, tasks and steps, by names and filters, then one request for all of them.
 *
 * Names go to the controller as they are. With a filter (or -i) the jobs are asked for first, because only then it can be
 * said which ones of others were meant and refused.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/job_facts.h"
#include "spur/job_select.h"

#define EXIT_REFUSED 210 /* as Slurm: a job that could not be cancelled */

struct scancel {
    struct cli *c;
    struct job_select pick;
    const char *signal_name, *user_list, *state_list, *part_list, *name_list, *account_list, *qos_list, *node_list, *reservation_list;
    bool me, batch, full, ctld, hurry, interactive;
    uint32_t quiet, verbose;
    uint32_t signal; /* 0: end the jobs */
    const struct job_name *names;
    const char *const *typed; /* the names' words */
    uint32_t n_names;
    VEC(struct job_target) targets; /* what is asked for in the end */
    VEC(struct step_ref) steps;
    VEC(const char *) target_words, step_words; /* how -v calls them; NULL: by their numbers */
};

/* Typed: yes. Of a variable: true or false, as Slurm's. */
static int read_flag(struct opt_run *r, const struct opt_row *o, const char *value, bool *out) {
    *out = !value || strcasecmp(value, "true") == 0;
    if (*out || strcasecmp(value, "false") == 0)
        return 0;
    return opt_bad(r, 1, "Unrecognized %s%s value: %s", r->table->env_prefix[0], o->env, value);
}

static int set_flag(struct opt_run *r, const struct opt_row *o, const char *value) {
    return read_flag(r, o, value, (bool *)((char *)r->ctx + o->off));
}

static int set_verbose(struct opt_run *r, const struct opt_row *o, const char *value) {
    bool yes;
    int rc = read_flag(r, o, value, &yes);
    ((struct scancel *)r->ctx)->verbose += !rc && yes;
    return rc;
}

#define AT(field) offsetof(struct scancel, field)
static const struct opt_row rows[] = {
    {"account", 'A', "account", OPT_TEXT, 0, AT(account_list), NULL, "ACCOUNT", "only jobs of this account"},
    {"batch", 'b', NULL, OPT_CALL, 0, AT(batch), set_flag, "BATCH", "signal the batch shell only"},
    {"clusters", 'M', "names", OPT_CLUSTERS, 0, 0, NULL, NULL, "this cluster by its name, or all"},
    {"cron", 0, NULL, OPT_NOT_YET, 0, 0, NULL, "CRON"},
    {"ctld", 0, NULL, OPT_CALL, 0, AT(ctld), set_flag, "CTLD", "send through the controller (as always)"},
    {"full", 'f', NULL, OPT_CALL, 0, AT(full), set_flag, "FULL", "signal the batch shell and all steps"},
    {"help", 0, NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help"},
    {"hurry", 'H', NULL, OPT_CALL, 0, AT(hurry), set_flag, "HURRY", "stage nothing out (there is never anything to)"},
    {"interactive", 'i', NULL, OPT_CALL, 0, AT(interactive), set_flag, "INTERACTIVE", "ask before each job"},
    {"jobname", 0, "name", OPT_TEXT, OPT_HIDDEN, AT(name_list), NULL, NULL, ""},
    {"me", 0, NULL, OPT_BOOL, 0, AT(me), NULL, NULL, "only your jobs"},
    {"name", 'n', "job_name", OPT_TEXT, 0, AT(name_list), NULL, "NAME", "only jobs of this name"},
    {"nodelist", 'w', "hosts", OPT_TEXT, 0, AT(node_list), NULL, NULL, "only jobs on these nodes"},
    {"partition", 'p', "partition", OPT_TEXT, 0, AT(part_list), NULL, "PARTITION", "only jobs of this partition"},
    {"qos", 'q', "qos", OPT_TEXT, 0, AT(qos_list), NULL, "QOS", "only jobs of this QOS"},
    {"quiet", 'Q', NULL, OPT_COUNT, 0, AT(quiet), NULL, NULL, "no errors of single jobs"},
    {"reservation", 'R', "name", OPT_TEXT, 0, AT(reservation_list), NULL, NULL, "only jobs of this reservation"},
    {"sibling", 0, "cluster", OPT_NOT_YET},
    {"signal", 's', "name|number", OPT_TEXT, 0, AT(signal_name), NULL, NULL, "send this signal instead of ending the job"},
    {"state", 't', "state", OPT_TEXT, 0, AT(state_list), NULL, "STATE", "only jobs in this state: PENDING, RUNNING, SUSPENDED"},
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "show a short usage"},
    {"user", 'u', "user", OPT_TEXT, 0, AT(user_list), NULL, "USER", "only jobs of this user"},
    {"verbose", 'v', NULL, OPT_CALL, 0, AT(verbose), set_verbose, "VERBOSE", "say what is done"},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "show the version"},
    {"wckey", 0, "wckey", OPT_NOT_YET, 0, 0, NULL, "WCKEY"},
};

const struct opt_table *cmd_scancel_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS] [job_id] [job_id...]", .brief = "[-bfi] [-s signal] [-t state] [-u user] [--me] [-n job_name]\n"
        "     [-p partition] [-q qos] [-A account] [-w hosts] [-Qv] [job_id...]",
        .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 1, .words = "jobs", .env_prefix = {"SCANCEL_"}};
    return &t;
}

static bool read_signal(struct scancel *s) {
    if (s->signal_name && signal_parse(s->signal_name, &s->signal)) {
        fprintf(stderr, "Unknown job signal: %s\n", s->signal_name);
        return false;
    }
    if (s->batch && !s->signal) /* the batch shell alone is killed, never asked */
        s->signal = SIGKILL;
    return true;
}

/* Slurm takes more states than its message names. */
static bool read_states(struct scancel *s) {
    const char *bad = NULL;
    if (s->state_list && !job_states_parse(s->state_list, &bad, s->c) && bad) {
        fprintf(stderr, "Invalid job state specified: %s\nValid job states are PENDING, RUNNING, and SUSPENDED\n", bad);
        return false;
    }
    return job_select_states(&s->pick, s->state_list);
}

static bool read_users(struct scancel *s) {
    uint32_t n = 0, uid;
    const char *const *word = s->user_list ? cli_words(s->c, s->user_list, ",", &n) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (!cli_user(word[i], &uid)) {
            cli_error(s->c, "Invalid user name: %s", word[i]);
            return false;
        }
    }
    return job_select_users(&s->pick, s->user_list, s->me && !s->user_list);
}

/* One word. Of "325_" Slurm makes nothing, silently. */
static bool read_name(struct scancel *s, const char *word, struct job_name *out) {
    struct err e = {0};
    bool ok = !job_name_parse(cli_sluids(s->c, word), JOB_NAME_TASKS | JOB_NAME_STEP, &s->c->arena, out, &e) &&
              !(out->has_step && out->step_id == STEP_BATCH);
    if (ok)
        return true;
    if (e.text[0])
        cli_error(s->c, "%s", e.text);
    cli_error(s->c, "Invalid job id %s", word);
    return false;
}

static bool read_names(struct scancel *s, const char *const *word, size_t n_words) {
    uint32_t n = 0;
    VEC(struct job_name) names = {0};
    VEC(const char *) typed = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < n_words; i++) {
        const char *const *one = cli_job_words(s->c, word[i], &n);
        for (uint32_t k = 0; ok && k < n; k++) {
            struct job_name name;
            size_t digits = strspn(one[k], "0123456789");
            if (digits && str_eq(one[k] + digits, "_"))
                continue;
            ok = read_name(s, one[k], &name);
            if (!ok)
                break;
            vec_push(&names, name);
            vec_push(&typed, one[k]);
        }
    }
    s->names = arena_memdup(&s->c->arena, names.p, names.n * sizeof(*names.p));
    s->typed = arena_memdup(&s->c->arena, typed.p, typed.n * sizeof(*typed.p));
    s->n_names = (uint32_t)names.n;
    vec_fini(&names);
    vec_fini(&typed);
    return ok;
}

static bool has_filter(const struct scancel *s) {
    return s->user_list || s->me || s->state_list || s->part_list || s->name_list || s->account_list || s->qos_list ||
           s->node_list || s->reservation_list;
}

static bool read_all(struct scancel *s, struct opt_run *r) {
    job_select_init(&s->pick, s->c);
    if (!read_signal(s) || !read_states(s) || !read_users(s) || !read_names(s, r->words.p, r->words.n))
        return false;
    job_select_names(&s->pick, s->names, s->n_names);
    if (!r->words.n && !has_filter(s)) {
        cli_error(s->c, "No job identification provided");
        return false;
    }
    return job_select_nodes(&s->pick, s->node_list) &&
           job_select_texts(&s->pick, JOB_SELECT_PARTITION, s->part_list) &&
           job_select_texts(&s->pick, JOB_SELECT_NAME, s->name_list) &&
           job_select_texts(&s->pick, JOB_SELECT_ACCOUNT, s->account_list) &&
           job_select_texts(&s->pick, JOB_SELECT_QOS, s->qos_list) &&
           job_select_texts(&s->pick, JOB_SELECT_RESERVATION, s->reservation_list);
}

/* ---- what is asked for ---- */

/* A job that was named by its second id is called so. */
static const char *word_of(const struct scancel *s, uint32_t i) {
    return cli_is_sluid(s->typed[i]) ? s->typed[i] : NULL;
}

static void add_step(struct scancel *s, uint32_t i) {
    const struct job_name *n = &s->names[i];
    struct step_ref ref = {.job_id = n->target.job_id, .step_id = n->step_id};
    ref.array_task = n->target.n_tasks ? n->target.tasks[0].first + 1 : 0;
    vec_push(&s->steps, ref);
    vec_push(&s->step_words, word_of(s, i));
}

static void add_target(struct scancel *s, const struct job_target *t, const char *word) {
    vec_push(&s->targets, *t);
    vec_push(&s->target_words, word);
}

static void take_names(struct scancel *s) {
    for (uint32_t i = 0; i < s->n_names; i++) {
        if (s->names[i].has_step)
            add_step(s, i);
        else
            add_target(s, &s->names[i].target, word_of(s, i));
    }
}

/* y or n; anything else is asked again, the end of the input is no. */
static bool confirm(const struct job *j, const struct job_name *step) {
    auto_str id = {0}, partition = {0};
    char line[64];
    job_id_text(j, &id);
    job_partition(j, &partition);
    if (step) {
        str_addc(&id, '.');
        step_print_id(step->step_id, &id);
    }
    for (;;) {
        printf("Cancel %s=%s name=%s partition=%s [y/n]? ", step ? "step_id" : "job_id", str_text(&id),
               j->spec->name ? j->spec->name : "", str_text(&partition));
        fflush(stdout);
        if (!fgets(line, sizeof(line), stdin) || *line == 'n' || *line == 'N')
            return false;
        if (*line == 'y' || *line == 'Y')
            return true;
    }
}

/* Steps of this job that are named; the job is not meant then. */
static bool take_steps(struct scancel *s, const struct job *j) {
    bool any = false;
    for (uint32_t i = 0; i < s->n_names; i++) {
        const struct job_target *t = &s->names[i].target;
        bool is_it = s->names[i].has_step && (t->n_tasks ? j->array && j->array->job_id == t->job_id && j->array->task &&
                                                               j->array->task - 1 == t->tasks[0].first
                                                         : j->id == t->job_id);
        any |= s->names[i].has_step && is_it;
        if (is_it && (!s->interactive || confirm(j, &s->names[i])))
            add_step(s, i);
    }
    return any;
}

static void take_job(struct scancel *s, const struct job *j) {
    struct job_target t = {.job_id = j->id};
    if (j->array && !j->array->task) { /* of an array's record what waits, and not what runs */
        t.tasks = j->array->pending;
        t.n_tasks = j->array->n_pending;
    } else if (j->array && !j->start_ms && j->state == JOB_PENDING) {
        struct array_range one = {j->array->task - 1, j->array->task - 1};
        t.job_id = j->array->job_id;
        t.tasks = arena_memdup(&s->c->arena, &one, sizeof(one));
        t.n_tasks = 1;
    }
    if (!s->interactive || confirm(j, NULL))
        add_target(s, &t, NULL);
}

/* Those that the filters select. */
static int take_filtered(struct scancel *s, struct err *e) {
    struct jobs_request request = {.job_ids = s->pick.ids, .n_job_ids = s->pick.n_ids, .user = s->pick.one_user};
    struct jobs_reply reply = {0};
    int rc = s->pick.is_nothing ? 0 : cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, e);
    if (rc == E_JOB_ID)
        rc = 0;
    struct job_rows found = {0};
    for (uint32_t i = 0; !rc && i < reply.n_jobs; i++)
        if (reply.jobs[i].job && !reply.jobs[i].job->completing)
            job_select_rows(&s->pick, &reply.jobs[i], false, &found);
    for (size_t i = 0; i < found.v.n; i++)
        if (!take_steps(s, found.v.p[i].job))
            take_job(s, found.v.p[i].job);
    vec_fini(&found.v);
    return rc;
}

/* ---- asking ---- */

/* What is not there or over is no failure; what may not be touched is. */
static int tell(const struct scancel *s, const struct results *reply) {
    int exit_code = 0;
    for (uint32_t i = 0; i < reply->n_results; i++) {
        const struct job_result *r = &reply->results[i];
        int code = -(int)r->error;
        bool is_over = code == E_JOB_ID || code == E_JOB_DONE || code == E_JOB_STATE || code == E_STEP_ID ||
                       code == E_JOB_PENDING;
        if (!r->error)
            continue;
        auto_str id = {0};
        if (r->id_text && *r->id_text)
            str_add(&id, r->id_text);
        else
            str_addf(&id, "%u", r->job_id);
        if (!s->quiet && (!is_over || s->verbose))
            cli_error(s->c, "Kill job error on job id %s: %s", id.p,
                      r->text && *r->text ? r->text : err_sentence(code));
        exit_code = is_over ? exit_code : EXIT_REFUSED;
    }
    return exit_code;
}

static void say_one(const struct scancel *s, const char *what, const char *word, const char *id) {
    id = word ? word : id;
    if (s->signal)
        cli_say(s->c, "Signal %u to %s %s", s->signal, what, id);
    else
        cli_say(s->c, "Terminating %s %s", what, id);
}

static void say_all(const struct scancel *s) {
    for (size_t i = 0; i < s->targets.n; i++) {
        const struct job_target *t = &s->targets.p[i];
        auto_str id = {0};
        bool is_one = t->n_tasks == 1 && t->tasks[0].first == t->tasks[0].last;
        str_addf(&id, "%u", t->job_id);
        if (t->n_tasks) {
            str_add(&id, is_one ? "_" : "_[");
            array_print(t->tasks, t->n_tasks, &id);
            str_add(&id, is_one ? "" : "]");
        }
        say_one(s, "job", s->target_words.p[i], id.p);
    }
    for (size_t i = 0; i < s->steps.n; i++) {
        const struct step_ref *r = &s->steps.p[i];
        auto_str id = {0};
        str_addf(&id, "%u", r->job_id);
        if (r->array_task)
            str_addf(&id, "_%u", r->array_task - 1);
        str_addc(&id, '.');
        step_print_id(r->step_id, &id);
        say_one(s, "step", s->step_words.p[i], id.p);
    }
}

static int ask(struct scancel *s, uint32_t sig, struct results *reply, struct err *e) {
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    struct cancel_request request = {.token = token, .n_token = sizeof(token), .signal = sig, .batch_only = s->batch,
                                     .full = s->full, .targets = s->targets.p, .n_targets = (uint32_t)s->targets.n,
                                     .steps = s->steps.p, .n_steps = (uint32_t)s->steps.n};
    return cli_call(s->c, WIRE_Controller_Cancel, &request, reply, e);
}

static int cancel(struct scancel *s) {
    struct err e = {0};
    struct results reply = {0};
    if (has_filter(s) || s->interactive) {
        if (take_filtered(s, &e)) {
            cli_error(s->c, "slurm_load_jobs error: %s", e.text);
            return 1;
        }
    } else {
        take_names(s);
    }
    if (!s->targets.n && !s->steps.n) {
        if (s->verbose && s->name_list)
            cli_error(s->c, "No active jobs match ALL job filters, including: job_name=%s ", s->name_list);
        return 0;
    }
    bool is_end = s->signal == SIGKILL && !s->batch && s->targets.n; /* as Slurm: the end of the job, with SIGTERM first */
    if (s->verbose)
        say_all(s);
    if (ask(s, is_end ? 0 : s->signal, &reply, &e)) {
        cli_error(s->c, "Kill job error: %s", e.text);
        return 1;
    }
    return tell(s, &reply);
}

int cmd_scancel(struct cli *c) {
    struct scancel s = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_scancel_options(), &s, &r, true, &exit_code))
        exit_code = read_all(&s, &r) ? cancel(&s) : 1;
    vec_fini(&s.targets);
    vec_fini(&s.steps);
    vec_fini(&s.target_words);
    vec_fini(&s.step_words);
    opt_fini(&r);
    return exit_code;
}
