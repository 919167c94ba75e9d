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
 * become leader after a start, or to store the snapshot that lets the log be trimmed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/journal/inside.h"

#define PROBE_EVERY_MS 300
#define PATIENCE_MS 3000 /* with a disk that has room, libraft must have some by then */
#define BARRIER_SLOW_MS 300
#define REOPEN_MIN_MS 100
#define REOPEN_MAX_MS 2000
#define RESERVE_BYTES (SEGMENT_BYTES + (1u << 20))
#define RESERVE_EVERY_MS 30000

static uint64_t now_ms(struct journal *j) {
    return (uint64_t)loop_now_ms(j->loop);
}

void trouble_init(struct journal *j) {
    autofree char *path = xasprintf("%s/" RESERVE_FILE, j->dir);
    j->trouble.reserve_there = access(path, F_OK) == 0;
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

/* ---- the probe: does what libraft does to get a file for the log ---- */

static void probe_work(uv_work_t *work) {
    struct journal *j = work->data;
    struct trouble *t = &j->trouble;
    static const char block[4096];
    t->probe_errno = 0;
    t->probe_step = "make a file";
    autoclose int fd = open(j->dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) {
        t->probe_errno = errno;
        return;
    }
    t->probe_step = "allocate a file of the log";
    if ((t->probe_errno = posix_fallocate(fd, 0, SEGMENT_BYTES)) != 0)
        return;
    t->probe_step = "write to a file of the log";
    ssize_t n = pwrite(fd, block, sizeof(block), 0);
    if (n != (ssize_t)sizeof(block) || fdatasync(fd) < 0)
        t->probe_errno = n >= 0 && n < (ssize_t)sizeof(block) ? ENOSPC : errno;
}

static void probe_done(uv_work_t *work, int status) {
    struct journal *j = work->data;
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
        if (j->inst && code == E_FULL && (j->inst->barrier_open || j->inst->put.storing))
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
    t->work.data = j;
    must(uv_queue_work(loop_uv(j->loop), &t->work, probe_work, probe_done) == 0);
}

/* ---- the reserve ---- */

static void reserve_work(uv_work_t *work) {
    struct journal *j = work->data;
    autofree char *tmp = xasprintf("%s/tmp-" RESERVE_FILE, j->dir);
    autofree char *path = xasprintf("%s/" RESERVE_FILE, j->dir);
    autoclose int fd = open(tmp, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    /* Twice as much must be free: it is not to be what fills the disk. */
    if (posix_fallocate(fd, 0, 2 * (off_t)RESERVE_BYTES) != 0 || ftruncate(fd, RESERVE_BYTES) < 0 ||
        rename(tmp, path) < 0)
        unlink(tmp);
}

static void reserve_done(uv_work_t *work, int status) {
    struct journal *j = work->data;
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
    t->reserve_work.data = j;
    must(uv_queue_work(loop_uv(j->loop), &t->reserve_work, reserve_work, reserve_done) == 0);
}

bool trouble_free_reserve(struct journal *j) {
    if (!j->trouble.reserve_there)
        return false;
    autofree char *path = xasprintf("%s/" RESERVE_FILE, j->dir);
    unlink(path);
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
    bool barrier_slow = in->barrier_open && now_ms(j) - in->barrier_ms > BARRIER_SLOW_MS;
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
