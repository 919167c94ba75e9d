/* SPDX-License-Identifier: Apache-2.0
 *
 * Content-addressed bulk beside the log: scripts and environments, stored once however many jobs share them.
 *
 * Blobs are appended to pack files (`pack-NNNNNN`, records of length, hash, CRC and bytes, a version in the header);
 * an index in memory says where each is. blob_put answers when the blob is on disk; many puts share one fdatasync.
 * A torn last record of a pack is cut off at open, any other damage is told when that blob is read. blob_collect drops
 * what nobody names any more: packs that are mostly dead are written anew, by a worker, at a bounded rate.
 *
 * All functions on the owner's loop thread; file work is done on the store's own thread.
 */
#ifndef SPUR_IO_BLOB_H
#define SPUR_IO_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct loop;
struct blob_store;

#define BLOB_HASH_SIZE 32
#define BLOB_MAX_SIZE (256u << 20) /* of one blob; callers have bounds of their own below it */

struct blob_hash {
    uint8_t b[BLOB_HASH_SIZE]; /* BLAKE2b-256 of the bytes (libsodium's crypto_generichash) */
};

void blob_hash_of(const void *p, size_t n, struct blob_hash *out);

int blob_open(struct loop *l, const char *dir, struct blob_store **out, struct err *e); /* makes dir when missing */
/* Waits for the thread; open puts, gets and collections end here, with E_STOPPING. Not from one of their functions. */
void blob_close(struct blob_store *s);

/* As blob_open, with other sizes and times than the defaults: for tests of what takes long otherwise. */
struct blob_tuning {
    uint64_t pack_bytes;       /* a pack of this size is finished and a new one begun */
    uint64_t grace_ms;         /* BLOB_GRACE_MS */
    uint64_t piece_bytes;      /* a collection copies about so much at once */
    uint64_t collect_pause_ms; /* and waits so long then */
};
struct blob_tuning blob_tuning_default(void);
int blob_open_tuned(struct loop *l, const char *dir, const struct blob_tuning *t, struct blob_store **out,
                    struct err *e);

/* Takes the bytes. `done` (code 0, or E_TOO_BIG, E_FULL, E_SYS, E_STOPPING with its text) may be called before this
 * returns when the blob is already durable here. A blob put is safe from collection for `BLOB_GRACE_MS` or until a
 * collection that it is named to; what is found at open counts as put then. */
#define BLOB_GRACE_MS 60000
typedef void (*blob_done_fn)(void *arg, int code, const struct err *why, const struct blob_hash *hash);
void blob_put(struct blob_store *s, struct buf bytes, blob_done_fn done, void *arg);

bool blob_has(const struct blob_store *s, const struct blob_hash *h);
/* Reads on the store's thread, so `done` is called later. E_NOT_FOUND, E_CORRUPT, E_SYS, E_STOPPING. The bytes are
 * borrowed for the call. A blob that was found damaged is not there for blob_has and blob_put any more. */
typedef void (*blob_read_fn)(void *arg, int code, const struct err *why, const void *p, size_t n);
void blob_get(struct blob_store *s, const struct blob_hash *h, blob_read_fn done, void *arg);

/* Keeps exactly what is_named says yes to (called on this thread, once a blob, until `done`; a slice of a large store a
 * turn), and what is in its grace. What is named meanwhile must be fresh: put again, or be known to is_named. */
void blob_collect(struct blob_store *s, bool (*is_named)(void *arg, const struct blob_hash *h), void *arg,
                  void (*done)(void *arg, uint64_t n_dropped, uint64_t bytes_freed), void *done_arg);

struct blob_stats {
    uint64_t n, bytes, packs, puts, dedup_hits, syncs, waiting;
};
struct blob_stats blob_stats(const struct blob_store *s);

#endif
