/* SPDX-License-Identifier: Apache-2.0
 *
 * sbatch: options from three places, one request, one line of output.
 *
 * Options of the script are set first, then the environment's, then the command line's, so that each overrides the one
 * before. All words of the command line are looked at before the script is read: --wrap decides where that comes from.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/flavor.h"
#include "spur/hint.h"
#include "spur/job_options.h"
#include "spur/sbatch.h"

#define WAIT_MOST_SECS 16 /* between two tries for a place in the queue */

const struct opt_table *cmd_sbatch_options(void) {
    static struct opt_table t = {
        .usage = "[OPTIONS...] script [args...]",
        .brief = "[-N nnodes] [-n ntasks] [-c ncpus] [-p partition] [--hold] [--parsable] [-a indexes]\n"
                 "     [-t minutes] [-D path] [--mem=MB] [--output file] [--error file] [--input file]\n"
                 "     [--job-name=name] [--account=name] [--qos=qos] [--dependency=type:jobid]\n"
                 "     [--begin=time] [--nice[=value]] [--comment=name] [--export=names]\n"
                 "     [--nodelist=hosts] [--exclude=hosts] [--open-mode=append|truncate]\n"
                 "     [--gres=list] [-G n] [-C list] [-L names] [--exclusive] [-s] [--signal=[B:]num[@time]]\n"
                 "     [--ntasks-per-node=n] [--mem-per-cpu=MB] [--time-min=minutes] [--deadline=time]\n"
                 "     [--test-only] [--propagate[=rlimits]] [--requeue] [--no-requeue] [--wait] [--quiet]\n"
                 "     [--wrap=command] executable [args...]",
        .usage_exit = 255, .stop_at_word = true, .words = "files",
        .env_prefix = {"SBATCH_", "SPUR_"},
        .note = "Options of Slurm that are not listed are refused by name: see docs/compatibility.md."};
    t.row = job_option_rows(JOB_SBATCH, &t.n);
    return &t;
}

/* Each line of a text as an error of its own. */
static void complain(const struct cli *c, const char *text) {
    while (*text) {
        size_t n = strcspn(text, "\n");
        cli_error(c, "%.*s", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static int refuse(const struct cli *c, const char *text) {
    complain(c, text);
    return 1;
}

/* The controller's text: what is wrong in lines of their own, the last one says why the job was not taken. */
static int refuse_job(const struct sbatch *s, int code, const char *text) {
    const char *last = strrchr(text, '\n'), *sentence = err_sentence(code);
    if (!last && (code == E_NODES_UNAVAIL || code == E_TOO_MANY_CPUS) && !str_eq(text, sentence)) {
        complain(s->c, text);
        text = sentence;
    }
    if (code == E_SCRIPT_SIZE || code == E_USER_ENV || code == E_TOO_BIG) {
        complain(s->c, text);
        cli_error(s->c, "Batch job submission failed: Pathname of a file, directory or other parameter too long");
        return 1;
    }
    if (code == E_GRES) /* Slurm's command finds this one itself */
        return refuse(s->c, text);
    if (last) {
        autofree char *first = xstrndup(text, (size_t)(last - text));
        complain(s->c, first);
    } else if (code == E_PARTITION && s->spec.partition) {
        cli_error(s->c, "invalid partition specified: %s", s->spec.partition);
    }
    bool is_kind = code == E_UNSUPPORTED && s->spec.dependency && cli_policy()->plain_reasons;
    cli_error(s->c, "Batch job submission failed: %s%s", last ? last + 1 : text, is_kind ? " (dependency)" : "");
    hint_refused_job(s->c, code, &s->spec);
    return 1;
}

/* What --wrap says has to be known before the script is there. */
static void look_ahead(struct sbatch *s, const struct opt_run *r) {
    const struct opt_item *wrap = opt_find(r, "wrap");
    s->wrap = wrap ? wrap->value : NULL;
}

static bool apply_level(struct sbatch *s, struct opt_run *r, size_t from, size_t to) {
    s->level++;
    return opt_apply(r, from, to);
}

/* #PBS lines count before everything else, so that all else goes before them. */
static bool read_pbs(struct sbatch *s, struct opt_run *r, const struct buf *script) {
    const char *const *word = NULL;
    const uint32_t *line = NULL;
    uint32_t n = 0;
    if (s->wrap || opt_find(r, "ignore-pbs") ||
        script_pbs_options((const char *)script->p, script->n, &s->c->arena, &word, &line, &n, NULL))
        return true; /* what is wrong with its quotes was told before, or is nobody's business */
    return sbatch_pbs(s, r, n, word, line);
}

static bool read_options(struct sbatch *s, struct opt_run *r, struct buf *script, int *exit_code) {
    struct cli *c = s->c;
    struct err e = {0};
    if (!opt_scan(r, c->argc - 1, (const char *const *)c->argv + 1)) {
        *exit_code = cli_stop(r);
        return false;
    }
    size_t typed = r->items.n;
    look_ahead(s, r);
    if (sbatch_script(s, r->words.p, r->words.n, script, &e)) {
        *exit_code = refuse(c, e.text);
        return false;
    }
    const char *const *word = NULL;
    const uint32_t *line = NULL;
    uint32_t n = 0;
    if (!s->wrap && script_options((const char *)script->p, script->n, &c->arena, &word, &line, &n, &e)) {
        *exit_code = refuse(c, e.text);
        return false;
    }
    bool ok = opt_scan_script(r, n, word, line);
    size_t scripted = r->items.n;
    if (ok) {
        opt_scan_env(r, cli_env);
        ok = read_pbs(s, r, script) && apply_level(s, r, typed, scripted) && apply_level(s, r, scripted, r->items.n) &&
             apply_level(s, r, 0, typed);
    }
    if (!ok)
        *exit_code = cli_stop(r);
    else if (!cli_clusters(c, r, false))
        *exit_code = 1;
    else
        return true;
    return false;
}

/* ---- the request ---- */

/* SLURM_EXIT_ERROR: what this command's own mistakes exit with, to be told from the job's exit code (--wait). */
static int exit_error(int exit_code) {
    const char *text = getenv("SLURM_EXIT_ERROR");
    uint64_t n;
    return exit_code && text && str_to_u64(text, 255, &n) == 0 && n ? (int)n : exit_code;
}

/* A queue that is full may have room a little later: said, and tried again for a while, as Slurm does. */
static int send_job(struct sbatch *s, const struct submit_request *request, struct submit_reply *reply, struct err *e) {
    int rc;
    for (unsigned wait_secs = 1;; wait_secs *= 2) {
        rc = cli_call(s->c, WIRE_Controller_Submit, request, reply, e);
        if (rc != E_QUEUE_FULL || wait_secs > WAIT_MOST_SECS)
            return rc;
        if (wait_secs == 1)
            cli_error(s->c, "%s", err_sentence(E_QUEUE_FULL));
        sleep(wait_secs);
    }
}

/* --test-only: when and where. */
static int say_test(struct sbatch *s, const struct submit_reply *reply) {
    auto_str when = {0}, nodes = {0};
    cli_time(reply->start_unix, "Unknown", &when);
    hostlist_compact(reply->nodes, reply->n_nodes, &nodes);
    for (uint32_t i = 0; i < reply->n_warnings; i++)
        if (!s->quiet)
            cli_say(s->c, "warning: %s", reply->warnings[i]);
    cli_say(s->c, "Job %u to start at %s a using %u processors on nodes %s in partition %s", reply->job_id,
            str_text(&when), reply->n_cpus, str_text(&nodes), reply->partition ? reply->partition : "(null)");
    return 0;
}

static int refuse_test(struct sbatch *s, int code, const char *text) {
    const char *last = strrchr(text, '\n');
    if (last) {
        autofree char *first = xstrndup(text, (size_t)(last - text));
        complain(s->c, first);
    }
    fprintf(stderr, "allocation failure: %s\n",
            code == E_NODES_UNAVAIL || code == E_TOO_MANY_CPUS ? err_sentence(code) : last ? last + 1 : text);
    return 1;
}

static int submit(struct sbatch *s, const struct buf *script) {
    struct err e = {0};
    uint8_t token[TOKEN_SIZE];
    auto_buf env = {0};
    if (sbatch_facts(s, &e))
        return refuse(s->c, e.text);
    extern char **environ;
    sbatch_env(s, (const char *const *)environ, &env);
    if (!sbatch_env_file(s, &env))
        return 1;
    spur_token(token);
    struct submit_request request = {
        .token = token, .n_token = sizeof(token), .spec = &s->spec, .script = script->p,
        .n_script = (uint32_t)script->n, .env = env.p, .n_env = (uint32_t)env.n, .test_only = s->test_only,
    };
    struct submit_reply reply = {0};
    int rc = send_job(s, &request, &reply, &e);
    if (s->test_only)
        return rc ? exit_error(refuse_test(s, rc, e.text)) : say_test(s, &reply);
    if (rc)
        return exit_error(refuse_job(s, rc, e.text));
    for (uint32_t i = 0; i < reply.n_warnings; i++)
        if (!s->quiet)
            cli_say(s->c, "warning: %s", reply.warnings[i]);
    const char *cluster = s->c->cluster;
    if (s->parsable)
        printf("%u%s%s\n", reply.job_id, cluster ? ";" : "", cluster ? cluster : "");
    else if (!s->quiet)
        printf("Submitted batch job %u%s%s\n", reply.job_id, cluster ? " on cluster " : "", cluster ? cluster : "");
    fflush(stdout);
    return s->wait ? sbatch_wait(s, reply.job_id) : 0;
}

int cmd_sbatch(struct cli *c) {
    struct sbatch s = {.c = c};
    struct opt_run r;
    auto_buf script = {0};
    int exit_code = 1;
    opt_init(&r, cmd_sbatch_options(), c->prog, &s);
    bool ok = read_options(&s, &r, &script, &exit_code);
    if (ok && s.verbose)
        cli_defined(c, &r);
    if (ok && s.more.overcommit)
        setenv("SLURM_OVERCOMMIT", "1", 1); /* steps of the job are asked for in the same way */
    if (ok && job_ask_settle(&s.ask) && job_ask_planes(&s.ask)) {
        job_ask_all_named(&s.ask);
        exit_code = submit(&s, &script);
    } else {
        exit_code = exit_error(ok ? 1 : exit_code);
    }
    opt_fini(&r);
    return exit_code;
}
