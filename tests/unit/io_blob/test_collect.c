/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"
#include "fixture.h"

enum { SIZE = 1000, N = 100 };

static int setup(void **state) {
    struct fixture *f = fixture_new();
    f->tuning.pack_bytes = 10000;
    f->tuning.grace_ms = 0;
    *state = f;
    fixture_open(f);
    for (uint32_t i = 0; i < N; i++)
        if (put_seed(f, i, SIZE))
            return -1;
    return 0;
}

static int teardown(void **state) {
    fault_enable(NULL);
    fixture_free(*state);
    return 0;
}

/* Names the blobs of seeds 0, step, 2 * step, …; step 0 names none. */
struct names {
    uint32_t step, n_asked;
};

static bool is_named(void *arg, const struct blob_hash *h) {
    struct names *names = arg;
    names->n_asked++;
    for (uint32_t i = 0; names->step && i < N; i += names->step) {
        struct blob_hash named = hash_from(i, SIZE);
        if (memcmp(&named, h, sizeof(*h)) == 0)
            return true;
    }
    return false;
}

static struct answer collect(struct fixture *f, uint32_t step) {
    struct answer a = {0};
    struct names names = {.step = step};
    uint64_t n = blob_stats(f->store).n;
    blob_collect(f->store, is_named, &names, on_collected, &a);
    assert_int_equal(names.n_asked, n); /* now, and once a blob */
    wait_for(f, &a);
    return a;
}

static void check_named(struct fixture *f, uint32_t step) {
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(get_seed(f, i, SIZE), step && i % step == 0 ? 0 : E_NOT_FOUND);
}

static uint64_t size_of_all(struct fixture *f) {
    uint64_t n = 0;
    DIR *d = opendir(f->dir);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && !strstr(e->d_name, ".list"))
            n += file_size(f, e->d_name);
    closedir(d);
    return n;
}

static void what_is_named_stays(void **state) {
    struct fixture *f = *state;
    struct answer a = collect(f, 1);
    assert_int_equal(a.n_dropped, 0);
    assert_int_equal(a.bytes_freed, 0);
    check_named(f, 1);
}

static void mostly_dead_packs_are_written_anew(void **state) {
    struct fixture *f = *state;
    uint64_t before = size_of_all(f), packs = blob_stats(f->store).packs;
    struct answer a = collect(f, 10);
    assert_int_equal(a.n_dropped, N - N / 10);
    check_named(f, 10);
    struct blob_stats st = blob_stats(f->store);
    assert_int_equal(st.n, N / 10);
    assert_int_equal(st.bytes, N / 10 * SIZE);
    assert_true(st.packs < packs / 2);
    uint64_t after = size_of_all(f);
    assert_int_equal(a.bytes_freed, before - after + 32 * st.packs); /* the headers of the new packs are not told */
    assert_false(file_exists(f, "pack-000001"));
    assert_false(file_exists(f, "pack-000001.list"));
    fixture_reopen(f);
    check_named(f, 10);
    assert_int_equal(collect(f, 10).n_dropped, 0);
}

static void when_nothing_is_named_all_goes(void **state) {
    struct fixture *f = *state;
    struct answer a = collect(f, 0);
    assert_int_equal(a.n_dropped, N);
    check_named(f, 0);
    assert_int_equal(blob_stats(f->store).packs, 0); /* the active one too: it was mostly dead */
    assert_int_equal(size_of_all(f), 0);
    assert_int_equal(put_seed(f, 5, SIZE), 0);
    fixture_reopen(f);
    assert_int_equal(get_seed(f, 5, SIZE), 0);
    assert_int_equal(blob_stats(f->store).n, 1);
}

static void packs_that_are_half_alive_are_left_alone(void **state) {
    struct fixture *f = *state;
    uint64_t before = size_of_all(f);
    struct answer a = collect(f, 2);
    assert_int_equal(a.n_dropped, N / 2);
    assert_int_equal(a.bytes_freed, 0);
    assert_int_equal(size_of_all(f), before);
    check_named(f, 2);
    assert_int_equal(put_seed(f, 1, SIZE), 0); /* one that was dropped and is still in its pack */
    assert_int_equal(get_seed(f, 1, SIZE), 0);
}

static void what_is_fresh_stays(void **state) {
    struct fixture *f = *state;
    fixture_close(f);
    f->tuning.grace_ms = 3600 * 1000;
    fixture_open(f); /* what is found counts as fresh: an entry that names it may be on its way */
    assert_int_equal(collect(f, 0).n_dropped, 0);
    assert_int_equal(collect(f, 2).n_dropped, 0); /* these are named to it: from now on they go when they are not */
    assert_int_equal(collect(f, 0).n_dropped, N / 2);
    assert_int_equal(put_seed(f, 1, SIZE), 0); /* fresh ones are fresh still */
    assert_true(has_seed(f, 1, SIZE));
    assert_int_equal(collect(f, 1).n_dropped, 0);
    assert_int_equal(put_seed(f, 3, SIZE), 0); /* a put that finds it there makes it fresh again */
    assert_int_equal(collect(f, 0).n_dropped, N / 2 - 1);
    assert_true(has_seed(f, 3, SIZE));
}

struct later {
    struct fixture *f;
    int64_t until;
};

static bool has_come(void *arg) {
    struct later *l = arg;
    return loop_now_ms(l->f->loop) >= l->until;
}

static void the_grace_ends(void **state) {
    struct fixture *f = *state;
    fixture_close(f);
    f->tuning.grace_ms = 300;
    fixture_open(f);
    assert_int_equal(put_seed(f, 1000, SIZE), 0);
    assert_int_equal(collect(f, 1).n_dropped, 0);
    struct later l = {f, loop_now_ms(f->loop) + 500};
    loop_run_until(f->loop, has_come, &l, 500);
    assert_int_equal(collect(f, 1).n_dropped, 1);
    assert_false(has_seed(f, 1000, SIZE));
}

struct busy {
    struct fixture *f;
    uint32_t next;
    int in_flight;
    bool stop;
};

static void busy_more(struct busy *b);

static void on_busy_put(void *arg, int code, const struct err *why, const struct blob_hash *h) {
    struct busy *b = arg;
    assert_int_equal(code, 0);
    b->in_flight--;
    busy_more(b);
}

static void on_busy_get(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct busy *b = arg;
    assert_int_equal(code, 0);
    assert_int_equal(n, SIZE);
    b->in_flight--;
    busy_more(b);
}

static void busy_more(struct busy *b) {
    while (!b->stop && b->in_flight < 8) {
        b->in_flight++;
        uint32_t n = b->next++;
        struct blob_hash h = hash_from(n % (N / 10) * 10, SIZE);
        if (n % 2)
            blob_get(b->f->store, &h, on_busy_get, b);
        else if (n < 400) /* new ones, and some that were just dropped */
            blob_put(b->f->store, bytes_from(n % 4 ? n : n / 4, SIZE), on_busy_put, b);
        else
            b->in_flight--, b->stop = true;
    }
}

static bool is_idle(void *arg) {
    return ((struct busy *)arg)->in_flight == 0;
}

static void work_goes_on_meanwhile(void **state) {
    struct fixture *f = *state;
    struct busy b = {.f = f};
    busy_more(&b);
    struct answer a = {0}, second = {0}, third = {0};
    struct names names = {.step = 10};
    f->tuning.grace_ms = 0;
    blob_collect(f->store, is_named, &names, on_collected, &a);
    blob_collect(f->store, is_named, &names, on_collected, &second);
    assert_false(a.there);
    wait_for(f, &a);
    blob_collect(f->store, is_named, &names, on_collected, &third);
    wait_for(f, &second);
    wait_for(f, &third);
    b.stop = true;
    assert_true(loop_run_until(f->loop, is_idle, &b, WAIT_MS));
    assert_int_equal(second.n_dropped, 0);
    for (uint32_t i = 0; i < N; i += 10)
        assert_int_equal(get_seed(f, i, SIZE), 0);
    fixture_reopen(f);
    for (uint32_t i = 0; i < N; i += 10)
        assert_int_equal(get_seed(f, i, SIZE), 0);
}

static void closing_ends_a_collection(void **state) {
    struct fixture *f = *state;
    struct answer a = {0}, b = {0};
    struct names names = {.step = 10};
    blob_collect(f->store, is_named, &names, on_collected, &a);
    blob_collect(f->store, is_named, &names, on_collected, &b);
    fixture_close(f);
    assert_true(a.there && b.there);
    assert_int_equal(a.n_dropped, N - N / 10);
    fixture_open(f);
    for (uint32_t i = 0; i < N; i += 10)
        assert_int_equal(get_seed(f, i, SIZE), 0);
}

static void a_damaged_pack_is_kept(void **state) {
    struct fixture *f = *state;
    file_write_at(f, "pack-000001", 32 + 48 + 500, "damage", 6); /* in blob 0, which is named */
    struct answer a = collect(f, 10);
    assert_int_equal(a.n_dropped, N - N / 10);
    assert_true(file_exists(f, "pack-000001"));
    assert_false(file_exists(f, "pack-000002"));
    assert_int_equal(get_seed(f, 0, SIZE), E_CORRUPT);
    assert_int_equal(get_seed(f, 10, SIZE), 0);
    fixture_reopen(f);
    assert_int_equal(get_seed(f, 0, SIZE), E_CORRUPT);
    assert_int_equal(put_seed(f, 0, SIZE), 0);
    assert_int_equal(get_seed(f, 0, SIZE), 0);
}

static void a_copy_that_fails_leaves_all_as_it_was(void **state) {
    struct fixture *f = *state;
    fault_enable("blob.sync");
    struct answer a = collect(f, 10);
    fault_enable(NULL);
    assert_int_equal(a.n_dropped, N - N / 10);
    check_named(f, 10);
    a = collect(f, 10); /* the next one does it */
    assert_int_equal(a.n_dropped, 0);
    assert_true(a.bytes_freed > 0);
    check_named(f, 10);
    fixture_reopen(f);
    check_named(f, 10);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_named_stays),
        T(mostly_dead_packs_are_written_anew),
        T(when_nothing_is_named_all_goes),
        T(packs_that_are_half_alive_are_left_alone),
        T(what_is_fresh_stays),
        T(the_grace_ends),
        T(work_goes_on_meanwhile),
        T(closing_ends_a_collection),
        T(a_damaged_pack_is_kept),
        T(a_copy_that_fails_leaves_all_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
