/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of the blob store: `bench_blob put DIR [SECONDS] [SIZE] [IN_FLIGHT]` puts distinct blobs and keeps so many in
 * flight; `bench_blob fill DIR N [SIZE]` makes a store of N; `bench_blob open DIR` opens it. DIR is on the disk that
 * is to be measured. Each ends with a line NAME FIGURE UNIT.
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/blob/blob.h"
#include "io/loop/loop.h"

struct bench {
    struct loop *loop;
    struct blob_store *store;
    uint64_t started, ended, limit;
    int64_t until_ms;
    size_t size, in_flight;
    int failed;
};

static void more(struct bench *b);

static void on_put(void *arg, int code, const struct err *why, const struct blob_hash *h) {
    struct bench *b = arg;
    b->ended++;
    if (code) {
        fprintf(stderr, "%s\n", why->text);
        b->failed = 1;
    }
    more(b);
}

static void more(struct bench *b) {
    while (b->started - b->ended < b->in_flight && b->started < b->limit &&
           (!b->until_ms || loop_now_ms(b->loop) < b->until_ms)) {
        struct buf bytes = {0};
        uint8_t *p = buf_reserve(&bytes, b->size);
        memset(p, 'x', b->size);
        memcpy(p, &b->started, MIN(b->size, sizeof(b->started)));
        bytes.n = b->size;
        b->started++;
        blob_put(b->store, bytes, on_put, b);
    }
}

static bool is_over(void *arg) {
    struct bench *b = arg;
    return b->ended == b->started && (b->started == b->limit || (b->until_ms && loop_now_ms(b->loop) >= b->until_ms));
}

static uint64_t number(int argc, char **argv, int i, uint64_t otherwise) {
    return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

static double seconds_since(struct bench *b, int64_t from_ms) {
    return (double)(loop_now_ms(b->loop) - from_ms) / 1000;
}

static void disk_rate(const char *dir) {
    autofree char *path = xasprintf("%s/fsync-probe", dir);
    autoclose int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    struct loop *l = loop_new("probe");
    int64_t from = loop_now_ms(l);
    int n = 0;
    char block[1024] = "x";
    while (loop_now_ms(l) < from + 1000 && write(fd, block, sizeof(block)) == sizeof(block) && fdatasync(fd) == 0)
        n++;
    unlink(path);
    loop_free(l);
    printf("disk: %d appends of 1 KiB with fdatasync in a second\n", n);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: bench_blob put|fill|open DIR …\n");
        return 2;
    }
    struct bench b = {.loop = loop_new("bench"), .limit = UINT64_MAX, .in_flight = 64, .size = 1000};
    struct err e;
    int64_t from = loop_now_ms(b.loop);
    size_t before = mallinfo2().uordblks;
    if (blob_open(b.loop, argv[2], &b.store, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    if (strcmp(argv[1], "open") == 0) {
        double s = seconds_since(&b, from);
        struct blob_stats st = blob_stats(b.store);
        printf("%lu blobs, %lu packs, %.1f bytes of memory a blob\n", st.n, st.packs,
               (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before) / (double)MAX(st.n, 1ul));
        printf("blob-open %.3f s\n", s);
    } else {
        bool is_put = strcmp(argv[1], "put") == 0;
        if (is_put) {
            disk_rate(argv[2]);
            from = loop_now_ms(b.loop);
            b.until_ms = from + (int64_t)number(argc, argv, 3, 3) * 1000;
            b.in_flight = number(argc, argv, 5, 64);
        } else {
            b.limit = number(argc, argv, 3, 1000000);
            b.in_flight = 4096;
        }
        b.size = number(argc, argv, 4, 1000);
        more(&b);
        loop_run_until(b.loop, is_over, &b, 3600 * 1000);
        double s = seconds_since(&b, from);
        struct blob_stats st = blob_stats(b.store);
        printf("%lu puts of %zu bytes in %.2f s, %lu syncs\n", b.ended, b.size, s, st.syncs);
        printf("blob-%s %.0f puts/s\n", argv[1], (double)b.ended / s);
    }
    blob_close(b.store);
    loop_free(b.loop);
    return b.failed;
}
