/* SPDX-License-Identifier: Apache-2.0
 *
 * A job leaves the state when it is old enough and its row is in the history for good. The record of an array stays for
 * as long as any of its tasks does: apply keeps it, and it is tried again an age later.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spurctld/acct/acct.h"
#include "spurctld/lead/inside.h"

#define PURGE_BATCH 1000u
#define DEFAULT_MIN_JOB_AGE_SECS 300

static int by_end(const void *x, const void *y) {
    const struct over *a = x, *b = y;
    return a->end_ms < b->end_ms ? -1 : a->end_ms > b->end_ms;
}

void purge_note(struct lead *l, const struct job *j) {
    struct over o = {j->id, j->end_ms};
    vec_push(&l->over, o);
}

void purge_begin(struct lead *l, const struct view *v) {
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(v, &k)); k++)
        if (job_is_over(j))
            purge_note(l, j);
    if (l->over.n)
        qsort(l->over.p, l->over.n, sizeof(*l->over.p), by_end);
}

void purge_end(struct lead *l) {
    vec_fini(&l->over);
    vec_fini(&l->going);
    l->first = 0;
}

static bool is_old(const struct lead *l, const struct job *j, int64_t end_ms) {
    const struct rconf *conf = room_rconf(l->room);
    struct host *h = l->room->host;
    int64_t age_ms = 1000 * (int64_t)(conf->min_job_age_secs ? conf->min_job_age_secs : DEFAULT_MIN_JOB_AGE_SECS);
    return h->unix_ms(h->impl) >= end_ms + age_ms && j->ended_index <= acct_flushed_index(l->room->acct);
}

/* Those that could not go: refused, or an array's record that its tasks still need. */
static void on_purged(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct lead *l = arg;
    struct view v;
    state_peek(l->room->state, &v);
    l->is_purging = false;
    for (size_t i = 0; i < l->going.n; i++) {
        struct over o = l->going.p[i];
        const struct job *j = view_job(&v, o.job_id);
        if (!j || !job_is_over(j))
            continue;
        if (!code)
            o.end_ms = l->room->host->unix_ms(l->room->host->impl);
        vec_push(&l->over, o);
    }
    l->going.n = 0;
    if (!code && l->timer) /* there may be more; refused, the next tick tries again */
        purge_tick(l);
}

static void compact(struct lead *l) {
    if (l->first <= 4096 || l->first * 2 <= l->over.n)
        return;
    l->over.n -= l->first;
    memmove(l->over.p, l->over.p + l->first, l->over.n * sizeof(*l->over.p));
    l->first = 0;
}

void purge_tick(struct lead *l) {
    struct view v;
    VEC(uint32_t) ids = {0};
    if (l->is_purging)
        return;
    state_peek(l->room->state, &v);
    for (; l->first < l->over.n && ids.n < PURGE_BATCH; l->first++) {
        struct over o = l->over.p[l->first];
        const struct job *j = view_job(&v, o.job_id);
        if (!j || !job_is_over(j) || j->end_ms > o.end_ms) /* gone, or back: then another entry speaks of its end */
            continue;
        if (!is_old(l, j, o.end_ms))
            break;
        vec_push(&ids, j->id);
        vec_push(&l->going, o);
    }
    compact(l);
    if (ids.n) {
        struct cmd_purge cmd = {ids.p, (uint32_t)ids.n, true};
        l->is_purging = true;
        room_propose(l->room, CMD_PURGE, &cmd, 0, NULL, on_purged, l);
    }
    vec_fini(&ids);
}
