/* SPDX-License-Identifier: Apache-2.0
 *
 * A view: the state at one log index, as its readers get it. Read only, valid until it is given back to whoever took
 * it; may be read on any thread. Taking one is core/state's (state_view); readers need nothing but this header.
 */
#ifndef SPUR_CORE_MODEL_VIEW_H
#define SPUR_CORE_MODEL_VIEW_H

#include <stdint.h>

#include "base/cow.h"
#include "core/model/cluster.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/step.h"

struct view {
    uint64_t index;
    uint64_t digest;
    const struct cow_root *jobs;  /* by job id */
    const struct cow_root *nodes; /* by node id */
    const struct cow_root *parts; /* by partition id */
    const struct cow_root *tokens;
    const struct cow_root *steps; /* by step_key */
    struct counters counters;
    const struct cluster *cluster; /* never NULL; cluster->conf is NULL before the first configuration */
    uint64_t pin;                  /* of the state that it was taken of, */
    void *owner;                   /* which is kept for as long as this is out */
};

static inline const struct job *view_job(const struct view *v, uint32_t id) {
    return cow_get(v->jobs, id);
}
static inline const struct node *view_node(const struct view *v, uint32_t id) {
    return cow_get(v->nodes, id);
}
/* Loops in ascending order: for (uint64_t k = 0; (j = view_next_job(v, &k)); k++) */
static inline const struct job *view_next_job(const struct view *v, uint64_t *key) {
    return cow_next(v->jobs, key);
}
static inline const struct node *view_next_node(const struct view *v, uint64_t *key) {
    return cow_next(v->nodes, key);
}
static inline const struct part *view_next_part(const struct view *v, uint64_t *key) {
    return cow_next(v->parts, key);
}
static inline const struct step *view_step(const struct view *v, uint32_t job_id, uint32_t step_id) {
    return cow_get(v->steps, step_key(job_id, step_id));
}
/* The steps of a job, ascending: k starts at step_key(job_id, 0); stop where s->job_id differs. */
static inline const struct step *view_next_step(const struct view *v, uint64_t *key) {
    return cow_next(v->steps, key);
}
const struct part *view_find_part(const struct view *v, const char *name); /* NULL: none */
const struct node *view_find_node(const struct view *v, const char *name); /* linear; NULL: none */

#endif
