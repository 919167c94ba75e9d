/* SPDX-License-Identifier: Apache-2.0
 *
 * Durable proposals a second, one at a time and many in flight, beside what the disk itself does in the same run and
 * directory:  journal_rate [DIR [SECONDS [BYTES [IN_FLIGHT]]]]
 *
 * The disk's own rate is that of a loop that writes the next 4 KiB of a file and makes it durable, in two ways: as a
 * program would (buffered, append, fdatasync) and as the journal does (O_DIRECT and RWF_DSYNC into an allocated file).
 * The parts take turns and each says its best and its median, because other users of the disk come and go.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/journal/journal.h"
#include "io/loop/loop.h"

#define ROUNDS 5

struct bench {
    struct loop *loop;
    struct journal *j;
    size_t bytes, in_flight;
    uint64_t proposed, done, refused;
    int64_t until_ms;
    bool leader;
};

struct series {
    const char *name;
    double v[ROUNDS];
};

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void propose(struct bench *b) {
    struct buf e = {0};
    memset(buf_reserve(&e, b->bytes), 7, b->bytes);
    e.n = b->bytes;
    b->proposed++;
    journal_propose(b->j, e, b);
}

static void answered(struct bench *b) {
    b->done++;
    if (loop_now_ms(b->loop) < b->until_ms)
        propose(b);
}

static void on_entry(void *ctx, uint64_t index, uint64_t term, const void *p, size_t n, void *tag) {
    if (tag)
        answered(ctx);
}

static void on_refused(void *ctx, void *tag, int code, const struct err *why) {
    struct bench *b = ctx;
    if (b->refused++ == 0)
        fprintf(stderr, "refused: %s\n", why->text);
    answered(b);
}

static void on_leader(void *ctx, bool is_leader, uint64_t term) {
    ((struct bench *)ctx)->leader = is_leader;
}

static void on_snapshot(void *ctx, uint64_t index) {
    journal_snapshot_done(((struct bench *)ctx)->j, index, "none", 4);
}

static int on_restore(void *ctx, uint64_t index, const void *manifest, size_t n, struct err *e) {
    return 0;
}

static bool is_leader(void *arg) {
    return ((struct bench *)arg)->leader;
}

static bool is_over(void *arg) {
    struct bench *b = arg;
    return b->done == b->proposed && loop_now_ms(b->loop) >= b->until_ms;
}

static double journal_round(struct bench *b, size_t in_flight, int64_t ms) {
    int64_t began = loop_now_ms(b->loop);
    b->until_ms = began + ms;
    b->proposed = b->done = 0;
    for (size_t i = 0; i < in_flight; i++)
        propose(b);
    if (!loop_run_until(b->loop, is_over, b, (uint64_t)ms + 60000))
        exit(1);
    return (double)b->done * 1000 / (double)(loop_now_ms(b->loop) - began);
}

static double disk_round(struct bench *b, const char *dir, bool direct, int64_t ms) {
    char *path = xasprintf("%s/disk-rate", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | (direct ? O_DIRECT : 0), 0600);
    void *block = NULL;
    if (fd < 0 || posix_memalign(&block, 4096, 4096) != 0)
        die(path);
    memset(block, 1, 4096);
    if (direct && posix_fallocate(fd, 0, 64 << 20) != 0)
        die("fallocate");
    int64_t began = loop_now_ms(b->loop), now;
    off_t at = 0;
    uint64_t n = 0;
    struct iovec v = {block, 4096};
    while ((now = loop_now_ms(b->loop)) < began + ms) {
        if (pwritev2(fd, &v, 1, at, direct ? RWF_DSYNC : 0) != 4096 || (!direct && fdatasync(fd) < 0))
            die("write");
        at = direct ? (at + 4096) % (64 << 20) : at + 4096;
        n++;
    }
    close(fd);
    unlink(path);
    free(path);
    free(block);
    return (double)n * 1000 / (double)(now - began);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print(struct series *s, const struct series *of) {
    qsort(s->v, ROUNDS, sizeof(*s->v), by_value);
    printf("%-44s %9.0f/s median, %9.0f/s best", s->name, s->v[ROUNDS / 2], s->v[ROUNDS - 1]);
    if (of)
        printf("   %3.0f %% of the disk's", 100 * s->v[ROUNDS / 2] / of->v[ROUNDS / 2]);
    printf("\n");
}

static void remove_dir(const char *dir) {
    DIR *d = opendir(dir);
    for (struct dirent *de; d && (de = readdir(d));)
        unlinkat(dirfd(d), de->d_name, 0);
    closedir(d);
    rmdir(dir);
}

int main(int argc, char **argv) {
    const char *base = argc > 1 ? argv[1] : ".";
    int64_t ms = (argc > 2 ? atol(argv[2]) : 5) * 1000 / ROUNDS;
    struct bench b = {.loop = loop_new("bench"), .bytes = argc > 3 ? (size_t)atol(argv[3]) : 200};
    b.in_flight = argc > 4 ? (size_t)atol(argv[4]) : 64;
    char *dir = xasprintf("%s/journal-rate-XXXXXX", base);
    if (!mkdtemp(dir))
        die(dir);
    struct journal_conf conf = {.dir = dir, .id = 1};
    struct journal_owner owner = {&b, on_entry, on_refused, on_leader, on_snapshot, on_restore, NULL};
    struct err e;
    if (journal_open(b.loop, &conf, &owner, &b.j, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    if (!loop_run_until(b.loop, is_leader, &b, 10000))
        return 1;
    journal_stats_reset(b.j); /* not those of opening */
    char many_name[64];
    snprintf(many_name, sizeof(many_name), "journal, %zu in flight, %zu bytes", b.in_flight, b.bytes);
    struct series buffered = {"disk: append 4 KiB, fdatasync"}, direct = {"disk: O_DIRECT, RWF_DSYNC, allocated"},
                  one = {"journal, one at a time"}, many = {many_name};
    for (int i = 0; i < ROUNDS; i++) {
        buffered.v[i] = disk_round(&b, base, false, ms);
        direct.v[i] = disk_round(&b, base, true, ms);
        one.v[i] = journal_round(&b, 1, ms);
        many.v[i] = journal_round(&b, b.in_flight, ms);
    }
    struct journal_stats s = journal_stats(b.j);
    print(&buffered, NULL);
    print(&direct, NULL);
    print(&one, &buffered);
    print(&many, NULL);
    printf("appends %llu, p99 %llu us, longest %llu us; longest gap of the journal's loop %llu us; refused %llu\n",
           (unsigned long long)s.appends, (unsigned long long)s.append_p99_us, (unsigned long long)s.append_max_us,
           (unsigned long long)s.gap_max_us, (unsigned long long)b.refused);
    journal_close(b.j);
    loop_free(b.loop);
    remove_dir(dir);
    free(dir);
    return 0;
}
