/* SPDX-License-Identifier: Apache-2.0
 *
 * libraft's state machine, as far as it is on this thread: it copies what is committed to the outbox, nothing else.
 */
#include <string.h>

#include "io/journal/inside.h"

static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result) {
    struct instance *in = fsm->data;
    struct journal *j = in->j;
    uint64_t index = raft_last_applied(&in->raft) + 1;
    struct frame f = {0};
    size_t n = 0;
    *result = NULL;
    must(frame_open(buf->base, buf->len, &f, &n) && f.index == index);
    void *tag = own_match(in, index, f.term);
    if (index <= j->delivered)
        return 0; /* this instance reads again what an earlier one had handed over */
    commit_note(in);
    j->delivered = j->owner_index = index;
    j->owner_term = f.term;
    out_entry(j->out, index, f.term, buf->base, n, tag);
    turn_soon(j);
    return 0;
}

/* Called between two entries. The content comes later: held_put keeps libraft's request until there is a manifest. */
static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs) {
    struct instance *in = fsm->data;
    if (snapshot_begin(in) != 0)
        return RAFT_BUSY;
    *bufs = raft_calloc(1, sizeof(**bufs));
    *n_bufs = 1;
    return 0;
}

static int fsm_snapshot_finalize(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs) {
    raft_free(*bufs);
    *bufs = NULL;
    *n_bufs = 0;
    return 0;
}

static int fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf) {
    struct instance *in = fsm->data;
    struct journal *j = in->j;
    struct blob b;
    if (!blob_read(buf->base, buf->len, &b))
        return RAFT_CORRUPT;
    if (b.raft_index > j->snap.disk_index)
        j->snap.disk_index = b.raft_index;
    if (b.raft_index > j->delivered) {
        out_restore(j->out, b.owner_index, b.manifest, b.n);
        j->delivered = b.raft_index;
        j->owner_index = b.owner_index;
        turn_soon(j);
    }
    raft_free(buf->base); /* ours, once we return 0 */
    return 0;
}

void fsm_init(struct instance *in) {
    in->fsm = (struct raft_fsm){
        .version = 2,
        .data = in,
        .apply = fsm_apply,
        .snapshot = fsm_snapshot,
        .restore = fsm_restore,
        .snapshot_finalize = fsm_snapshot_finalize,
    };
}
