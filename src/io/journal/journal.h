/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal: a replicated, durable log of commands (Raft, by libraft, on a thread and loop of its own).
 *
 * This header is all that the project sees of Raft. Every callback is made on the owner's loop, in log order, so that
 * the state machine needs no lock; nothing the owner does can delay a heartbeat or an fsync.
 *
 *     propose ──► [journal thread: append, fsync, commit] ──► on_entry (owner's loop) ──► apply ──► reply
 *
 * An entry is acknowledged to nobody before it is on disk here (and on a majority, where there are several members).
 *
 * Snapshots. When the log has grown by `snapshot_entries`, on_snapshot is called between two entries: the owner pins a
 * view of exactly that moment and returns. It writes its files at its leisure (workers, bounded rate) and then calls
 * journal_snapshot_done with a small manifest, which is what Raft stores and later hands to on_restore. Entries go on
 * meanwhile. Only then is the log before it trimmed (the last `keep_entries` stay for followers).
 *
 * A full or read-only disk refuses proposals (E_FULL or E_SYS with the system's words) and is tried again; the
 * process stays up and goes on when it can.
 */
#ifndef SPUR_IO_JOURNAL_H
#define SPUR_IO_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct loop;
struct journal;

#define JOURNAL_PEERS_MAX 9

struct journal_peer {
    uint64_t id;         /* 1… */
    const char *address; /* host:port of its Raft port */
};

struct journal_conf {
    const char *dir; /* exists; the journal owns everything in it. Locked: a second process is refused (E_EXISTS). */
    uint64_t id;
    const char *listen; /* where others reach us; NULL or "" where we are alone: no port is opened */
    const struct journal_peer *peers; /* with oneself; n_peers <= 1: alone, and leader as soon as the log is read */
    size_t n_peers;
    uint32_t snapshot_entries; /* default 100,000 */
    uint32_t keep_entries;     /* default 8,192 */
    uint64_t max_batch_bytes;  /* proposals of one append; default 1 MiB */
};

struct journal_owner {
    void *ctx;
    /* A committed entry. `tag` is what the proposal carried when it was made here, else NULL. The bytes are borrowed. */
    void (*on_entry)(void *ctx, uint64_t index, uint64_t term, const void *p, size_t n, void *tag);
    /* A proposal that did not and will not become an entry of this leader (or whose fate is unknown: E_NOT_LEADER). */
    void (*on_refused)(void *ctx, void *tag, int code, const struct err *why);
    /* Leadership. Called with true only after an entry of the new term is committed and everything before it was
     * handed to on_entry: the state is current. */
    void (*on_leader)(void *ctx, bool is_leader, uint64_t term);
    /* Pin a view of now (index is that of the last on_entry). End with journal_snapshot_done or _failed. */
    void (*on_snapshot)(void *ctx, uint64_t index);
    /* At start or when this member was too far behind: load the state that the manifest names. Before any on_entry
     * behind `index`. Must succeed or stop the process. */
    int (*on_restore)(void *ctx, uint64_t index, const void *manifest, size_t n, struct err *e);
    /* Something that an operator should read (disk full, disk back, member lost). Not an error of a call. */
    void (*on_notice)(void *ctx, bool is_problem, const char *text);
};

/* Reads the disk and starts the thread. A torn last segment is repaired by leaving out what was never acknowledged; any
 * other damage is E_CORRUPT with the file's name. on_restore and on_entry may be called before this returns (the
 * owner's loop is this thread's). */
int journal_open(struct loop *owner_loop, const struct journal_conf *conf, const struct journal_owner *owner,
                 struct journal **out, struct err *e);
/* Stops, syncs, joins the thread, frees the lock. Proposals that are still open are refused with E_STOPPING. */
void journal_close(struct journal *j);

/* Owner's thread. Takes the bytes. Exactly one of on_entry (with this tag) and on_refused follows, later. */
void journal_propose(struct journal *j, struct buf entry, void *tag);
void journal_snapshot_done(struct journal *j, uint64_t index, const void *manifest, size_t n);
void journal_snapshot_failed(struct journal *j, uint64_t index);
void journal_snapshot_now(struct journal *j); /* ask for one, whatever the log's length (tests, shutdown, operator) */

enum journal_role { JOURNAL_STARTING, JOURNAL_FOLLOWER, JOURNAL_CANDIDATE, JOURNAL_LEADER };
struct journal_stats {
    enum journal_role role;
    uint64_t term, last_index, commit_index, snapshot_index, log_entries;
    uint64_t leader_id; /* 0: none known */
    uint64_t appends, append_max_us, append_p99_us; /* from the write to its being durable */
    uint64_t waiting, waiting_max;                  /* proposals not yet handed to libraft */
    uint64_t gap_max_us;                            /* longest gap of the journal's loop */
    bool disk_refuses;
};
struct journal_stats journal_stats(struct journal *j); /* any thread */
void journal_stats_reset(struct journal *j);

#endif
