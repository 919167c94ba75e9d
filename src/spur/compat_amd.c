/* SPDX-License-Identifier: Apache-2.0
 *
 * What of AMD Spur's command lines and environment works here. Which flag does is asked of the commands' own tables; the
 * names are AMD Spur 0.8's. The keys of its spur.conf are in docs/configuration.md, from the table that reads them.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/compat.h"

static const struct {
    const char *command, *flags;
} commands[] = {
    {"sbatch", "job-name partition account nodes ntasks ntasks-per-node cpus-per-task mem mem-per-cpu gres licenses gpus gpus-per-node "
               "gpus-per-task time time-min chdir output error qos dependency nodelist nodefile exclude constraint reservation array "
               "distribution het-group bb begin deadline spread-job topology open-mode mpi requeue exclusive hold comment mail-type "
               "mail-user export container-image container-mounts container-workdir container-name container-readonly "
               "container-mount-home container-env container-entrypoint container-remap-root controller parsable wrap"},
    {"srun", "job-name partition account qos nodes ntasks ntasks-per-node cpus-per-task mem time gres licenses gpus gpus-per-node "
             "gpus-per-task chdir cpu-bind gpu-bind constraint nodelist nodefile exclude reservation exclusive mpi output error input "
             "label container-image container-mounts container-workdir container-mount-home container-env container-remap-root prolog "
             "epilog pty jobid overlap controller"},
    {"salloc", "job-name partition account qos nodes ntasks cpus-per-task mem time gres gpus gpus-per-node gpus-per-task constraint "
               "nodelist exclude reservation exclusive controller"},
    {"squeue", "user partition states jobs account name nodelist format long noheader sort controller"},
    {"sinfo", "partition states nodes format long Node noheader controller"},
    {"scancel", "user partition state name account signal batch quiet interactive controller"},
    {"sacct", "user accounts starttime endtime state jobs format long brief noheader limit controller"},
    {"sattach", "output output-only controller"},
    {"sdiag", "reset noheader controller"},
    {"token", "ttl"},
    {"node", "reason force"},
};

static const struct opt_row *find(const struct opt_table *t, const char *name, size_t n) {
    for (size_t i = 0; i < t->n; i++)
        if (t->row[i].name && strlen(t->row[i].name) == n && strncmp(t->row[i].name, name, n) == 0)
            return &t->row[i];
    return NULL;
}

static const struct command *command_of(const char *name) {
    const struct command *c = command_slurm(name);
    return c ? c : command_find(name, &(bool){false});
}

/* Those that are there, or those that are not, with a blank between. */
static void add_flags(const struct opt_table *t, const char *flags, bool there, struct str *out) {
    size_t shown = 0;
    for (const char *at = flags; *at; at += strcspn(at, " "), at += *at == ' ') {
        size_t n = strcspn(at, " ");
        const struct opt_row *o = find(t, at, n);
        if ((o && o->kind != OPT_NOT_YET) == there)
            str_addf(out, "%s`--%.*s`", shown++ ? " " : "", (int)n, at);
    }
    if (!shown)
        str_add(out, "–");
}

static void print_flags(struct str *out) {
    str_add(out, "\n### AMD Spur's flags\n\n"
                 "By the commands' own tables. What is refused is so by name, with exit code 1. Verbs that are not in this table (`spur net`,\n"
                 "`spur k8s`, `spur image`, `spur exec`, `spur self-update`, `smd`, …) are not there.\n\n"
                 "| command | works | refused |\n|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        const struct command *c = command_of(commands[i].command);
        if (!c)
            continue;
        str_addf(out, "| `%s%s` | ", c->slurm ? "" : "spur ", commands[i].command);
        add_flags(c->options(), commands[i].flags, true, out);
        str_add(out, " | ");
        add_flags(c->options(), commands[i].flags, false, out);
        str_add(out, " |\n");
    }
    str_add(out,
            "| `spurctld` | `--config` `--listen` `--state-dir` `--log-level` `--foreground` `--version` | `--allow-partial-wal-recovery`: a "
            "log that can't be read is never passed over |\n"
            "| `spurd` | `--config` `--controller` `--listen` `--hostname` `--address` `--label` `--token` `--foreground` `--log-level` | – |\n");
}

static const char *const variables[][2] = {
    {"SPUR_CONTROLLER_ADDR", "works: a list of addresses, tried in order"},
    {"SPUR_CONF", "works"},
    {"SPUR_AUTH_TOKEN", "works, behind `SPUR_JWT` and `SLURM_JWT`; behind it the file `~/.spur/token`, where it is its user's alone"},
    {"SPUR_NODE_ADDRESS", "works (spurd)"},
    {"SPUR_NODE_LABELS", "works (spurd), with several labels too: `a=1,b=2`"},
    {"SPUR_JOIN_TOKEN", "works (spurd)"},
    {"SPUR_WG_INTERFACE", "no effect: there is no network of Spur's own"},
    {"SPUR_PLUGSTACK", "no effect: there are no plugins"},
    {"SPUR_SECCOMP, SPUR_LANDLOCK", "no effect: tasks are not filtered"},
    {"SPUR_IMAGE_DIR, SPUR_CONTAINER_DIR, SPUR_IMAGE_CACHE, SPUR_REGISTRY_USER, SPUR_REGISTRY_PASSWORD",
     "no effect: there are no containers"},
    {"SPUR_MPI_DEBUG", "no effect: there is no PMIx"},
    {"RUST_LOG", "no effect: `--log-level`, `[logging] level`"},
    {"SBATCH_…, SRUN_…, SALLOC_…, SPUR_…", "as the tables of the commands above say"},
};

static void print_variables(struct str *out) {
    str_add(out, "\n### AMD Spur's environment variables\n\n| variable | |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        str_addf(out, "| `%s` | %s |\n", variables[i][0], variables[i][1]);
    str_add(out, "\nThe keys of its spur.conf: [configuration.md](configuration.md), those without effect at its end, each with its reason.\n");
}

static const char *const failing[][2] = {
    {"test_single_node.py::TestJobLifecycle::test_failed_launch_releases_reservation",
     "`--container-image` is refused at submit: there are no containers"},
    {"test_completing_timeout.py::TestCompletingTimeoutCancel::test_completing_timeout_cancels_stuck_node",
     "`[scheduler] complete_wait_secs` is refused: a job whose scripts run on several nodes waits for all of them"},
};

static void print_suite(struct str *out) {
    str_add(out,
            "\n### AMD Spur's own tests\n\n"
            "Its suite for hosts runs unmodified (`SPUR_COMPAT=amd`); tests/clients/amd-spur.passing lists what passes. Of its files about single "
            "and several\nnodes, steps, time limits, begin times, requeue, suspension, labels, admission, fail-over and leaving nodes, these do "
            "not:\n\n| test | reason |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(failing); i++)
        str_addf(out, "| `%s` | %s |\n", failing[i][0], failing[i][1]);
}

void compat_amd(struct str *out) {
    print_flags(out);
    print_variables(out);
    print_suite(out);
}
