/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots: libraft says when, the owner says what, later.
 *
 * libraft 0.22 asks for the content of a snapshot on its own thread and wants it at once. It gets an empty one, and its
 * request to store that is held here (in->put) until the owner's manifest comes; then what is stored is the manifest.
 * libraft meanwhile goes on with entries and takes no second snapshot.
 *
 * An owner that fails is asked again later. The request that is held is of an earlier moment then, which does no
 * harm: what is stored is the newer one, under its own index and term; the core trims by the older one.
 */
#include "io/journal/inside.h"

#define AGAIN_MS 10000

static void pin(struct instance *in, uint64_t raft_index, uint64_t raft_term) {
    struct snapshots *s = &in->j->snap;
    s->pinned = true;
    s->owner_index = in->j->owner_index;
    s->raft_index = raft_index;
    s->raft_term = raft_term;
    s->wanted = false;
    out_snapshot(in->j->out, s->owner_index);
    turn_soon(in->j);
}

int snapshot_begin(struct instance *in) {
    struct journal *j = in->j;
    raft_set_snapshot_threshold(&in->raft, j->snapshot_entries);
    /* An instance that was opened after trouble with the disk reads again what the owner has had long ago: what the owner
     * would pin now is of a later moment than this one. */
    if (raft_last_applied(&in->raft) < j->delivered)
        return -1;
    /* A pin of an instance that is gone may still be open; and who has seen no entry has nothing to keep. */
    return j->snap.pinned || in->put.open || j->owner_index == 0 || in->broken ? -1 : 0;
}

/* ---- to the disk ---- */

static void on_put(struct raft_io_snapshot_put *mine, int status) {
    snapshot_stored(mine->data, status);
}

static void store(struct instance *in, const struct raft_snapshot *what) {
    struct held_put *p = &in->put;
    p->storing = true;
    p->mine.data = in;
    if (in->real.snapshot_put(&in->io, p->trailing, &p->mine, what, on_put) == 0)
        return;
    p->storing = false;
    instance_break(in, 0, "the snapshot can't be stored: %s", in->io.errmsg);
}

static void store_ours(struct instance *in, const void *manifest, size_t n) {
    struct held_put *p = &in->put;
    struct snapshots *s = &in->j->snap;
    struct blob b = {s->raft_index, s->owner_index, manifest, n};
    blob_write(&p->blob, &b);
    p->made_buf = (struct raft_buffer){p->blob.p, p->blob.n};
    p->made = *p->wanted;
    p->made.index = s->raft_index;
    p->made.term = s->raft_term;
    p->made.bufs = &p->made_buf;
    p->made.n_bufs = 1;
    store(in, &p->made);
}

void snapshot_hold(struct instance *in, bool take) {
    if (take)
        pin(in, in->put.wanted->index, in->put.wanted->term);
    else
        store(in, in->put.wanted); /* from the leader: complete */
}

void snapshot_stored(struct instance *in, int status) {
    struct held_put p = in->put;
    in->put.storing = false;
    turn_soon(in->j);
    if (status != 0 && !in->closing) {
        instance_break(in, 0, "the snapshot can't be stored"); /* answered when the core knows that it is being closed */
        return;
    }
    if (status == 0) {
        in->j->snap.disk_index = p.take ? p.made.index : p.wanted->index;
        in->j->snap.disk_term = p.take ? p.made.term : p.wanted->term;
    }
    in->put = (struct held_put){0}; /* the core may come with the next one from within this call */
    heap_free_later(true);
    p.cb(p.req, status);
    heap_free_later(false);
    buf_fini(&p.blob);
}

/* ---- the owner's answers ---- */

static void again(struct instance *in) {
    const struct raft_snapshot *w = in->put.wanted;
    const struct journal *j = in->j;
    if (j->owner_index > w->index)
        pin(in, j->owner_index, j->owner_term);
    else
        pin(in, w->index, w->term);
}

static bool waits_for_owner(const struct instance *in) {
    return in && !in->broken && !in->closing && in->put.open && in->put.take && !in->put.storing;
}

static void on_again(void *arg) {
    struct journal *j = arg;
    j->snap.again = NULL;
    if (waits_for_owner(j->inst) && !j->snap.pinned)
        again(j->inst);
}

void snapshot_answer(struct journal *j, const struct snapshot_answer *a) {
    struct snapshots *s = &j->snap;
    if (a->now) {
        s->wanted = true;
        if (j->inst)
            snapshot_tick(j->inst);
        return;
    }
    if (!s->pinned || a->index != s->owner_index)
        return;
    s->pinned = false;
    if (!waits_for_owner(j->inst))
        return; /* the instance that wanted it is gone; the next one will ask */
    if (a->failed)
        s->again = s->again ? s->again : loop_timer_start(j->loop, AGAIN_MS, on_again, j);
    else
        store_ours(j->inst, a->manifest.p, a->manifest.n);
}

void snapshot_tick(struct instance *in) {
    struct snapshots *s = &in->j->snap;
    if (!s->wanted || s->pinned)
        return;
    if (waits_for_owner(in))
        again(in);
    else if (!in->put.open && !in->broken)
        raft_set_snapshot_threshold(&in->raft, 1);
}

void snapshot_instance_gone(struct journal *j) {
    loop_timer_stop(j->snap.again);
    j->snap.again = NULL;
}
