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
struct peer;
struct journal;

#define JOURNAL_PEERS_MAX 9

struct journal_peer {
    uint64_t id;         /* 1… */
    const char *address; /* host:port of its Raft port */
};

struct journal_conf {
    const char *dir; /* exists; the journal owns everything in it. Locked: a second process is refused (E_EXISTS). */
    uint64_t id;
    struct peer *net; /* io/peer: how others are reached, and reach us. Outlives the journal. NULL where we are alone */
    /* With oneself; n_peers <= 1: alone, and leader as soon as the log is read. On the first day they become the members;
     * from then on who is a member is in the log (journal_add, journal_remove), and this list only says, by id, where
     * members are reached today. */
    const struct journal_peer *peers;
    size_t n_peers;
    bool join;      /* an empty directory waits to be added to a cluster that exists, instead of making one */
    bool force_new; /* the majority is lost for good: this member, with what it has, becomes the only one */
    uint32_t snapshot_entries; /* default 100,000 */
    uint32_t keep_entries;     /* default 8,192 */
    uint64_t max_batch_bytes;  /* proposals of one append; default 1 MiB */
};

enum journal_role { JOURNAL_STARTING, JOURNAL_FOLLOWER, JOURNAL_CANDIDATE, JOURNAL_LEADER };

struct journal_member {
    uint64_t id;
    char address[256]; /* host:port */
    bool is_voter;     /* else it is catching up, or a spare */
    uint64_t match;    /* on the leader: the last entry that it is known to have */
};
struct journal_status {
    enum journal_role role;
    uint64_t term, leader_id; /* 0: none known */
    bool is_changing;         /* a change of members is under way */
    size_t n_members;
    struct journal_member members[JOURNAL_PEERS_MAX];
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
     * behind `index`. Must succeed or stop the process. JOURNAL_PENDING: it goes on in the background; nothing more is
     * delivered until journal_restored, while the journal's own thread goes on answering the leader. */
    int (*on_restore)(void *ctx, uint64_t index, const void *manifest, size_t n, struct err *e);
    /* Something that an operator should read (disk full, disk back, member lost). Not an error of a call. */
    void (*on_notice)(void *ctx, bool is_problem, const char *text);
    /* Role, term, leader or members have changed. May be NULL. The bytes are borrowed. */
    void (*on_status)(void *ctx, const struct journal_status *s);
    /* All up to `index` was handed over, also what is no entry of the owner's (barriers, members). It comes where that is
     * further than the last on_entry. May be NULL. */
    void (*on_reached)(void *ctx, uint64_t index);
};
#define JOURNAL_PENDING 1 /* of on_restore */

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

/* After on_restore said JOURNAL_PENDING. A failure (code) is reported by the owner, who stops. */
void journal_restored(struct journal *j, int code);

/* ---- members. One change at a time; `fn` once, on the owner's loop: 0, E_NOT_LEADER, E_BUSY (another change is under
 * way, or none is possible yet), E_EXISTS, E_NOT_FOUND, or why it did not come about. ---- */
typedef void (*journal_changed_fn)(void *arg, int code, const struct err *why);
/* Adds a member that has nothing (journal_conf.join), as a spare: it gets nothing and doesn't count. journal_promote sends
 * it the log, and makes it a voter once it has caught up. */
void journal_add(struct journal *j, uint64_t id, const char *address, journal_changed_fn fn, void *arg);
void journal_promote(struct journal *j, uint64_t id, journal_changed_fn fn, void *arg);
void journal_remove(struct journal *j, uint64_t id, journal_changed_fn fn, void *arg);
/* Hands leadership to member `id`, 0: to whoever has most. fn once it leads, or after at most about
 * a second, E_DEADLINE: nobody was seen to lead by then. */
void journal_transfer(struct journal *j, uint64_t id, journal_changed_fn fn, void *arg);

/* Exact at this instant, any thread: a vote or an append of a later term has not been answered before this says so; and
 * no other member has heard of a higher commit index from this one. */
uint64_t journal_term(const struct journal *j);
uint64_t journal_commit(const struct journal *j);

/* Whether `dir` holds no journal yet. */
bool journal_is_fresh(const char *dir);

/* ---- a directory that no journal has open ---- */

/* Makes it one whose log begins behind `index`: on_restore gets the manifest, and this member is the only one. `address`
 * NULL: alone by its configuration too. E_EXISTS: there is a journal. */
int journal_seed(const char *dir, uint64_t id, const char *address, uint64_t index, const void *manifest, size_t n,
                 struct err *e);
int journal_owner(const char *dir, uint64_t *out_id, struct err *e); /* whose it is */
int journal_lock(const char *dir, int *out_fd, struct err *e);       /* E_EXISTS: in use. Until the descriptor is closed */

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
