/* SPDX-License-Identifier: Apache-2.0
 *
 * A state that is driven by commands alone, with all invariants checked after each.
 */
#ifndef SPUR_TESTS_CORE_STATE_RIG_H
#define SPUR_TESTS_CORE_STATE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/state/state.h"

struct rig {
    struct state *s;
    struct applied r;
    uint64_t index;
    int64_t now_ms;
    uint32_t uid;
    struct answer answer;
    struct arena arena;
};

void rig_init(struct rig *g);
void rig_fini(struct rig *g); /* also: a state from its snapshot is the same */
int act(struct rig *g, enum command c, const void *cmd);
/* The code of the answer's only item, or of the refused command. */
int act1(struct rig *g, enum command c, const void *cmd);
const struct job *job_of(struct rig *g, uint32_t id);
const struct node *node_of(struct rig *g, uint32_t id);
const struct step *step_of(struct rig *g, uint32_t job_id, uint32_t id);
uint32_t next_id(struct rig *g);
bool saw(const struct rig *g, enum event_kind kind, uint32_t job_id);
void config(struct rig *g, struct rconf conf); /* cluster name and a partition "p" are filled in where missing */

uint32_t add_node(struct rig *g, const char *name, uint32_t cpus, const struct gres *gres, uint32_t n_gres);
int submit_spec(struct rig *g, uint32_t id, struct job_spec spec);
int submit(struct rig *g, uint32_t id);
int submit_dep(struct rig *g, uint32_t id, struct dep dep, const struct job_more *more);
int submit_array(struct rig *g, uint32_t id, uint32_t first, uint32_t last, uint32_t max_running);
int start(struct rig *g, uint32_t id, struct job_node node);
/* Task t of an array; its id. 0: refused */
uint32_t start_task(struct rig *g, uint32_t id, uint32_t task, uint32_t node);
int running(struct rig *g, uint32_t id);
int done(struct rig *g, uint32_t id, uint32_t node, uint32_t status);
void finish(struct rig *g, uint32_t id, uint32_t node, uint32_t status); /* starts with 1 CPU, runs and is over */
int cancel(struct rig *g, uint32_t id);
int cancel_tasks(struct rig *g, uint32_t id, uint32_t first, uint32_t last);

#endif
