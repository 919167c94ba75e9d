/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent of a test: a function that sees each call and says what becomes of it.
 */
#ifndef SPUR_TESTS_SCRIPT_AGENT_H
#define SPUR_TESTS_SCRIPT_AGENT_H

#include "core/model/job.h"
#include "sim/world.h"
#include "wire/messages.h"
#include "wire/methods.h"

struct vanswer {
    int code;
    const char *text;
    bool never; /* no answer: the caller's time runs out */
    bool is_taken; /* all the same: of a launch, the run is there */
};
struct vscript;
/* `q` is the decoded request. */
typedef struct vanswer (*vscript_fn)(void *ctx, struct vscript *s, enum wire_method m, const void *q);
struct vscript {
    struct vworld *world;
    char name[64], address[64], boot[8];
    vscript_fn fn;
    void *ctx;
    uint32_t cpus;
    uint64_t mem_mb;
    uint32_t n_launches, n_terminates, n_signals, n_suspends, n_resumes; /* as they came */
    uint32_t n_step_ends;                        /* those of the Terminates that name a step */
    uint32_t ended_step;                         /* of the last of them */
    struct signal_request signal;                /* the last one; only its numbers */
    uint32_t launch_task;                        /* + 1: of the last launch's array */
    struct launch_request launch;                 /* the last one; only its numbers */
    char why[64];                                 /* of the last Terminate */
    uint32_t kill_wait_secs;
    struct run_ref runs[16]; /* launched and not yet ended */
    uint32_t n_runs;
};
void vscript_forget(struct vscript *s, uint32_t job_id, uint32_t start_no); /* the run is over */
void vscript_init(struct vscript *s, struct vworld *w, const char *name, vscript_fn fn, void *ctx);
void vscript_fini(struct vscript *s);

#endif
