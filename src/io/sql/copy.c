/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole database as it was at one moment, into a file of its own.
 *
 * SQLite's backup begins again whenever another connection writes, so at a bounded rate it might never end. The source
 * is therefore read within one read transaction: in WAL mode that is a picture which no writer changes or waits for.
 */
#include "io/sql/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/sql/inside.h"

enum { PAGES_A_STEP = 64 };

struct copying {
    sqlite3 *from, *to;
    sqlite3_backup *backup;
};

static int open_both(struct copying *c, const char *from, const char *to, struct err *e) {
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "make %s", to);
    close(fd); /* before SQLite has it open: closing it later would drop SQLite's locks */
    int code = sqlite3_open_v2(from, &c->from, flags | SQLITE_OPEN_READONLY, NULL);
    if (code)
        return sql_fail(c->from, code, "cannot open", from, e);
    sqlite3_busy_timeout(c->from, SQL_BUSY_TIMEOUT_MS);
    code = sqlite3_open_v2(to, &c->to, flags | SQLITE_OPEN_READWRITE, NULL);
    if (!code) /* what a crash leaves of it is thrown away, so it needs no journal */
        code = sqlite3_exec(c->to, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;", NULL, NULL, NULL);
    return code ? sql_fail(c->to, code, "cannot open", to, e) : 0;
}

static int begin(struct copying *c, const char *from, const char *to, struct err *e) {
    int code = sqlite3_exec(c->from, "BEGIN; SELECT count(*) FROM sqlite_schema;", NULL, NULL, NULL);
    if (code)
        return sql_fail(c->from, code, "cannot read", from, e);
    c->backup = sqlite3_backup_init(c->to, "main", c->from, "main");
    return c->backup ? 0 : sql_fail(c->to, sqlite3_extended_errcode(c->to), "cannot copy to", to, e);
}

static int run(struct copying *c, const char *to, sql_progress_fn progress, void *arg, struct err *e) {
    int code, rc = 0;
    do {
        code = sqlite3_backup_step(c->backup, PAGES_A_STEP);
        int done = sqlite3_backup_pagecount(c->backup) - sqlite3_backup_remaining(c->backup);
        if ((code == SQLITE_OK || code == SQLITE_DONE) && progress)
            rc = progress(arg, (uint64_t)done * SQL_PAGE_BYTES, e);
    } while (code == SQLITE_OK && rc == 0);
    sqlite3_backup_finish(c->backup);
    if (rc == 0 && code != SQLITE_DONE)
        rc = sql_fail(c->to, code, "copying to", to, e);
    return rc;
}

int sql_copy(const char *from, const char *to, sql_progress_fn progress, void *arg, struct err *e) {
    struct copying c = {0};
    int rc = open_both(&c, from, to, e);
    if (!rc)
        rc = begin(&c, from, to, e);
    if (!rc)
        rc = run(&c, to, progress, arg, e);
    sqlite3_close(c.to);
    sqlite3_close(c.from);
    if (rc)
        unlink(to);
    return rc;
}

/* Everything of the old file into it, and its log gone: a log that stayed behind would be taken for the new file's. */
static int fold_log(const char *path, struct err *e) {
    sqlite3 *db = NULL;
    int code = sqlite3_open_v2(path, &db, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READWRITE, NULL);
    if (!code) {
        sqlite3_busy_timeout(db, SQL_BUSY_TIMEOUT_MS);
        code = sqlite3_exec(db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    }
    int rc = code ? sql_fail(db, code, "closing the log of", path, e) : 0;
    sqlite3_close(db);
    return rc;
}

static void drop_log(const char *path) {
    autofree char *wal = xasprintf("%s-wal", path);
    autofree char *shm = xasprintf("%s-shm", path);
    unlink(wal);
    unlink(shm);
}

int sql_replace(const char *from, const char *path, struct err *e) {
    int rc = access(path, F_OK) < 0 && errno == ENOENT ? 0 : fold_log(path, e);
    if (rc && rc != E_CORRUPT)
        return rc;
    drop_log(path); /* of one that was damaged, or is gone */
    if (rename(from, path) < 0)
        return err_sys(e, "rename %s to %s", from, path);
    autofree char *copy = xstrdup(path);
    autoclose int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 || fsync(dir) < 0 ? err_sys(e, "sync the directory of %s", path) : 0;
}
