/* SPDX-License-Identifier: Apache-2.0
 *
 * scancel: which jobs, by ids and filters, then one request for all of them.
 *
 * Plain ids go to the controller as they are. With a filter the jobs are asked for first, because only then it can be
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
    const char *signal_name, *user_list, *state_list, *part_list, *name_list, *account_list, *qos_list, *node_list;
    bool me, batch, ctld, hurry;
    uint32_t quiet, verbose;
    uint32_t signal; /* 0: end the jobs */
};

#define AT(field) offsetof(struct scancel, field)
static const struct opt_row rows[] = {
    {"account", 'A', "account", OPT_TEXT, 0, AT(account_list), NULL, "ACCOUNT", "only jobs of this account"},
    {"batch", 'b', NULL, OPT_BOOL, 0, AT(batch), NULL, "BATCH", "signal the batch shell only"},
    {"clusters", 'M', "names", OPT_NOT_YET},
    {"cron", 0, NULL, OPT_NOT_YET},
    {"ctld", 0, NULL, OPT_BOOL, 0, AT(ctld), NULL, NULL, "send through the controller (as always)"},
    {"full", 'f', NULL, OPT_NOT_YET},
    {"help", 0, NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help"},
    {"hurry", 'H', NULL, OPT_NOT_YET},
    {"interactive", 'i', NULL, OPT_NOT_YET},
    {"jobname", 0, "name", OPT_TEXT, OPT_HIDDEN, AT(name_list), NULL, NULL, ""},
    {"me", 0, NULL, OPT_BOOL, 0, AT(me), NULL, NULL, "only your jobs"},
    {"name", 'n', "job_name", OPT_TEXT, 0, AT(name_list), NULL, "NAME", "only jobs of this name"},
    {"nodelist", 'w', "hosts", OPT_TEXT, 0, AT(node_list), NULL, NULL, "only jobs on these nodes"},
    {"partition", 'p', "partition", OPT_TEXT, 0, AT(part_list), NULL, "PARTITION", "only jobs of this partition"},
    {"qos", 'q', "qos", OPT_TEXT, 0, AT(qos_list), NULL, "QOS", "only jobs of this QOS"},
    {"quiet", 'Q', NULL, OPT_COUNT, 0, AT(quiet), NULL, NULL, "no errors of single jobs"},
    {"reservation", 'R', "name", OPT_NOT_YET},
    {"sibling", 0, "cluster", OPT_NOT_YET},
    {"signal", 's', "name|number", OPT_TEXT, 0, AT(signal_name), NULL, NULL, "send this signal instead of ending the job"},
    {"state", 't', "state", OPT_TEXT, 0, AT(state_list), NULL, "STATE", "only jobs in this state: PENDING, RUNNING, SUSPENDED"},
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "show a short usage"},
    {"user", 'u', "user", OPT_TEXT, 0, AT(user_list), NULL, "USER", "only jobs of this user"},
    {"verbose", 'v', NULL, OPT_COUNT, 0, AT(verbose), NULL, NULL, "say what is done"},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "show the version"},
    {"wckey", 0, "wckey", OPT_NOT_YET},
};

const struct opt_table *cmd_scancel_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS] [job_id] [job_id...]", .brief = "[-b] [-s signal] [-t state] [-u user] [--me] [-n job_name]\n"
        "     [-p partition] [-q qos] [-A account] [-w hosts] [-Qv] [job_id...]",
        .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 1, .env_prefix = {"SCANCEL_"}};
    return &t;
}

static bool read_signal(struct scancel *s) {
    const char *name = s->signal_name;
    uint64_t number;
    if (!name)
        return true;
    if (str_to_u64(name, 64, &number) == 0 && number) {
        s->signal = (uint32_t)number;
        return true;
    }
    const char *bare = strncasecmp(name, "SIG", 3) == 0 ? name + 3 : name;
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *known = sigabbrev_np(i);
        if (known && strcasecmp(known, bare) == 0) {
            s->signal = (uint32_t)i;
            return true;
        }
    }
    fprintf(stderr, "Unknown job signal: %s\n", name);
    return false;
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

static bool read_ids(struct scancel *s, const char *const *word, size_t n_words) {
    uint32_t n = 0;
    VEC(uint32_t) ids = {0};
    for (size_t i = 0; i < n_words; i++) {
        const char *const *one = cli_words(s->c, word[i], ", ", &n);
        for (uint32_t k = 0; k < n; k++) {
            uint32_t id;
            if (strchr(one[k], '.') || !cli_job_id(one[k], &id)) {
                cli_error(s->c, "Invalid job id %s", one[k]);
                vec_fini(&ids);
                return false;
            }
            vec_push(&ids, id);
        }
    }
    s->pick.ids = arena_memdup(&s->c->arena, ids.p, ids.n * sizeof(*ids.p));
    s->pick.n_ids = (uint32_t)ids.n;
    vec_fini(&ids);
    return true;
}

static bool has_filter(const struct scancel *s) {
    return s->user_list || s->me || s->state_list || s->part_list || s->name_list || s->account_list || s->qos_list ||
           s->node_list;
}

static bool read_all(struct scancel *s, struct opt_run *r) {
    job_select_init(&s->pick, s->c);
    if (!read_signal(s) || !read_states(s) || !read_users(s) || !read_ids(s, r->words.p, r->words.n))
        return false;
    if (!s->pick.n_ids && !has_filter(s)) {
        cli_error(s->c, "No job identification provided");
        return false;
    }
    return job_select_nodes(&s->pick, s->node_list) &&
           job_select_texts(&s->pick, JOB_SELECT_PARTITION, s->part_list) &&
           job_select_texts(&s->pick, JOB_SELECT_NAME, s->name_list) &&
           job_select_texts(&s->pick, JOB_SELECT_ACCOUNT, s->account_list) &&
           job_select_texts(&s->pick, JOB_SELECT_QOS, s->qos_list);
}

/* Replaces the ids by those of the jobs that the filters select. */
static int find_jobs(struct scancel *s, struct err *e) {
    struct jobs_request request = {.job_ids = s->pick.ids, .n_job_ids = s->pick.n_ids, .user = s->pick.one_user};
    struct jobs_reply reply = {0};
    int rc = s->pick.is_nothing ? 0 : cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, e);
    if (rc == E_JOB_ID)
        rc = 0;
    if (rc)
        return rc;
    uint32_t *ids = arena_alloc(&s->c->arena, (reply.n_jobs + 1) * sizeof(*ids)), n = 0;
    for (uint32_t i = 0; i < reply.n_jobs; i++)
        if (job_selected(&s->pick, &reply.jobs[i]) && !reply.jobs[i].job->completing)
            ids[n++] = reply.jobs[i].job->id;
    s->pick.ids = ids;
    s->pick.n_ids = n;
    return 0;
}

/* What is not there or over is no failure; what may not be touched is. */
static int tell(const struct scancel *s, const struct results *reply) {
    int exit_code = 0;
    for (uint32_t i = 0; i < reply->n_results; i++) {
        const struct job_result *r = &reply->results[i];
        int code = -(int)r->error;
        bool is_over = code == E_JOB_ID || code == E_JOB_DONE || code == E_JOB_STATE;
        if (!r->error)
            continue;
        if (!s->quiet && (!is_over || s->verbose))
            cli_error(s->c, "Kill job error on job id %u: %s", r->job_id,
                      r->text && *r->text ? r->text : err_sentence(code));
        exit_code = is_over ? exit_code : EXIT_REFUSED;
    }
    return exit_code;
}

static int ask(struct scancel *s, uint32_t sig, struct results *reply, struct err *e) {
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    struct cancel_request request = {.token = token, .n_token = sizeof(token), .job_ids = s->pick.ids,
                                     .n_job_ids = s->pick.n_ids, .signal = sig, .batch_only = s->batch};
    return cli_call(s->c, WIRE_Controller_Cancel, &request, reply, e);
}

static int cancel(struct scancel *s) {
    struct err e = {0};
    struct results reply = {0}, ignored = {0};
    bool at_once = s->signal == SIGKILL && !s->batch; /* as Slurm: the end of the job, and no signal to its steps */
    if (has_filter(s) && find_jobs(s, &e)) {
        cli_error(s->c, "slurm_load_jobs error: %s", e.text);
        return 1;
    }
    if (!s->pick.n_ids) {
        if (s->verbose && s->name_list)
            cli_error(s->c, "No active jobs match ALL job filters, including: job_name=%s ", s->name_list);
        return 0;
    }
    for (uint32_t i = 0; s->verbose && i < s->pick.n_ids; i++) {
        if (s->signal)
            cli_say(s->c, "Signal %u to job %u", s->signal, s->pick.ids[i]);
        else
            cli_say(s->c, "Terminating job %u", s->pick.ids[i]);
    }
    if (ask(s, at_once ? 0 : s->signal, &reply, &e)) {
        cli_error(s->c, "Kill job error: %s", e.text);
        return 1;
    }
    if (at_once)
        ask(s, SIGKILL, &ignored, &e);
    return tell(s, &reply);
}

int cmd_scancel(struct cli *c) {
    struct scancel s = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_scancel_options(), &s, &r, true, &exit_code))
        exit_code = read_all(&s, &r) ? cancel(&s) : 1;
    opt_fini(&r);
    return exit_code;
}
