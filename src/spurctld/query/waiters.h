/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions that wait for something to happen to a job, for the files of this folder.
 */
#ifndef SPUR_SPURCTLD_QUERY_WAITERS_H
#define SPUR_SPURCTLD_QUERY_WAITERS_H

#include "base/map.h"
#include "spurctld/query/query.h"

#define WAITERS_MAX 20000u

struct waiter {
    struct query *q;
    struct waiter *next, *prev; /* of the same job */
    struct who who;
    uint32_t job_id;
    uint32_t step_id;  /* attend: + 1; 0: the job */
    bool is_attending; /* else it waits for the end */
    bool is_ended;     /* attend: the step was over when it was asked for */
    char *seen;        /* attend: the state that the client knows */
    struct host_timer *timer;
    query_fn done;
    void *arg;
};

struct query {
    struct room *room;
    struct map64 waiters; /* job id → the first struct waiter */
    size_t n_waiters;
};

/* Into the list; the timer runs out with `on_time`. NULL, and refused, where there are too many. */
struct waiter *waiter_add(const struct waiter *w, uint64_t wait_ms, void (*on_time)(void *arg));
void waiter_drop(struct waiter *w);
void waiter_refuse(query_fn done, void *arg, int code);

/* Answers if there is something new. */
void attend_look(struct waiter *w);

#endif
