/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs as bytes: what a scan finds in whole, cut and damaged ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "io/blob/pack.h"

enum { NUMBER = 7, N = 5 };
static const uint32_t sizes[N] = {10, 0, 4096, 100001, 8};

/* A pack of N records; the last n_last of them are one batch that was not on disk when the next would have begun. */
static struct buf make_pack(size_t n_last, uint32_t offsets[N + 1]) {
    struct buf b = {0};
    pack_header_encode(NUMBER, 99, buf_reserve(&b, PACK_HEADER_SIZE));
    b.n = PACK_HEADER_SIZE;
    uint32_t synced = PACK_HEADER_SIZE;
    for (size_t i = 0; i < N; i++) {
        if (i <= N - n_last)
            synced = (uint32_t)b.n;
        struct pack_record r = {.offset = (uint32_t)b.n, .length = sizes[i]};
        autofree uint8_t *bytes = xcalloc(1, sizes[i] + 8);
        memset(bytes, 'a' + (int)i, sizes[i]);
        blob_hash_of(bytes, sizes[i], &r.hash);
        uint8_t head[PACK_RECORD_SIZE];
        pack_record_encode(NUMBER, &r, synced, head);
        buf_add(&b, head, sizeof(head));
        buf_add(&b, bytes, pack_room(sizes[i]) - PACK_RECORD_SIZE);
        offsets[i] = r.offset;
    }
    offsets[N] = (uint32_t)b.n;
    return b;
}

static int file_of(const void *p, size_t n) {
    int fd = memfd_create("pack", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, p, n, 0), n);
    return fd;
}

static int scan(const void *p, size_t n, struct pack_scan *s) {
    autoclose int fd = file_of(p, n);
    struct err e;
    return pack_scan(fd, NUMBER, s, &e);
}

static void a_whole_pack(void **state) {
    uint32_t at[N + 1];
    auto_buf b = make_pack(1, at);
    struct pack_scan s;
    assert_int_equal(scan(b.p, b.n, &s), 0);
    assert_int_equal(s.records.n, N);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(s.records.p[i].offset, at[i]);
        assert_int_equal(s.records.p[i].length, sizes[i]);
        assert_false(s.records.p[i].bad);
    }
    assert_int_equal(s.id, 99);
    assert_int_equal(s.end, b.n);
    assert_false(s.header_bad || s.has_holes);
    autoclose int fd = file_of(b.p, b.n);
    auto_buf bytes = {0};
    assert_int_equal(pack_read(fd, NUMBER, &s.records.p[3], &bytes, NULL), 0);
    assert_int_equal(bytes.n, sizes[3]);
    assert_int_equal(bytes.p[100000], 'd');
    pack_scan_fini(&s);
}

static void cut_at_every_byte(void **state) {
    uint32_t at[N + 1];
    auto_buf b = make_pack(1, at);
    for (size_t n = 0; n <= b.n; n += n > at[3] + 64 && n < at[4] - 64 ? 997 : 1) {
        struct pack_scan s;
        assert_int_equal(scan(b.p, n, &s), 0);
        size_t whole = 0;
        while (whole < N && at[whole] + PACK_RECORD_SIZE + sizes[whole] <= n)
            whole++;
        assert_int_equal(s.header_bad, n < PACK_HEADER_SIZE);
        if (!s.header_bad) {
            assert_int_equal(s.records.n, whole);
            assert_int_equal(s.end, at[whole]);
        }
        assert_false(s.has_holes);
        pack_scan_fini(&s);
    }
}

static size_t count_bad(const struct pack_scan *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->records.n; i++)
        n += s->records.p[i].bad;
    return n;
}

/* Zeros under a good header: noticed by the scan only where the writer may have died. */
static void zeros_in_the_last_batch(void **state) {
    uint32_t at[N + 1];
    for (size_t n_last = 1; n_last <= N; n_last++)
        for (size_t i = 0; i < N; i++) {
            auto_buf b = make_pack(n_last, at);
            if (!sizes[i])
                continue;
            memset(b.p + at[i] + PACK_RECORD_SIZE, 0, sizes[i]);
            struct pack_scan s;
            assert_int_equal(scan(b.p, b.n, &s), 0);
            assert_int_equal(s.records.n, N);
            assert_int_equal(count_bad(&s), i >= N - n_last ? 1 : 0);
            assert_int_equal(s.records.p[i].bad, i >= N - n_last);
            autoclose int fd = file_of(b.p, b.n);
            auto_buf bytes = {0};
            assert_int_equal(pack_read(fd, NUMBER, &s.records.p[i], &bytes, NULL), E_CORRUPT);
            pack_scan_fini(&s);
        }
}

static void a_damaged_header_hides_one_record_only(void **state) {
    uint32_t at[N + 1];
    for (size_t i = 0; i < N; i++)
        for (size_t byte = 0; byte < PACK_RECORD_SIZE; byte++) {
            auto_buf b = make_pack(1, at);
            b.p[at[i] + byte] ^= 0x10;
            struct pack_scan s;
            assert_int_equal(scan(b.p, b.n, &s), 0);
            assert_int_equal(s.records.n, N - 1);
            for (size_t k = 0; k < s.records.n; k++)
                assert_int_equal(s.records.p[k].offset, at[k < i ? k : k + 1]);
            assert_int_equal(s.has_holes, i < N - 1);
            assert_int_equal(s.end, i < N - 1 ? at[N] : at[N - 1]);
            pack_scan_fini(&s);
        }
}

/* Somebody's blob holds what looks like a record; behind damage the scan may stumble on it. */
static void a_record_inside_of_a_blob_is_not_believed(void **state) {
    uint32_t at[N + 1];
    auto_buf b = make_pack(1, at);
    uint32_t inner = at[2] + PACK_RECORD_SIZE + 64;
    struct pack_record forged = {.offset = inner, .length = 16};
    memset(forged.hash.b, 0x55, sizeof(forged.hash.b));
    pack_record_encode(NUMBER, &forged, PACK_HEADER_SIZE, b.p + inner);
    struct pack_scan s;
    assert_int_equal(scan(b.p, b.n, &s), 0);
    assert_int_equal(s.records.n, N); /* the chain passes over it */
    pack_scan_fini(&s);
    b.p[at[2]] ^= 1;
    assert_int_equal(scan(b.p, b.n, &s), 0);
    for (size_t i = 0; i < s.records.n; i++)
        assert_int_equal(s.records.p[i].bad, s.records.p[i].offset == inner);
    pack_scan_fini(&s);
    /* and one that was copied from elsewhere is no record at all */
    pack_record_encode(NUMBER + 1, &forged, PACK_HEADER_SIZE, b.p + inner);
    assert_int_equal(scan(b.p, b.n, &s), 0);
    assert_int_equal(count_bad(&s), 0);
    pack_scan_fini(&s);
}

static void another_version_is_refused(void **state) {
    uint32_t at[N + 1], number;
    uint64_t id;
    auto_buf b = make_pack(1, at);
    assert_int_equal(pack_header_decode(b.p, &number, &id), 0);
    assert_int_equal(number, NUMBER);
    static const uint8_t of_version_2[PACK_HEADER_SIZE] = {
        'S', 'P', 'U', 'R', 'P', 'A', 'C', 'K', 2, 0, 0, 0, 7, 0, 0, 0, [28] = 0xff, 0xff, 0xff, 0xff,
    };
    assert_int_equal(pack_header_decode(of_version_2, &number, &id), E_CORRUPT); /* its sum is wrong */
    uint8_t h[PACK_HEADER_SIZE];
    pack_header_encode(NUMBER, 99, h);
    h[8] = 2;
    uint32_t crc = 0xffffffff;
    for (int i = 0; i < 28; i++) { /* a plain CRC-32C, so that base/hash is not measured by itself */
        crc ^= h[i];
        for (int k = 0; k < 8; k++)
            crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    crc = ~crc;
    for (int i = 0; i < 4; i++)
        h[28 + i] = (uint8_t)(crc >> (8 * i));
    memcpy(b.p, h, sizeof(h));
    struct pack_scan s;
    autoclose int fd = file_of(b.p, b.n);
    struct err e;
    assert_int_equal(pack_scan(fd, NUMBER, &s, &e), E_VERSION);
    assert_non_null(strstr(e.text, "pack-000007"));
    pack_scan_fini(&s);
}

/* The first bytes of the file of version 1 as they stand on disks, put together by hand (Python): they never change. */
static void version_1_is_what_it_was(void **state) {
    uint8_t h[PACK_HEADER_SIZE], r[PACK_RECORD_SIZE];
    pack_header_encode(1, 0x1122334455667788, h);
    struct pack_record rec = {.offset = 32, .length = 3};
    blob_hash_of("abc", 3, &rec.hash);
    pack_record_encode(1, &rec, 32, r);
    static const uint8_t want_h[] = {
        0x53, 0x50, 0x55, 0x52, 0x50, 0x41, 0x43, 0x4b, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0x00, 0x00, 0x00, 0x99, 0x19, 0x54, 0x63,
    };
    static const uint8_t want_r[] = {
        0x42, 0x4c, 0x4f, 0x42, 0x03, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x70, 0x89, 0x4d, 0x87,
        0xbd, 0xdd, 0x81, 0x3c, 0x63, 0x42, 0x39, 0x72, 0x31, 0x71, 0xef, 0x3f, 0xee, 0x98, 0x57, 0x9b,
        0x94, 0x96, 0x4e, 0x3b, 0xb1, 0xcb, 0x3e, 0x42, 0x72, 0x62, 0xc8, 0xc0, 0x68, 0xd5, 0x23, 0x19,
    };
    assert_memory_equal(h, want_h, sizeof(want_h));
    assert_memory_equal(r, want_r, sizeof(want_r));
}

static void records_that_lie(void **state) {
    uint32_t at[N + 1];
    auto_buf b = make_pack(1, at);
    struct pack_record r = {.offset = at[4], .length = BLOB_MAX_SIZE + 1};
    pack_record_encode(NUMBER, &r, 32, b.p + at[4]);
    struct pack_scan s;
    assert_int_equal(scan(b.p, b.n, &s), 0);
    assert_int_equal(s.records.n, N - 1);
    pack_scan_fini(&s);
    r.length = 8;
    pack_record_encode(NUMBER, &r, at[4] + 8, b.p + at[4]); /* on disk before it was written */
    assert_int_equal(scan(b.p, b.n, &s), 0);
    assert_int_equal(s.records.n, N - 1);
    pack_scan_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_pack),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(zeros_in_the_last_batch),
        cmocka_unit_test(a_damaged_header_hides_one_record_only),
        cmocka_unit_test(a_record_inside_of_a_blob_is_not_believed),
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(version_1_is_what_it_was),
        cmocka_unit_test(records_that_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
