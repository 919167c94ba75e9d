/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots on disk: a view becomes a file, written by a worker at a bounded rate; what Raft is handed is a manifest
 * that names it (docs/format/snapshot.md).
 */
#ifndef SPUR_SPURCTLD_SNAPSHOT_H
#define SPUR_SPURCTLD_SNAPSHOT_H

#include "base/buf.h"
#include "spurctld/room.h"

struct snapshots;

/* `dir` is made when missing. rate: bytes a second, 0: no bound. */
int snapshots_open(struct room *r, const char *dir, uint64_t rate, struct snapshots **out, struct err *e);
/* Those under way fail soon, and later ones at once. */
void snapshots_stop(struct snapshots *s);
void snapshots_close(struct snapshots *s); /* none may be under way */

/* Pins a view now, writes it, waits until history has everything up to it, then gives the manifest (borrowed). Files that
 * the newest manifest in the journal (at stored_index) has left behind are removed. */
void snapshots_take(struct snapshots *s, uint64_t index, uint64_t stored_index,
                    void (*done)(void *arg, uint64_t index, int code, const struct err *why, const void *manifest,
                                 size_t n),
                    void *arg);
/* Loads the state that a manifest names. Blocks: at start, or where this member had fallen far behind. */
int snapshots_restore(struct snapshots *s, struct state *into, const void *manifest, size_t n, struct err *e);

bool snapshots_are_out(const struct snapshots *s); /* one is being written */

struct snapshots_stats {
    uint64_t taken, failed, last_bytes, last_ms, last_index;
};
struct snapshots_stats snapshots_stats(const struct snapshots *s);

#endif
