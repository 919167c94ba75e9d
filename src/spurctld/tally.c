/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/tally.h"

void tally_event(struct tally *t, const struct state *s, const struct event *ev) {
    struct view v;
    t->started += ev->kind == EV_JOB_RUNNING;
    if (ev->kind != EV_JOB_OVER)
        return;
    state_peek(s, &v);
    const struct job *j = view_job(&v, ev->job_id);
    uint32_t state = j ? j->state : 0;
    t->completed += state == JOB_COMPLETED;
    t->cancelled += state == JOB_CANCELLED;
    t->failed += j && state != JOB_COMPLETED && state != JOB_CANCELLED;
}
