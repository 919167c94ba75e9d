/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions: a view goes to a worker, the encoded reply comes back. Nothing here changes anything. What one user may see
 * of another's jobs is decided here.
 */
#ifndef SPUR_SPURCTLD_QUERY_H
#define SPUR_SPURCTLD_QUERY_H

#include "spurctld/room.h"
#include "wire/messages.h"

/* code 0: the encoded reply record (borrowed for the call). */
typedef void (*query_fn)(void *arg, int code, const struct err *why, const void *reply, size_t n);

void query_jobs(struct room *r, const struct who *who, const struct jobs_request *req, query_fn done, void *arg);
void query_nodes(struct room *r, query_fn done, void *arg);
void query_script(struct room *r, const struct who *who, uint32_t job_id, query_fn done, void *arg);
void query_why(struct room *r, const struct why_request *req, query_fn done, void *arg);
void query_history(struct room *r, const struct who *who, const struct history_request *req, query_fn done, void *arg);

/* Waiters for the end of a job (sbatch --wait). query_wait answers when it is over, or after 20 s with is_over false. */
struct query *query_new(struct room *r);
void query_free(struct query *q); /* open waits are answered with E_STOPPING */
void query_wait(struct query *q, const struct who *who, uint32_t job_id, query_fn done, void *arg);
/* Whoever asked with this arg has gone: what still waits is answered with E_CANCELLED. */
void query_leave(struct query *q, uint32_t job_id, void *arg);
void query_on_event(struct query *q, const struct event *ev);
/* The client of an interactive job, or of a step, is there: noted, and answered when the state of what it names is another
 * than the one it has seen, or after 10 s. */
void query_attend(struct query *q, const struct who *who, const struct attend_request *req, query_fn done, void *arg);

const char *const *query_words(struct arena *a, const char *const *words, uint32_t n); /* a copy */
/* The steps of the job that the state has, ascending; in the arena. */
const struct step *query_steps(const struct view *v, const struct job *j, bool with_ended, struct arena *a,
                               uint32_t *out_n);

/* What `who` may see of the job: itself, or a copy (in the arena) that does not say where script and environment are. */
const struct job *query_visible(const struct who *who, const struct job *j, struct arena *a, bool *out_is_yours);
/* The job, or a copy as its partitions have it: those in which it waits by PriorityTier; with whom a run shares its nodes. */
const struct job *query_in_parts(const struct view *v, const struct job *j, struct arena *a);

#endif
