/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands between libraft's core and its disk and network functions, because the core of 0.22 takes most failures of
 * theirs for impossible: it stops half way through an event, or (built with assertions) ends the process.
 *
 * So no failure gets through. What fails breaks the instance: from then on nothing it wants is written or sent, all is
 * swallowed and answered with success or not at all, and as soon as no write is in flight the instance is closed and
 * another one is made from the disk. To the other members that looks like a crash, which Raft is made for.
 *
 *     core ──► set_term, append, send, … ──► [here] ──► libraft's uv backend
 *     core ◄── tick, recv, callbacks ◄────── [here] ◄──
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "io/journal/inside.h"

static struct instance *of_io(struct raft_io *io) {
    return (struct instance *)((char *)io - offsetof(struct instance, io));
}

/* ---- term and vote: written at once, before anything is done that depends on them ---- */

static int guard_set_term(struct raft_io *io, raft_term term) {
    struct instance *in = of_io(io);
    atomic_store(&in->j->term_now, term); /* before anybody can hear that we are in it */
    if (!in->broken && in->real.set_term(io, term) != 0)
        instance_break(in, 0, "the term can't be stored");
    return 0;
}

static int guard_set_vote(struct raft_io *io, raft_id id) {
    struct instance *in = of_io(io);
    if (!in->broken && in->real.set_vote(io, id) != 0)
        instance_break(in, 0, "the vote can't be stored");
    return 0;
}

/* ---- appends ---- */

static void held_unlink(struct held_append *h) {
    struct instance *in = h->inst;
    *(h->prev ? &h->prev->next : &in->appends) = h->next;
    if (h->next)
        h->next->prev = h->prev;
    in->unstored_bytes -= h->bytes;
}

static void held_answer(struct held_append *h, int status) {
    struct raft_io_append *req = h->req;
    raft_io_append_cb cb = h->cb;
    held_unlink(h);
    free(h);
    cb(req, status);
}

static void on_appended(struct raft_io_append *mine, int status) {
    struct held_append *h = mine->data;
    struct instance *in = h->inst;
    turn_soon(in->j);
    in->stalls = in->stalls || (raft_state(&in->raft) == RAFT_LEADER && FAULT("journal.stall"));
    if (in->stalls && !in->closing) { /* as a disk that has stopped answering */
        h->on_disk_side = false;
        return;
    }
    if (status == 0 || in->closing) {
        held_answer(h, status);
        return;
    }
    h->on_disk_side = false; /* answered once the core knows that it is being closed */
    instance_break(in, 0, "%s", raft_strerror(status));
}

static int guard_append(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[], unsigned n,
                        raft_io_append_cb cb) {
    struct instance *in = of_io(io);
    struct held_append *h = xnew(struct held_append);
    voters_appended(in, entries, n);
    *h = (struct held_append){.req = req, .cb = cb, .inst = in, .next = in->appends, .mine.data = h};
    for (unsigned i = 0; i < n; i++)
        h->bytes += entries[i].buf.len + 16;
    if (h->next)
        h->next->prev = h;
    in->appends = h;
    in->unstored_bytes += h->bytes;
    if (in->broken)
        return 0;
    h->on_disk_side = in->real.append(io, &h->mine, entries, n, on_appended) == 0;
    if (!h->on_disk_side)
        instance_break(in, 0, "%s", io->errmsg);
    return 0;
}

static int guard_truncate(struct raft_io *io, raft_index index) {
    struct instance *in = of_io(io);
    if (!in->broken && in->real.truncate(io, index) != 0)
        instance_break(in, 0, "%s", io->errmsg);
    return 0;
}

/* ---- snapshots ---- */

static int guard_snapshot_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                              const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb) {
    struct instance *in = of_io(io);
    must(!in->put.open);
    in->put = (struct held_put){.req = req, .cb = cb, .wanted = snapshot, .trailing = trailing, .open = true};
    /* What we make ourselves has one empty buffer so far (fsm_snapshot). */
    in->put.take = snapshot->n_bufs == 1 && snapshot->bufs[0].base == NULL;
    if (!in->broken)
        snapshot_hold(in, in->put.take);
    return 0;
}

struct held_get {
    struct raft_io_snapshot_get mine;
    struct raft_io_snapshot_get *req;
    raft_io_snapshot_get_cb cb;
    struct instance *inst;
};

static void on_got(struct raft_io_snapshot_get *mine, struct raft_snapshot *snapshot, int status) {
    struct held_get *h = mine->data;
    if (status == 0)
        h->cb(h->req, snapshot, 0);
    else /* the core would free a configuration that it never set; it asks again when its time for an answer is over */
        out_notice(h->inst->j->out, true, "the snapshot can't be read: %s", raft_strerror(status));
    free(h);
}

static int guard_snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *req, raft_io_snapshot_get_cb cb) {
    struct instance *in = of_io(io);
    if (in->broken)
        return 0;
    struct held_get *h = xnew(struct held_get);
    *h = (struct held_get){.req = req, .cb = cb, .inst = in, .mine.data = h};
    if (in->real.snapshot_get(io, &h->mine, on_got) != 0)
        free(h);
    return 0;
}

/* ---- messages ---- */

void commit_note(struct instance *in) {
    uint64_t commit = raft_commit_index(&in->raft);
    if (commit > atomic_load(&in->j->commit_now))
        atomic_store(&in->j->commit_now, commit);
}

static int guard_send(struct raft_io *io, struct raft_io_send *req, const struct raft_message *message,
                      raft_io_send_cb cb) {
    struct instance *in = of_io(io);
    struct snapshots *s = &in->j->snap;
    struct raft_message copy = *message;
    /* The core takes the newest snapshot's index, but keeps the term of the one that it asked for. */
    if (copy.type == RAFT_INSTALL_SNAPSHOT && s->disk_term && copy.install_snapshot.last_index == s->disk_index)
        copy.install_snapshot.last_term = s->disk_term;
    /* A refused pre-vote says back the term that it was asked for, so a candidate never hears of a higher one. The one with the
     * longest log in the lowest term is then refused by all for its term, and refuses all others for their logs: for ever. */
    if (copy.type == RAFT_REQUEST_VOTE_RESULT && copy.request_vote_result.pre_vote && !copy.request_vote_result.vote_granted &&
        copy.request_vote_result.term < raft_current_term(&in->raft))
        copy.request_vote_result.term = raft_current_term(&in->raft);
    commit_note(in);
    if (in->broken || in->real.send(io, req, &copy, cb) != 0)
        cb(req, RAFT_CANCELED);
    return 0;
}

static void message_drop(struct raft_message *m) {
    if (m->type == RAFT_APPEND_ENTRIES && m->append_entries.n_entries > 0) {
        raft_free(m->append_entries.entries[0].batch);
        raft_free(m->append_entries.entries);
    } else if (m->type == RAFT_INSTALL_SNAPSHOT) {
        raft_configuration_close(&m->install_snapshot.conf);
        raft_free(m->install_snapshot.data.base);
    }
}

static void guard_recv(struct raft_io *io, struct raft_message *message) {
    struct instance *in = of_io(io);
    turn_soon(in->j);
    /* A snapshot from the leader while one of ours is being made: 0.22.1 would follow a null pointer once ours is
     * done. The leader sends it again. */
    bool drop = in->broken || (in->j->stopping && message->type == RAFT_APPEND_ENTRIES) ||
                (message->type == RAFT_INSTALL_SNAPSHOT && in->put.open);
    if (drop) {
        message_drop(message);
        return;
    }
    voters_before(in, message);
    in->recv(io, message);
}

static void guard_tick(struct raft_io *io) {
    struct instance *in = of_io(io);
    turn_soon(in->j);
    if (!in->broken)
        in->tick(io);
    if (!in->broken)
        snapshot_tick(in);
    trouble_tick(in->j);
    yield_tick(in->j);
}

static int guard_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb recv) {
    struct instance *in = of_io(io);
    in->tick = tick;
    in->recv = recv;
    return in->real.start(io, msecs, guard_tick, guard_recv);
}

void disk_guard_init(struct instance *in) {
    in->real = in->io;
    in->io.start = guard_start;
    in->io.set_term = guard_set_term;
    in->io.set_vote = guard_set_vote;
    in->io.append = guard_append;
    in->io.truncate = guard_truncate;
    in->io.send = guard_send;
    in->io.snapshot_put = guard_snapshot_put;
    in->io.snapshot_get = guard_snapshot_get;
}

void guard_closed(struct instance *in) {
    for (struct held_append *h = in->appends, *next; h; h = next) {
        next = h->next;
        if (!h->on_disk_side)
            held_answer(h, RAFT_CANCELED);
    }
    if (in->put.open && !in->put.storing)
        snapshot_stored(in, RAFT_CANCELED);
}

/* ---- what libraft tells nobody but its tracer ---- */

/* A write that fails is tried again after a while by a timer whose pointer is of the wrong type (0.22.1), which
 * crashes. This message comes right before the timer is started; so the timer is put off beyond the instance's end. */
static void on_write_failed(struct instance *in, const char *why) {
    raft_uv_set_disk_retry(&in->io, 3600u * 1000);
    const char *number = strstr(why, "write failed: -");
    if (number)
        errno = (int)strtol(number + strlen("write failed: -"), NULL, 10);
    else
        errno = strstr(why, "short write") ? ENOSPC : EIO;
    struct err e;
    int code = err_sys(&e, "a write to the log failed");
    instance_break(in, code, "%s", e.text);
}

static void on_trace(struct raft_tracer *t, int type, const void *info) {
    struct instance *in = t->impl;
    if (type == RAFT_UV_TRACER_WRITE_SUBMIT) {
        in->writing = true;
        in->write_began_ns = uv_hrtime();
    } else if (type == RAFT_UV_TRACER_WRITE_COMPLETE) {
        in->writing = false;
        stats_written(in->j, (uv_hrtime() - in->write_began_ns) / 1000);
    } else if (type == RAFT_TRACER_DIAGNOSTIC) { /* from the pool's threads too: the texts below are the loop's only */
        const char *m = ((const struct raft_tracer_info *)info)->diagnostic.message;
        if (strncmp(m, "retry ", 6) != 0)
            return;
        if (strncmp(m, "retry failed write", 18) == 0)
            on_write_failed(in, m);
        else if (strncmp(m, "retry creating segment", 22) == 0 || strncmp(m, "retry snapshot write", 20) == 0)
            trouble_no_room(in->j);
    }
}

void trace_init(struct instance *in) {
    in->tracer = (struct raft_tracer){.impl = in, .version = 2, .emit = on_trace};
    raft_uv_set_tracer(&in->io, &in->tracer);
    in->raft.tracer = NULL; /* its default formats a text for every event and then throws it away */
}
