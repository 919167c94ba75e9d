/* SPDX-License-Identifier: Apache-2.0
 *
 * salloc: nodes for a command or a shell that runs here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/job_options.h"
#include "spur/salloc.h"

int salloc_ask_kill(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint32_t signo = 0;
    if (value && signal_parse(value, &signo))
        return opt_bad_value(r, o);
    ((struct salloc *)r->ctx)->kill_signal = signo + 1;
    return 0;
}

const struct opt_table *cmd_salloc_options(void) {
    static struct opt_table t = {
        .usage = "[OPTIONS...] [command [args...]]",
        .brief = "[-N numnodes|[min nodes]-[max nodes]] [-n num-processors] [-c ncpus] [-p partition]\n"
                 "     [-t minutes] [-D path] [-J jobname] [-I[secs]] [--mem=MB] [--gres=list] [--gpus=n]\n"
                 "     [--exclusive[=user]] [-w hosts] [-x hosts] [-K[signal]] [--no-shell] [command [args...]]",
        .usage_exit = 255, .stop_at_word = true, .words = "commands", .env_prefix = {"SALLOC_"},
        .note = "Options of Slurm that are not listed are refused by name: see docs/compatibility.md."};
    t.row = job_option_rows(JOB_SALLOC, &t.n);
    return &t;
}

static bool read_options(struct salloc *s, struct opt_run *r) {
    struct cli *c = s->run.job.c;
    bool ok = opt_scan(r, c->argc - 1, (const char *const *)c->argv + 1);
    size_t typed = r->items.n;
    if (!ok)
        return false;
    opt_scan_env(r, cli_env);
    s->run.job.level = 1;
    ok = opt_apply(r, typed, r->items.n);
    s->run.job.level = 2;
    return ok && opt_apply(r, 0, typed);
}

static void say_granted(const struct salloc *s, const struct srun_alloc *a) {
    struct cli *c = s->run.job.c;
    const struct job *j = srun_alloc_job(a);
    if (s->run.job.quiet)
        return;
    auto_str nodes = {0};
    const char **names = arena_calloc(&c->arena, MAX(j->n_nodes, 1u), sizeof(*names));
    for (uint32_t i = 0; i < j->n_nodes; i++)
        names[i] = j->nodes[i].name;
    hostlist_compact(names, j->n_nodes, &nodes);
    cli_say(c, "Granted job allocation %u", a->job_id);
    cli_say(c, "Nodes %s are ready for job", str_text(&nodes));
}

/* What the record of a job does not say. Without it the command runs as well. */
static const char *cluster_name(struct salloc *s, uint32_t job_id) {
    struct jobs_request request = {.job_ids = &job_id, .n_job_ids = 1};
    struct jobs_reply reply = {0};
    struct err e = {0};
    return srun_call(s->run.job.c, WIRE_Controller_Jobs, &request, &reply, &e) ? NULL : reply.cluster_name;
}

static int run(struct salloc *s) {
    struct srun_alloc a = {.s = &s->run, .signal_fd = srun_signals()};
    int rc = srun_alloc_get(&a);
    if (rc) {
        srun_alloc_fini(&a);
        return rc;
    }
    say_granted(s, &a);
    if (!s->no_shell) {
        extern char **environ;
        char *const *env = salloc_env(s, srun_alloc_job(&a), cluster_name(s, a.job_id), environ);
        rc = salloc_command(s, &a, env);
    }
    srun_alloc_fini(&a);
    return rc;
}

int cmd_salloc(struct cli *c) {
    struct salloc s = {.run = {.job = {.c = c}, .kind = "salloc"}};
    struct opt_run r;
    struct err e = {0};
    int rc = 1;
    opt_init(&r, cmd_salloc_options(), c->prog, &s);
    bool ok = read_options(&s, &r);
    if (!ok || !cli_clusters(c, &r, false)) {
        rc = ok ? 1 : cli_stop(&r);
        opt_fini(&r);
        return rc;
    }
    s.run.job.more.interactive = true;
    s.run.job.more.no_shell = s.no_shell;
    if (!s.run.job.spec.name)
        s.run.job.spec.name = "interactive";
    if (!srun_settle(&s.run, &r) || !job_ask_planes(&s.run.job.ask)) {
        rc = s.run.exit_error;
    } else if (sbatch_facts(&s.run.job, &e)) {
        cli_error(c, "%s", e.text);
    } else {
        rc = run(&s);
    }
    opt_fini(&r);
    return rc;
}
