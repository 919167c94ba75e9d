/* SPDX-License-Identifier: Apache-2.0
 *
 * A file by its pieces: a hash for each, so that another member can fetch it bit by bit, go on where it stopped, and fetch
 * again only what came damaged. Any thread.
 */
#ifndef SPUR_SPURCTLD_CATCHUP_PIECES_H
#define SPUR_SPURCTLD_CATCHUP_PIECES_H

#include <stdbool.h>

#include "base/vec.h"
#include "io/cred/cred.h"
#include "wire/catchup.h"

#define PIECE_BYTES (512u << 10)
#define PIECE_HASH 32u
#define FILE_MOST_BYTES (64ull << 30) /* of one that is fetched */

/* While a file is written, or read. */
struct pieces {
    struct cred_hasher *whole, *piece;
    uint32_t in_piece;
    uint64_t size;
    VEC(uint8_t) hashes;
    uint8_t hash[PIECE_HASH]; /* of the whole, after pieces_end */
};
void pieces_begin(struct pieces *p);
void pieces_add(struct pieces *p, const void *bytes, size_t n);
void pieces_end(struct pieces *p);
void pieces_fini(struct pieces *p);
int pieces_read(struct pieces *p, const char *path, struct err *e); /* all of it, from begin to end */
/* What is said of it; borrows. */
struct file_info pieces_info(const struct pieces *p, const char *name);

/* Of one that a peer described: whether it makes sense, how many pieces, how long each. */
int file_info_check(const struct file_info *f, struct err *e);
uint32_t file_info_count(const struct file_info *f);
uint32_t file_info_length(const struct file_info *f, uint32_t piece);
/* Whether these bytes are that piece; always, where it came without hashes (an older member's). */
bool file_info_fits(const struct file_info *f, uint32_t piece, const void *p, size_t n);

#endif
