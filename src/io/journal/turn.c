/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done once a turn of the journal's loop, after all events of the turn: leadership is watched, what waits is
 * submitted, the outbox is handed over, a broken instance is closed and one that is gone replaced.
 */
#include <string.h>

#include "io/journal/inside.h"

#define STOP_LIMIT_MS 2000

/* ---- leadership ---- */

/* libraft keeps the barrier of a leadership that was lost, and may answer it once its place in the log is committed, be it by
 * another entry; the one of this leadership then goes without. So each is a request of its own, nobody waits for an old one before a new
 * one is begun, and the answer to an old one is a reason for another. */
static void barrier_free(struct barrier *b) {
    *(b->prev ? &b->prev->next : &b->in->barriers) = b->next;
    if (b->next)
        b->next->prev = b->prev;
    free(b);
}

void barriers_free(struct instance *in) {
    while (in->barriers)
        barrier_free(in->barriers);
}

static void on_barrier(struct raft_barrier *req, int status) {
    struct barrier *b = (struct barrier *)req;
    struct instance *in = b->in;
    uint64_t term = b->term;
    in->barrier = NULL;
    barrier_free(b);
    turn_soon(in->j);
    if (status != 0 || in->broken || in->closing || raft_state(&in->raft) != RAFT_LEADER ||
        raft_current_term(&in->raft) != term || (in->ready && in->lead_term == term))
        return;
    in->ready = true;
    in->lead_term = term;
    in->j->told_leader = true;
    out_leader(in->j->out, true, term);
}

static void barrier_begin(struct instance *in) {
    struct barrier *b = xnew(struct barrier);
    *b = (struct barrier){.in = in, .next = in->barriers, .term = raft_current_term(&in->raft),
                          .begun_ms = (uint64_t)loop_now_ms(in->j->loop)};
    if (b->next)
        b->next->prev = b;
    in->barriers = b;
    /* Without the threshold it waits for room, and that makes libraft ask the disk for some. */
    raft_set_capacity_threshold(&in->raft, 0);
    bool begun = raft_barrier(&in->raft, &b->req, on_barrier) == 0;
    raft_set_capacity_threshold(&in->raft, CAPACITY_KIB_MIN);
    in->barrier = begun ? b : NULL;
    if (!begun)
        barrier_free(b);
}

static void watch_leadership(struct journal *j) {
    struct instance *in = j->inst;
    bool leads = in && !in->broken && !in->closing && raft_state(&in->raft) == RAFT_LEADER;
    bool same = leads && in->ready && in->lead_term == raft_current_term(&in->raft);
    if (j->told_leader && !same) {
        j->told_leader = false;
        if (in)
            in->ready = false;
        out_leader(j->out, false, in && !in->broken ? raft_current_term(&in->raft) : 0);
    }
    const struct barrier *b = in ? in->barrier : NULL;
    /* Applied and not answered: something older of the same index had the answer. */
    bool begun = leads && b && b->term == raft_current_term(&in->raft) && b->req.index > raft_last_applied(&in->raft);
    if (leads && !same && !begun && !j->stopping)
        barrier_begin(in);
}

/* ---- ends ---- */

static void on_stop_limit(void *arg) {
    struct journal *j = arg;
    j->stop_limit = NULL;
    turn_soon(j);
}

static bool may_close(const struct journal *j) {
    const struct instance *in = j->inst;
    if (in->writing || in->closing)
        return false;
    /* What libraft has may still become durable and be answered; for a while. */
    bool quiet = in->unstored_bytes == 0 && (!in->own_first || !journal_alone(j));
    return in->broken || (j->stopping && (quiet || !j->stop_limit));
}

static void instance_gone(struct journal *j) {
    struct instance *in = j->inst;
    bool broken = in->broken;
    int code = in->broken_code;
    char why[ERR_TEXT_MAX];
    memcpy(why, in->broken_text, sizeof(why));
    change_instance_gone(j);
    instance_free(in);
    j->inst = NULL;
    snapshot_instance_gone(j);
    if (j->stopping)
        return;
    if (broken)
        trouble_set(j, code, why);
    trouble_reopen_later(j);
}

static void stop_now(struct journal *j) {
    j->stopped = true;
    loop_timer_stop(j->stop_limit);
    loop_timer_stop(j->trouble.reopen);
    j->stop_limit = j->trouble.reopen = NULL;
    submit_refuse_waiting(j, E_STOPPING, NULL);
    outbox_flush(j->out);
    loop_stop(j->loop);
}

static void take_answers(struct journal *j) {
    for (;;) {
        pthread_mutex_lock(&j->in_lock);
        struct snapshot_answer a = {0};
        bool some = j->answers.n > 0;
        if (some) {
            a = j->answers.p[0];
            vec_remove(&j->answers, 0);
        }
        pthread_mutex_unlock(&j->in_lock);
        if (!some)
            return;
        snapshot_answer(j, &a);
        buf_fini(&a.manifest);
    }
}

static void on_late(struct loop_late *n) {
    struct journal *j = (struct journal *)((char *)n - offsetof(struct journal, late));
    if (j->stopped)
        return;
    if (j->inst && j->inst->gone)
        instance_gone(j);
    take_answers(j);
    watch_leadership(j);
    submit_waiting(j);
    change_turn(j);
    if (j->inst && may_close(j))
        instance_close(j->inst);
    stats_turn(j);
    status_turn(j);
    heap_turn();
    outbox_flush(j->out);
    if (j->stopping && !j->inst && trouble_idle(j))
        stop_now(j);
}

void turn_soon(struct journal *j) {
    loop_late(j->loop, &j->late);
}

void turn_wake(void *journal) {
    turn_soon(journal);
}

void turn_init(struct journal *j) {
    j->late.fn = on_late;
}

void turn_stop(struct journal *j) {
    j->stopping = true;
    j->stop_limit = loop_timer_start(j->loop, STOP_LIMIT_MS, on_stop_limit, j);
    turn_soon(j);
}
