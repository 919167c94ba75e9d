/* SPDX-License-Identifier: Apache-2.0
 *
 * History: every member writes what ended, jobs and steps, to its own SQLite, from its own applied entries.
 *
 * The index of the last entry whose rows are in is written in the same transaction, so that after any crash rows are
 * there exactly once: events at or before that index are left out when the log is read again, and jobs of a restored
 * snapshot that ended behind it are written once more. A job leaves the state only when its row is safe.
 */
#ifndef SPUR_SPURCTLD_ACCT_H
#define SPUR_SPURCTLD_ACCT_H

#include "spurctld/room.h"

/* Opens (and makes) the file. Blocks; at start only. */
int acct_open(struct room *r, const char *path, struct acct **out, struct err *e);
void acct_close(struct acct *a); /* writes what waits, then closes; blocks. Takes NULL */

void acct_on_event(struct acct *a, uint64_t index, const struct event *ev);
/* What a job was until this entry queued it again; copied. */
void acct_on_life(struct acct *a, uint64_t index, const struct job *life);
void acct_restored(struct acct *a); /* the state came from a snapshot: look for ends that have no row */

/* Every end at or before this index has its row on disk. */
uint64_t acct_flushed_index(const struct acct *a);
/* Calls fn when acct_flushed_index has reached `index`; perhaps at once. */
void acct_when_flushed(struct acct *a, uint64_t index, void (*fn)(void *arg), void *arg);

/* From now on no row of a later entry goes into the file; fn once it has all up to now, and nobody writes: it may be copied.
 * Rows wait in memory until acct_release. E_BUSY: somebody has it already. */
int acct_hold(struct acct *a, void (*fn)(void *arg), void *arg, struct err *e);
void acct_release(struct acct *a);
/* Another member's file takes the place of ours, whole or not at all; rows that wait are of entries that it has. `done`
 * once, later. E_BUSY: readers hold the old one; try again. */
void acct_replace(struct acct *a, const char *from, void (*done)(void *arg, int code, const struct err *why), void *arg);

/* For query, on a worker: reads with a handle of its own. Calls `row` for each job record that fits, ascending by id, with
 * the steps that it had; false stops. The records are valid for the call. */
#define ACCT_STEPS_MOST 10000u /* of one job that are shown */
struct acct_filter {
    const uint32_t *job_ids; /* of jobs, or of arrays: all their tasks */
    uint32_t n_job_ids;
    const char *const *users; /* none: all */
    uint32_t n_users;
    const char *const *sluids; /* none: any */
    uint32_t n_sluids;
    int64_t since_unix, until_unix; /* 0: no bound */
    uint32_t after_id;
    uint32_t limit;
};
typedef bool (*acct_row_fn)(void *arg, const struct job *j, const struct step *steps, uint32_t n_steps);
int acct_read(const char *path, const struct acct_filter *f, acct_row_fn row, void *arg, struct err *e);
/* The steps that a job (of that second id) had, for one that the state still has: those that it let go already. */
int acct_read_steps(const char *path, uint32_t job_id, const char *sluid, void (*step)(void *arg, const struct step *s),
                    void *arg, struct err *e);
bool acct_is_out(const struct acct *a); /* a worker has a batch */
const char *acct_path(const struct acct *a);

struct acct_stats {
    uint64_t rows, batches, waiting, failures, max_us;
};
struct acct_stats acct_stats(const struct acct *a);

#endif
