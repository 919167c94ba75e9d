/* SPDX-License-Identifier: Apache-2.0
 *
 * Encoding and scanning of packs.
 *
 * What a scan believes. A record's header carries a checksum over itself, the pack's number and its own offset, so a
 * chain of headers can be followed without reading the bytes between them. Three things can break:
 *
 *  - the end: the writer died while it wrote. Nobody was told that these records are stored. They are what stands at
 *    or behind the highest `synced` of all headers (each header says up to where the pack was on disk when it was
 *    written; a batch is written only after the one before it is on disk). The bytes of these, the last batch, are
 *    read and compared; a page that never came to the disk reads as zeros under a good header;
 *  - the middle: a header that is none. The scan looks at each later multiple of 8 for one that is, and compares the
 *    bytes of all that it finds from there on, since it may have come to stand inside of somebody's blob;
 *  - bytes under a good header: not seen here, told when they are read.
 */
#include "io/blob/pack.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

static const uint8_t pack_magic[8] = "SPURPACK";
static const uint8_t record_magic[4] = "BLOB";

static uint32_t get_u32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put_u32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

void pack_header_encode(uint32_t number, uint64_t id, uint8_t out[PACK_HEADER_SIZE]) {
    memset(out, 0, PACK_HEADER_SIZE);
    memcpy(out, pack_magic, 8);
    put_u32(out + 8, PACK_VERSION);
    put_u32(out + 12, number);
    put_u32(out + 16, (uint32_t)id);
    put_u32(out + 20, (uint32_t)(id >> 32));
    put_u32(out + 28, hash_crc32c(0, out, 28));
}

int pack_header_decode(const uint8_t in[PACK_HEADER_SIZE], uint32_t *out_number, uint64_t *out_id) {
    if (memcmp(in, pack_magic, 8) != 0 || get_u32(in + 28) != hash_crc32c(0, in, 28))
        return E_CORRUPT;
    if (get_u32(in + 8) != PACK_VERSION)
        return E_VERSION;
    *out_number = get_u32(in + 12);
    *out_id = get_u32(in + 16) | (uint64_t)get_u32(in + 20) << 32;
    return 0;
}

/* Over the number and the offset too, so that a header copied to another place, or standing in a blob, is none. */
static uint32_t record_crc(uint32_t number, uint32_t offset, const uint8_t *h) {
    uint8_t where[8];
    put_u32(where, number);
    put_u32(where + 4, offset);
    uint32_t crc = hash_crc32c(0, where, sizeof(where));
    crc = hash_crc32c(crc, h, 12);
    return hash_crc32c(crc, h + 16, PACK_RECORD_SIZE - 16);
}

void pack_record_encode(uint32_t number, const struct pack_record *r, uint32_t synced, uint8_t out[PACK_RECORD_SIZE]) {
    memcpy(out, record_magic, 4);
    put_u32(out + 4, r->length);
    put_u32(out + 8, synced);
    memcpy(out + 16, r->hash.b, BLOB_HASH_SIZE);
    put_u32(out + 12, record_crc(number, r->offset, out));
}

static bool record_decode(const uint8_t *h, uint32_t number, uint32_t offset, struct pack_record *r, uint32_t *synced) {
    if (memcmp(h, record_magic, 4) != 0 || get_u32(h + 4) > BLOB_MAX_SIZE || get_u32(h + 8) > offset ||
        get_u32(h + 12) != record_crc(number, offset, h))
        return false;
    *r = (struct pack_record){.offset = offset, .length = get_u32(h + 4)};
    *synced = get_u32(h + 8);
    memcpy(r->hash.b, h + 16, BLOB_HASH_SIZE);
    return true;
}

/* A piece of the file in memory, so that a pack of small blobs is read in a few calls and one of large blobs isn't
 * read whole. */
struct window {
    int fd;
    uint64_t at;
    size_t n;
    uint8_t bytes[64 * 1024];
};

/* n bytes at `offset`, or NULL: the end of the file, or (errno set) an error. */
static const uint8_t *look(struct window *w, uint64_t offset, size_t n) {
    errno = 0;
    if (offset < w->at || offset + n > w->at + w->n) {
        ssize_t got = pread(w->fd, w->bytes, sizeof(w->bytes), (off_t)offset);
        w->at = offset;
        w->n = got > 0 ? (size_t)got : 0;
    }
    return offset + n <= w->at + w->n ? w->bytes + (offset - w->at) : NULL;
}

int pack_read(int fd, uint32_t number, const struct pack_record *r, struct buf *out, struct err *e) {
    buf_clear(out);
    uint8_t *p = buf_reserve(out, r->length);
    for (uint32_t n = 0; n < r->length;) {
        ssize_t got = pread(fd, p + n, r->length - n, (off_t)r->offset + PACK_RECORD_SIZE + n);
        if (got < 0)
            return err_sys(e, "cannot read pack-%06u at %u", number, r->offset);
        if (got == 0)
            return err_set(e, E_CORRUPT, "pack-%06u ends inside of the blob at %u", number, r->offset);
        n += (uint32_t)got;
    }
    out->n = r->length;
    struct blob_hash h;
    blob_hash_of(out->p, out->n, &h);
    if (memcmp(&h, &r->hash, sizeof(h)) != 0)
        return err_set(e, E_CORRUPT, "the blob at %u in pack-%06u is damaged", r->offset, number);
    return 0;
}

/* Sets `bad`. Only what can't be read at all is an error. */
static int compare(int fd, uint32_t number, struct pack_record *r, struct buf *scratch, struct err *e) {
    int code = pack_read(fd, number, r, scratch, e);
    r->bad = code == E_CORRUPT;
    return r->bad ? 0 : code;
}

/* The offset of the next record's header at or behind `offset`; 0: there is none. errno tells an error. */
static uint32_t find_record(struct window *w, uint32_t number, uint32_t offset, uint32_t size) {
    struct pack_record r;
    uint32_t synced;
    for (; (uint64_t)offset + PACK_RECORD_SIZE <= size; offset += 8) {
        const uint8_t *h = look(w, offset, PACK_RECORD_SIZE);
        if (!h)
            return 0;
        if (memcmp(h, record_magic, 4) == 0 && record_decode(h, number, offset, &r, &synced) &&
            (uint64_t)offset + PACK_RECORD_SIZE + r.length <= size)
            return offset;
    }
    return 0;
}

static int follow_chain(struct window *w, uint32_t number, struct pack_scan *s, uint32_t *synced, size_t *n_plain,
                        struct err *e) {
    uint32_t size = (uint32_t)MIN(s->size, (uint64_t)UINT32_MAX - BLOB_MAX_SIZE - 64), at = PACK_HEADER_SIZE;
    for (;;) {
        struct pack_record r;
        uint32_t said;
        const uint8_t *h = look(w, at, PACK_RECORD_SIZE);
        if (h && record_decode(h, number, at, &r, &said) && (uint64_t)at + PACK_RECORD_SIZE + r.length <= size) {
            *synced = MAX(*synced, said);
            vec_push(&s->records, r);
            at += pack_room(r.length);
            s->end = at;
            if (!s->has_holes)
                *n_plain = s->records.n;
            continue;
        }
        uint32_t next = h ? find_record(w, number, at + 8, size) : 0;
        if (errno)
            return err_sys(e, "cannot read pack-%06u", number);
        if (!next)
            return 0;
        s->has_holes = true;
        at = next;
    }
}

int pack_scan(int fd, uint32_t number, struct pack_scan *s, struct err *e) {
    *s = (struct pack_scan){.end = PACK_HEADER_SIZE};
    struct stat st;
    if (fstat(fd, &st))
        return err_sys(e, "cannot look at pack-%06u", number);
    s->size = (uint64_t)st.st_size;
    autofree struct window *w = xmalloc(sizeof(*w));
    w->fd = fd, w->at = 0, w->n = 0;
    const uint8_t *h = look(w, 0, PACK_HEADER_SIZE);
    if (errno)
        return err_sys(e, "cannot read pack-%06u", number);
    uint32_t said = number;
    int r = h ? pack_header_decode(h, &said, &s->id) : E_CORRUPT;
    if (r == E_VERSION)
        return err_set(e, r, "pack-%06u is of a version that this program doesn't know (%u)", number, get_u32(h + 8));
    s->header_bad = r || said != number;
    uint32_t synced = PACK_HEADER_SIZE;
    size_t n_plain = 0;
    r = follow_chain(w, number, s, &synced, &n_plain, e);
    auto_buf scratch = {0};
    for (size_t i = 0; !r && i < s->records.n; i++)
        if (i >= n_plain || s->records.p[i].offset >= synced)
            r = compare(fd, number, &s->records.p[i], &scratch, e);
    return r;
}

void pack_scan_fini(struct pack_scan *s) {
    vec_fini(&s->records);
}
