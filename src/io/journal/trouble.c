/* SPDX-License-Identifier: Apache-2.0
 *
 * When the disk refuses.
 *
 * libraft allocates the log's files ahead, so a full disk shows as too little allocated room: proposals wait while a
 * probe finds out what the system says, and are refused with its words. libraft goes on trying to allocate; once it
 * can, proposals are taken again. A write that fails breaks the instance (guard.c); it is opened again, with a growing
 * pause between the attempts.
 *
 * A reserve file is kept beside the log and given up where the disk is full and libraft needs a file for itself: to
 * become leader after a start, or to store the snapshot that lets the log be trimmed. What touches the disk is probe.c's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "io/journal/inside.h"

#define PROBE_EVERY_MS 300
#define PATIENCE_MS 3000 /* with a disk that has room, libraft must have some by then */
#define BARRIER_SLOW_MS 300
#define REOPEN_MIN_MS 100
#define REOPEN_MAX_MS 2000
#define RESERVE_EVERY_MS 30000

static uint64_t now_ms(struct journal *j) {
    return (uint64_t)loop_now_ms(j->loop);
}

void trouble_init(struct journal *j) {
    j->trouble.reserve_there = reserve_is_there(j);
    j->trouble.reopen_ms = REOPEN_MIN_MS;
}

bool trouble_idle(struct journal *j) {
    return !j->trouble.probing && !j->trouble.reserving;
}

void trouble_set(struct journal *j, int code, const char *text) {
    struct trouble *t = &j->trouble;
    bool news = t->code != code || strcmp(t->text, text) != 0;
    t->code = code;
    if (t->text != text)
        snprintf(t->text, sizeof(t->text), "%s", text);
    if (news)
        out_notice(j->out, true, "the journal takes no entries: %s", t->text);
    submit_refuse_waiting(j, t->code, t->text);
    turn_soon(j);
}

void trouble_clear(struct journal *j) {
    struct trouble *t = &j->trouble;
    t->held_since_ms = 0;
    t->reopen_ms = REOPEN_MIN_MS;
    if (t->code == 0)
        return;
    t->code = 0;
    out_notice(j->out, false, "the journal takes entries again");
    turn_soon(j);
}

/* ---- the probe ---- */

void trouble_probed(struct journal *j) {
    struct trouble *t = &j->trouble;
    t->probing = false;
    t->probed_ms = now_ms(j);
    turn_soon(j);
    if (t->held_since_ms == 0)
        return;
    struct err e;
    if (t->probe_errno != 0) {
        errno = t->probe_errno;
        int code = err_sys(&e, "%s: can't %s", j->dir, t->probe_step);
        trouble_set(j, code, e.text);
        if (j->inst && code == E_FULL && (j->inst->barrier || j->inst->put.storing))
            trouble_free_reserve(j);
    } else if (t->probed_ms - t->held_since_ms > PATIENCE_MS) {
        trouble_set(j, E_FULL, journal_alone(j) ? "the log has no allocated room, though the disk has"
                                                : "the disks of most members have no room for the log");
    }
}

void trouble_no_room(struct journal *j) {
    struct trouble *t = &j->trouble;
    struct instance *in = j->inst;
    if (!in || in->broken || j->stopping)
        return;
    bool snapshot_waits = in->put.storing;
    if (in->io.capacity >= CAPACITY_KIB_MIN && !snapshot_waits && j->waiting_at == j->waiting.n)
        return; /* only the file after the next can't be had yet */
    if (!t->held_since_ms)
        t->held_since_ms = now_ms(j);
    if (t->probing || now_ms(j) - t->probed_ms < PROBE_EVERY_MS)
        return;
    t->probing = true;
    probe_begin(j);
}

/* ---- the reserve ---- */

void trouble_reserved(struct journal *j) {
    j->trouble.reserving = false;
    j->trouble.reserved_ms = now_ms(j);
    trouble_init(j);
    turn_soon(j);
}

static void reserve_tick(struct journal *j) {
    struct trouble *t = &j->trouble;
    if (t->reserve_there || t->reserving || t->code != 0 || t->held_since_ms || j->stopping || !j->inst->started)
        return;
    if (t->reserved_ms && now_ms(j) - t->reserved_ms < RESERVE_EVERY_MS)
        return;
    t->reserving = true;
    reserve_begin(j);
}

bool trouble_free_reserve(struct journal *j) {
    if (!j->trouble.reserve_there)
        return false;
    reserve_remove(j);
    j->trouble.reserve_there = false;
    j->trouble.reserved_ms = now_ms(j);
    return true;
}

/* ---- again and again ---- */

void trouble_tick(struct journal *j) {
    struct instance *in = j->inst;
    struct trouble *t = &j->trouble;
    if (!in || in->broken)
        return;
    bool room = in->io.capacity >= CAPACITY_KIB_MIN;
    bool leads = raft_state(&in->raft) == RAFT_LEADER;
    if (room && (in->ready || !leads) && !in->put.storing && (t->code != 0 || t->held_since_ms) &&
        j->waiting_at == j->waiting.n)
        trouble_clear(j);
    bool barrier_slow = in->barrier && now_ms(j) - in->barrier->begun_ms > BARRIER_SLOW_MS;
    if (!room && (t->held_since_ms || barrier_slow))
        trouble_no_room(j);
    reserve_tick(j);
}

static void on_reopen(void *arg) {
    struct journal *j = arg;
    struct err e;
    j->trouble.reopen = NULL;
    turn_soon(j);
    int rc = instance_open(j, false, &e);
    if (rc == 0)
        return; /* the trouble is over once it has written something */
    trouble_set(j, rc, e.text);
    if (!j->inst)
        trouble_reopen_later(j);
}

void trouble_reopen_later(struct journal *j) {
    struct trouble *t = &j->trouble;
    if (t->reopen || j->stopping)
        return;
    t->reopen = loop_timer_start(j->loop, t->reopen_ms, on_reopen, j);
    t->reopen_ms = MIN(t->reopen_ms * 2, REOPEN_MAX_MS);
}
