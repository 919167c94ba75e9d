/* SPDX-License-Identifier: Apache-2.0
 *
 * What the requests that steer jobs have in common, for the files of this folder: those that the asker may not touch are
 * answered one by one; the others become one command.
 */
#ifndef SPUR_SPURCTLD_ADMIT_STEERING_H
#define SPUR_SPURCTLD_ADMIT_STEERING_H

#include "base/vec.h"
#include "spurctld/admit/admit.h"

#define STEER_IDS_MAX 100000u

struct steering {
    struct room *room;
    struct arena arena;
    struct who who;
    VEC(struct job_result) results; /* of what was refused here, or done without a command */
    VEC(uint32_t) ids;              /* those that go into the command */
    VEC(struct job_target) targets; /* likewise; their tasks are in the arena */
    admit_fn done;
    void *arg;
};

struct steering *steering_new(struct room *r, const struct who *who, admit_fn done, void *arg);
void steering_finish(struct steering *st, int code, const struct err *why); /* with the results so far; frees it */

void steering_result(struct steering *st, const struct job_target *t, int code);
/* A target as it was asked for: into the command, or among the refused. `denied`: what others than its owner are told. */
void steering_take(struct steering *st, const struct job *j, const struct job_target *t, int denied);
/* All of a request. */
void steering_take_all(struct steering *st, const uint32_t *ids, uint32_t n_ids, const struct job_target *targets,
                       uint32_t n_targets, int denied);
/* Proposes, and finishes with the answer's items; with nothing to propose it finishes at once. `cmd` holds ids and targets
 * in that order. */
void steering_propose(struct steering *st, enum command c, const void *cmd, const uint8_t *token, uint32_t n_token);

/* Too many of them, or a bad list of tasks. */
int steering_check(uint32_t n_ids, const struct job_target *targets, uint32_t n_targets, struct err *e);

#endif
