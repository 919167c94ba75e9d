/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"
#include "fixture.h"

static int setup(void **state) {
    *state = fixture_new();
    fixture_open(*state);
    return 0;
}

static int teardown(void **state) {
    fault_enable(NULL);
    fixture_free(*state);
    return 0;
}

static void what_is_put_can_be_read(void **state) {
    struct fixture *f = *state;
    static const size_t sizes[] = {0, 1, 7, 8, 9, 4096, 200000, 3000000};
    for (uint32_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_false(has_seed(f, i, sizes[i]));
        assert_int_equal(get_seed(f, i, sizes[i]), E_NOT_FOUND);
        assert_int_equal(put_seed(f, i, sizes[i]), 0);
        assert_true(has_seed(f, i, sizes[i]));
        assert_int_equal(get_seed(f, i, sizes[i]), 0);
    }
    for (int again = 0; again < 2; again++) {
        fixture_reopen(f);
        for (uint32_t i = 0; i < ARRAY_LEN(sizes); i++)
            assert_int_equal(get_seed(f, i, sizes[i]), 0);
    }
    struct blob_stats st = blob_stats(f->store);
    assert_int_equal(st.n, ARRAY_LEN(sizes));
    assert_int_equal(st.bytes, 0 + 1 + 7 + 8 + 9 + 4096 + 200000 + 3000000);
    assert_int_equal(st.packs, 1);
}

static void the_hash_is_that_of_the_bytes(void **state) {
    struct fixture *f = *state;
    struct answer a = {0};
    blob_put(f->store, bytes_of("abc", 3), on_put, &a);
    wait_for(f, &a);
    struct blob_hash h;
    blob_hash_of("abc", 3, &h);
    assert_memory_equal(&a.hash, &h, sizeof(h));
    assert_int_equal(h.b[0], 0xbd); /* BLAKE2b-256 of "abc" */
    assert_int_equal(h.b[31], 0x19);
}

static void the_second_put_is_answered_at_once(void **state) {
    struct fixture *f = *state;
    assert_int_equal(put_seed(f, 1, 100), 0);
    uint64_t syncs = blob_stats(f->store).syncs;
    struct answer a = {0};
    blob_put(f->store, bytes_from(1, 100), on_put, &a);
    assert_true(a.there);
    assert_int_equal(a.code, 0);
    struct blob_stats st = blob_stats(f->store);
    assert_int_equal(st.syncs, syncs);
    assert_int_equal(st.dedup_hits, 1);
    assert_int_equal(st.n, 1);
}

static void puts_of_one_turn_share_a_sync(void **state) {
    struct fixture *f = *state;
    enum { N = 500 };
    assert_int_equal(put_seed(f, 1000, 10), 0);
    uint64_t before = blob_stats(f->store).syncs;
    static struct answer a[N];
    memset(a, 0, sizeof(a));
    for (uint32_t i = 0; i < N; i++)
        blob_put(f->store, bytes_from(i, 300), on_put, &a[i]);
    assert_int_equal(blob_stats(f->store).waiting, N);
    for (uint32_t i = 0; i < N; i++) {
        wait_for(f, &a[i]);
        assert_int_equal(a[i].code, 0);
    }
    struct blob_stats st = blob_stats(f->store);
    assert_int_equal(st.syncs - before, 1);
    assert_int_equal(st.waiting, 0);
    assert_int_equal(st.n, N + 1);
}

static void the_same_bytes_in_flight_share_a_put(void **state) {
    struct fixture *f = *state;
    struct answer a[20] = {0};
    for (size_t i = 0; i < 20; i++) /* large enough to be hashed on the thread, and small */
        blob_put(f->store, bytes_from(i % 2, i % 2 ? 500000 : 50), on_put, &a[i]);
    for (size_t i = 0; i < 20; i++) {
        wait_for(f, &a[i]);
        assert_int_equal(a[i].code, 0);
    }
    struct blob_stats st = blob_stats(f->store);
    assert_int_equal(st.n, 2);
    assert_int_equal(st.puts, 20);
    assert_int_equal(st.dedup_hits, 18);
    assert_true(file_size(f, "pack-000001") < 32 + 2 * 48 + 500000 + 8 + 56 + 8);
}

static void too_large_is_told(void **state) {
    struct fixture *f = *state;
    struct buf b = {.p = xmalloc(1), .n = BLOB_MAX_SIZE + 1, .cap = 1}; /* nobody looks at the bytes */
    assert_int_equal(put(f, b), E_TOO_BIG);
}

static void packs_are_finished_and_new_ones_begun(void **state) {
    struct fixture *f = *state;
    fixture_close(f);
    f->tuning.pack_bytes = 10000;
    fixture_open(f);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(put_seed(f, i, 1000), 0);
    assert_int_equal(blob_stats(f->store).packs, 10);
    assert_true(file_exists(f, "pack-000009.list"));
    assert_false(file_exists(f, "pack-000010.list"));
    fixture_reopen(f);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(get_seed(f, i, 1000), 0);
    assert_int_equal(blob_stats(f->store).packs, 10);

    /* many in one write, over several packs */
    static struct answer a[100];
    memset(a, 0, sizeof(a));
    for (uint32_t i = 0; i < 100; i++)
        blob_put(f->store, bytes_from(1000 + i, 1000), on_put, &a[i]);
    for (uint32_t i = 0; i < 100; i++)
        wait_for(f, &a[i]);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(get_seed(f, 1000 + i, 1000), 0);
}

static void lists_are_not_needed(void **state) {
    struct fixture *f = *state;
    fixture_close(f);
    f->tuning.pack_bytes = 10000;
    fixture_open(f);
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(put_seed(f, i, 1000), 0);
    fixture_close(f);
    file_remove(f, "pack-000001.list");
    file_cut(f, "pack-000002.list", 100);
    file_write_at(f, "pack-000003.list", 40, "damage", 6);
    file_write_at(f, "pack-000777.list", 0, "stray", 5);
    file_write_at(f, "pack-000004.list.new", 0, "left over", 9);
    fixture_open(f);
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(get_seed(f, i, 1000), 0);
    assert_true(file_exists(f, "pack-000001.list")); /* written again */
    assert_true(file_size(f, "pack-000002.list") > 100);
    assert_false(file_exists(f, "pack-000777.list"));
    assert_false(file_exists(f, "pack-000004.list.new"));
}

static void a_list_of_another_pack_is_not_believed(void **state) {
    struct fixture *f = *state;
    fixture_close(f);
    f->tuning.pack_bytes = 10000;
    fixture_open(f);
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(put_seed(f, i, 1000), 0);
    fixture_close(f);
    autofree char *one = file_path(f, "pack-000001.list"), *two = file_path(f, "pack-000002.list");
    assert_int_equal(rename(one, two), 0);
    fixture_open(f);
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(get_seed(f, i, 1000), 0);
}

static void a_torn_end_is_cut_off(void **state) {
    struct fixture *f = *state;
    assert_int_equal(put_seed(f, 1, 1000), 0);
    size_t one = file_size(f, "pack-000001");
    assert_int_equal(put_seed(f, 2, 1000), 0);
    size_t two = file_size(f, "pack-000001");
    for (size_t cut = one; cut < two; cut += 25) {
        fixture_close(f);
        file_cut(f, "pack-000001", cut);
        fixture_open(f);
        assert_int_equal(file_size(f, "pack-000001"), one);
        assert_true(has_seed(f, 1, 1000));
        assert_false(has_seed(f, 2, 1000));
        assert_int_equal(put_seed(f, 2, 1000), 0);
        assert_int_equal(get_seed(f, 2, 1000), 0);
        assert_int_equal(get_seed(f, 1, 1000), 0);
        assert_int_equal(file_size(f, "pack-000001"), two);
    }
}

static void rubbish_behind_the_end_is_cut_off(void **state) {
    struct fixture *f = *state;
    assert_int_equal(put_seed(f, 1, 1000), 0);
    size_t one = file_size(f, "pack-000001");
    fixture_close(f);
    uint8_t zeros[5000] = {0};
    file_write_at(f, "pack-000001", one, zeros, sizeof(zeros));
    file_write_at(f, "pack-000001", one + 300, "BLOBBLOB", 8);
    fixture_open(f);
    assert_int_equal(file_size(f, "pack-000001"), one);
    assert_int_equal(get_seed(f, 1, 1000), 0);
}

static void a_pack_that_was_never_begun(void **state) {
    struct fixture *f = *state;
    assert_int_equal(put_seed(f, 1, 1000), 0);
    uint8_t zeros[32] = {0};
    for (size_t n = 0; n <= 32; n += 16) {
        fixture_close(f);
        file_write_at(f, "pack-000002", 0, zeros, n);
        fixture_open(f);
        assert_false(file_exists(f, "pack-000002"));
        assert_int_equal(get_seed(f, 1, 1000), 0);
        assert_int_equal(put_seed(f, 2, 1000), 0);
    }
}

static void damage_is_told_when_it_is_read(void **state) {
    struct fixture *f = *state;
    for (uint32_t i = 1; i <= 3; i++)
        assert_int_equal(put_seed(f, i, 1000), 0);
    size_t at = 32 + 48 + 1000 + 48 + 500; /* in the second blob */
    file_write_at(f, "pack-000001", at, "damage", 6);
    assert_int_equal(get_seed(f, 2, 1000), E_CORRUPT);
    assert_false(has_seed(f, 2, 1000));
    assert_int_equal(get_seed(f, 2, 1000), E_CORRUPT);
    assert_int_equal(get_seed(f, 1, 1000), 0);
    assert_int_equal(get_seed(f, 3, 1000), 0);
    fixture_reopen(f); /* opening says nothing of it */
    assert_int_equal(get_seed(f, 2, 1000), E_CORRUPT);
    assert_int_equal(put_seed(f, 2, 1000), 0); /* stored again, not taken for there */
    assert_int_equal(get_seed(f, 2, 1000), 0);
    fixture_reopen(f);
    assert_int_equal(get_seed(f, 2, 1000), 0);
    assert_true(has_seed(f, 2, 1000));
}

/* The last batch before a power cut may have its headers on disk and zeros for bytes: who puts them again must not be
 * told that they are there. */
static void zeros_in_the_last_batch_are_not_there(void **state) {
    struct fixture *f = *state;
    assert_int_equal(put_seed(f, 1, 1000), 0);
    assert_int_equal(put_seed(f, 2, 1000), 0);
    fixture_close(f);
    uint8_t zeros[1000] = {0};
    file_write_at(f, "pack-000001", 32 + 48 + 1000 + 48, zeros, sizeof(zeros));
    fixture_open(f);
    assert_true(has_seed(f, 1, 1000));
    assert_false(has_seed(f, 2, 1000));
    assert_int_equal(get_seed(f, 2, 1000), E_CORRUPT);
    assert_int_equal(put_seed(f, 2, 1000), 0);
    assert_int_equal(get_seed(f, 2, 1000), 0);
}

static void a_missing_pack_is_damage(void **state) {
    struct fixture *f = *state;
    fixture_close(f);
    f->tuning.pack_bytes = 1000;
    fixture_open(f);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(put_seed(f, i, 1000), 0);
    file_remove(f, "pack-000002");
    assert_int_equal(get_seed(f, 1, 1000), E_CORRUPT);
    assert_int_equal(get_seed(f, 0, 1000), 0);
}

static void one_store_a_directory(void **state) {
    struct fixture *f = *state;
    struct blob_store *second = NULL;
    struct err e;
    assert_int_equal(blob_open(f->loop, f->dir, &second, &e), E_BUSY);
    assert_non_null(strstr(e.text, f->dir));
    assert_null(second);
    assert_int_equal(blob_open(f->loop, "/proc/no/such", &second, &e), E_SYS);
}

static void the_directory_is_made(void **state) {
    struct fixture *f = *state;
    autofree char *dir = file_path(f, "inner");
    struct blob_store *s;
    assert_int_equal(blob_open(f->loop, dir, &s, NULL), 0);
    blob_close(s);
    struct stat st;
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(rmdir(dir), 0);
}

static void another_version_is_refused(void **state) {
    struct fixture *f = *state;
    assert_int_equal(put_seed(f, 1, 1000), 0);
    fixture_close(f);
    static const uint8_t v2[32] = { /* as another program may write one day */
        0x53, 0x50, 0x55, 0x52, 0x50, 0x41, 0x43, 0x4b, 0x02, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
        0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x9e, 0x52, 0xba, 0x20,
    };
    file_write_at(f, "pack-000001", 0, v2, sizeof(v2));
    struct err e;
    assert_int_equal(blob_open(f->loop, f->dir, &f->store, &e), E_VERSION);
    assert_non_null(strstr(e.text, "pack-000001"));
}

/* A disk that can't sync: the put fails, what was stored before stays, and the store goes on in a new pack. */
static void a_failed_sync_is_no_success(void **state) {
    struct fixture *f = *state;
    assert_int_equal(put_seed(f, 1, 1000), 0);
    fault_enable("blob.sync");
    assert_int_equal(put_seed(f, 2, 1000), E_SYS);
    assert_false(has_seed(f, 2, 1000));
    fault_enable(NULL);
    assert_int_equal(put_seed(f, 3, 1000), 0);
    assert_int_equal(put_seed(f, 2, 1000), 0);
    for (int again = 0; again < 2; again++) {
        for (uint32_t i = 1; i <= 3; i++)
            assert_int_equal(get_seed(f, i, 1000), 0);
        fixture_reopen(f);
    }
    assert_int_equal(blob_stats(f->store).packs, 2);
}

static void put_again(void *arg, int code, const struct err *why, const struct blob_hash *h) {
    struct fixture *f = arg;
    static struct answer a;
    assert_int_equal(code, E_STOPPING);
    a = (struct answer){0};
    blob_put(f->store, bytes_from(77, 10), on_put, &a);
    assert_true(a.there);
    assert_int_equal(a.code, E_STOPPING);
}

static void closing_answers_everybody(void **state) {
    struct fixture *f = *state;
    assert_int_equal(put_seed(f, 1, 100), 0);
    struct answer a[6] = {0};
    blob_put(f->store, bytes_from(2, 100), on_put, &a[0]);
    blob_put(f->store, bytes_from(3, 300000), on_put, &a[1]);
    blob_put(f->store, bytes_from(4, 100), put_again, f);
    struct blob_hash h = hash_from(1, 100);
    blob_get(f->store, &h, on_get, &a[2]);
    fixture_close(f);
    for (size_t i = 0; i < 3; i++) {
        assert_true(a[i].there);
        assert_int_equal(a[i].code, E_STOPPING);
        buf_fini(&a[i].bytes);
    }
    fixture_open(f); /* and again while the thread is at work */
    blob_put(f->store, bytes_from(5, 1000), on_put, &a[3]);
    loop_run_until(f->loop, is_there, &(struct answer){0}, 0);
    fixture_close(f);
    assert_true(a[3].there);
    fixture_open(f);
    assert_int_equal(get_seed(f, 1, 100), 0);
}

static void an_empty_store_closes(void **state) {
    struct fixture *f = *state;
    fixture_reopen(f);
    assert_int_equal(blob_stats(f->store).n, 0);
    blob_close(NULL);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_put_can_be_read),
        T(the_hash_is_that_of_the_bytes),
        T(the_second_put_is_answered_at_once),
        T(puts_of_one_turn_share_a_sync),
        T(the_same_bytes_in_flight_share_a_put),
        T(too_large_is_told),
        T(packs_are_finished_and_new_ones_begun),
        T(lists_are_not_needed),
        T(a_list_of_another_pack_is_not_believed),
        T(a_torn_end_is_cut_off),
        T(rubbish_behind_the_end_is_cut_off),
        T(a_pack_that_was_never_begun),
        T(damage_is_told_when_it_is_read),
        T(zeros_in_the_last_batch_are_not_there),
        T(a_missing_pack_is_damage),
        T(one_store_a_directory),
        T(the_directory_is_made),
        T(another_version_is_refused),
        T(a_failed_sync_is_no_success),
        T(closing_answers_everybody),
        T(an_empty_store_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
