/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a store, as its thread uses them: one pack that is written to, any that are read.
 *
 * After open all functions run on the store's thread.
 */
#ifndef SPUR_IO_BLOB_FILES_H
#define SPUR_IO_BLOB_FILES_H

#include "io/blob/pack.h"

enum { FILES_CACHED = 8 };

struct files {
    char *dir;       /* for messages */
    int dir_fd;      /* locked: one store a directory */
    uint64_t pack_bytes; /* a pack of this size is finished */
    uint32_t next;   /* number of the next new pack */
    uint32_t active; /* number of the pack that is written to; 0: the next append makes one */
    int fd;          /* of the active pack; -1 */
    uint64_t id;
    uint32_t tail, synced; /* where the next record goes; up to where the pack is on disk */
    VEC(struct pack_record) records; /* of the active pack, for its list */
    uint64_t n_syncs;
    struct {
        uint32_t pack;
        int fd;
    } cached[FILES_CACHED]; /* finished packs, open for reading */
    unsigned next_cached;
};

struct files files_none(void); /* nothing open */
void files_fini(struct files *f);

struct files_item {
    struct blob_hash hash;
    const void *p;
    uint32_t n;
    int code; /* 0 on entry; not 0: left out. After the call: whether it is on disk */
    uint32_t pack, offset;
};
/* Appends the items and syncs them: each ends with its own code, `why` has the text of the last failure. A record that
 * finds no room (E_FULL) is taken away again, the others are not touched by it. */
void files_write(struct files *f, struct files_item *items, size_t n, struct err *why);
/* Finishes the active pack, if there is one: syncs it, writes its list, leaves it. */
int files_finish(struct files *f, struct err *e);

int files_read(struct files *f, uint32_t pack, const struct pack_record *r, struct buf *out, struct err *e);
/* Removes a pack that is not active, and its list. */
int files_unlink(struct files *f, uint32_t pack, struct err *e);

/* For opening: takes the pack over as the active one. */
void files_adopt(struct files *f, uint32_t number, int fd, const struct pack_scan *s);

#endif
