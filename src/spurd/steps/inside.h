/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of steps_local share: local.c (its life, requests), follow.c (connections, ends), start.c (starts).
 */
#ifndef SPUR_SPURD_STEPS_INSIDE_H
#define SPUR_SPURD_STEPS_INSIDE_H

#include "base/map.h"
#include "io/loop/loop.h"
#include "spurd/steps/conn.h"
#include "spurd/steps/local.h"
#include "spurd/steps/program.h"
#include "spurd/steps/rundir.h"

struct one {
    struct steps_local *owner;
    uint64_t key;
    struct conn *conn;         /* NULL: not connected */
    struct loop_timer *timer;
    bool has_term;             /* its end was asked for: said again to each new connection */
    struct step_terminate term;
    char *term_why;
    bool in_pool;              /* a task of it is under way */
    bool is_over;              /* the end was told */
    bool is_forgotten;         /* of a step: goes when its daemon does */
};

/* What is in the pool, or on its way back. When the loop is stopped nothing comes back: then it is freed from here. */
struct task {
    struct steps_local *s;
    struct task *next, **at;
    void (*free)(struct task *t);
};

struct steps_local {
    struct loop *loop;
    struct pool *pool;
    struct steps_local_conf conf;
    struct steps_events events;
    struct steps steps;
    struct program *program;
    struct map64 runs; /* struct one */
    struct task *tasks;
    bool stopped;
};

void steps_task_run(struct steps_local *s, struct task *t, void (*fn)(void *arg), void (*done)(void *arg));
void steps_task_free(struct task *t);

struct one *steps_one_new(struct steps_local *s, uint64_t key);
void steps_one_free(struct one *o);
/* Connects to a run's daemon; finds out what became of the run where there is none. */
void steps_attach(struct one *o);
void steps_forget_now(struct one *o); /* all traces, but that it was */
void steps_start(void *impl, uint64_t key, struct buf request, steps_started_fn fn, void *arg); /* struct steps' start */

#endif
