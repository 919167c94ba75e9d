/* SPDX-License-Identifier: Apache-2.0 */
#include "io/blob/sidefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

enum { HEAD = 32, ROW = BLOB_HASH_SIZE + 8, VERSION = 1 };
static const char magic[] = "SPURLIST"; /* 8 bytes of it are written */

int sidefile_write(int dir_fd, uint32_t number, uint64_t pack_id, uint32_t pack_end, const struct pack_record *records,
                   size_t n, struct err *e) {
    auto_buf b = {0};
    buf_add(&b, magic, 8);
    buf_u32le(&b, VERSION);
    buf_u32le(&b, (uint32_t)n);
    buf_u64le(&b, pack_id);
    buf_u32le(&b, pack_end);
    buf_u32le(&b, 0);
    for (size_t i = 0; i < n; i++) {
        buf_add(&b, records[i].hash.b, BLOB_HASH_SIZE);
        buf_u32le(&b, records[i].offset);
        buf_u32le(&b, records[i].length);
    }
    struct blob_hash sum;
    blob_hash_of(b.p, b.n, &sum);
    buf_add(&b, sum.b, sizeof(sum));
    char name[32], temporary[36];
    snprintf(name, sizeof(name), "pack-%06u.list", number);
    snprintf(temporary, sizeof(temporary), "%s.new", name);
    autoclose int fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write(fd, b.p, b.n) || renameat(dir_fd, temporary, dir_fd, name)) {
        err_sys(e, "cannot write %s", name);
        unlinkat(dir_fd, temporary, 0);
        return E_SYS;
    }
    return 0;
}

static int read_file(int dir_fd, const char *name, struct buf *out) {
    autoclose int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return errno == ENOENT ? E_NOT_FOUND : E_SYS;
    if (fstat(fd, &st))
        return E_SYS;
    if (st.st_size < HEAD + BLOB_HASH_SIZE || st.st_size > 1 << 30)
        return E_CORRUPT;
    buf_reserve(out, (size_t)st.st_size);
    while (out->n < (size_t)st.st_size) {
        ssize_t got = read(fd, out->p + out->n, (size_t)st.st_size - out->n);
        if (got <= 0)
            return got ? E_SYS : E_CORRUPT;
        out->n += (size_t)got;
    }
    return 0;
}

static bool sum_holds(const struct buf *b) {
    struct blob_hash sum;
    blob_hash_of(b->p, b->n - BLOB_HASH_SIZE, &sum);
    return memcmp(b->p + b->n - BLOB_HASH_SIZE, sum.b, BLOB_HASH_SIZE) == 0;
}

int sidefile_read(int dir_fd, uint32_t number, uint64_t pack_id, uint64_t pack_size, struct pack_scan *out) {
    *out = (struct pack_scan){.end = PACK_HEADER_SIZE, .size = pack_size};
    char name[32];
    snprintf(name, sizeof(name), "pack-%06u.list", number);
    auto_buf b = {0};
    int r = read_file(dir_fd, name, &b);
    if (r)
        return r;
    struct rd in = rd_of(b.p, b.n - BLOB_HASH_SIZE);
    const uint8_t *m = rd_take(&in, 8);
    uint32_t version = rd_u32le(&in), n = rd_u32le(&in);
    out->id = rd_u64le(&in);
    out->end = rd_u32le(&in);
    rd_u32le(&in);
    if (!m || memcmp(m, magic, 8) != 0 || version != VERSION || rd_left(&in) != (uint64_t)n * ROW || !sum_holds(&b) ||
        (pack_id && out->id != pack_id))
        return E_CORRUPT;
    for (uint32_t i = 0; i < n; i++) {
        struct pack_record p = {0};
        memcpy(p.hash.b, rd_take(&in, BLOB_HASH_SIZE), BLOB_HASH_SIZE);
        p.offset = rd_u32le(&in);
        p.length = rd_u32le(&in);
        if (p.length > BLOB_MAX_SIZE || (uint64_t)p.offset + pack_room(p.length) > out->end)
            return E_CORRUPT;
        vec_push(&out->records, p);
    }
    return 0;
}
