/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the journal share. Nobody else includes this: it brings in raft.h.
 *
 * Three lifetimes. A `struct journal` lives from open to close. An `instance` is one run of libraft on the directory:
 * where the disk fails it is thrown away and another is made from what the disk says. An `outbox` outlives the journal
 * by the posts that are still on their way to the owner's loop.
 *
 *     owner's thread      journal_propose ──► inbox ─┐                    outbox ──► on_entry, on_refused, …
 *     ───────────────────────────────────────────────┼──────────────────────▲───────────────────────────────
 *     journal's thread                               └─► turn ─► libraft ─► fsm
 */
#ifndef SPUR_IO_JOURNAL_INSIDE_H
#define SPUR_IO_JOURNAL_INSIDE_H

#include <pthread.h>
#include <raft.h>
#include <raft/uv.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/journal/check.h"
#include "io/journal/frame.h"
#include "io/journal/journal.h"
#include "io/journal/outbox.h"
#include "io/loop/loop.h"
#include "io/peer/peer.h"

#define ENTRY_BYTES_MAX (SEGMENT_BYTES / 2)     /* of one proposal */
#define CAPACITY_KIB_MIN (SEGMENT_BYTES / 2048) /* allocated room below which libraft takes no more proposals */
#define DISK_RETRY_MS 250                       /* how often libraft tries again to allocate a file */

struct instance;

/* ---- the journal -------------------------------------------------------------------------------------------------- */

struct proposal {
    struct buf entry;
    void *tag;
};

struct snapshot_answer { /* of the owner, or its wish for a snapshot */
    bool now, failed;
    uint64_t index;
    struct buf manifest;
};

enum ask_kind { ASK_ADD, ASK_PROMOTE, ASK_REMOVE, ASK_TRANSFER };
struct ask { /* change.c: of the members */
    enum ask_kind kind;
    uint64_t id;
    char address[256];
    journal_changed_fn fn;
    void *arg;
};

struct change { /* one that libraft has */
    struct raft_change req;
    struct raft_transfer transfer;
    struct ask ask;
    uint64_t begun_ms;
    bool answered;
};

struct trouble { /* trouble.c: the disk refuses */
    int code;    /* 0: none known */
    char text[ERR_TEXT_MAX];
    bool probing;
    uv_work_t work;
    int probe_errno;
    const char *probe_step;
    uint64_t held_since_ms; /* proposals wait for room since; 0: none do */
    uint64_t probed_ms;     /* end of the last probe */
    struct loop_timer *reopen;
    unsigned reopen_ms;
    bool reserve_there, reserving;
    uint64_t reserved_ms; /* end of the last attempt */
    uv_work_t reserve_work;
};

struct yielding { /* yield.c */
    uint64_t stored;   /* the last entry that was seen to be on this disk */
    uint64_t since_ms; /* when that changed, or there was nothing to wait for */
    uint64_t asked_ms; /* the last attempt to hand the lead on; 0: none */
};

struct snapshots { /* snapshot.c */
    bool pinned;          /* on_snapshot was (or is being) called and not answered */
    uint64_t owner_index; /* of the pin */
    uint64_t raft_index, raft_term;
    bool wanted; /* journal_snapshot_now */
    struct loop_timer *again;
    uint64_t disk_index, disk_term; /* newest on disk */
};

#define LATENCIES 4096
struct counts { /* stats.c */
    pthread_mutex_t lock;
    struct journal_stats s;
    uint32_t latency_us[LATENCIES];
    uint64_t n_latency;
};

struct journal {
    /* configuration; never changes */
    char *dir;
    struct peer *net;
    bool join, force_new;
    uint64_t id;
    struct journal_peer peers[JOURNAL_PEERS_MAX];
    size_t n_peers;
    uint32_t snapshot_entries, keep_entries;
    uint64_t max_batch_bytes;
    int lock_fd;

    struct outbox *out;
    pthread_t thread;
    struct loop *loop; /* the journal's own */

    pthread_mutex_t in_lock; /* guards the inbox */
    VEC(struct proposal) in;
    VEC(struct snapshot_answer) answers;
    VEC(struct ask) asks;
    size_t in_max; /* longest it was */

    pthread_mutex_t open_lock; /* hand-over of what came of opening */
    pthread_cond_t open_done;
    bool open_is_done;
    int open_code;
    struct err open_err;

    /* the journal's thread */
    struct loop_late late;
    VEC(struct proposal) waiting;
    size_t waiting_at; /* those before it are gone */
    struct instance *inst;
    uint64_t delivered;                  /* index of the last entry (of any kind) that was handed over */
    uint64_t owner_index, owner_term;    /* of the last one that on_entry saw */
    bool told_leader;
    struct change *change; /* NULL: none is under way */
    struct journal_status told; /* the last one that the owner was told */
    uint64_t reached;           /* the last index that it was told of */
    _Atomic uint64_t term_now, commit_now;
    bool stopping, stopped;
    struct loop_timer *stop_limit;
    struct trouble trouble;
    struct yielding yield;
    struct snapshots snap;
    struct counts counts;
};

static inline bool journal_alone(const struct journal *j) {
    return j->n_peers <= 1;
}

/* journal.c: without a thread, which is thread.c's (and the simulator's event queue). */
int journal_conf_check(const struct journal_conf *c, struct err *e);
struct journal *journal_new(struct loop *owner_loop, const struct journal_conf *c, const struct journal_owner *owner);
void journal_begin(void *journal); /* on the journal's loop: reads the disk */
void journal_end(struct journal *j);  /* its loop has stopped: what is left is answered */
void journal_free(struct journal *j);

/* turn.c: once in each turn of the loop in which something happened. */
void turn_soon(struct journal *j);
void turn_init(struct journal *j);
void barriers_free(struct instance *in);
void turn_stop(struct journal *j);
void turn_wake(void *journal); /* posted by the owner's thread */

/* heap.c. The calling thread's. */
void heap_init(void);
void heap_free_later(bool is_on); /* what libraft frees until it is off again goes in slices */
bool heap_turn(void);             /* one of them; true: there is more */

/* submit.c */
void submit_waiting(struct journal *j);
void submit_refuse_waiting(struct journal *j, int code, const char *why);

/* change.c */
void change_turn(struct journal *j);
void change_instance_gone(struct journal *j);
void change_yield(struct journal *j, journal_changed_fn fn); /* a transfer to whoever has most */

/* yield.c */
void yield_tick(struct journal *j);

/* change.c: what is told */
void status_turn(struct journal *j);

/* stats.c */
void stats_init(struct journal *j);
void stats_fini(struct journal *j);
void stats_turn(struct journal *j);
enum journal_role stats_role(struct instance *in);
void stats_written(struct journal *j, uint64_t us);

/* ---- one run of libraft -------------------------------------------------------------------------------------------- */

struct held_append { /* guard.c: an append that libraft's disk side has, or that was swallowed */
    struct raft_io_append mine;
    struct raft_io_append *req;
    raft_io_append_cb cb;
    struct instance *inst;
    struct held_append *prev, *next;
    size_t bytes;
    bool on_disk_side;
};

struct held_put { /* guard.c, snapshot.c: libraft wants a snapshot stored */
    struct raft_io_snapshot_put mine;
    struct raft_io_snapshot_put *req;
    raft_io_snapshot_put_cb cb;
    const struct raft_snapshot *wanted;
    struct raft_snapshot made; /* what is stored in its place, once there is a manifest */
    struct raft_buffer made_buf;
    struct buf blob;
    unsigned trailing;
    bool open;    /* libraft waits for `cb` */
    bool take;    /* one of our own making, not one that the leader sent */
    bool storing; /* given to the disk side */
};

struct own { /* submit.c: a proposal that libraft has */
    struct raft_apply req;
    struct instance *inst;
    struct own *prev, *next; /* in the order of their indexes, until matched */
    uint64_t index, term;
    void *tag;
    bool matched; /* handed over, or known to have lost its place */
};

struct barrier { /* turn.c: the first entry of a leadership */
    struct raft_barrier req; /* first */
    struct instance *in;
    struct barrier *next, *prev;
    uint64_t term, begun_ms;
};

struct instance {
    struct raft raft; /* first */
    struct journal *j;
    struct raft_io io;
    struct raft_io real; /* libraft's own functions */
    struct raft_fsm fsm;
    struct raft_uv_transport net;
    raft_uv_accept_cb net_accept;
    struct reaching *reaching; /* net.c: connects under way */
    struct raft_tracer tracer;
    raft_io_tick_cb tick;
    raft_io_recv_cb recv;

    bool started, broken, closing, gone; /* gone: libraft is done with it */
    bool stalls; /* tests: the disk has stopped answering */
    int broken_code;
    char broken_text[ERR_TEXT_MAX];

    struct held_append *appends;
    uint64_t unstored_bytes;
    bool writing;
    uint64_t write_began_ns;
    struct held_put put;

    struct own *own_first, *own_last;

    struct buf change; /* voters.c */
    uint64_t change_index;

    uint64_t lead_term; /* of the leadership that is being told; 0: none */
    bool ready;         /* the barrier of that term is committed */
    struct barrier *barriers; /* that libraft has not answered */
    struct barrier *barrier;  /* the newest, until any is answered */
};

/* instance.c. Opening reads the disk, and calls the fsm. Closing ends with in->gone. */
int instance_open(struct journal *j, bool first, struct err *e);
void instance_close(struct instance *in);
void instance_free(struct instance *in); /* one that is gone */
void instance_break(struct instance *in, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

void disk_guard_init(struct instance *in);   /* puts ours before libraft's disk and network functions */
void commit_note(struct instance *in);  /* for journal_commit */
void guard_closed(struct instance *in); /* after raft_close: answers what was swallowed */
void trace_init(struct instance *in);   /* hears of writes that end or fail */
void fsm_init(struct instance *in);
void net_init(struct instance *in);

/* submit.c */
void own_forget_all(struct instance *in);
void *own_match(struct instance *in, uint64_t index, uint64_t term); /* the tag, or NULL */

/* voters.c */
void voters_before(struct instance *in, const struct raft_message *m); /* it is about to be received */
void voters_appended(struct instance *in, const struct raft_entry *e, unsigned n); /* the end of the log, on its way to the disk */

/* snapshot.c */
int snapshot_begin(struct instance *in);                       /* libraft is at a moment that it wants kept */
void snapshot_hold(struct instance *in, bool take);            /* in->put was filled */
void snapshot_stored(struct instance *in, int status);         /* the disk side is done with in->put */
void snapshot_instance_gone(struct journal *j);
void snapshot_answer(struct journal *j, const struct snapshot_answer *a);
void snapshot_tick(struct instance *in);

/* trouble.c */
void trouble_init(struct journal *j);
void trouble_no_room(struct journal *j);                       /* libraft has no allocated room */
void trouble_set(struct journal *j, int code, const char *text);
void trouble_clear(struct journal *j);
void trouble_tick(struct journal *j);
void trouble_reopen_later(struct journal *j);
bool trouble_idle(struct journal *j); /* no work of it is under way */
bool trouble_free_reserve(struct journal *j);                  /* false: there was none */
void trouble_probed(struct journal *j);                        /* probe.c has set probe_errno */
void trouble_reserved(struct journal *j);

/* aio.c */
void aio_destroy_elsewhere(void); /* of the calling thread: what ends a segment's writes is waited for by another one */

/* probe.c */
void probe_begin(struct journal *j);
void reserve_begin(struct journal *j);
bool reserve_is_there(const struct journal *j);
void reserve_remove(const struct journal *j);

#endif
