/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/catchup/pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

void pieces_begin(struct pieces *p) {
    *p = (struct pieces){.whole = cred_hasher_new(), .piece = cred_hasher_new()};
}

static void close_piece(struct pieces *p) {
    uint8_t hash[PIECE_HASH];
    cred_hasher_end(p->piece, hash);
    p->piece = NULL;
    p->in_piece = 0;
    for (size_t i = 0; i < PIECE_HASH; i++)
        vec_push(&p->hashes, hash[i]);
}

void pieces_add(struct pieces *p, const void *bytes, size_t n) {
    const uint8_t *at = bytes;
    cred_hasher_add(p->whole, bytes, n);
    p->size += n;
    while (n) {
        size_t k = MIN(n, (size_t)(PIECE_BYTES - p->in_piece));
        p->piece = p->piece ? p->piece : cred_hasher_new();
        cred_hasher_add(p->piece, at, k);
        p->in_piece += (uint32_t)k;
        at += k;
        n -= k;
        if (p->in_piece == PIECE_BYTES)
            close_piece(p);
    }
}

void pieces_end(struct pieces *p) {
    if (p->in_piece)
        close_piece(p);
    cred_hasher_end(p->whole, p->hash);
    p->whole = NULL;
}

void pieces_fini(struct pieces *p) {
    uint8_t none[PIECE_HASH];
    if (p->whole)
        cred_hasher_end(p->whole, none);
    if (p->piece)
        cred_hasher_end(p->piece, none);
    p->whole = p->piece = NULL;
    vec_fini(&p->hashes);
}

int pieces_read(struct pieces *p, const char *path, struct err *e) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    autofree uint8_t *block = xmalloc(PIECE_BYTES);
    ssize_t k;
    if (fd < 0)
        return err_sys(e, "open %s", path);
    pieces_begin(p);
    while ((k = read(fd, block, PIECE_BYTES)) > 0 || (k < 0 && errno == EINTR))
        if (k > 0)
            pieces_add(p, block, (size_t)k);
    if (k < 0)
        return err_sys(e, "read %s", path);
    pieces_end(p);
    return 0;
}

struct file_info pieces_info(const struct pieces *p, const char *name) {
    return (struct file_info){.name = name, .size = p->size, .hash = p->hash, .n_hash = PIECE_HASH,
                              .piece_bytes = PIECE_BYTES, .pieces = p->hashes.p, .n_pieces = (uint32_t)p->hashes.n};
}

int file_info_check(const struct file_info *f, struct err *e) {
    if (!f->name || strchr(f->name, '/') || f->size > FILE_MOST_BYTES || (f->n_hash && f->n_hash != PIECE_HASH) ||
        f->piece_bytes < 4096 || f->piece_bytes > PIECE_BYTES)
        return err_set(e, E_CORRUPT, "the description of a file makes no sense");
    if (f->n_pieces && f->n_pieces != (uint64_t)file_info_count(f) * PIECE_HASH)
        return err_set(e, E_CORRUPT, "%s: %u bytes of hashes are not those of %u pieces", f->name, f->n_pieces,
                       file_info_count(f));
    return 0;
}

uint32_t file_info_count(const struct file_info *f) {
    return (uint32_t)((f->size + f->piece_bytes - 1) / f->piece_bytes);
}

uint32_t file_info_length(const struct file_info *f, uint32_t piece) {
    return (uint32_t)MIN((uint64_t)f->piece_bytes, f->size - (uint64_t)piece * f->piece_bytes);
}

bool file_info_fits(const struct file_info *f, uint32_t piece, const void *p, size_t n) {
    uint8_t hash[PIECE_HASH];
    if (n != file_info_length(f, piece))
        return false;
    if (!f->n_pieces)
        return true;
    cred_hash(p, n, hash);
    return memcmp(hash, f->pieces + (size_t)piece * PIECE_HASH, PIECE_HASH) == 0;
}
