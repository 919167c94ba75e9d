/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk of a member's journal, and libraft's disk and network side on it (struct raft_io), in virtual time.
 *
 * What is written is on the disk once its latency is over; what was under way when a member crashes is there to a random
 * point, in the order of the writes. Term and vote are on the disk when their functions return, or the member crashes in them.
 *
 * disk.c stands in the place of libraft's own raft_uv_* functions and of what io/journal does to a directory (check.h, probe.c,
 * net.c): the simulator links these instead, so that instance.c and the rest run unchanged.
 */
#ifndef SPUR_SIM_DISK_H
#define SPUR_SIM_DISK_H

#include "sim/world.h"

struct sdisk;

struct sdisk_entry {
    uint64_t term;
    uint16_t type;
    struct buf bytes;
};

struct sdisk_conf {
    struct vworld *world;
    const char *dir; /* its name; as journal_conf.dir */
    uint64_t id;     /* of the member: at "ctlID" others reach it */
    /* An entry has become durable. */
    void (*stored)(void *arg, uint64_t id, uint64_t index, const struct sdisk_entry *e);
    /* The write that crashes (sdisk_crash_in) has begun: from now on nothing comes back. */
    void (*crashes)(void *arg, uint64_t id);
    void *arg;
};
struct sdisk *sdisk_new(const struct sdisk_conf *conf);
void sdisk_free(struct sdisk *d);

struct sdisk_faults {
    unsigned latency_min_ms, latency_max_ms;
    bool is_full;       /* nothing new is taken */
    bool fails_writes;  /* what is written fails */
};
void sdisk_faults(struct sdisk *d, const struct sdisk_faults *f);
void sdisk_crash_in(struct sdisk *d, unsigned writes); /* 0: not at all */
/* From a crash to the next start: nothing is written, nothing comes back. */
void sdisk_freeze(struct sdisk *d);
/* Before its journal is closed: what was under way is on the disk up to a point of chance, the rest is lost. */
void sdisk_crash(struct sdisk *d);
void sdisk_thaw(struct sdisk *d);

/* All is gone, as on another disk; no journal is open on it. */
void sdisk_empty(struct sdisk *d);
bool sdisk_is_fresh(const struct sdisk *d);

/* Whether a durable entry (or a snapshot that has it) is there; or was, on a disk that was lost, until a journal is begun on the next. */
bool sdisk_has(const struct sdisk *d, uint64_t index, uint64_t term);
uint64_t sdisk_last(const struct sdisk *d);
/* Who votes by what is on the disk up to entry `at`: bit ID of each. 0: it doesn't say. */
uint32_t sdisk_voters(const struct sdisk *d, uint64_t at);
/* The changes of that which were ever given to it, from *cursor on: they count for a leader before they are on any disk. */
bool sdisk_next_change(const struct sdisk *d, size_t *cursor, uint64_t *out_index, uint32_t *out_voters);

#endif
