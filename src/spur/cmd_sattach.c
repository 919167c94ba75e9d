/* SPDX-License-Identifier: Apache-2.0
 *
 * sattach: the output of a step that runs already, and more input for it, beside srun's.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/srun.h"

struct sattach {
    struct srun run;
    uint32_t filter[3]; /* by stream number: task + 1; 0: all */
    bool layout;
};

static int set_filter(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct sattach *s = r->ctx;
    uint64_t task;
    int which = o->name[0] == 'o' ? STREAM_OUT : STREAM_ERR;
    if (str_to_u64(value, UINT32_MAX - 2, &task))
        return opt_bad_value(r, o);
    s->filter[which] = (uint32_t)task + 1;
    return 0;
}

#define A(field) offsetof(struct sattach, field)
static const struct opt_row rows[] = {
    {"error-filter", 0, "task", OPT_CALL, 0, 0, set_filter, NULL, "stderr of this task only"},
    {"help", 'h', NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help message"},
    {"input-filter", 0, "task", OPT_NOT_YET},
    {"label", 'l', NULL, OPT_BOOL, 0, A(run.label), NULL, NULL, "prepend task number to lines of stdout and stderr"},
    {"layout", 0, NULL, OPT_BOOL, 0, A(layout), NULL, NULL, "print the layout of the step's tasks and exit"},
    {"output-filter", 0, "task", OPT_CALL, 0, 0, set_filter, NULL, "stdout of this task only"},
    {"pty", 0, NULL, OPT_NOT_YET},
    {"quiet", 'Q', NULL, OPT_COUNT, 0, A(run.job.quiet), NULL, NULL, "quiet mode (suppress informational messages)"},
    {"unbuffered", 'u', NULL, OPT_BOOL, 0, A(run.unbuffered), NULL, NULL, "do not line-buffer the tasks' output"},
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "display brief usage message"},
    {"verbose", 'v', NULL, OPT_COUNT, 0, A(run.job.verbose), NULL, NULL, "verbose mode"},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "output version information and exit"},
};

const struct opt_table *cmd_sattach_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS...] jobid.stepid",
        .brief = "[-l] [--layout] [--output-filter=task] [--error-filter=task] <jobid.stepid>",
        .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 1};
    return &t;
}

static void show_layout(const struct step *step) {
    uint32_t n_tasks = 0;
    for (uint32_t i = 0; i < step->n_nodes; i++)
        n_tasks += step->nodes[i].n_ranks;
    printf("Job step layout:\n  %u tasks, %u nodes (", n_tasks, step->n_nodes);
    for (uint32_t i = 0; i < step->n_nodes; i++)
        printf("%s%s", i ? "," : "", step->nodes[i].name);
    printf(")\n\n");
    for (uint32_t i = 0; i < step->n_nodes; i++) {
        const struct step_node *n = &step->nodes[i];
        printf("  Node %u (%s), %u task(s):", i, n->name, n->n_ranks);
        for (uint32_t k = 0; k < n->n_ranks; k++)
            printf(" %u", n->ranks[k]);
        printf("\n");
    }
}

/* Input that is /dev/null from the start is none: a sattach that only looks on ends nobody's input. */
static int input_fd(void) {
    struct stat st;
    bool is_none = fstat(STDIN_FILENO, &st) || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
    return is_none ? -1 : STDIN_FILENO;
}

static int attach(struct sattach *s, const struct job_name *name) {
    struct cli *c = s->run.job.c;
    struct err e = {0};
    struct srun_step st = {.s = &s->run, .job_id = name->target.job_id, .is_attach = true, .in_fd = input_fd(),
                           .in_task = STREAM_ALL_TASKS,
                           .only_task = {s->filter[STREAM_OUT], s->filter[STREAM_ERR]}};
    struct attach_request request = {.job_id = name->target.job_id, .step_id = name->step_id + 1};
    int rc = srun_call(c, WIRE_Controller_Attach, &request, &st.reply, &e);
    if (rc || !st.reply.step || !st.reply.n_tickets || st.reply.n_tickets != st.reply.step->n_nodes) {
        cli_error(c, "Could not get job step info: %s", rc ? e.text : err_sentence(E_PROTOCOL));
        return 1;
    }
    if (s->layout) {
        show_layout(st.reply.step);
        return 0;
    }
    sink_open(&st.out, STDOUT_FILENO);
    sink_open(&st.err, STDERR_FILENO);
    return srun_run(&st, NULL, srun_signals(), NULL);
}

int cmd_sattach(struct cli *c) {
    struct sattach s = {.run = {.job = {.c = c}, .exit_error = 1}};
    struct opt_run r;
    int rc = 1;
    struct job_name name;
    if (!cli_options(c, cmd_sattach_options(), &s, &r, true, &rc)) {
        opt_fini(&r);
        return rc;
    }
    if (r.words.n != 1) {
        cli_error(c, "One and only one step is to be named: jobid.stepid");
        opt_fini(&r);
        return 1;
    }
    if (job_name_parse(cli_sluids(c, r.words.p[0]), JOB_NAME_STEP, &c->arena, &name, NULL) || !name.has_step || name.target.n_tasks) {
        cli_error(c, "\"%s\" is not a step: jobid.stepid", r.words.p[0]);
        rc = 1;
    } else {
        rc = attach(&s, &name);
    }
    opt_fini(&r);
    return rc;
}
