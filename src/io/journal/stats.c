/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures, copied out once a turn so that any thread can read them.
 */
#include <stdlib.h>
#include <string.h>

#include "io/journal/inside.h"

void stats_init(struct journal *j) {
    pthread_mutex_init(&j->counts.lock, NULL);
}

void stats_fini(struct journal *j) {
    pthread_mutex_destroy(&j->counts.lock);
}

enum journal_role stats_role(struct instance *in) {
    if (!in || in->broken || !in->started)
        return JOURNAL_STARTING;
    switch (raft_state(&in->raft)) {
    case RAFT_LEADER:
        return in->ready ? JOURNAL_LEADER : JOURNAL_STARTING;
    case RAFT_CANDIDATE:
        return JOURNAL_CANDIDATE;
    case RAFT_FOLLOWER:
        return JOURNAL_FOLLOWER;
    default:
        return JOURNAL_STARTING;
    }
}

void stats_turn(struct journal *j) {
    struct instance *in = j->inst;
    pthread_mutex_lock(&j->in_lock);
    size_t waiting = j->in.n + j->waiting.n - j->waiting_at, longest = j->in_max;
    pthread_mutex_unlock(&j->in_lock);
    pthread_mutex_lock(&j->counts.lock);
    struct journal_stats *s = &j->counts.s;
    s->role = stats_role(in);
    s->waiting = waiting;
    s->waiting_max = MAX(s->waiting_max, MAX(waiting, longest));
    s->disk_refuses = j->trouble.code != 0;
    s->snapshot_index = j->snap.disk_index;
    s->leader_id = 0;
    if (in && in->started && !in->closing) {
        const char *address;
        raft_id id = 0;
        raft_leader(&in->raft, &id, &address);
        s->leader_id = id;
        s->term = raft_current_term(&in->raft);
        s->last_index = raft_last_index(&in->raft);
        s->commit_index = raft_commit_index(&in->raft);
        s->log_entries = s->last_index - MIN(s->last_index, (uint64_t)in->raft.trail.offset);
    }
    pthread_mutex_unlock(&j->counts.lock);
}

void stats_written(struct journal *j, uint64_t us) {
    struct counts *c = &j->counts;
    pthread_mutex_lock(&c->lock);
    c->s.appends++;
    c->s.append_max_us = MAX(c->s.append_max_us, us);
    c->latency_us[c->n_latency++ % LATENCIES] = (uint32_t)MIN(us, (uint64_t)UINT32_MAX);
    pthread_mutex_unlock(&c->lock);
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

struct journal_stats journal_stats(struct journal *j) {
    struct counts *c = &j->counts;
    uint32_t *copy = xmalloc(sizeof(c->latency_us));
    pthread_mutex_lock(&c->lock);
    struct journal_stats s = c->s;
    size_t n = MIN(c->n_latency, (uint64_t)LATENCIES);
    memcpy(copy, c->latency_us, n * sizeof(*copy));
    pthread_mutex_unlock(&c->lock);
    if (n > 0) {
        qsort(copy, n, sizeof(*copy), by_value);
        s.append_p99_us = copy[(n - 1) * 99 / 100];
    }
    free(copy);
    s.gap_max_us = loop_stats(j->loop).gap_max_us;
    return s;
}

void journal_stats_reset(struct journal *j) {
    struct counts *c = &j->counts;
    pthread_mutex_lock(&j->in_lock);
    j->in_max = 0;
    pthread_mutex_unlock(&j->in_lock);
    pthread_mutex_lock(&c->lock);
    c->n_latency = 0;
    c->s.appends = c->s.append_max_us = c->s.waiting_max = 0;
    pthread_mutex_unlock(&c->lock);
    loop_stats_reset(j->loop);
}
