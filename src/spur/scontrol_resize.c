/* SPDX-License-Identifier: Apache-2.0
 *
 * Behind an update that made a run smaller, inside a job: two scripts, for sh and csh, that set the variables of Slurm anew
 * which the shell has.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/job_facts.h"
#include "spur/scontrol.h"

struct scripts {
    FILE *sh, *csh;
};

static FILE *create(const char *name) {
    unlink(name);
    FILE *f = fopen(name, "w");
    if (!f)
        fprintf(stderr, "Could not create file %s: %s\n", name, strerror(errno));
    else
        chmod(name, 0700);
    return f;
}

static void set(const struct scripts *s, const char *name, const char *value) {
    if (!getenv(name))
        return;
    fprintf(s->sh, "export %s=%s\n", name, value);
    fprintf(s->csh, "setenv %s %s\n", name, value);
}

static void unset(const struct scripts *s, const char *name) {
    if (!getenv(name))
        return;
    fprintf(s->sh, "unset %s\n", name);
    fprintf(s->csh, "unsetenv %s\n", name);
}

/* "2(x2),1": equal neighbours together. */
static void add_cpus(const struct job *j, struct str *out) {
    for (uint32_t i = 0, k; i < j->n_nodes; i = k) {
        for (k = i; k < j->n_nodes && j->nodes[k].cpus == j->nodes[i].cpus;)
            k++;
        str_addf(out, "%s%u", i ? "," : "", j->nodes[i].cpus);
        if (k - i > 1)
            str_addf(out, "(x%u)", k - i);
    }
}

static void write_all(const struct scripts *s, const struct job *j) {
    auto_str nodes = {0}, cpus = {0}, count = {0};
    str_addc(&nodes, '"');
    job_node_list(j, &nodes);
    str_addc(&nodes, '"');
    str_addc(&cpus, '"');
    add_cpus(j, &cpus);
    str_addc(&cpus, '"');
    str_addf(&count, "%u", j->n_nodes);
    set(s, "SLURM_NODELIST", str_text(&nodes));
    set(s, "SLURM_JOB_NODELIST", str_text(&nodes));
    set(s, "SLURM_NNODES", str_text(&count));
    set(s, "SLURM_JOB_NUM_NODES", str_text(&count));
    set(s, "SLURM_JOB_CPUS_PER_NODE", str_text(&cpus));
    unset(s, "SLURM_TASKS_PER_NODE"); /* how many it would start where is the next step's to say */
}

bool scontrol_resized(struct scontrol *s, uint32_t job_id) {
    struct jobs_request request = {.job_ids = &job_id, .n_job_ids = 1};
    struct jobs_reply reply = {0};
    struct err e = {0};
    if (!getenv("SLURM_JOB_ID"))
        return true;
    if (cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, &e) || !reply.n_jobs || !reply.jobs[0].job) {
        fprintf(stderr, "slurm_allocation_lookup: %s\n", e.text[0] ? e.text : err_sentence(E_JOB_ID));
        return false;
    }
    if (!job_holds_nodes(reply.jobs[0].job))
        return true;
    autofree char *sh = xasprintf("slurm_job_%u_resize.sh", job_id), *csh = xasprintf("slurm_job_%u_resize.csh", job_id);
    struct scripts files = {.csh = create(csh)};
    if (files.csh && (files.sh = create(sh))) {
        write_all(&files, reply.jobs[0].job);
        printf("To reset Slurm environment variables, execute\n"
               "  For bash or sh shells:  . ./%s\n"
               "  For csh shells:         source ./%s\n",
               sh, csh);
        fclose(files.sh);
    }
    if (files.csh)
        fclose(files.csh);
    return files.sh != NULL;
}
