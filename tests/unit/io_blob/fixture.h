/* SPDX-License-Identifier: Apache-2.0
 *
 * A store in a directory of its own, and calls that wait for their answer.
 */
#ifndef TEST_BLOB_FIXTURE_H
#define TEST_BLOB_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "io/blob/blob.h"
#include "io/loop/loop.h"

enum { WAIT_MS = 60000 };

struct fixture {
    struct loop *loop;
    char dir[64]; /* of the store */
    struct blob_tuning tuning;
    struct blob_store *store;
};

static inline struct fixture *fixture_new(void) {
    struct fixture *f = xnew(struct fixture);
    snprintf(f->dir, sizeof(f->dir), "/tmp/spur-test-blob-XXXXXX");
    must(mkdtemp(f->dir));
    f->loop = loop_new("test");
    f->tuning = blob_tuning_default();
    f->tuning.collect_pause_ms = 0;
    return f;
}

static inline void fixture_open(struct fixture *f) {
    struct err e;
    if (blob_open_tuned(f->loop, f->dir, &f->tuning, &f->store, &e))
        fail_msg("%s", e.text);
}

static inline void fixture_close(struct fixture *f) {
    blob_close(f->store);
    f->store = NULL;
}

static inline void fixture_reopen(struct fixture *f) {
    fixture_close(f);
    fixture_open(f);
}

static inline void remove_tree(const char *dir) {
    DIR *d = opendir(dir);
    for (struct dirent *n; d && (n = readdir(d));)
        if (n->d_name[0] != '.')
            unlinkat(dirfd(d), n->d_name, 0);
    if (d)
        closedir(d);
    rmdir(dir);
}

static inline void fixture_free(struct fixture *f) {
    fixture_close(f);
    loop_free(f->loop);
    remove_tree(f->dir);
    free(f);
}

static inline struct buf bytes_of(const void *p, size_t n) {
    struct buf b = {0};
    buf_add(&b, p, n);
    return b;
}

/* n bytes that differ from those of every other seed */
static inline struct buf bytes_from(uint32_t seed, size_t n) {
    struct buf b = {0};
    uint8_t *p = buf_reserve(&b, n);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i < 4 ? seed >> (8 * i) : seed * 7 + i * 31);
    b.n = n;
    return b;
}

static inline struct blob_hash hash_from(uint32_t seed, size_t n) {
    auto_buf b = bytes_from(seed, n);
    struct blob_hash h;
    blob_hash_of(b.p, b.n, &h);
    return h;
}

struct answer {
    bool there;
    int code;
    struct err why;
    struct blob_hash hash;
    struct buf bytes;
    uint64_t n_dropped, bytes_freed;
};

static inline void on_put(void *arg, int code, const struct err *why, const struct blob_hash *h) {
    struct answer *a = arg;
    assert_false(a->there); /* exactly once */
    a->there = true;
    a->code = code;
    a->hash = *h;
    assert_true((why != NULL) == (code != 0));
    if (why) {
        a->why = *why;
        assert_int_equal(why->code, code);
    }
}

static inline void on_get(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct answer *a = arg;
    assert_false(a->there);
    a->there = true;
    a->code = code;
    assert_true((why != NULL) == (code != 0));
    if (why)
        a->why = *why;
    buf_clear(&a->bytes);
    buf_add(&a->bytes, p, n);
}

static inline void on_collected(void *arg, uint64_t n_dropped, uint64_t bytes_freed) {
    struct answer *a = arg;
    assert_false(a->there);
    a->there = true;
    a->n_dropped = n_dropped;
    a->bytes_freed = bytes_freed;
}

static inline bool is_there(void *arg) {
    return ((struct answer *)arg)->there;
}

static inline void wait_for(struct fixture *f, struct answer *a) {
    assert_true(a->there || loop_run_until(f->loop, is_there, a, WAIT_MS));
}

static inline int put(struct fixture *f, struct buf b) {
    struct answer a = {0};
    blob_put(f->store, b, on_put, &a);
    wait_for(f, &a);
    return a.code;
}

static inline int put_seed(struct fixture *f, uint32_t seed, size_t n) {
    return put(f, bytes_from(seed, n));
}

/* The code of a get; the bytes must be those of the seed when it is 0. */
static inline int get_seed(struct fixture *f, uint32_t seed, size_t n) {
    struct blob_hash h = hash_from(seed, n);
    struct answer a = {0};
    blob_get(f->store, &h, on_get, &a);
    assert_false(a.there);
    wait_for(f, &a);
    if (!a.code) {
        auto_buf want = bytes_from(seed, n);
        assert_int_equal(a.bytes.n, n);
        assert_memory_equal(a.bytes.p, want.p, n);
    }
    buf_fini(&a.bytes);
    return a.code;
}

static inline bool has_seed(struct fixture *f, uint32_t seed, size_t n) {
    struct blob_hash h = hash_from(seed, n);
    return blob_has(f->store, &h);
}

static inline char *file_path(struct fixture *f, const char *name) {
    return xasprintf("%s/%s", f->dir, name);
}

static inline bool file_exists(struct fixture *f, const char *name) {
    autofree char *path = file_path(f, name);
    return access(path, F_OK) == 0;
}

static inline size_t file_size(struct fixture *f, const char *name) {
    autofree char *path = file_path(f, name);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (size_t)st.st_size;
}

static inline void file_write_at(struct fixture *f, const char *name, size_t at, const void *p, size_t n) {
    autofree char *path = file_path(f, name);
    autoclose int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, p, n, (off_t)at), n);
}

static inline void file_cut(struct fixture *f, const char *name, size_t n) {
    autofree char *path = file_path(f, name);
    assert_int_equal(truncate(path, (off_t)n), 0);
}

static inline void file_remove(struct fixture *f, const char *name) {
    autofree char *path = file_path(f, name);
    assert_int_equal(unlink(path), 0);
}

#endif
