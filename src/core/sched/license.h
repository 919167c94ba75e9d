/* SPDX-License-Identifier: Apache-2.0
 *
 * Licences: counted for the whole cluster. What the first jobs wait for is kept for them in this pass, so that a stream of
 * small requests can't starve a large one.
 */
#ifndef SPUR_CORE_SCHED_LICENSE_H
#define SPUR_CORE_SCHED_LICENSE_H

#include "base/arena.h"
#include "core/model/view.h"

struct pool { /* of one licence */
    const char *name;
    int64_t free; /* may be negative: fewer are configured than are in use, or more are waited for */
    uint32_t total;
};
struct licenses {
    struct pool *pool;
    uint32_t n;
};

void licenses_init(struct licenses *l, const struct rconf *conf, struct arena *scratch); /* conf may be NULL */
/* A job that holds nodes. */
void licenses_hold(struct licenses *l, const struct job *j);
/* What a job would take: all that it asks for, or of alternatives the first that is there; n 0: nothing. */
struct license_take {
    const struct license_ask *ask;
    uint32_t n;
    bool is_choice;
};
bool licenses_fit(const struct licenses *l, const struct job_spec *s, struct license_take *out);
void licenses_give_back(struct licenses *l, const struct license_take *t);
void licenses_take(struct licenses *l, const struct license_take *t);
/* The cluster could never give it. */
bool licenses_never(const struct rconf *conf, const struct job_spec *s);

#endif
