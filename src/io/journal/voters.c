/* SPDX-License-Identifier: Apache-2.0
 *
 * Who votes, where libraft loses count of it.
 *
 * A follower that gets a change of members together with entries before it takes the first entry's index for the change's
 * (0.22.1). Then the change is never seen to be committed: this member makes no changes as a leader, and its snapshots name the
 * members of before. And where such a change is cut off the log again, it stays in force. So the index is put right as the entries go
 * to the disk, before any of them can be committed or cut off.
 *
 * A change that comes behind another means that the other is committed: a leader makes one at a time.
 */
#include "io/journal/inside.h"

static bool has_change(const struct raft_entry *e, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (e[i].type == RAFT_CHANGE)
            return true;
    return false;
}

/* Keeps the change that is not committed yet: the message's takes its place. */
void voters_before(struct instance *in, const struct raft_message *m) {
    const struct raft *r = &in->raft;
    struct raft_buffer bytes;
    in->change_index = 0;
    if (m->type != RAFT_APPEND_ENTRIES || !r->configuration_uncommitted_index ||
        !has_change(m->append_entries.entries, m->append_entries.n_entries))
        return;
    must(raft_configuration_encode(&r->configuration, &bytes) == 0);
    buf_clear(&in->change);
    buf_add(&in->change, bytes.base, bytes.len);
    raft_free(bytes.base);
    in->change_index = r->configuration_uncommitted_index;
}

static void committed(struct instance *in) {
    struct raft *r = &in->raft;
    if (in->change_index <= r->configuration_committed_index)
        return;
    raft_configuration_close(&r->configuration_committed);
    raft_configuration_init(&r->configuration_committed);
    must(raft_configuration_decode(&(struct raft_buffer){in->change.p, in->change.n}, &r->configuration_committed) == 0);
    r->configuration_committed_index = in->change_index;
}

void voters_appended(struct instance *in, const struct raft_entry *e, unsigned n) {
    uint64_t first = raft_last_index(&in->raft) - n + 1;
    if (!has_change(e, n))
        return;
    if (in->change_index >= first) /* it was cut off */
        in->change_index = 0;
    for (unsigned i = 0; i < n; i++) {
        if (e[i].type != RAFT_CHANGE)
            continue;
        if (in->change_index)
            committed(in);
        buf_clear(&in->change);
        buf_add(&in->change, e[i].buf.base, e[i].buf.len);
        in->change_index = first + i;
    }
    in->raft.configuration_uncommitted_index = in->change_index;
    in->change_index = 0;
}
