/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads one segment file of the log, as libraft 0.22 writes them, and says what of it is whole.
 *
 *     8 bytes: format (1)
 *     batch: CRC of the header, CRC of the data (4 bytes each); header: count (8), and for each entry term (8),
 *            type (1), unused (3), length (4); then the data of all entries
 *
 * All numbers are little endian. An open segment is allocated ahead and full of zeros behind its last batch.
 *
 * A crash tears the write that was under way, never an earlier one: libraft has one write in flight and waits until it
 * is durable. So a batch that doesn't check is either torn, and nobody was told of it, or damage. Each of our entries
 * carries how many of its predecessors were not yet durable when it was made: a whole entry behind the bad batch that
 * says the bad one was durable proves damage. That holds for a member that is alone. A follower's entries speak of
 * their leader's disk, so there the tail of the last segment is taken for torn, and the leader sends it again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/journal/check.h"
#include "io/journal/frame.h"

#define TYPE_COMMAND 1 /* the only type of ours */
#define FILE_BYTES_MAX (256u << 20)
#define BATCH_ENTRIES_MAX (SEGMENT_BYTES / 32)

struct batch_facts {
    size_t bytes;
    uint64_t entries, term_max;
    bool framed; /* `frame` is of the last entry of ours in it, which is its `framed_at`th */
    uint64_t framed_at;
    struct frame frame;
};

static uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const uint8_t *p) {
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static bool batch_read(const uint8_t *p, size_t n, struct batch_facts *out) {
    if (n < 16)
        return false;
    uint64_t count = get64(p + 8);
    if (count == 0 || count > BATCH_ENTRIES_MAX || (n - 16) / 16 < count)
        return false;
    size_t head = 8 + 16 * count;
    if (crc_add(0, p + 8, head) != get32(p))
        return false;
    size_t data = 0, left = n - 8 - head;
    for (uint64_t i = 0; i < count; i++) {
        data += get32(p + 16 + 16 * i + 12);
        if (data > left)
            return false;
    }
    if (crc_add(0, p + 8 + head, data) != get32(p + 4))
        return false;
    *out = (struct batch_facts){.bytes = 8 + head + data, .entries = count};
    const uint8_t *d = p + 8 + head;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *h = p + 16 + 16 * i;
        size_t len = get32(h + 12), ignored;
        out->term_max = MAX(out->term_max, get64(h));
        if (h[8] == TYPE_COMMAND && frame_open(d, len, &out->frame, &ignored)) {
            out->framed = true;
            out->framed_at = i;
        }
        d += len;
    }
    return true;
}

static bool all_zero(const uint8_t *p, size_t n) {
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Is there a whole batch behind the bad one (entry `bad` at p) which proves that the bad one was durable? */
static bool was_durable(const uint8_t *p, size_t n, uint64_t bad, bool alone) {
    for (size_t at = 8; alone && at + 16 <= n;) {
        struct batch_facts b;
        if (!batch_read(p + at, n - at, &b)) {
            at += 8;
            continue;
        }
        if (b.framed && b.frame.behind > 0 && b.frame.index >= b.frame.behind &&
            b.frame.index - b.frame.behind >= bad)
            return true;
        at += b.bytes;
    }
    return false;
}

static void segment_scan(const uint8_t *p, size_t n, uint64_t first, bool alone, struct segment_facts *out) {
    *out = (struct segment_facts){.first = first, .bytes = n};
    if (n < 8 || get64(p) != 1) {
        out->blank = all_zero(p, n);
        out->torn = !out->blank;
        out->lost = out->torn && was_durable(p, n, first, alone);
        return;
    }
    size_t at = 8;
    struct batch_facts b;
    while (batch_read(p + at, n - at, &b)) {
        if (b.framed && b.frame.index != first + out->entries + b.framed_at) {
            out->wrong_index = true;
            return;
        }
        at += b.bytes;
        out->entries += b.entries;
        out->term_max = MAX(out->term_max, b.term_max);
        out->valid_bytes = at;
    }
    out->torn = !all_zero(p + at, n - at);
    out->lost = out->torn && was_durable(p + at, n - at, first + out->entries, alone);
}

static int read_whole(const char *dir, const char *name, struct buf *out, struct err *e) {
    autofree char *path = xasprintf("%s/%s", dir, name);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "%s", path);
    if (st.st_size > FILE_BYTES_MAX)
        return err_set(e, E_CORRUPT, "%s: has %lld bytes, more than a segment can have", path, (long long)st.st_size);
    /* What is read here counts as stored from now on. A write that was under way when the process was killed, or that
     * failed, may be in memory alone. */
    if (fdatasync(fd) < 0)
        return err_sys(e, "%s", path);
    buf_reserve(out, (size_t)st.st_size + 1);
    ssize_t got = fd_read(fd, out->p, (size_t)st.st_size);
    if (got < 0)
        return err_sys(e, "%s", path);
    out->n = (size_t)got;
    return 0;
}

int segment_read(const char *dir, const char *name, uint64_t first, bool alone, struct segment_facts *out,
                 struct err *e) {
    auto_buf b = {0};
    int rc = read_whole(dir, name, &b, e);
    if (rc == 0)
        segment_scan(b.p, b.n, first, alone, out);
    return rc;
}
