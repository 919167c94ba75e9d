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

/* What a manifest says. Strings and bytes are in the arena. E_VERSION, E_CORRUPT. */
#define SNAPSHOT_FORMATS_FIELDS(F)                                                                                     \
    F(U32, state, 1, _)   /* the file's */                                                                             \
    F(U32, entry, 2, _)   /* of the log behind it */                                                                   \
    F(U32, history, 3, _)                                                                                              \
    F(U32, blobs, 4, _)
REC_DECLARE(snapshot_formats, SNAPSHOT_FORMATS_FIELDS)
#define SNAPSHOT_MANIFEST_FIELDS(F)                                                                                    \
    F(U32, version, 1, _)                                                                                              \
    F(U64, index, 2, _)                                                                                                \
    F(U64, digest, 3, _)                                                                                               \
    F(STR, file, 4, _)                                                                                                 \
    F(U64, size, 5, _)                                                                                                 \
    F(BYTES, hash, 6, _)      /* BLAKE2b-256 of the file */                                                            \
    F(U32, piece_bytes, 7, _) /* of all pieces but the last; 0: none are named */                                      \
    F(BYTES, pieces, 8, _)    /* the hash of each, one after the other */                                              \
    F(SUB, formats, 9, snapshot_formats)
REC_DECLARE(snapshot_manifest, SNAPSHOT_MANIFEST_FIELDS)
int snapshots_manifest(const void *p, size_t n, struct arena *a, struct snapshot_manifest *out, struct err *e);

/* For whoever writes one himself: the file's name in the directory, what is said of it, and that beside it, on disk. */
struct pieces;
#define SNAPSHOT_NAME_MOST 64
void snapshots_name(uint64_t index, char out[SNAPSHOT_NAME_MOST]);
void snapshots_describe(const struct pieces *p, uint64_t index, uint64_t digest, struct buf *out);
int snapshots_write_manifest(const char *dir, uint64_t index, const struct buf *manifest, struct err *e);

/* Where the file of such a manifest is, or is to be. The caller frees it. */
char *snapshots_path(const struct snapshots *s, const char *file);
/* Loads the state that a manifest names. Blocks for as long as the state is large; any thread. */
int snapshots_load(const char *path, const struct snapshot_manifest *m, struct state *into, struct err *e);

/* The newest snapshot that is whole here, with everything up to `index` in it: its manifest (borrowed until the next one).
 * False: there is none. */
bool snapshots_newest(const struct snapshots *s, uint64_t at_least, uint64_t *out_index, const struct buf **out);
/* From now on this is the newest: one that came from another member, or the one that the journal names at start. Its file is
 * there. */
int snapshots_adopt(struct snapshots *s, const void *manifest, size_t n, struct err *e);
/* Who is told of each that becomes the newest, and of the one before: `name` and path of the file. */
void snapshots_on_newest(struct snapshots *s, void (*fn)(void *arg, const char *name, const char *path, const char *old_name),
                         void *arg);
void snapshots_tell_newest(struct snapshots *s); /* calls that function for the one that was found at the start */

bool snapshots_are_out(const struct snapshots *s); /* one is being written */

struct snapshots_stats {
    uint64_t taken, failed, last_bytes, last_ms, last_index;
};
struct snapshots_stats snapshots_stats(const struct snapshots *s);

#endif
