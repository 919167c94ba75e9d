/* SPDX-License-Identifier: Apache-2.0
 *
 * sbatch --wait: the job's end, and the exit code that it makes.
 *
 * An array is over when all of its tasks are; its exit code is the highest of theirs. The record that has the array's id
 * may be over before other tasks are (it is one of them), so the others are looked for after each wait.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/sbatch.h"

#define AGAIN_SECS 1 /* between looks at tasks that have begun since */

static int exit_of(const struct job *j) {
    int status = (int)j->wait_status;
    if (j->state == JOB_COMPLETED)
        return 0;
    return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
}

static int say(struct sbatch *s, const char *text) {
    cli_error(s->c, "%s", text);
    return 1;
}

/* The controller has forgotten the job, because nobody could ask for a while, or it is one of many: the history knows
 * how it ended. *out_open: a task that is not over; 0: none. */
static int exit_from_history(struct sbatch *s, uint32_t job_id, uint32_t *out_open) {
    struct history_request request = {.job_ids = &job_id, .n_job_ids = 1};
    struct history_reply reply = {.is_cut = true};
    struct err e = {0};
    int exit_code = 0;
    uint32_t n = 0;
    *out_open = 0;
    while (reply.is_cut) {
        reply = (struct history_reply){0};
        if (cli_call(s->c, WIRE_Controller_History, &request, &reply, &e))
            return say(s, e.text);
        for (uint32_t i = 0; i < reply.n_jobs; i++) {
            const struct job *j = reply.jobs[i].job;
            if (!j)
                continue;
            n++;
            request.after_id = j->id;
            if (!job_is_over(j))
                *out_open = j->id;
            else
                exit_code = MAX(exit_code, exit_of(j));
        }
    }
    return n ? exit_code : say(s, err_sentence(E_JOB_ID));
}

/* Until the record of that id is over. A controller that is away for a while is waited for: the job goes on meanwhile.
 * E_JOB_ID: it is not known any more. */
static int wait_for(struct sbatch *s, uint32_t id, int *out_exit, struct err *e) {
    struct wait_request request = {.job_id = id};
    for (;;) {
        struct wait_reply reply = {0};
        arena_reset(&s->c->arena);
        int rc = cli_call(s->c, WIRE_Controller_Wait, &request, &reply, e);
        if (rc == E_UNREACHABLE || rc == E_DEADLINE || rc == E_BUSY || rc == E_NOT_LEADER || rc == E_STOPPING) {
            sleep(AGAIN_SECS);
            continue;
        }
        if (!rc && !reply.is_over)
            continue;
        if (!rc)
            *out_exit = reply.job ? exit_of(reply.job) : 1;
        return rc;
    }
}

/* ^C does not end this command, as Slurm's: what it returns shall be the job's exit code and no other. */
int sbatch_wait(struct sbatch *s, uint32_t job_id) {
    struct err e = {0};
    int exit_code = 1;
    uint32_t open = job_id;
    signal(SIGINT, SIG_IGN);
    int rc = wait_for(s, job_id, &exit_code, &e);
    if (rc && rc != E_JOB_ID)
        return say(s, e.text);
    if (!rc && !s->more.n_array_ranges)
        return exit_code;
    for (;;) {
        exit_code = exit_from_history(s, job_id, &open);
        if (!open)
            return exit_code;
        uint32_t waited = open;
        int ignored;
        rc = wait_for(s, waited, &ignored, &e);
        if (rc && rc != E_JOB_ID)
            return say(s, e.text);
    }
}
