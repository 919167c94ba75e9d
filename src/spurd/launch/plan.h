/* SPDX-License-Identifier: Apache-2.0
 *
 * From the controller's request to what the step daemon is told: pure, plain values. What must be looked up (user,
 * groups, paths) is in the facts.
 */
#ifndef SPUR_SPURD_LAUNCH_PLAN_H
#define SPUR_SPURD_LAUNCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "spurstepd/step.h"
#include "wire/messages.h"

struct launch_facts {
    const char *node_name;
    const char *run_dir;     /* absolute */
    const char *cgroup;      /* name for the run's cgroup */
    const char *config_path; /* spur.conf in use; NULL: none */
    const char *controllers; /* as given to this agent */
    uint32_t containment;    /* enum step_containment */
    uint32_t clock_scale;    /* 1, but in tests */
    bool is_root;            /* else jobs of own_uid alone */
    uint32_t own_uid;
    /* the job's user, from the name service */
    const char *home, *shell;
    const uint32_t *groups;
    uint32_t n_groups;
    const struct gres *gres; /* this node's */
    uint32_t n_gres;
};

/* E_LAUNCH, E_DENIED or E_SYNTAX. Results borrow from the request, the facts and the arena. */
int launch_plan(const struct launch_request *q, const struct launch_facts *f, struct arena *a, struct step_plan *out,
                struct err *e);

/* The environment of the batch script (launch_plan calls it). */
void launch_env(const struct launch_request *q, const struct launch_facts *f, const char *run_id, struct arena *a,
                const char *const **out, uint32_t *out_n);

#endif
