/* SPDX-License-Identifier: Apache-2.0
 *
 * What a crash or a bad disk leaves behind. An image is a copy of the directory of a journal that runs, taken while
 * nothing is in flight: what kill -9 would leave. Then it is cut, torn or damaged, and opened.
 */
#include "rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "io/journal/inside.h"

struct bench {
    struct rig live;
    char *image; /* directory */
};

static int setup(void **state) {
    struct bench *b = xnew(struct bench);
    char *dir = temp_dir();
    rig_init(&b->live, dir, NULL);
    free(dir);
    *state = b;
    return 0;
}

static int teardown(void **state) {
    struct bench *b = *state;
    rig_fini(&b->live);
    temp_remove(b->live.dir);
    if (b->image)
        temp_remove(b->image);
    free(b->image);
    free(b);
    return 0;
}

static void slurp(const char *dir, const char *name, struct buf *out) {
    char *path = xasprintf("%s/%s", dir, name);
    int fd = open(path, O_RDONLY);
    struct stat st;
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    buf_clear(out);
    buf_reserve(out, (size_t)st.st_size + 1);
    assert_int_equal(read(fd, out->p, (size_t)st.st_size), st.st_size);
    out->n = (size_t)st.st_size;
    close(fd);
    free(path);
}

static void spit(const char *dir, const char *name, const void *p, size_t n) {
    char *path = xasprintf("%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, p, n) == (ssize_t)n);
    close(fd);
    free(path);
}

static bool wanted(const char *name) {
    return name[0] != '.' && strcmp(name, LOCK_FILE) != 0 && strcmp(name, RESERVE_FILE) != 0 &&
           strncmp(name, "tmp-", 4) != 0;
}

static void image_take(struct bench *b) {
    if (b->image)
        temp_remove(b->image);
    free(b->image);
    b->image = temp_dir();
    DIR *d = opendir(b->live.dir);
    auto_buf content = {0};
    for (struct dirent *de; (de = readdir(d));) {
        if (!wanted(de->d_name))
            continue;
        slurp(b->live.dir, de->d_name, &content);
        spit(b->image, de->d_name, content.p, content.n);
    }
    closedir(d);
}

/* A text that changes when anything in the directory does. */
static void image_print(const char *dir, struct str *out) {
    DIR *d = opendir(dir);
    auto_buf content = {0};
    uint64_t sum = 0, files = 0;
    for (struct dirent *de; (de = readdir(d));) {
        if (!wanted(de->d_name))
            continue;
        slurp(dir, de->d_name, &content);
        sum += crc_add(crc_add(0, de->d_name, strlen(de->d_name)), content.p, content.n) * (content.n + 1);
        files++;
    }
    closedir(d);
    str_clear(out);
    str_addf(out, "%llu files, %llx", (unsigned long long)files, (unsigned long long)sum);
}

/* The open segment with entries in it, and what it holds. */
static void open_segment(struct bench *b, char *name, struct segment_facts *f) {
    DIR *d = opendir(b->image);
    bool found = false;
    for (struct dirent *de; (de = readdir(d));) {
        if (strncmp(de->d_name, "open-", 5) != 0)
            continue;
        struct segment_facts g;
        assert_int_equal(segment_read(b->image, de->d_name, b->live.log.p[0].index - 1, true, &g, NULL), 0);
        if (g.blank)
            continue;
        assert_false(found);
        found = true;
        *f = g;
        snprintf(name, 64, "%s", de->d_name);
    }
    closedir(d);
    assert_true(found);
}

/* Opens the image: leader, and its values are the first `n`. Then it must take more and keep them. */
static void expect_prefix(struct bench *b, uint64_t n) {
    struct rig r;
    rig_init(&r, b->image, NULL);
    rig_open(&r);
    rig_lead(&r);
    assert_int_equal(r.log.n, n);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(r.log.p[i].value, i + 1);
    rig_propose(&r, 77);
    rig_propose(&r, 78);
    rig_settle(&r);
    assert_int_equal(r.refused, 0);
    rig_reopen(&r);
    rig_lead(&r);
    assert_int_equal(r.log.n, n + 2);
    rig_fini(&r);
}

static void expect_corrupt(struct bench *b, const char *file) {
    auto_str before = {0}, after = {0};
    image_print(b->image, &before);
    struct rig r;
    rig_init(&r, b->image, NULL);
    struct err e = {0};
    int rc = rig_try_open(&r, &e);
    if (rc != E_CORRUPT)
        fail_msg("%s damaged: open returned %d (%s), %d values", file, rc, e.text, (int)r.log.n);
    if (!strstr(e.text, file))
        fail_msg("%s is not named in: %s", file, e.text);
    rig_fini(&r);
    image_print(b->image, &after);
    assert_string_equal(str_text(&before), str_text(&after));
}

static void fill(struct bench *b, int n, bool one_at_a_time) {
    for (int i = 0; i < n; i++) {
        rig_propose(&b->live, (size_t)(8 + (i * 37) % 500));
        if (one_at_a_time)
            rig_settle(&b->live);
    }
    rig_settle(&b->live);
    assert_int_equal(b->live.refused, 0);
}

static void begin(struct bench *b, int n, bool one_at_a_time) {
    rig_open(&b->live);
    rig_lead(&b->live);
    fill(b, n, one_at_a_time);
}

static void test_crash_loses_nothing(void **state) {
    struct bench *b = *state;
    begin(b, 300, false);
    image_take(b);
    expect_prefix(b, 300);
}

static uint32_t next_random(uint32_t *s) {
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

/* Ends of the batches of a segment, found by reading longer and longer prefixes of it. */
static uint64_t entries_before(const struct buf *content, size_t cut, uint64_t first, const char *dir) {
    spit(dir, "prefix", content->p, cut);
    struct segment_facts f;
    assert_int_equal(segment_read(dir, "prefix", first, true, &f, NULL), 0);
    char *path = xasprintf("%s/prefix", dir);
    unlink(path);
    free(path);
    return f.entries;
}

static void test_cut_anywhere(void **state) {
    struct bench *b = *state;
    begin(b, 60, true);
    image_take(b);
    char name[64];
    struct segment_facts f;
    open_segment(b, name, &f);
    auto_buf whole = {0};
    slurp(b->image, name, &whole);
    uint64_t barrier = 1; /* the no-op entry is the first in it */
    assert_int_equal(f.entries, 60 + barrier);
    uint32_t seed = 42;
    for (int i = 0; i < 40; i++) {
        size_t cut = i < 14 ? (size_t)i * 3 : next_random(&seed) % (f.valid_bytes + 100);
        if (i == 39)
            cut = f.valid_bytes;
        image_take(b);
        spit(b->image, name, whole.p, cut);
        uint64_t n = entries_before(&whole, cut, f.first, b->live.dir);
        expect_prefix(b, n > barrier ? n - barrier : 0);
    }
}

static void test_garbage_behind_the_end(void **state) {
    struct bench *b = *state;
    begin(b, 40, true);
    image_take(b);
    char name[64];
    struct segment_facts f;
    open_segment(b, name, &f);
    auto_buf whole = {0};
    slurp(b->image, name, &whole);
    uint32_t seed = 7;
    for (int i = 0; i < 20; i++) {
        image_take(b);
        auto_buf torn = {0};
        buf_add(&torn, whole.p, whole.n);
        size_t n = 1 + next_random(&seed) % 5000;
        for (size_t k = 0; k < n; k++)
            torn.p[f.valid_bytes + k] = (uint8_t)(next_random(&seed) | (i & 1));
        size_t keep = i % 3 == 0 ? f.valid_bytes + n : whole.n; /* and cut behind it, or not */
        spit(b->image, name, torn.p, keep);
        expect_prefix(b, 40);
    }
}

/* Where the entries begin that were not yet durable when the last one was made; all of them may be torn. */
static size_t first_volatile(const struct buf *content, const struct segment_facts *f, const char *dir) {
    struct frame last;
    size_t ignored;
    assert_true(frame_open(content->p + f->valid_bytes - 24, 24, &last, &ignored));
    uint64_t durable = last.index - last.behind - f->first + 1;
    size_t low = 8, high = f->valid_bytes; /* low: as many or fewer whole entries before it */
    while (high - low > 8) {
        size_t middle = (low + high) / 16 * 8;
        *(entries_before(content, middle, f->first, dir) < durable ? &low : &high) = middle;
    }
    return high;
}

/* The last write, of one or of many batches, is on the disk in part only: any of its blocks may be missing. */
static void test_partly_written_batch(void **state) {
    struct bench *b = *state;
    begin(b, 40, true);
    for (int i = 0; i < 200; i++) /* most of these go in one write */
        rig_propose(&b->live, 1500);
    rig_settle(&b->live);
    image_take(b);
    char name[64];
    struct segment_facts f;
    open_segment(b, name, &f);
    auto_buf whole = {0};
    slurp(b->image, name, &whole);
    size_t from = (first_volatile(&whole, &f, b->live.dir) + 4095) & ~(size_t)4095;
    assert_true(f.valid_bytes > from + 5 * 4096);
    uint32_t seed = 99;
    for (int i = 0; i < 20; i++) {
        auto_buf torn = {0};
        buf_add(&torn, whole.p, whole.n);
        for (size_t at = from; at < f.valid_bytes; at += 4096)
            if (next_random(&seed) % 8 == 0)
                memset(torn.p + at, 0, 4096);
        uint64_t n = entries_before(&torn, torn.n, f.first, b->live.dir);
        image_take(b);
        spit(b->image, name, torn.p, torn.n);
        expect_prefix(b, n - 1);
    }
}

/* A bad byte in an entry that was acknowledged before the next was proposed is no torn write. */
static void test_damage_in_open_segment(void **state) {
    struct bench *b = *state;
    begin(b, 40, true);
    image_take(b);
    char name[64];
    struct segment_facts f;
    open_segment(b, name, &f);
    auto_buf whole = {0};
    slurp(b->image, name, &whole);
    uint32_t seed = 5;
    for (int i = 0; i < 30; i++) {
        size_t at = 8 + next_random(&seed) % (f.valid_bytes - 8 - 700); /* not in the last one */
        image_take(b);
        whole.p[at] ^= 0x10;
        spit(b->image, name, whole.p, whole.n);
        whole.p[at] ^= 0x10;
        expect_corrupt(b, name);
    }
    image_take(b);
    whole.p[0] ^= 2; /* the segment's format */
    spit(b->image, name, whole.p, whole.n);
    expect_corrupt(b, name);
}

static char *find(const char *dir, bool (*match)(const char *name), int nth) {
    char *names[64];
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *de; (de = readdir(d)) && n < 64;)
        if (match(de->d_name))
            names[n++] = xstrdup(de->d_name);
    closedir(d);
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++)
            if (strcmp(names[k], names[i]) < 0) {
                char *t = names[i];
                names[i] = names[k];
                names[k] = t;
            }
    char *result = nth < n ? xstrdup(names[nth]) : NULL;
    for (int i = 0; i < n; i++)
        free(names[i]);
    return result;
}

static bool is_closed_segment(const char *name) {
    return name[0] >= '0' && name[0] <= '9';
}

static bool is_snapshot(const char *name) {
    return strncmp(name, "snapshot-", 9) == 0 && !strstr(name, ".meta");
}

static bool is_snapshot_meta(const char *name) {
    return strncmp(name, "snapshot-", 9) == 0 && strstr(name, ".meta");
}

static void unlink_in(const char *dir, const char *name) {
    char *path = xasprintf("%s/%s", dir, name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

static void test_damage_in_closed_segment(void **state) {
    struct bench *b = *state;
    begin(b, 20, false);
    rig_reopen(&b->live); /* closes a segment */
    rig_lead(&b->live);
    fill(b, 20, false);
    rig_reopen(&b->live);
    rig_lead(&b->live);
    fill(b, 20, false);
    for (int nth = 0; nth < 3; nth++) {
        for (int how = 0; how < 4; how++) {
            image_take(b);
            char *name = find(b->image, is_closed_segment, nth);
            char *next = find(b->image, is_closed_segment, nth + 1);
            assert_non_null(name);
            auto_buf c = {0};
            slurp(b->image, name, &c);
            const char *named = name;
            if (how == 0) {
                c.p[c.n / 2] ^= 1;
                spit(b->image, name, c.p, c.n);
            } else if (how == 1) {
                spit(b->image, name, c.p, c.n - 8);
            } else if (how == 2) {
                spit(b->image, name, c.p, 0);
            } else {
                unlink_in(b->image, name);
                named = next ? next : "open-";
            }
            expect_corrupt(b, named);
            free(name);
            free(next);
        }
    }
}

static void test_damage_elsewhere(void **state) {
    struct bench *b = *state;
    begin(b, 20, false);
    auto_buf c = {0};
    /* alone the term never changes: there is one metadata file */
    image_take(b);
    slurp(b->image, "metadata1", &c);
    c.p[0] = 9;
    spit(b->image, "metadata1", c.p, c.n);
    expect_corrupt(b, "metadata1");
    image_take(b);
    unlink_in(b->image, "metadata1");
    expect_corrupt(b, "metadata1");
    image_take(b);
    unlink_in(b->image, OWNER_FILE);
    expect_corrupt(b, OWNER_FILE);
    image_take(b);
    spit(b->image, OWNER_FILE, "nonsense", 8);
    expect_corrupt(b, OWNER_FILE);
    image_take(b);
    spit(b->image, OWNER_FILE, "spur journal 2\nmember 1\n", 24);
    struct rig r;
    struct err e = {0};
    rig_init(&r, b->image, NULL);
    assert_int_equal(rig_try_open(&r, &e), E_VERSION);
    rig_fini(&r);
}

static bool has_snapshot(struct rig *r) {
    return journal_stats(r->j).snapshot_index > 0;
}

static void test_damage_in_snapshot(void **state) {
    struct bench *b = *state;
    begin(b, 20, false);
    journal_snapshot_now(b->live.j);
    rig_until(&b->live, has_snapshot, 10000);
    fill(b, 5, false);
    bool (*kinds[])(const char *) = {is_snapshot, is_snapshot_meta};
    for (int k = 0; k < 2; k++) {
        image_take(b);
        char *name = find(b->image, kinds[k], 0);
        auto_buf c = {0};
        slurp(b->image, name, &c);
        c.p[c.n / 2] ^= 4;
        spit(b->image, name, c.p, c.n);
        expect_corrupt(b, name);
        spit(b->image, name, c.p, c.n / 2);
        expect_corrupt(b, name);
        free(name);
    }
    /* One half only is what a crash leaves, and the log is still there. */
    image_take(b);
    char *name = find(b->image, is_snapshot, 0);
    unlink_in(b->image, name);
    expect_prefix(b, 25);
    free(name);
}

static void test_bootstrap_that_was_cut_short(void **state) {
    struct bench *b = *state;
    begin(b, 0, false);
    const char *gone[] = {OWNER_FILE, "metadata1", NULL};
    rig_close(&b->live);
    for (int i = 0; gone[i]; i++) { /* as if it had died before the first, then before the second */
        unlink_in(b->live.dir, gone[i]);
        /* what was written after bootstrapping isn't there either */
        image_take(b);
        char *name = find(b->image, is_closed_segment, 1);
        if (name)
            unlink_in(b->image, name);
        free(name);
        expect_prefix(b, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_crash_loses_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_anywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage_behind_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_partly_written_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_in_open_segment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_in_closed_segment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_in_snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bootstrap_that_was_cut_short, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
