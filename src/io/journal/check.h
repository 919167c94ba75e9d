/* SPDX-License-Identifier: Apache-2.0
 *
 * The directory, before libraft touches it.
 */
#ifndef SPUR_IO_JOURNAL_CHECK_H
#define SPUR_IO_JOURNAL_CHECK_H

#include "base/vec.h"
#include "io/journal/journal.h"

#define OWNER_FILE "journal" /* says whose directory this is; written once bootstrapping is done */
#define LOCK_FILE "lock"
#define RESERVE_FILE "reserve"
#define SEGMENT_BYTES (8u << 20) /* of one file of the log, allocated ahead */

struct segment_facts {
    uint64_t first, entries; /* first: given */
    size_t bytes;            /* of the file */
    uint64_t term_max;
    size_t valid_bytes; /* up to the end of the last whole batch; 0: none */
    bool blank;         /* nothing was ever written to it */
    bool torn;          /* more than zeros behind valid_bytes */
    bool lost;          /* torn, and what is torn was durable: damage */
    bool wrong_index;   /* an entry says another index than its place: something before it is missing */
};
int segment_read(const char *dir, const char *name, uint64_t first, bool alone, struct segment_facts *out,
                 struct err *e);

struct check_fix { /* a repair: cut the file to `bytes`, or remove it */
    char name[64];
    bool remove;
    size_t bytes;
};
struct check {
    bool fresh;            /* nothing was ever here */
    bool joined;           /* it was begun empty, to be filled by a cluster that exists; an empty log is in order */
    uint64_t snapshot_index, snapshot_term; /* newest snapshot; 0: none */
    uint64_t first, last;  /* of the log; last 0: none */
    bool torn;             /* a torn tail is among the fixes */
    VEC(struct check_fix) fixes;
};
/* Reads everything, changes nothing. E_CORRUPT names the file. */
int check_dir(const char *dir, uint64_t id, bool alone, struct check *out, struct err *e);
int check_repair(const char *dir, const struct check *c, struct err *e);
void check_fini(struct check *c);
int check_mark_owner(const char *dir, uint64_t id, bool joined, struct err *e); /* OWNER_FILE: bootstrapping is done */
int dir_lock(const char *dir, int *out_fd, struct err *e);

#endif
