/* SPDX-License-Identifier: Apache-2.0
 *
 * The wrapper around SQLite: its return codes become rows of err.def, its settings are made once, at open.
 *
 * Binding can fail only by a wrong parameter number, a statement that still runs, or no memory: mistakes of the caller
 * or the end, so `must`.
 */
#include "io/sql/sql.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/sql/inside.h"

enum { TEXT_SHOWN = 120 };

struct sql {
    sqlite3 *db;
};
struct sql_stmt {
    sqlite3_stmt *st;
};

/* `code` is an extended result code. A disk without room shows as SQLITE_FULL from writing a page, but as some I/O
 * error with errno ENOSPC from growing the -shm file. */
static int code_of(sqlite3 *db, int code) {
    int os = db ? sqlite3_system_errno(db) : 0;
    switch (code & 0xff) {
    case SQLITE_FULL:
        return E_FULL;
    case SQLITE_IOERR:
        return os == ENOSPC || os == EDQUOT ? E_FULL : E_SYS;
    case SQLITE_CANTOPEN:
        return os == ENOENT ? E_NOT_FOUND : os == ENOSPC || os == EDQUOT ? E_FULL : E_SYS;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return E_BUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return E_CORRUPT;
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return E_SYS;
    case SQLITE_TOOBIG:
        return E_TOO_BIG;
    case SQLITE_CONSTRAINT:
        return code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY ||
                       code == SQLITE_CONSTRAINT_ROWID
                   ? E_EXISTS
                   : E_INTERNAL;
    default:
        return E_INTERNAL;
    }
}

int sql_fail(sqlite3 *db, int code, const char *doing, const char *what, struct err *e) {
    must(code != SQLITE_NOMEM && code != SQLITE_MISUSE);
    return err_set(e, code_of(db, code), "%s %.*s: %s", doing, TEXT_SHOWN, what,
                   db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
}

/* SQLite would make the file for all to read; history is not for all. A file that exists is left alone: closing a
 * descriptor of a file that SQLite has open elsewhere in this process would drop its locks. */
static void make_private(const char *path) {
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    (void)fd;
}

static int set_up(sqlite3 *db, const char *path, enum sql_mode mode, struct err *e) {
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, SQL_BUSY_TIMEOUT_MS);
    const char *text = mode == SQL_WRITE ? "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
                                         : "PRAGMA query_only=ON; SELECT count(*) FROM sqlite_schema;";
    int code = sqlite3_exec(db, text, NULL, NULL, NULL);
    return code ? sql_fail(db, code, "cannot open", path, e) : 0;
}

int sql_open(const char *path, enum sql_mode mode, struct sql **out, struct err *e) {
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (mode == SQL_WRITE) {
        make_private(path);
        flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    } else {
        flags |= SQLITE_OPEN_READONLY;
    }
    sqlite3 *db = NULL;
    int code = sqlite3_open_v2(path, &db, flags, NULL);
    must(db);
    int r = code ? sql_fail(db, code, "cannot open", path, e) : set_up(db, path, mode, e);
    if (r) {
        sqlite3_close(db);
        return r;
    }
    struct sql *s = xnew(struct sql);
    s->db = db;
    *out = s;
    return 0;
}

void sql_close(struct sql *s) {
    if (!s)
        return;
    must(sqlite3_close(s->db) == SQLITE_OK); /* else a statement of it is still there */
    free(s);
}

int sql_exec(struct sql *s, const char *text, struct err *e) {
    int code = sqlite3_exec(s->db, text, NULL, NULL, NULL);
    return code ? sql_fail(s->db, code, "running", text, e) : 0;
}

int sql_prepare(struct sql *s, const char *text, struct sql_stmt **out, struct err *e) {
    sqlite3_stmt *st = NULL;
    const char *rest;
    int code = sqlite3_prepare_v3(s->db, text, -1, SQLITE_PREPARE_PERSISTENT, &st, &rest);
    if (code)
        return sql_fail(s->db, code, "preparing", text, e);
    while (*rest && (isspace((unsigned char)*rest) || *rest == ';'))
        rest++;
    if (!st || *rest) {
        sqlite3_finalize(st);
        return err_set(e, E_INTERNAL, "preparing %.*s: not exactly one statement", TEXT_SHOWN, text);
    }
    struct sql_stmt *p = xnew(struct sql_stmt);
    p->st = st;
    *out = p;
    return 0;
}

void sql_stmt_free(struct sql_stmt *p) {
    if (!p)
        return;
    sqlite3_finalize(p->st); /* its code repeats what sql_step told */
    free(p);
}

void sql_bind_i64(struct sql_stmt *p, int i, int64_t v) {
    must(sqlite3_bind_int64(p->st, i, v) == SQLITE_OK);
}

void sql_bind_text(struct sql_stmt *p, int i, const char *t) {
    must(sqlite3_bind_text(p->st, i, t, -1, SQLITE_TRANSIENT) == SQLITE_OK);
}

void sql_bind_blob(struct sql_stmt *p, int i, const void *b, size_t n) {
    /* a null pointer would bind NULL, whatever its length */
    must(sqlite3_bind_blob64(p->st, i, n ? b : "", n, SQLITE_TRANSIENT) == SQLITE_OK);
}

int sql_step(struct sql_stmt *p, struct err *e) {
    int code = sqlite3_step(p->st);
    if (code == SQLITE_ROW)
        return 1;
    int r = 0;
    if (code != SQLITE_DONE)
        r = sql_fail(sqlite3_db_handle(p->st), code, "running", sqlite3_sql(p->st), e);
    sqlite3_reset(p->st);
    return r;
}

void sql_reset(struct sql_stmt *p) {
    sqlite3_reset(p->st);
}

int64_t sql_i64(struct sql_stmt *p, int column) {
    return sqlite3_column_int64(p->st, column);
}

const char *sql_text(struct sql_stmt *p, int column) {
    return (const char *)sqlite3_column_text(p->st, column);
}

const void *sql_blob(struct sql_stmt *p, int column, size_t *n) {
    const void *b = sqlite3_column_blob(p->st, column);
    *n = (size_t)sqlite3_column_bytes(p->st, column);
    return b;
}

bool sql_is_null(struct sql_stmt *p, int column) {
    return sqlite3_column_type(p->st, column) == SQLITE_NULL;
}
