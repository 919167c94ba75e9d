/* SPDX-License-Identifier: Apache-2.0
 *
 * srun: a step of the job around it, or of a job of its own that lives as long as the step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/srun.h"

#define ATTEND_LATER_MS 3000 /* a step that ends before it has no need of it */

/* The step was granted and can't be run: the room is given back. */
static void give_up_step(struct srun_step *st) {
    struct err e = {0};
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    struct step_ref ref = {.job_id = st->job_id, .step_id = st->reply.step->id};
    struct cancel_request request = {.token = token, .n_token = sizeof(token), .steps = &ref, .n_steps = 1};
    struct results reply = {0};
    if (srun_call(st->s->job.c, WIRE_Controller_Cancel, &request, &reply, &e))
        cli_error(st->s->job.c, "Can't end the step: %s", e.text);
}

/* Signals are ours from the moment on that there is a step; before that they simply end this process. */
static int run_step(struct srun_step *st, struct spur_attend *attend, int signal_fd, uint32_t *out_status) {
    int rc = srun_step_start(st);
    if (rc)
        return rc;
    if (signal_fd < 0)
        signal_fd = srun_signals();
    rc = srun_step_streams(st);
    if (rc) {
        give_up_step(st);
        return rc;
    }
    uint32_t step_id = st->reply.step->id;
    if (attend)
        spur_attend_step(attend, step_id);
    else
        attend = spur_attend_start(st->job_id, false, step_id + 1, ATTEND_LATER_MS);
    return srun_run(st, attend, signal_fd, out_status);
}

static int run_inside(struct srun *s) {
    struct srun_step st = {.s = s, .job_id = s->job_id, .out.fd = -1, .err.fd = -1, .in_fd = -1};
    return run_step(&st, NULL, -1, NULL);
}

static int run_alone(struct srun *s) {
    struct srun_alloc a = {.s = s, .signal_fd = srun_signals()};
    int rc = srun_alloc_get(&a);
    if (rc || s->job.test_only) {
        srun_alloc_fini(&a);
        return rc;
    }
    struct srun_step st = {.s = s, .job_id = a.job_id, .alloc = &a, .out.fd = -1, .err.fd = -1, .in_fd = -1};
    uint32_t status = 0;
    rc = run_step(&st, a.attend, a.signal_fd, &status);
    srun_alloc_end(&a, rc && !status ? (uint32_t)rc << 8 : status);
    srun_alloc_fini(&a);
    return rc;
}

int cmd_srun(struct cli *c) {
    struct srun s = {.job = {.c = c}, .kind = "srun"};
    struct opt_run r;
    struct err e = {0};
    int rc = 255;
    opt_init(&r, cmd_srun_options(), c->prog, &s);
    bool ok = opt_scan(&r, c->argc - 1, (const char *const *)c->argv + 1);
    size_t typed = r.items.n;
    if (ok) {
        const char *around = srun_env_get("SLURM_JOB_ID");
        s.is_inside = around && *around;
        opt_scan_env(&r, srun_env_get);
        s.job.level = 1;
        ok = opt_apply(&r, typed, r.items.n);
        s.job.level = 2;
        ok = ok && opt_apply(&r, 0, typed);
    }
    if (!ok || !cli_clusters(c, &r, false)) {
        rc = ok ? 1 : cli_stop(&r);
        opt_fini(&r);
        return rc;
    }
    if (s.job.verbose)
        cli_defined(c, &r);
    s.job.more.interactive = !s.is_inside;
    if (!r.words.n) {
        cli_say(c, "fatal: No command given to execute.");
        rc = 1;
    } else if (!srun_settle(&s, &r)) {
        rc = 1;
    } else if (sbatch_facts(&s.job, &e)) {
        cli_error(c, "%s", e.text);
        rc = 1;
    } else {
        rc = s.is_inside ? run_inside(&s) : run_alone(&s);
    }
    opt_fini(&r);
    return rc;
}
