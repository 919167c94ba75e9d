/* SPDX-License-Identifier: Apache-2.0
 *
 * What disk.c, disk_io.c and disk_net.c share.
 */
#ifndef SPUR_SIM_DISK_INSIDE_H
#define SPUR_SIM_DISK_INSIDE_H

#include "io/journal/inside.h"
#include "sim/disk.h"
#include "sim/loop.h"

struct ssnapshot {
    uint64_t index, term, conf_index;
    struct buf conf, data; /* libraft's encoding; the manifest as frame.c has it */
};

struct schange {
    uint64_t index;
    uint32_t voters;
};

enum sop_kind { SOP_APPEND, SOP_TRUNCATE, SOP_SNAPSHOT };

/* What is on its way to the disk, in its order. */
struct sop {
    enum sop_kind kind;
    VEC(struct sdisk_entry) entries;
    uint64_t index; /* of a truncation: the first that goes */
    struct ssnapshot snapshot;
    unsigned trailing;
    struct raft_io_append *append;
    raft_io_append_cb append_cb;
    struct raft_io_snapshot_put *put;
    raft_io_snapshot_put_cb put_cb;
};

struct sdisk {
    struct sdisk_conf conf;
    char *dir, address[16];
    struct sdisk_faults faults;
    unsigned crash_in;
    bool is_frozen;
    bool is_marked; /* check_mark_owner */
    bool is_joining;
    /* durable */
    uint64_t term, vote;
    uint64_t first; /* index of entries.p[0] */
    VEC(struct sdisk_entry) entries;
    struct ssnapshot snapshot; /* index 0: none */
    struct {
        uint64_t first, snapshot_index;
        VEC(uint64_t) terms;
    } lost; /* what was on it before it was emptied */
    VEC(struct schange) changes; /* that were on their way to it, also those that never came to be */
    VEC(struct sop *) cache; /* told as written, and not on the disk: without a sync (fault point "disk.no_sync") */
    /* of the member's running instance of libraft; NULL: none */
    struct sio *io;
    int64_t sent_ms[JOURNAL_PEERS_MAX + 1]; /* when the last message to each arrives: a connection keeps their order */
    struct sdisk *next;
};

struct sio {
    struct sdisk *disk;
    struct raft_io *io;
    struct loop *loop;
    struct raft_tracer *tracer;
    unsigned tick_ms;
    raft_io_tick_cb tick;
    raft_io_recv_cb recv;
    struct vevent *tick_event, *write_event;
    VEC(struct sop *) ops;
    bool is_writing, is_closing, has_failed;
    raft_io_close_cb close_cb;
    VEC(struct sget *) gets;
};

struct sdisk *sdisk_find(const char *dir);
struct sdisk *sdisk_of_member(uint64_t id);
void sdisk_apply(struct sdisk *d, struct sop *op); /* makes it durable */
void sop_free(struct sop *op);
void sdisk_cache(struct sdisk *d, struct sop *op); /* takes its content */
void sdisk_sync(struct sdisk *d, size_t n);        /* the first of the cache */
void sdisk_entry_copy(struct sdisk_entry *out, const struct raft_entry *e);
/* Memory of libraft's: an array of entries whose bytes are in one batch. */
struct raft_entry *sdisk_entries_out(const struct sdisk_entry *e, size_t n);

void sio_abandon(struct sio *s); /* the write that is under way will not come back */
void sdisk_note_changes(struct sdisk *d, const struct raft_entry *e, unsigned n, uint64_t first);
int snet_send(struct raft_io *io, struct raft_io_send *req, const struct raft_message *m, raft_io_send_cb cb);

#endif
