/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold in every run, whatever happens to it.
 *
 * After every step: what two members' logs have at one index and term is the same; one leader a term; all members apply
 * the same entries in the same order and come to the same digest at each; what was acknowledged is on the disks of a majority.
 * A script is begun once for each (job, start number), whatever is repeated and forgotten. No node has more given away than it has
 * (and the state's own invariants: vctl_apply). At the end: judge_history and the cluster's own checks.
 */
#ifndef SPUR_SIM_JUDGE_H
#define SPUR_SIM_JUDGE_H

#include "base/vec.h"
#include "sim/agent.h"
#include "sim/member.h"

struct committed {
    uint64_t index, term, hash, digest;
    struct buf bytes;
};

struct run_end { /* a script that came to its own end */
    uint32_t job_id, start_no, wait_status;
};

struct judge {
    struct vworld *world;
    struct smember **members;
    uint32_t n_members;
    VEC(struct committed) log; /* in the order of their indexes, of all that was ever applied anywhere */
    size_t place[8];           /* of each member: how many of them it has applied since it started */
    uint64_t acked;            /* the last index that a proposer was told */
    struct map64 entries;      /* log matching: index and term → hash of what is there */
    struct map64 leaders;      /* term → member */
    struct map64 begun;        /* job and start number */
    struct map64 roots;        /* jobs and arrays that ended in the log; judge_history fills it */
    VEC(struct run_end) ends;
    uint64_t hash;             /* of the run so far */
    uint64_t n_terms, n_restores, n_crashes;
    bool is_loud;              /* prints what happens */
};

struct smember_watch judge_watch(struct judge *j);
void judge_ran(void *arg, const struct vagent *a, enum vran what, uint32_t job_id, uint32_t start_no, bool is_batch,
               uint32_t wait_status);
void judge_started(struct judge *j, const struct smember *m); /* from the beginning of its log again */
uint64_t judge_committed(const struct judge *j);              /* the last index that was applied anywhere */
/* The run's trace goes on by this; with `is_loud` it is printed too. */
void judge_note(struct judge *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ends the process. */
void judge_fail(const struct judge *j, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
/* Each member's history has one row of each life of a job that ended, with its last record; what it says happened. */
void judge_history(struct judge *j);
void judge_fini(struct judge *j);

#endif
