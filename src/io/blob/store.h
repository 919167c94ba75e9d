/* SPDX-License-Identifier: Apache-2.0
 *
 * A store, as the files of this folder share it. `files` belongs to the store's thread once it runs; everything else to
 * the owner's loop thread.
 */
#ifndef SPUR_IO_BLOB_STORE_H
#define SPUR_IO_BLOB_STORE_H

#include "base/map.h"
#include "io/blob/files.h"
#include "io/blob/index.h"
#include "io/loop/loop.h"

/* One piece of work for the store's thread, the first member of what it works on: `work` there, then `done` on the
 * loop's thread, which also frees it. When the store is closing `done` runs within blob_close. */
struct job {
    struct job *next;
    struct blob_store *store;
    void (*work)(struct job *j);
    void (*done)(struct job *j);
    uint32_t active; /* after the work: the pack that is written to */
    uint64_t n_syncs;
};

struct pack_info {
    uint32_t number, n_live;
    uint64_t bytes;      /* of the file, as far as records were put there */
    uint64_t live_bytes; /* of the records that the index points to */
    bool damaged;        /* is kept, whatever is copied out of it */
    bool victim;         /* is being written anew */
};

struct collect;
struct door;
struct put;

struct blob_store {
    struct loop *loop;
    struct pool *pool;
    struct door *door; /* where finished jobs come in */
    struct files files;
    struct blob_tuning tuning;
    struct blob_index index;
    struct map64 packs;       /* number → struct pack_info */
    uint32_t active;          /* as the thread said last; 0: none */
    int64_t opened_ms;        /* zero of the ticks */
    struct map64 in_flight;   /* first 8 bytes of the hash → puts that are not on disk yet */
    struct put *first, **last; /* those of them that wait for their turn */
    bool is_writing, closing;
    struct loop_late kick; /* at the end of a turn, so that the puts of one turn share a write */
    struct collect *collect;
    struct blob_stats stats;
};

void store_run(struct blob_store *s, struct job *j);
uint32_t store_tick(struct blob_store *s); /* 100 ms each, from 1 */

/* Makes `e` point to a record, or to none when pack is 0, and keeps the packs' books. */
void store_point(struct blob_store *s, struct blob_entry *e, uint32_t pack, uint32_t offset, uint32_t length);
struct pack_info *store_pack(struct blob_store *s, uint32_t number); /* makes the row when it is missing */

/* The files of `dir` into the index. */
int store_load(struct blob_store *s, const char *dir, struct err *e);

void put_open(struct blob_store *s);
void put_close(struct blob_store *s);     /* ends the puts that wait for their turn */
void collect_close(struct blob_store *s); /* ends the collections that are asked for */

#endif
