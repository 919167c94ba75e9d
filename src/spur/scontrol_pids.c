/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol listpids and pidinfo: processes of jobs on this machine, as their environments tell. Those of other users are
 * seen by root alone. A task is a process whose parent isn't of the same step.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "spur/scontrol.h"

#define ENVIRON_MAX (4u << 20)

struct process {
    uint32_t pid, parent;
    uint32_t job_id;
    char step[16], local[12], global[12], node[256];
};
struct processes {
    VEC(struct process) v;
};

/* Of a file of /proc, whose size isn't known beforehand. */
static bool read_proc(uint32_t pid, const char *name, struct str *out) {
    char path[64], chunk[8192];
    size_t n;
    snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0 && out->n < ENVIRON_MAX)
        str_addn(out, chunk, n);
    fclose(f);
    return out->n > 0;
}

static void take(const struct str *env, const char *name, char *to, size_t size) {
    size_t n = strlen(name);
    for (const char *at = env->p; at < env->p + env->n; at += strlen(at) + 1)
        if (strncmp(at, name, n) == 0 && at[n] == '=') {
            snprintf(to, size, "%s", at + n + 1);
            return;
        }
}

static uint32_t parent_of(uint32_t pid) {
    auto_str stat = {0};
    unsigned parent = 0;
    const char *behind = read_proc(pid, "stat", &stat) ? strrchr(stat.p, ')') : NULL;
    if (behind)
        (void)sscanf(behind + 1, " %*c %u", &parent);
    return parent;
}

static void add(uint32_t pid, struct processes *out) {
    auto_str env = {0};
    char job[16] = "";
    struct process p = {.pid = pid, .step = "batch", .local = "0", .global = "0"};
    uint64_t id;
    if (!read_proc(pid, "environ", &env))
        return;
    take(&env, "SLURM_JOB_ID", job, sizeof(job));
    take(&env, "SLURMD_NODENAME", p.node, sizeof(p.node));
    if (str_to_u64(job, JOB_ID_MAX, &id) || !*p.node)
        return;
    p.job_id = (uint32_t)id;
    p.parent = parent_of(pid);
    take(&env, "SLURM_STEP_ID", p.step, sizeof(p.step));
    take(&env, "SLURM_LOCALID", p.local, sizeof(p.local));
    take(&env, "SLURM_PROCID", p.global, sizeof(p.global));
    if (str_eq(p.step, "4294967291") || str_eq(p.step, "-5")) /* STEP_BATCH, as the environment has it */
        snprintf(p.step, sizeof(p.step), "batch");
    vec_push(&out->v, p);
}

static int by_place(const void *a, const void *b) {
    const struct process *x = a, *y = b;
    if (x->job_id != y->job_id)
        return x->job_id < y->job_id ? -1 : 1;
    int c = strcmp(x->step, y->step);
    return c ? c : (x->pid > y->pid) - (x->pid < y->pid);
}

static void all(struct processes *out) {
    DIR *dir = opendir("/proc");
    for (struct dirent *d; dir && (d = readdir(dir));) {
        uint64_t pid;
        if (str_to_u64(d->d_name, UINT32_MAX, &pid) == 0)
            add((uint32_t)pid, out);
    }
    if (dir)
        closedir(dir);
    if (out->v.n)
        qsort(out->v.p, out->v.n, sizeof(*out->v.p), by_place);
}

static bool is_task(const struct processes *all, const struct process *p) {
    for (size_t i = 0; i < all->v.n; i++)
        if (all->v.p[i].pid == p->parent && all->v.p[i].job_id == p->job_id && str_eq(all->v.p[i].step, p->step))
            return false;
    return true;
}

static const char *not_there(const struct scontrol *s, const char *node) {
    if (!s->n || !*s->word[0])
        return "No job steps exist on this node.\n";
    return arena_printf(&s->c->arena, "%s=%s does not exist on node %s.\n", strchr(s->word[0], '.') ? "StepId" : "JobId",
                        s->word[0], node ? node : "(null)");
}

/* "12", "12.0", "12.batch"; both are wanted as they are written. */
int scontrol_listpids(struct scontrol *s) {
    struct processes list = {0};
    const char *wanted = s->n ? cli_sluids(s->c, s->word[0]) : "", *node = s->n > 1 ? s->word[1] : NULL;
    const char *dot = strchr(wanted, '.');
    autofree char *job = xstrndup(wanted, strcspn(wanted, "."));
    uint64_t id = 0;
    size_t shown = 0;
    if (*job && !str_eq(job, "*") && str_to_u64(job, JOB_ID_MAX, &id)) {
        fprintf(stderr, "Invalid job id %s\n", wanted);
        return 1;
    }
    all(&list);
    for (size_t i = 0; i < list.v.n; i++) {
        const struct process *p = &list.v.p[i];
        if ((id && p->job_id != id) || (dot && !str_eq(p->step, dot + 1)) || (node && !str_eq(p->node, node)))
            continue;
        bool task = is_task(&list, p);
        if (!shown++)
            printf("%-8s %-8s %-8s %-7s %-8s\n", "PID", "JOBID", "STEPID", "LOCALID", "GLOBALID");
        printf("%-8u %-8u %-8s %-7s %-8s\n", p->pid, p->job_id, p->step, task ? p->local : "-", task ? p->global : "-");
    }
    vec_fini(&list.v);
    if (!shown)
        fputs(not_there(s, node), stderr);
    return !shown;
}

/* Of which job a process is, and when that ends. */
int scontrol_pidinfo(struct scontrol *s) {
    struct processes list = {0};
    struct jobs_reply reply = {0};
    struct err e = {0};
    uint64_t pid = 0;
    uint32_t id = 0;
    if (!s->n || str_to_u64(s->word[0], UINT32_MAX, &pid)) {
        fprintf(stderr, s->n ? "Invalid process id %s\n" : "too few arguments for keyword:pidinfo\n", s->n ? s->word[0] : "");
        return 1;
    }
    add((uint32_t)pid, &list);
    if (list.v.n)
        id = list.v.p[0].job_id;
    vec_fini(&list.v);
    struct jobs_request request = {.job_ids = &id, .n_job_ids = 1};
    if (!id || cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, &e) || !reply.n_jobs) {
        fprintf(stderr, "slurm_pid2jobid error: %s\n", err_sentence(E_JOB_ID));
        return 1;
    }
    auto_str end = {0};
    const struct job *j = reply.jobs[0].job;
    int64_t until = j->time_limit_min && j->time_limit_min != TIME_LIMIT_NONE && j->start_ms
                        ? j->start_ms / 1000 + (int64_t)j->time_limit_min * 60
                        : 0;
    cli_date(until, &end);
    printf("Slurm JobId=%u ends at %s\n", id, until ? str_text(&end) : "Unknown");
    return 0;
}
