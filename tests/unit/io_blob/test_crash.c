/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that dies at each fault point, and disks that are full.
 */
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/fault.h"
#include "fixture.h"

enum { SIZE = 1000, N = 100 };

static int setup(void **state) {
    struct fixture *f = fixture_new();
    f->tuning.pack_bytes = 10000;
    f->tuning.grace_ms = 0;
    f->tuning.piece_bytes = 2 * SIZE;
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture_free(*state);
    return 0;
}

static bool is_tenth(void *arg, const struct blob_hash *h) {
    for (uint32_t i = 0; i < N; i += 10) {
        struct blob_hash named = hash_from(i, SIZE);
        if (memcmp(&named, h, sizeof(*h)) == 0)
            return true;
    }
    return false;
}

/* Runs fn in a child with a loop of its own; true: the fault killed it. */
static bool dies(struct fixture *f, const char *fault, void (*fn)(struct fixture *f)) {
    pid_t child = fork();
    if (child == 0) {
        f->loop = loop_new("child");
        fixture_open(f);
        fault_enable(fault);
        fn(f);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return false;
}

static void put_all(struct fixture *f) {
    for (uint32_t i = 0; i < N; i++)
        if (put_seed(f, i, SIZE))
            _exit(1);
}

static void collect_tenths(struct fixture *f) {
    struct answer a = {0};
    blob_collect(f->store, is_tenth, NULL, on_collected, &a);
    wait_for(f, &a);
}

static void acknowledged_puts_survive(void **state) {
    struct fixture *f = *state;
    for (int k = 1; k <= N + 1; k += 11) {
        autofree char *fault = xasprintf("blob.written:%d=kill", k); /* in the middle of the kth put */
        assert_int_equal(dies(f, fault, put_all), k <= N);
        fixture_open(f);
        for (int i = 0; i < k - 1; i++)
            assert_int_equal(get_seed(f, (uint32_t)i, SIZE), 0);
        fixture_close(f);
        remove_tree(f->dir);
    }
}

/* Dies at the kth pass of each point of a collection, for every k until it gets through. */
static void a_collection_may_die_anywhere(void **state) {
    struct fixture *f = *state;
    static const char *const points[] = {"blob.written", "blob.copied", "blob.removing"};
    for (size_t p = 0; p < ARRAY_LEN(points); p++) {
        int deaths = 0;
        for (bool dead = true; dead;) {
            fixture_open(f);
            put_all(f);
            fixture_close(f);
            autofree char *fault = xasprintf("%s:%d=kill", points[p], deaths + 1);
            dead = dies(f, fault, collect_tenths);
            deaths += dead;
            fixture_open(f);
            for (uint32_t i = 0; i < N; i += 10)
                assert_int_equal(get_seed(f, i, SIZE), 0);
            collect_tenths(f); /* and the next one finishes the work */
            assert_int_equal(blob_stats(f->store).n, N / 10);
            for (uint32_t i = 0; i < N; i += 10)
                assert_int_equal(get_seed(f, i, SIZE), 0);
            fixture_reopen(f);
            for (uint32_t i = 0; i < N; i += 10)
                assert_int_equal(get_seed(f, i, SIZE), 0);
            fixture_close(f);
            remove_tree(f->dir);
        }
        print_message("%s: died %d times\n", points[p], deaths);
        assert_true(deaths > 0);
    }
}

static bool small_disk(struct fixture *f, const char *size) {
    if (mount("none", f->dir, "tmpfs", 0, size)) {
        print_message("skipped: mounting a small tmpfs needs root (%s)\n", strerror(errno));
        return false;
    }
    return true;
}

static void off_disk(struct fixture *f) {
    fixture_close(f);
    assert_int_equal(umount(f->dir), 0);
}

static void a_full_disk(void **state) {
    struct fixture *f = *state;
    f->tuning.pack_bytes = 64 << 20;
    if (!small_disk(f, "size=1m"))
        skip();
    fixture_open(f);
    uint32_t n = 0;
    int r;
    while (!(r = put_seed(f, n, 30000)))
        n++;
    assert_int_equal(r, E_FULL);
    assert_in_range(n, 20, 40);
    struct answer a = {0};
    blob_put(f->store, bytes_from(n, 30000), on_put, &a);
    wait_for(f, &a);
    assert_non_null(strstr(a.why.text, "No space left"));
    assert_int_equal(file_size(f, "pack-000001"), 32 + n * (48 + 30000)); /* nothing of it is left */
    assert_int_equal(put_seed(f, 5000, 10), 0);                          /* what fits, fits */
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(get_seed(f, i, 30000), 0);
    assert_int_equal(mount("none", f->dir, "tmpfs", MS_REMOUNT, "size=2m"), 0);
    assert_int_equal(put_seed(f, n, 30000), 0); /* there is room again */
    fixture_reopen(f);
    for (uint32_t i = 0; i <= n; i++)
        assert_int_equal(get_seed(f, i, 30000), 0);
    off_disk(f);
}

/* In one write, one that finds no room doesn't take the others with it. */
static void a_full_disk_in_the_middle_of_a_write(void **state) {
    struct fixture *f = *state;
    f->tuning.pack_bytes = 64 << 20;
    if (!small_disk(f, "size=1m"))
        skip();
    fixture_open(f);
    struct answer a[3] = {0};
    blob_put(f->store, bytes_from(1, 1000), on_put, &a[0]);
    blob_put(f->store, bytes_from(2, 120000 * 10), on_put, &a[1]);
    blob_put(f->store, bytes_from(3, 1000), on_put, &a[2]);
    for (size_t i = 0; i < 3; i++)
        wait_for(f, &a[i]);
    assert_int_equal(a[0].code, 0);
    assert_int_equal(a[1].code, E_FULL);
    assert_int_equal(a[2].code, 0);
    fixture_reopen(f);
    assert_int_equal(get_seed(f, 1, 1000), 0);
    assert_int_equal(get_seed(f, 2, 1200000), E_NOT_FOUND);
    assert_int_equal(get_seed(f, 3, 1000), 0);
    off_disk(f);
}

static void no_room_for_a_new_pack(void **state) {
    struct fixture *f = *state;
    if (!small_disk(f, "size=64k,nr_inodes=2")) /* the root and one file */
        skip();
    f->tuning.pack_bytes = 100;
    fixture_open(f);
    assert_int_equal(put_seed(f, 1, SIZE), 0);
    assert_int_equal(put_seed(f, 2, SIZE), E_FULL);
    assert_int_equal(get_seed(f, 1, SIZE), 0);
    assert_int_equal(mount("none", f->dir, "tmpfs", MS_REMOUNT, "size=64k,nr_inodes=100"), 0);
    assert_int_equal(put_seed(f, 2, SIZE), 0);
    fixture_reopen(f);
    assert_int_equal(get_seed(f, 1, SIZE), 0);
    assert_int_equal(get_seed(f, 2, SIZE), 0);
    off_disk(f);
}

/* A collection on a full disk: what is wholly dead makes the room for the rest. */
static void collecting_on_a_full_disk(void **state) {
    struct fixture *f = *state;
    if (!small_disk(f, "size=300k"))
        skip();
    fixture_open(f);
    uint32_t n = 0;
    while (!put_seed(f, n, SIZE))
        n++;
    assert_true(n > N);
    for (int round = 0; round < 3; round++)
        collect_tenths(f);
    for (uint32_t i = 0; i < N; i += 10)
        assert_int_equal(get_seed(f, i, SIZE), 0);
    assert_int_equal(blob_stats(f->store).n, N / 10);
    assert_int_equal(put_seed(f, 9999, SIZE), 0);
    fixture_reopen(f);
    for (uint32_t i = 0; i < N; i += 10)
        assert_int_equal(get_seed(f, i, SIZE), 0);
    off_disk(f);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(acknowledged_puts_survive),
        T(a_collection_may_die_anywhere),
        T(a_full_disk),
        T(a_full_disk_in_the_middle_of_a_write),
        T(no_room_for_a_new_pack),
        T(collecting_on_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
