/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two files of replay share.
 */
#ifndef SPUR_TESTS_DETERMINISM_REPLAY_H
#define SPUR_TESTS_DETERMINISM_REPLAY_H

#include <stdio.h>

#include "core/state/state.h"

#define NODES 12

struct replay {
    struct state *s, *twin;
    struct applied r, r_twin;
    uint64_t rng, index, n_refused, answers;
    int64_t now_ms;
    bool checking;
    FILE *log; /* NULL: none */
    uint64_t seen[32]; /* events, by kind */
    uint8_t token[COMMAND_TOKEN_SIZE];
};

uint64_t draw(struct replay *x, uint64_t below);
const char *word(struct replay *x, struct arena *a);
void act(struct replay *x, enum command c, const void *record);
const struct job *some_job(struct replay *x);
const struct job *some_run(struct replay *x); /* mostly one that holds nodes, if there is any */

/* steer.c */
void some_more(struct replay *x, struct arena *a, struct job_more *out);
void start(struct replay *x, struct arena *a);
void steer(struct replay *x, struct arena *a);

#endif
