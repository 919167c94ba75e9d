/* SPDX-License-Identifier: Apache-2.0
 *
 * How a member gets what it lacks, and gives to others what they lack.
 *
 *     asks                                        gives
 *     install.c   state, then history  ───────►   shelf.c     files by pieces: snapshots (snapshot.c),
 *     fetch.c     one file by pieces   ───────►   history.c   and copies of the history
 *     spread.c    bulk, as it is named ◄──────►   spread.c    bulk, as it is stored: on a majority
 *     digest.c    is my state theirs?  ◄──────►   digest.c
 *
 * The world is struct host; files are read and written on its workers.
 */
#ifndef SPUR_SPURCTLD_CATCHUP_H
#define SPUR_SPURCTLD_CATCHUP_H

#include "spurctld/room.h"
#include "wire/backup.h"
#include "wire/catchup.h"

struct blob_store;
struct snapshots;
struct catchup;
struct snapshot_manifest;

struct catchup_conf {
    const char *state_dir;
    struct snapshots *snapshots;
    struct blob_store *blobs;
    uint64_t rate; /* bytes a second that are copied or fetched; 0: no bound */
    uint64_t write_rate; /* of a backup */
    void *ctx;
    void (*snapshot_now)(void *ctx);                        /* asks the journal for one */
    void (*differs)(void *ctx, uint64_t index, const char *text); /* this member's state is not the others': stop */
};
struct catchup *catchup_new(struct room *r, const struct catchup_conf *conf);
void catchup_stop(struct catchup *c); /* nothing new begins; what is under way comes back soon */
bool catchup_is_out(const struct catchup *c); /* a worker has something of ours */
void catchup_free(struct catchup *c); /* takes NULL. Behind the host and the blobs: their functions have all been called */

/* ---- catching up ---- */

/* Begun and not ended, in this life or an earlier one: the files here are not all of one moment. */
bool catchup_is_open(const struct catchup *c);
/* Gets a state with everything up to this entry, puts the history that belongs to it in the place of ours, and goes on
 * trying until it has both. `done` with the state, taken by whoever it is given to. */
typedef void (*catchup_done_fn)(void *arg, struct state *fresh);
void catchup_begin(struct catchup *c, uint64_t at_least, catchup_done_fn done, void *arg);

/* ---- bulk ---- */

/* As host->store and host->load, for the whole cluster: stored on a majority; loaded from whoever has it. */
void catchup_store(struct catchup *c, struct buf bytes, host_stored_fn fn, void *arg);
void catchup_load(struct catchup *c, const uint8_t hash[32], host_reply_fn fn, void *arg);
/* What an applied entry names and is not here is fetched, in the background. */
void catchup_on_event(struct catchup *c, const struct event *ev);
void catchup_on_state(struct catchup *c); /* the same for all that the state names */

/* ---- backups ---- */

/* Everything of now into the file (made, or emptied), which is not there when that fails. `done` once, perhaps at once; `what` borrowed. */
typedef void (*catchup_backup_fn)(void *arg, int code, const struct err *why, const struct backup_end *what, uint64_t size);
void catchup_backup(struct catchup *c, const char *path, catchup_backup_fn done, void *arg);
bool catchup_is_backing_up(const struct catchup *c); /* bulk that its view names must stay */
/* For administrators: begins one, says how far it is, gives it piece by piece. */
void catchup_backup_ask(struct catchup *c, const struct backup_request *rq, host_reply_fn fn, void *arg);
void catchup_backup_piece(struct catchup *c, const struct piece_request *rq, host_reply_fn fn, void *arg);

/* ---- digests ---- */

void catchup_on_applied(struct catchup *c, uint64_t index);

/* ---- service Member: what others ask ---- */

void catchup_manifest(struct catchup *c, const struct manifest_request *rq, host_reply_fn fn, void *arg);
void catchup_history(struct catchup *c, const struct history_copy_request *rq, host_reply_fn fn, void *arg);
void catchup_piece(struct catchup *c, const struct piece_request *rq, host_reply_fn fn, void *arg);
void catchup_give_blobs(struct catchup *c, const struct blobs_request *rq, host_reply_fn fn, void *arg);
void catchup_take_blobs(struct catchup *c, const struct store_blobs_request *rq, host_reply_fn fn, void *arg);
void catchup_compare(struct catchup *c, const struct digest_request *rq, struct digest_reply *out);

struct catchup_stats {
    uint64_t fetched_bytes, fetched_blobs, pushed_blobs, wanted_blobs;
};
struct catchup_stats catchup_stats(const struct catchup *c);

#endif
