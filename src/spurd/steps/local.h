/* SPDX-License-Identifier: Apache-2.0
 *
 * The real runs of this node: directories and step daemons.
 */
#ifndef SPUR_SPURD_LOCAL_H
#define SPUR_SPURD_LOCAL_H

#include "spurd/launch/plan.h"
#include "spurd/steps/steps.h"

struct clock;
struct loop;
struct pool;
struct steps_local;

struct steps_local_conf {
    const char *state_dir;     /* absolute; all borrowed for the life of the thing */
    const char *cgroup_prefix; /* tells this agent's runs from those of others on the machine */
    const struct clock *clock; /* what step daemons say of time is told in its terms */
    struct launch_facts facts; /* what is the same for all runs */
};

int steps_local_new(struct loop *l, struct pool *p, const struct steps_local_conf *conf,
                    const struct steps_events *events, struct steps_local **out, struct err *e);
struct steps *steps_local_steps(struct steps_local *s);
/* Hands a client's connection (taken) to the step's daemon, which then is the one that speaks. `fn` is called once: with
 * 0, or with a code and the descriptor again. */
typedef void (*steps_passed_fn)(void *arg, int code, const struct err *why, int fd);
void steps_local_pass(struct steps_local *s, uint64_t key, int fd, const struct step_stream *what, steps_passed_fn fn,
                      void *arg);
/* Starts a process of the user's that takes a file from the connection. As steps_local_pass; the descriptor stays the
 * caller's. */
struct steps_copy {
    uint32_t uid, gid;
    int fd;
    const void *rest;
    uint32_t n_rest;
};
typedef void (*steps_copied_fn)(void *arg, int code, const struct err *why);
void steps_local_copy(struct steps_local *s, const struct steps_copy *c, steps_copied_fn fn, void *arg);
bool steps_local_has(const struct steps_local *s, uint64_t key); /* its directory is there; its daemon may be gone */
/* Nothing is told any more, and whoever blocks in a pool returns soon. Runs are left alone. */
void steps_local_stop(struct steps_local *s);
void steps_local_free(struct steps_local *s); /* the pool is gone */

#endif
