/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening of packs and their lists, fed with anything.
 *
 * The first byte says how the rest is taken: as the bytes of a pack, as the bytes of a list, or as a recipe for a pack
 * with right checksums (which chance would never hit) and damage at chosen places.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "io/blob/sidefile.h"

enum { NUMBER = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static uint32_t number_of(struct rd *in) {
    return rd_u8(in) | (uint32_t)rd_u8(in) << 8;
}

/* Rows of: length, how far behind the last sync, what the bytes are. Then places to be damaged. */
static struct buf cook(struct rd *in) {
    struct buf b = {0};
    pack_header_encode(NUMBER, 1, buf_reserve(&b, PACK_HEADER_SIZE));
    b.n = PACK_HEADER_SIZE;
    for (unsigned rows = rd_u8(in) % 16; rows; rows--) {
        struct pack_record r = {.offset = (uint32_t)b.n, .length = number_of(in) % 3000};
        uint32_t behind = number_of(in) & ~7u, synced = r.offset > behind ? r.offset - behind : 0;
        autofree uint8_t *bytes = xcalloc(1, r.length + 8);
        memset(bytes, rd_u8(in), r.length);
        blob_hash_of(bytes, r.length, &r.hash);
        pack_record_encode(NUMBER, &r, synced, buf_reserve(&b, PACK_RECORD_SIZE));
        b.n += PACK_RECORD_SIZE;
        buf_add(&b, bytes, pack_room(r.length) - PACK_RECORD_SIZE);
    }
    while (rd_left(in) >= 3) {
        uint32_t at = number_of(in);
        uint8_t change = rd_u8(in);
        if (at == 0xffff)
            b.n -= MIN(b.n, (size_t)change);
        else
            b.p[at % b.n] ^= change;
        if (b.n <= PACK_HEADER_SIZE)
            break;
    }
    return b;
}

static int file_of(const void *p, size_t n) {
    int fd = memfd_create("pack", MFD_CLOEXEC);
    must(fd >= 0 && (!n || pwrite(fd, p, n, 0) == (ssize_t)n));
    return fd;
}

static void check_pack(const void *p, size_t n) {
    autoclose int fd = file_of(p, n);
    struct pack_scan s;
    struct err e = {0};
    int r = pack_scan(fd, NUMBER, &s, &e);
    must(r == 0 || r == E_VERSION);
    uint64_t behind = PACK_HEADER_SIZE;
    auto_buf bytes = {0};
    for (size_t i = 0; i < s.records.n; i++) {
        const struct pack_record *rec = &s.records.p[i];
        must(rec->offset >= behind && rec->offset % 8 == 0);
        must((uint64_t)rec->offset + PACK_RECORD_SIZE + rec->length <= n);
        behind = (uint64_t)rec->offset + pack_room(rec->length);
        int read = pack_read(fd, NUMBER, rec, &bytes, NULL);
        must(rec->bad ? read == E_CORRUPT : read == 0 || read == E_CORRUPT);
    }
    must(s.end >= behind && s.size == n);
    pack_scan_fini(&s);
}

static int list_dir(void) {
    static int fd = -1;
    static char dir[] = "/tmp/spur-fuzz-XXXXXX";
    if (fd < 0) {
        must(mkdtemp(dir));
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        must(fd >= 0);
    }
    return fd;
}

/* The sum at the end is put right, or nothing behind it would ever be looked at. */
static void check_list(const uint8_t *p, size_t n) {
    auto_buf b = {0};
    buf_add(&b, p, n);
    struct blob_hash sum;
    blob_hash_of(b.p, b.n, &sum);
    buf_add(&b, sum.b, sizeof(sum));
    autoclose int fd = openat(list_dir(), "pack-000003.list", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, b.p, b.n) == (ssize_t)b.n);
    struct pack_scan s;
    int r = sidefile_read(list_dir(), NUMBER, 0, 1 << 20, &s);
    must(r == 0 || r == E_CORRUPT);
    for (size_t i = 0; !r && i < s.records.n; i++)
        must((uint64_t)s.records.p[i].offset + pack_room(s.records.p[i].length) <= s.end);
    pack_scan_fini(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    struct rd in = rd_of(p, n);
    switch (rd_u8(&in) % 3) {
    case 0:
        check_pack(in.p, rd_left(&in));
        break;
    case 1:
        check_list(in.p, rd_left(&in));
        break;
    default: {
        auto_buf b = cook(&in);
        check_pack(b.p, b.n);
    }
    }
    return 0;
}
