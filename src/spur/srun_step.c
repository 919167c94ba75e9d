/* SPDX-License-Identifier: Apache-2.0
 *
 * A step: what srun asks the controller for, what the nodes are told to execute, and where its streams go.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/srun.h"

/* ---- how many tasks on how many nodes ---- */

static int no_job(struct srun_step *st, int code, const char *text) {
    struct cli *c = st->s->job.c;
    if (code == E_JOB_ID)
        cli_error(c, "Unable to confirm allocation for job %u: %s", st->job_id, err_sentence(E_JOB_ID));
    else if (code == E_JOB_DONE)
        cli_error(c, "Slurm job %u has expired", st->job_id);
    else {
        cli_error(c, "Unable to confirm allocation for job %u: %s", st->job_id, text);
        return st->s->exit_error;
    }
    cli_say(c, "Check SLURM_JOB_ID environment variable. Expired or invalid job %u", st->job_id);
    return st->s->exit_error;
}

/* The job that is entered. Needed where its own environment is not around us. */
static int read_job(struct srun_step *st) {
    struct jobs_request request = {.job_ids = &st->job_id, .n_job_ids = 1, .with_ended = true};
    struct jobs_reply reply = {0};
    struct err e = {0};
    int rc = srun_call(st->s->job.c, WIRE_Controller_Jobs, &request, &reply, &e);
    if (!rc && (!reply.n_jobs || !reply.jobs[0].job))
        rc = E_JOB_ID;
    if (rc)
        return no_job(st, rc, e.text);
    st->job = reply.jobs[0].job;
    if (st->job->state >= JOB_COMPLETED || st->job->completing)
        return no_job(st, E_JOB_DONE, "");
    if (st->job->state == JOB_PENDING)
        return no_job(st, E_JOB_PENDING, err_sentence(E_JOB_PENDING));
    return 0;
}

static bool is_our_env(const struct srun_step *st) {
    const char *id = srun_env_get("SLURM_JOB_ID");
    uint64_t n;
    return id && !str_to_u64(id, JOB_ID_MAX, &n) && n == st->job_id && getenv("SLURM_JOB_NUM_NODES");
}

static int settle_size(struct srun_step *st, struct step_spec *p) {
    struct srun *s = st->s;
    const struct job_spec *j = &s->job.spec;
    if (!st->job && !is_our_env(st)) {
        int rc = read_job(st);
        if (rc)
            return rc;
    }
    uint64_t nodes = st->job ? st->job->n_nodes : 0;
    if (!nodes && str_to_u64(getenv("SLURM_JOB_NUM_NODES"), HOSTLIST_MAX, &nodes))
        nodes = 0;
    p->min_nodes = j->min_nodes;
    p->max_nodes = j->max_nodes;
    if (nodes && p->min_nodes > nodes) {
        cli_error(s->job.c, "Only allocated %u nodes asked for %u", (uint32_t)nodes, p->min_nodes);
        return s->exit_error;
    }
    if (!p->min_nodes && st->alloc) /* a job of our own: all of it */
        p->min_nodes = p->max_nodes = (uint32_t)nodes;
    p->n_tasks = j->n_tasks_given;
    if (!p->n_tasks && st->job && st->job->spec && st->job->spec->n_tasks_given && !j->min_nodes)
        p->n_tasks = st->job->spec->n_tasks_given;
    if (!p->n_tasks)
        p->n_tasks = (uint32_t)MAX(p->min_nodes ? p->min_nodes : MAX(nodes, (uint64_t)j->n_req_nodes), 1ull);
    return 0;
}

static int fill(struct srun_step *st, struct step_spec *p) {
    struct srun *s = st->s;
    const struct job_spec *j = &s->job.spec;
    if (s->job.more.n_task_nodes && s->job.more.n_task_nodes != j->n_tasks_given) {
        cli_error(s->job.c, "You asked for %u tasks but hostlist specified %u nodes", j->n_tasks_given, s->job.more.n_task_nodes);
        return s->exit_error;
    }
    *p = (struct step_spec){
        .name = j->name, .cpus_per_task = j->cpus_per_task_given, .mem_node_mb = j->mem_node_mb,
        .mem_cpu_mb = s->job.more.mem_cpu_mb, .gres = s->job.more.gres, .n_gres = s->job.more.n_gres,
        .req_nodes = j->req_nodes, .n_req_nodes = j->n_req_nodes, .exc_nodes = j->exc_nodes,
        .n_exc_nodes = j->n_exc_nodes, .tasks_per_node = s->job.more.tasks_per_node,
        .time_limit_min = j->time_limit_min == TIME_LIMIT_NONE ? 0 : j->time_limit_min, .overlap = s->overlap,
        .exact = s->exact, .kill_on_bad_exit = s->bad_exit == BAD_EXIT_KILLS, /* not -W: that counts over all nodes, here */
        .submit_line = j->submit_line, .submit_host = j->submit_host, .work_dir = j->work_dir,
        .cyclic = s->job.more.distribution && strncasecmp(s->job.more.distribution, "cyclic", 6) == 0, .pty = s->pty,
        .plane = job_plane_size(&s->job.more), .task_nodes = s->job.more.task_nodes, .n_task_nodes = s->job.more.n_task_nodes,
        .features = s->job.more.features, .overcommit = s->job.more.overcommit, .no_kill = s->job.more.no_kill};
    if (st->alloc) { /* what the job was given is the step's */
        p->mem_node_mb = p->mem_cpu_mb = 0;
        p->req_nodes = p->exc_nodes = NULL;
        p->n_req_nodes = p->n_exc_nodes = 0;
        p->time_limit_min = 0;
        p->exact = false;
        p->features = NULL;
    }
    return settle_size(st, p);
}

/* ---- asking ---- */

static int ask(struct srun_step *st, const struct step_spec *p, const uint8_t *token, struct err *e) {
    struct step_request request = {.token = token, .n_token = TOKEN_SIZE, .job_id = st->job_id, .spec = p};
    return srun_call(st->s->job.c, WIRE_Controller_StepStart, &request, &st->reply, e);
}

/* First whether there is room now, so that a wait can be told; then until there is, or --immediate's time is over. */
static int ask_until_room(struct srun_step *st, struct step_spec *p, struct err *e) {
    struct srun *s = st->s;
    uint8_t token[TOKEN_SIZE];
    time_t end = s->immediate_secs ? time(NULL) + (time_t)s->immediate_secs - 1 : 0;
    spur_token(token);
    p->immediate = true;
    int rc = ask(st, p, token, e);
    if (rc != E_STEP_BUSY)
        return rc;
    p->immediate = false;
    bool was_told = false;
    time_t began = time(NULL); /* a job that has just begun is busy for a moment: not worth a word */
    while (rc == E_STEP_BUSY && (!end || time(NULL) < end)) {
        if (end) { /* in small steps: the controller's own patience is longer */
            struct timespec pause = {0, 100000000};
            nanosleep(&pause, NULL);
            p->immediate = true;
        }
        spur_token(token);
        rc = ask(st, p, token, e);
        if (rc == E_STEP_BUSY && !end && !was_told && !s->job.quiet)
            cli_say(s->job.c, "Job %u step creation temporarily disabled, retrying (%s)", st->job_id, e->text);
        was_told |= rc == E_STEP_BUSY;
    }
    if (!rc && st->reply.step && !s->job.quiet && (was_told || time(NULL) > began + 1)) {
        auto_str name = {0};
        srun_step_name(st->reply.step, &name);
        cli_say(s->job.c, "Step created for %s", str_text(&name));
    }
    return rc;
}

/* "jobid 107: nodes(3):`n[1-3]', cpu counts: 4(x2),1(x1)": tools read it. */
static void say_nodes(const struct srun_step *st) {
    const struct job *j = st->job;
    if (!j || !j->n_nodes)
        return;
    auto_str list = {0}, counts = {0};
    const char **name = xcalloc(j->n_nodes, sizeof(*name));
    for (uint32_t i = 0, same; i < j->n_nodes; i += same) {
        for (same = 0; i + same < j->n_nodes && j->nodes[i + same].cpus == j->nodes[i].cpus; same++)
            name[i + same] = j->nodes[i + same].name;
        str_addf(&counts, "%s%u(x%u)", i ? "," : "", j->nodes[i].cpus, same);
    }
    hostlist_compact(name, j->n_nodes, &list);
    cli_say(st->s->job.c, "jobid %u: nodes(%u):`%s', cpu counts: %s", st->job_id, j->n_nodes, str_text(&list), str_text(&counts));
    free(name);
}

/* More for a task than the job has for one. */
static void say_cpus(struct srun_step *st, const struct step_spec *p) {
    uint64_t of_job = 0;
    const char *text = getenv("SLURM_CPUS_PER_TASK");
    if (st->job && st->job->spec)
        of_job = st->job->spec->cpus_per_task_given;
    else if (text && str_to_u64(text, UINT32_MAX, &of_job))
        of_job = 0;
    if (of_job && p->cpus_per_task > of_job)
        cli_say(st->s->job.c, "Job step's --cpus-per-task value exceeds that of job (%u > %u). Job step may never run.",
                p->cpus_per_task, (uint32_t)of_job);
}

int srun_step_start(struct srun_step *st) {
    struct srun *s = st->s;
    struct cli *c = s->job.c;
    struct step_spec p;
    struct err e = {0};
    if (st->alloc && !st->job)
        st->job = srun_alloc_job(st->alloc);
    int rc = fill(st, &p);
    if (rc)
        return rc;
    rc = ask_until_room(st, &p, &e);
    if (rc == E_JOB_ID || (rc == E_JOB_DONE && !st->alloc))
        return no_job(st, rc, e.text);
    if (rc) {
        if (rc == E_STEP_TOO_BIG)
            say_cpus(st, &p);
        cli_error(c, "Unable to create step for job %u: %s", st->job_id, e.text);
        return rc == E_STEP_BUSY ? s->exit_immediate : s->exit_error;
    }
    if (!st->reply.step || st->reply.n_tickets != st->reply.step->n_nodes || !st->reply.n_tickets) {
        cli_error(c, "Unable to create step for job %u: %s", st->job_id, err_sentence(E_PROTOCOL));
        return s->exit_error;
    }
    if (st->reply.job)
        st->job = st->reply.job;
    if (s->job.verbose)
        say_nodes(st);
    return 0;
}

/* ---- streams ---- */

enum where { TO_US, NOWHERE, ONE_TASK, FILE_A_TASK, FILE_HERE };

/* Whether a pattern differs from task to task, or from node to node. */
static bool is_per_task(const char *text) {
    if (*text == '\\')
        return false;
    for (; *text; text++) {
        if (*text != '%')
            continue;
        text += 1 + strspn(text + 1, "0123456789");
        if (*text == 't' || *text == 'n' || *text == 'N')
            return true;
        if (!*text)
            break;
    }
    return false;
}

static enum where where(const char *text, uint32_t n_tasks, uint32_t *task) {
    uint64_t n;
    if (!text || !*text || strncasecmp(text, "all", 3) == 0)
        return TO_US;
    if (strcasecmp(text, "none") == 0)
        return NOWHERE;
    if (!str_to_u64(text, UINT32_MAX, &n) && n < n_tasks) {
        *task = (uint32_t)n;
        return ONE_TASK;
    }
    return is_per_task(text) ? FILE_A_TASK : FILE_HERE;
}

static char *name_of(struct srun_step *st, const char *pattern) {
    const struct step *step = st->reply.step;
    const struct job *j = st->job;
    struct name_facts f = {.job_id = st->job_id, .array_task_id = UINT32_MAX, .step_id = step->id,
                           .job_name = j && j->spec ? j->spec->name : NULL, .user = j && j->spec ? j->spec->user : NULL,
                           .node_name = step->n_nodes ? step->nodes[0].name : NULL, .work_dir = st->launch.work_dir};
    if (j && j->array) {
        f.array_job_id = j->array->job_id;
        f.array_task_id = j->array->task ? j->array->task - 1 : UINT32_MAX;
    }
    auto_str path = {0};
    output_name(pattern, &f, &path);
    return arena_strdup(&st->s->job.c->arena, str_text(&path));
}

static int open_output(struct srun_step *st, const char *pattern, const char *what, struct sink *k) {
    const char *path = name_of(st, pattern);
    int how = st->s->job.spec.open_mode == OPEN_APPEND ? O_APPEND : O_TRUNC;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | how, 0666);
    if (fd < 0) {
        cli_error(st->s->job.c, "Could not open %s file: %s", what, strerror(errno));
        return st->s->exit_error;
    }
    sink_open(k, fd);
    return 0;
}

static int settle_output(struct srun_step *st, uint32_t n_tasks, enum where *out) {
    struct srun *s = st->s;
    *out = where(s->output, n_tasks, &st->only_task[0]);
    switch (*out) {
    case FILE_HERE:
        return open_output(st, s->output, "stdout", &st->out);
    case ONE_TASK:
        st->only_task[0]++;
        sink_open(&st->out, STDOUT_FILENO);
        break;
    case NOWHERE:
    case FILE_A_TASK:
        st->launch.std_out = *out == NOWHERE ? "none" : s->output;
        st->is_out_dropped = true;
        break;
    case TO_US:
        sink_open(&st->out, STDOUT_FILENO);
        break;
    }
    return 0;
}

static int settle_error(struct srun_step *st, uint32_t n_tasks, enum where output) {
    struct srun *s = st->s;
    enum where error = where(s->error, n_tasks, &st->only_task[1]);
    if (!s->error && output == FILE_HERE) {
        st->is_err_with_out = true;
        return 0;
    }
    if (!s->error && output == ONE_TASK)
        st->only_task[1] = st->only_task[0];
    switch (error) {
    case FILE_HERE:
        if (output == FILE_A_TASK) /* as Slurm: made, and left empty */
            st->launch.std_err = NULL;
        return open_output(st, s->error, "stderr", &st->err);
    case FILE_A_TASK:
        st->launch.std_err = s->error;
        break;
    case NOWHERE:
        st->launch.std_err = "none";
        break;
    case ONE_TASK:
        st->only_task[1]++;
        break;
    case TO_US:
        break;
    }
    sink_open(&st->err, STDERR_FILENO);
    return 0;
}

static int settle_input(struct srun_step *st, uint32_t n_tasks) {
    struct srun *s = st->s;
    st->in_fd = STDIN_FILENO;
    st->in_task = STREAM_ALL_TASKS;
    uint32_t task = 0;
    switch (where(s->input, n_tasks, &task)) {
    case TO_US:
        break;
    case NOWHERE:
        st->launch.std_in = "none";
        st->in_fd = -1;
        break;
    case ONE_TASK:
        st->launch.std_in = s->input;
        st->in_task = task;
        break;
    case FILE_A_TASK:
        st->launch.std_in = s->input;
        st->in_fd = -1;
        break;
    case FILE_HERE:
        st->in_fd = open(name_of(st, s->input), O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (st->in_fd < 0) {
            cli_error(s->job.c, "Could not open stdin file: %s", strerror(errno));
            return s->exit_error;
        }
        break;
    }
    return 0;
}

static void settle_terminal(struct srun_step *st) {
    struct srun *s = st->s;
    uint32_t rows, columns;
    if (!s->pty)
        return;
    if (!srun_terminal_size(s->pty_fd, &rows, &columns)) {
        cli_error(s->job.c, "ioctl(TIOCGWINSZ): %s", strerror(errno));
        cli_error(s->job.c, "Not using a pseudo-terminal, disregarding --pty option");
        s->pty = false;
        return;
    }
    st->launch.pty = true;
    st->launch.rows = rows;
    st->launch.columns = columns;
    st->in_task = 0;
    st->only_task[0] = st->only_task[1] = 1;
}

int srun_step_streams(struct srun_step *st) {
    struct srun *s = st->s;
    struct cli *c = s->job.c;
    const struct step *step = st->reply.step;
    const struct job_spec *j = &s->job.spec;
    uint32_t n_tasks = 0;
    for (uint32_t i = 0; i < step->n_nodes; i++)
        n_tasks += step->nodes[i].n_ranks;
    struct stream_rlimit *limits = arena_calloc(&c->arena, MAX(j->n_rlimits, 1u), sizeof(*limits));
    for (uint32_t i = 0; i < j->n_rlimits; i++)
        limits[i] = (struct stream_rlimit){j->rlimits[i].name, j->rlimits[i].soft};
    auto_buf env = {0};
    extern char **environ;
    srun_env(s, (const char *const *)environ, &env);
    st->launch = (struct stream_launch){
        .argv = s->argv, .n_argv = s->n_argv, .env = arena_memdup(&c->arena, env.p, env.n), .n_env = (uint32_t)env.n,
        .work_dir = j->work_dir, .append = j->open_mode == OPEN_APPEND, .umask = j->umask, .rlimits = limits,
        .n_rlimits = j->n_rlimits, .kill_on_bad_exit = s->bad_exit == BAD_EXIT_KILLS, .submit_dir = s->job.cwd, .submit_host = j->submit_host,
        .cpu_bind = s->cpu_bind, .launch_address = spur_local_address(st->reply.tickets[0].place, &c->arena)};
    enum where output;
    int rc = settle_output(st, n_tasks, &output);
    rc = rc ? rc : settle_error(st, n_tasks, output);
    rc = rc ? rc : settle_input(st, n_tasks);
    if (!rc && s->multi_prog) {
        st->launch.n_multi_prog = n_tasks;
        rc = srun_multi_read(s, s->argv[0], n_tasks, &st->launch.multi_prog);
    }
    if (!rc)
        settle_terminal(st);
    return rc;
}
