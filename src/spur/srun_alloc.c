/* SPDX-License-Identifier: Apache-2.0
 *
 * An interactive job: submitted, waited for, and ended with its client. What is said on the way are Slurm's lines, which
 * differ a little between srun and salloc.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/hint.h"
#include "spur/srun.h"

#define QUIET_MS 400 /* a job that starts so soon was not queued, for people */

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool srun_alloc_is_salloc(const struct srun_alloc *a) {
    return str_eq(a->s->kind, "salloc");
}

const struct job *srun_alloc_job(const struct srun_alloc *a) {
    return a->heard && a->heard->job ? a->heard->job->job : NULL;
}

void srun_alloc_fini(struct srun_alloc *a) {
    rec_free(a->heard);
    a->heard = NULL;
}

bool srun_alloc_hear(struct srun_alloc *a, struct spur_news *n) {
    if (n->code)
        return n->code != E_JOB_ID;
    if (n->reply && n->reply->job && n->reply->job->job) {
        rec_free(a->heard);
        a->heard = take_ptr(&n->reply);
    }
    rec_free(n->reply);
    n->reply = NULL;
    const struct job *j = srun_alloc_job(a);
    return !j || (j->state < JOB_COMPLETED && !j->completing && !(j->kill_ms && j->state != JOB_PENDING));
}

/* ---- submitting ---- */

static void complain(const struct srun_alloc *a, int code, const char *text) {
    struct cli *c = a->s->job.c;
    const char *sentence = err_sentence(code), *last = strrchr(text, '\n');
    if (last) { /* what is wrong in lines of their own, the last one says why the job was not taken */
        for (const char *at = text; at < last; at += strcspn(at, "\n") + 1)
            cli_error(c, "%s", arena_strndup(&c->arena, at, strcspn(at, "\n")));
        text = last + 1;
    } else if ((code == E_NODES_UNAVAIL || code == E_TOO_MANY_CPUS) && !str_eq(text, sentence)) {
        cli_error(c, "%s", text);
        text = sentence;
    } else if (code == E_PARTITION && a->s->job.spec.partition) {
        cli_error(c, "invalid partition specified: %s", a->s->job.spec.partition);
    }
    if (srun_alloc_is_salloc(a) && code != E_NODES_UNAVAIL && code != E_TOO_MANY_CPUS)
        cli_error(c, "Job submit/allocate failed: %s", text);
    else
        cli_error(c, "Unable to allocate resources: %s", text);
    hint_refused_job(c, code, &a->s->job.spec);
}

/* --test-only: when and where. */
static void say_test(const struct srun *s, const struct submit_reply *reply) {
    auto_str when = {0}, nodes = {0};
    cli_time(reply->start_unix, "Unknown", &when);
    hostlist_compact(reply->nodes, reply->n_nodes, &nodes);
    cli_say(s->job.c, "Job %u to start at %s a using %u processors on nodes %s in partition %s", reply->job_id,
            str_text(&when), reply->n_cpus, str_text(&nodes), reply->partition ? reply->partition : "(null)");
}

static int submit(struct srun_alloc *a) {
    struct srun *s = a->s;
    struct cli *c = s->job.c;
    struct err e = {0};
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    struct submit_request request = {.token = token, .n_token = sizeof(token), .spec = &s->job.spec,
                                     .test_only = s->job.test_only};
    struct submit_reply reply = {0};
    int rc = srun_call(c, WIRE_Controller_Submit, &request, &reply, &e);
    if (rc) {
        complain(a, rc, e.text);
        return s->exit_error;
    }
    for (uint32_t i = 0; i < reply.n_warnings && !s->job.quiet; i++)
        cli_say(c, "warning: %s", reply.warnings[i]);
    a->job_id = reply.job_id;
    if (s->job.test_only)
        say_test(s, &reply);
    return 0;
}

/* ---- waiting ---- */

/* What is in its way that won't go by itself; NULL: nothing of that kind. */
static const char *hindrance(struct srun_alloc *a) {
    struct jobs_request request = {.job_ids = &a->job_id, .n_job_ids = 1};
    struct jobs_reply reply = {0};
    struct err e = {0};
    if (srun_call(a->s->job.c, WIRE_Controller_Jobs, &request, &reply, &e) || !reply.n_jobs)
        return NULL;
    switch (reply.jobs[0].reason) {
    case REASON_PARTITION_CONFIG:
    case REASON_PARTITION_NODES:
        return "Requested partition configuration not available now";
    case REASON_NODES_UNAVAIL:
        return "Required node not available (down, drained or reserved)";
    default:
        return NULL;
    }
}

static void say_queued(struct srun_alloc *a) {
    const struct cli *c = a->s->job.c;
    const struct job *j = srun_alloc_job(a);
    if (a->was_queued)
        return;
    a->was_queued = true;
    if (a->s->job.quiet)
        return;
    const char *why = j && j->hold ? "Job is in held state, pending scheduler release" : hindrance(a);
    if (why)
        cli_say(c, "%s", why);
    if (srun_alloc_is_salloc(a))
        cli_say(c, "Pending job allocation %u", a->job_id);
    cli_say(c, "job %u queued and waiting for resources", a->job_id);
}

static void say_revoked(const struct srun_alloc *a) {
    if (!a->s->job.quiet)
        cli_say(a->s->job.c, "Job allocation %u has been revoked%s", a->job_id, srun_alloc_is_salloc(a) ? "." : "");
}

/* The job ended while it waited. */
static int lost(struct srun_alloc *a) {
    const struct cli *c = a->s->job.c;
    bool salloc = srun_alloc_is_salloc(a);
    if (salloc)
        say_revoked(a);
    if (!a->s->job.quiet)
        cli_say(c, "Job has been cancelled");
    cli_error(c, "%s: %s", salloc ? "Job submit/allocate failed" : "Unable to allocate resources",
              err_sentence(E_JOB_DONE));
    return a->s->exit_error;
}

static int interrupted(struct srun_alloc *a) {
    srun_alloc_cancel(a);
    if (srun_alloc_is_salloc(a) && !a->s->job.quiet)
        cli_say(a->s->job.c, "Job aborted due to signal");
    say_revoked(a);
    return a->s->exit_error;
}

/* --immediate, and there was no room in time. */
static int too_late(struct srun_alloc *a) {
    bool was_queued = a->was_queued, salloc = srun_alloc_is_salloc(a);
    srun_alloc_cancel(a);
    cli_error(a->s->job.c, "Unable to allocate resources: %s",
              salloc && was_queued ? "Connection timed out" : err_sentence(E_NODES_BUSY));
    if (salloc && was_queued)
        say_revoked(a);
    return a->s->exit_immediate;
}

static bool is_there(const struct job *j) {
    return j && j->state == JOB_RUNNING && !j->configuring && !j->completing;
}

static int wait_for_nodes(struct srun_alloc *a) {
    struct srun *s = a->s;
    int64_t begin = now_ms(), say_at = begin + QUIET_MS, late = INT64_MAX;
    if (s->immediate_secs)
        late = begin + MAX((int64_t)(s->immediate_secs - 1), (int64_t)1) * 1000;
    if (s->immediate_secs == 2 || s->immediate_secs == 1) /* "at once": nothing is said of a queue */
        say_at = INT64_MAX;
    while (!is_there(srun_alloc_job(a))) {
        const struct job *j = srun_alloc_job(a);
        int64_t now = now_ms();
        bool waits = j && j->state == JOB_PENDING;
        if (waits && now >= say_at)
            say_queued(a);
        if (waits && now >= late)
            return too_late(a);
        int64_t next = a->was_queued || !waits ? late : MIN(late, say_at);
        int timeout = next == INT64_MAX ? -1 : (int)MIN(MAX(next - now, (int64_t)0), (int64_t)60000);
        if (!waits)
            timeout = -1;
        struct pollfd fds[2] = {{.fd = a->signal_fd, .events = POLLIN},
                                {.fd = spur_attend_fd(a->attend), .events = POLLIN}};
        poll(fds, 2, timeout);
        for (int signo; (signo = srun_signal_next(a->signal_fd));)
            if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT)
                return interrupted(a);
        struct spur_news news;
        while (spur_attend_take(a->attend, &news))
            if (!srun_alloc_hear(a, &news))
                return lost(a);
    }
    if (a->was_queued && !s->job.quiet)
        cli_say(s->job.c, "job %u has been allocated resources", a->job_id);
    return 0;
}

int srun_alloc_get(struct srun_alloc *a) {
    int rc = submit(a);
    if (rc || a->s->job.test_only)
        return rc;
    if (a->s->job.verbose)
        cli_say(a->s->job.c, "JobId=%u returned by the controller", a->job_id);
    a->attend = spur_attend_start(a->job_id, true, 0, 0);
    return wait_for_nodes(a);
}

/* ---- the end ---- */

static void cancel(struct srun_alloc *a, uint32_t complete) {
    struct err e = {0};
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    struct cancel_request request = {.token = token, .n_token = sizeof(token), .job_ids = &a->job_id, .n_job_ids = 1,
                                     .complete = complete};
    struct results reply = {0};
    int rc = srun_call(a->s->job.c, WIRE_Controller_Cancel, &request, &reply, &e);
    if (rc)
        cli_error(a->s->job.c, "Can't end job %u: %s", a->job_id, e.text);
}

void srun_alloc_cancel(struct srun_alloc *a) {
    cancel(a, 0);
}

void srun_alloc_end(struct srun_alloc *a, uint32_t wait_status) {
    cancel(a, wait_status + 1);
}
