/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs on this node as the job table sees them: a struct of functions, so that the simulator can put runs of its own
 * behind the same table. steps_local_new gives the real ones: a directory and a step daemon each.
 *
 * All on the loop's thread. A run is named by run_key(job id, start number), a step of it by step_run_key.
 */
#ifndef SPUR_SPURD_STEPS_H
#define SPUR_SPURD_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "spurstepd/step.h"

/* 26 bits of job id (JOB_ID_MAX), 16 of start number, 22 of step id + 1 (0: the run itself). */
#define RUN_START_MAX 0xffffu
#define RUN_STEP_MAX 0x3ffffeu
static inline uint64_t run_key(uint32_t job_id, uint32_t start_no) {
    return (uint64_t)job_id << 38 | (uint64_t)(start_no & RUN_START_MAX) << 22;
}
static inline uint64_t step_run_key(uint32_t job_id, uint32_t start_no, uint32_t step_id) {
    return run_key(job_id, start_no) | (step_id + 1);
}
static inline uint32_t run_job(uint64_t key) {
    return (uint32_t)(key >> 38);
}
static inline uint32_t run_start_no(uint64_t key) {
    return (uint32_t)(key >> 22) & RUN_START_MAX;
}
static inline uint32_t run_step(uint64_t key) { /* step id + 1; 0: no step */
    return (uint32_t)key & 0x3fffff;
}
static inline uint64_t run_of_step(uint64_t key) {
    return key & ~(uint64_t)0x3fffff;
}
/* "job 12 start 1", "job 12 start 1 step 0": for logs. */
struct run_name {
    char text[64];
};
struct run_name run_name(uint64_t key);

/* What is told about runs; borrowed for the call. */
struct steps_events {
    void *arg;
    /* Nothing of the run lives any more. Once a run, after its start was answered with success or it was found. */
    void (*ended)(void *arg, uint64_t key, const struct step_result *result);
};

/* A run that was there when the agent started. */
struct steps_found {
    uint64_t key;
    uint32_t uid, pid;
    uint32_t kill_wait_ms;
    bool everywhere; /* the job's other nodes run its script too */
    int64_t forgotten_unix; /* not 0: it ended, was reported and forgotten then; nothing else of it is known */
};

typedef void (*steps_started_fn)(void *arg, int code, const struct err *why, uint32_t pid, uint32_t kill_wait_ms);

struct steps {
    void *impl;
    /* Finds what an earlier life of this agent left behind; blocks. Ends are told afterwards, through the events. */
    void (*find)(void *impl, void (*fn)(void *arg, const struct steps_found *found), void *arg);
    /* Starts a run from the bytes of its launch_request, a step from those of its stream_open (taken). `fn` is called exactly once, not before this returns:
     * with 0 when the run is on disk and its daemon lives. A run that was answered with an error never runs. */
    void (*start)(void *impl, uint64_t key, struct buf request, steps_started_fn fn, void *arg);
    /* Of started or found runs; of no effect on one that is ending. signal: 0, or E_NOT_FOUND when nobody can be asked
     * (most often: it is ending). terminate is not lost: a step daemon that is out of reach hears it later. */
    int (*signal)(void *impl, uint64_t key, const struct step_signal *s);
    int (*terminate)(void *impl, uint64_t key, const struct step_terminate *t);
    /* All of it stands still, or goes on. 0 or E_NOT_FOUND, as signal. */
    int (*suspend)(void *impl, uint64_t key, bool resume);
    /* The end was reported: all traces go, but that it was. A step's may stay until its client has all. */
    void (*forget)(void *impl, uint64_t key);
    /* That it was may be forgotten as well. */
    void (*purge)(void *impl, uint64_t key);
};

#endif
