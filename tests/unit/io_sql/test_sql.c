/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "io/sql/sql.h"

struct fixture {
    char dir[64], path[80];
    struct sql *db;
};

static int setup(void **state) {
    struct fixture *f = xnew(struct fixture);
    snprintf(f->dir, sizeof(f->dir), "/tmp/spur-test-sql-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->path, sizeof(f->path), "%s/db", f->dir);
    *state = f;
    return sql_open(f->path, SQL_WRITE, &f->db, NULL);
}

static void remove_files(struct fixture *f) {
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        autofree char *path = xasprintf("%s%s", f->path, ends[i]);
        unlink(path);
    }
}

static int teardown(void **state) {
    struct fixture *f = *state;
    sql_close(f->db);
    remove_files(f);
    int r = rmdir(f->dir);
    free(f);
    return r;
}

static void run(struct sql *db, const char *text) {
    struct err e;
    if (sql_exec(db, text, &e))
        fail_msg("%s", e.text);
}

static int64_t number(struct sql *db, const char *text) {
    struct sql_stmt *st;
    struct err e;
    if (sql_prepare(db, text, &st, &e) || sql_step(st, &e) != 1)
        fail_msg("%s", e.text);
    int64_t v = sql_i64(st, 0);
    sql_stmt_free(st);
    return v;
}

static void the_settings(void **state) {
    struct fixture *f = *state;
    struct sql_stmt *st;
    assert_int_equal(sql_prepare(f->db, "PRAGMA journal_mode", &st, NULL), 0);
    assert_int_equal(sql_step(st, NULL), 1);
    assert_string_equal(sql_text(st, 0), "wal");
    sql_stmt_free(st);
    assert_int_equal(number(f->db, "PRAGMA synchronous"), 2);
    assert_int_equal(number(f->db, "PRAGMA busy_timeout"), 5000);
    struct stat s;
    assert_int_equal(stat(f->path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
}

static void values_come_back(void **state) {
    struct fixture *f = *state;
    run(f->db, "CREATE TABLE t(a, b, c, d); CREATE INDEX i ON t(a)");
    struct sql_stmt *st;
    assert_int_equal(sql_prepare(f->db, "INSERT INTO t VALUES(?, ?, ?, ?);  ", &st, NULL), 0);
    char text[] = "hello";
    uint8_t bytes[] = {0, 1, 0xff};
    sql_bind_i64(st, 1, INT64_MIN);
    sql_bind_text(st, 2, text);
    sql_bind_blob(st, 3, bytes, sizeof(bytes));
    sql_bind_text(st, 4, NULL);
    memset(text, 'x', 5); /* both were copied */
    memset(bytes, 7, 3);
    assert_int_equal(sql_step(st, NULL), 0);
    sql_bind_i64(st, 1, 2); /* at its end it may be bound again */
    sql_bind_text(st, 2, "");
    sql_bind_blob(st, 3, NULL, 0);
    assert_int_equal(sql_step(st, NULL), 0);
    sql_stmt_free(st);

    assert_int_equal(sql_prepare(f->db, "SELECT a, b, c, d FROM t ORDER BY a", &st, NULL), 0);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(sql_step(st, NULL), 1);
        size_t n;
        assert_true(sql_i64(st, 0) == INT64_MIN);
        assert_string_equal(sql_text(st, 1), "hello");
        assert_memory_equal(sql_blob(st, 2, &n), "\0\1\xff", 3);
        assert_int_equal(n, 3);
        assert_true(sql_is_null(st, 3));
        assert_null(sql_text(st, 3));
        if (again) {
            sql_reset(st);
            continue;
        }
        assert_int_equal(sql_step(st, NULL), 1);
        assert_string_equal(sql_text(st, 1), "");
        sql_blob(st, 2, &n);
        assert_int_equal(n, 0);
        assert_false(sql_is_null(st, 2)); /* empty is not NULL */
        assert_int_equal(sql_step(st, NULL), 0);
    }
    sql_stmt_free(st);
}

static void errors_have_rows(void **state) {
    struct fixture *f = *state;
    struct err e;
    struct sql_stmt *st;
    run(f->db, "CREATE TABLE t(a PRIMARY KEY, b CHECK(b > 0))");
    assert_int_equal(sql_exec(f->db, "SELEKT", &e), E_INTERNAL);
    assert_non_null(strstr(e.text, "SELEKT"));
    assert_int_equal(sql_prepare(f->db, "SELECT * FROM nothing", &st, &e), E_INTERNAL);
    assert_int_equal(sql_prepare(f->db, "SELECT 1; SELECT 2", &st, &e), E_INTERNAL);
    assert_int_equal(sql_prepare(f->db, "  ", &st, &e), E_INTERNAL);
    assert_int_equal(sql_prepare(f->db, "INSERT INTO t VALUES(?, ?)", &st, NULL), 0);
    sql_bind_i64(st, 1, 1);
    sql_bind_i64(st, 2, 1);
    assert_int_equal(sql_step(st, NULL), 0);
    assert_int_equal(sql_step(st, &e), E_EXISTS);
    sql_bind_i64(st, 1, 2); /* a failed one may be bound again too */
    assert_int_equal(sql_step(st, NULL), 0);
    sql_bind_i64(st, 2, 0);
    assert_int_equal(sql_step(st, &e), E_INTERNAL);
    sql_stmt_free(st);
    assert_int_equal(number(f->db, "SELECT count(*) FROM t"), 2);
}

static void a_reader_reads_beside_the_writer(void **state) {
    struct fixture *f = *state;
    run(f->db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    struct sql *reader;
    struct err e;
    assert_int_equal(sql_open(f->path, SQL_READ, &reader, NULL), 0);
    run(f->db, "BEGIN IMMEDIATE; INSERT INTO t VALUES(2)");
    assert_int_equal(number(reader, "SELECT count(*) FROM t"), 1);
    run(f->db, "COMMIT");
    assert_int_equal(number(reader, "SELECT count(*) FROM t"), 2);
    assert_int_equal(sql_exec(reader, "INSERT INTO t VALUES(3)", &e), E_SYS);
    sql_close(reader);
}

static void opening_what_is_no_database(void **state) {
    struct fixture *f = *state;
    struct sql *db = NULL;
    struct err e;
    autofree char *other = xasprintf("%s/other", f->dir);
    assert_int_equal(sql_open(other, SQL_READ, &db, &e), E_NOT_FOUND);
    assert_non_null(strstr(e.text, other));
    autoclose int fd = open(other, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 4096; i++)
        assert_int_equal(write(fd, "rubbish!", 8), 8);
    assert_int_equal(sql_open(other, SQL_WRITE, &db, &e), E_CORRUPT);
    assert_int_equal(sql_open(other, SQL_READ, &db, &e), E_CORRUPT);
    unlink(other);
    assert_int_equal(sql_open(f->dir, SQL_WRITE, &db, &e), E_SYS);
    assert_null(db);
}

static void *hold_and_let_go(void *arg) {
    run(arg, "COMMIT");
    return NULL;
}

static void a_second_writer_waits(void **state) {
    struct fixture *f = *state;
    run(f->db, "CREATE TABLE t(a)");
    struct sql *second;
    assert_int_equal(sql_open(f->path, SQL_WRITE, &second, NULL), 0);
    run(f->db, "BEGIN IMMEDIATE; INSERT INTO t VALUES(1)");
    run(second, "PRAGMA busy_timeout=1");
    assert_int_equal(sql_exec(second, "INSERT INTO t VALUES(2)", NULL), E_BUSY);
    run(second, "PRAGMA busy_timeout=60000");
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, hold_and_let_go, f->db), 0);
    run(second, "INSERT INTO t VALUES(2)");
    pthread_join(t, NULL);
    assert_int_equal(number(f->db, "SELECT sum(a) FROM t"), 3);
    sql_close(second);
}

static void what_was_committed_survives_a_kill(void **state) {
    struct fixture *f = *state;
    run(f->db, "CREATE TABLE t(a)");
    sql_close(f->db);
    f->db = NULL;
    pid_t child = fork();
    if (child == 0) {
        struct sql *db;
        if (sql_open(f->path, SQL_WRITE, &db, NULL))
            _exit(1);
        if (sql_exec(db, "INSERT INTO t VALUES(1); BEGIN; INSERT INTO t VALUES(2)", NULL))
            _exit(2);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(sql_open(f->path, SQL_WRITE, &f->db, NULL), 0);
    assert_int_equal(number(f->db, "SELECT sum(a) FROM t"), 1);
}

static void a_full_disk_is_told_and_passes(void **state) {
    struct fixture *f = *state;
    autofree char *disk = xasprintf("%s/disk", f->dir), *path = xasprintf("%s/db", disk);
    assert_int_equal(mkdir(disk, 0700), 0);
    if (mount("none", disk, "tmpfs", 0, "size=1m")) {
        rmdir(disk);
        print_message("skipped: mounting a small tmpfs needs root\n");
        skip();
    }
    struct sql *db;
    struct err e;
    assert_int_equal(sql_open(path, SQL_WRITE, &db, NULL), 0);
    run(db, "CREATE TABLE t(a)");
    int r, n = 0;
    while (!(r = sql_exec(db, "INSERT INTO t VALUES(zeroblob(20000))", &e)))
        n++;
    assert_int_equal(r, E_FULL);
    assert_true(n > 0);
    assert_int_equal(number(db, "SELECT count(*) FROM t"), n);
    assert_int_equal(mount("none", disk, "tmpfs", MS_REMOUNT, "size=4m"), 0);
    run(db, "INSERT INTO t VALUES(zeroblob(20000))");
    assert_int_equal(number(db, "SELECT count(*) FROM t"), n + 1);
    sql_close(db);
    assert_int_equal(umount(disk), 0);
    assert_int_equal(rmdir(disk), 0);
}

/* A writer goes on while it is copied, and doesn't make it begin again. */
struct meddling {
    struct fixture *f;
    unsigned calls;
    uint64_t last;
    bool stop;
};

static int meddle(void *arg, uint64_t bytes, struct err *e) {
    struct meddling *m = arg;
    assert_true(bytes >= m->last);
    m->last = bytes;
    m->calls++;
    run(m->f->db, "INSERT INTO t SELECT randomblob(3000) FROM t LIMIT 50");
    return m->stop ? err_set(e, E_STOPPING, NULL) : 0;
}

static void a_copy_is_of_one_moment(void **state) {
    struct fixture *f = *state;
    struct meddling m = {.f = f};
    struct err e = {0};
    autofree char *copy = xasprintf("%s/copy", f->dir);
    run(f->db, "CREATE TABLE t (b BLOB); INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
               "WHERE i < 1000) SELECT randomblob(3000) FROM n");
    assert_int_equal(sql_copy(f->path, copy, meddle, &m, &e), 0);
    assert_true(m.calls > 5);
    assert_true(number(f->db, "SELECT count(*) FROM t") == 1000 + 50 * (int64_t)m.calls);
    struct sql *db;
    assert_int_equal(sql_open(copy, SQL_WRITE, &db, &e), 0);
    assert_int_equal(number(db, "SELECT count(*) FROM t"), 1000);
    sql_close(db);
    m = (struct meddling){.f = f, .stop = true};
    assert_int_equal(sql_copy(f->path, copy, meddle, &m, &e), E_STOPPING);
    assert_int_equal(access(copy, F_OK), -1);
    assert_int_equal(sql_copy("/nowhere/db", copy, NULL, NULL, &e), E_NOT_FOUND);
}

static void a_file_takes_another_s_place(void **state) {
    struct fixture *f = *state;
    struct err e = {0};
    struct sql *db, *reader;
    autofree char *copy = xasprintf("%s/copy", f->dir);
    run(f->db, "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1)");
    assert_int_equal(sql_copy(f->path, copy, NULL, NULL, &e), 0);
    run(f->db, "INSERT INTO t VALUES (2)");
    sql_close(f->db);
    assert_int_equal(sql_open(f->path, SQL_READ, &reader, &e), 0);
    assert_int_equal(number(reader, "SELECT sum(n) FROM t"), 3);
    sql_close(reader);
    assert_int_equal(sql_replace(copy, f->path, &e), 0);
    assert_int_equal(sql_open(f->path, SQL_WRITE, &f->db, &e), 0);
    assert_int_equal(number(f->db, "SELECT sum(n) FROM t"), 1);
    run(f->db, "INSERT INTO t VALUES (5)");
    assert_int_equal(sql_copy(f->path, copy, NULL, NULL, &e), 0);
    sql_close(f->db);
    /* a damaged one, and one that is not there, are no obstacle */
    int fd = open(f->path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, "this is no database at all, is it? no. not at all.\n", 50), 50);
    close(fd);
    assert_int_equal(sql_replace(copy, f->path, &e), 0);
    assert_int_equal(sql_open(f->path, SQL_READ, &db, &e), 0);
    assert_int_equal(number(db, "SELECT sum(n) FROM t"), 6);
    sql_close(db);
    assert_int_equal(sql_open(f->path, SQL_WRITE, &f->db, &e), 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_settings),
        T(a_copy_is_of_one_moment),
        T(a_file_takes_another_s_place),
        T(values_come_back),
        T(errors_have_rows),
        T(a_reader_reads_beside_the_writer),
        T(opening_what_is_no_database),
        T(a_second_writer_waits),
        T(what_was_committed_survives_a_kill),
        T(a_full_disk_is_told_and_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
