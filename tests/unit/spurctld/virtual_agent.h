/* SPDX-License-Identifier: Apache-2.0
 *
 * Agents in a virtual world. A *vagent* is spurd's own rooms (table, report) on a virtual host, with runs that are only
 * numbers: what a script says on its line "# run MS exit CODE" is how long it runs and how it ends.
 *
 * A *vscript* is an agent of a test: a function that sees each call and says what becomes of it.
 */
#ifndef SPUR_TESTS_VIRTUAL_AGENT_H
#define SPUR_TESTS_VIRTUAL_AGENT_H

#include "core/model/job.h"
#include "virtual_host.h"
#include "wire/messages.h"
#include "wire/methods.h"

/* ---- real ones ---- */

struct vagent;
struct vagent *vagent_new(struct vworld *w, const char *name, uint32_t cpus, uint64_t mem_mb);
void vagent_free(struct vagent *a);
void vagent_start(struct vagent *a);
void vagent_stop(struct vagent *a);            /* the agent alone: its runs go on */
void vagent_reboot(struct vagent *a, bool forget); /* stopped, all runs die; forget: nothing of them is on its disk */
void vagent_cut(struct vagent *a, bool is_cut);
bool vagent_is_up(const struct vagent *a);
const char *vagent_name(const struct vagent *a);
uint32_t vagent_live(const struct vagent *a);  /* runs with processes */
uint32_t vagent_known(const struct vagent *a); /* runs that its table has, ended ones too */
/* The most CPUs that live runs ever held at once. */
uint32_t vagent_most_cpus(const struct vagent *a);
/* Each time a run comes to life, and when its script comes to its own end. */
enum vran { VRAN_BEGAN, VRAN_FINISHED };
typedef void (*vagent_ran_fn)(void *arg, const struct vagent *a, enum vran what, uint32_t job_id, uint32_t start_no,
                              bool is_batch, uint32_t wait_status);
void vagent_watch(struct vagent *a, vagent_ran_fn fn, void *arg);
/* Whether a live run of the job's script is here. */
bool vagent_runs_batch(const struct vagent *a, uint32_t job_id, uint32_t *out_start_no);

/* ---- scripted ones ---- */

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
