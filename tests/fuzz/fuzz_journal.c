/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal's directory before libraft is let near it. The input is its files: name (an index), length (2 bytes), bytes. The
 * first byte says whether the checksums of segments and descriptions are made right first (which chance would never hit), and
 * whether the member is alone. What was checked and repaired is whole when it is checked again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/journal/check.h"
#include "io/journal/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const names[] = {"metadata1", "metadata2", "journal", "0000000000000001-0000000000000001",
                                    "0000000000000002-0000000000000003", "open-1", "open-2",
                                    "snapshot-1-3-7.meta", "snapshot-1-3-7"};
enum { N_NAMES = ARRAY_LEN(names), FIRST_SEGMENT = 3, LAST_SEGMENT = 6, META = 7 };
static char dir[64];

static void put32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}
static uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* As far as the batches make sense, both checksums of each. */
static void sign_segment(uint8_t *p, size_t n) {
    for (size_t at = 8; at + 16 <= n;) {
        uint32_t count = get32(p + at + 8);
        if (!count || count > 64 || n - at - 16 < 16 * (size_t)count)
            return;
        size_t head = 8 + 16 * (size_t)count, size = 0;
        for (uint32_t i = 0; i < count; i++)
            size += get32(p + at + 16 + 16 * i + 12);
        if (size > n - at - 8 - head)
            return;
        put32(p + at, crc_add(0, p + at + 8, head));
        put32(p + at + 4, crc_add(0, p + at + 8 + head, size));
        at += 8 + head + size;
    }
}

static void write_file(const char *name, const uint8_t *p, size_t n) {
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, p, n) == (ssize_t)n);
    close(fd);
}

static void remove_files(void) {
    char path[160];
    for (size_t i = 0; i < N_NAMES; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
}

static void remove_dir(void) {
    remove_files();
    rmdir(dir);
}

static void begin(void) {
    snprintf(dir, sizeof(dir), "%s", access("/dev/shm", W_OK) == 0 ? "/dev/shm/fuzz-journal-XXXXXX" : "/tmp/fuzz-journal-XXXXXX");
    must(mkdtemp(dir));
    atexit(remove_dir);
}

static void look(bool alone) {
    struct check c, again;
    struct err e = {0};
    int rc = check_dir(dir, 1, alone, &c, &e);
    if (rc) {
        must(rc < 0 && *e.text);
        return;
    }
    must(c.last >= c.snapshot_index || c.fresh);
    must(check_repair(dir, &c, &e) == 0);
    rc = check_dir(dir, 1, alone, &again, &e);
    must(rc == 0 && again.fresh == c.fresh && !again.torn);
    must(c.fresh || (again.last == c.last && again.snapshot_index == c.snapshot_index));
    check_fini(&again);
    check_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!*dir)
        begin();
    struct rd in = rd_of(data, n);
    uint8_t how = rd_u8(&in);
    while (rd_left(&in) >= 3) {
        size_t which = rd_u8(&in) % N_NAMES;
        size_t length = rd_u8(&in);
        length |= (size_t)rd_u8(&in) << 8;
        length = MIN(length, rd_left(&in));
        autofree uint8_t *p = xcalloc(1, length + 1);
        memcpy(p, rd_take(&in, length), length);
        if (how & 1 && which >= FIRST_SEGMENT && which <= LAST_SEGMENT)
            sign_segment(p, length);
        if (how & 1 && which == META && length > 16)
            put32(p + 8, crc_add(0, p + 16, length - 16));
        write_file(names[which], p, length);
    }
    look(how & 2);
    struct blob b;
    struct frame f;
    size_t inner;
    if (blob_read(data, n, &b))
        must(b.n <= n);
    if (frame_open(data, n, &f, &inner))
        must(inner <= n);
    remove_files();
    return 0;
}
