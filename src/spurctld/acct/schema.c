/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/acct/schema.h"

static const char *const make_tables =
    "BEGIN;"
    "CREATE TABLE IF NOT EXISTS meta (version INTEGER NOT NULL, applied_index INTEGER NOT NULL);"
    "INSERT INTO meta SELECT 1, 0 WHERE NOT EXISTS (SELECT 1 FROM meta);"
    "CREATE TABLE IF NOT EXISTS job ("
    " id INTEGER NOT NULL, sluid TEXT NOT NULL, uid INTEGER NOT NULL, user TEXT, account TEXT, partition TEXT,"
    " name TEXT, state INTEGER NOT NULL, submit_ms INTEGER NOT NULL, start_ms INTEGER NOT NULL,"
    " end_ms INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY (id, sluid));"
    "CREATE INDEX IF NOT EXISTS job_by_end ON job (end_ms);"
    "CREATE INDEX IF NOT EXISTS job_by_user ON job (user, end_ms);"
    "COMMIT;";

int schema_prepare(struct sql *db, struct err *e) {
    int rc = sql_exec(db, make_tables, e);
    struct sql_stmt *st = NULL;
    if (!rc)
        rc = sql_prepare(db, "SELECT version FROM meta", &st, e);
    if (rc)
        return rc;
    rc = sql_step(st, e);
    int64_t version = rc == 1 ? sql_i64(st, 0) : 0;
    sql_stmt_free(st);
    if (rc < 0)
        return rc;
    if (version != SCHEMA_VERSION)
        return err_set(e, E_VERSION, "the history file has version %lld; this program reads version %d",
                       (long long)version, SCHEMA_VERSION);
    return 0;
}

void schema_bind_job(struct sql_stmt *st, const struct job *j, const void *record, size_t n) {
    sql_bind_i64(st, 1, j->id);
    sql_bind_text(st, 2, j->sluid ? j->sluid : "");
    sql_bind_i64(st, 3, j->spec->uid);
    sql_bind_text(st, 4, j->spec->user);
    sql_bind_text(st, 5, j->spec->account);
    sql_bind_text(st, 6, j->partition ? j->partition : j->spec->partition);
    sql_bind_text(st, 7, j->spec->name);
    sql_bind_i64(st, 8, j->state);
    sql_bind_i64(st, 9, j->submit_ms);
    sql_bind_i64(st, 10, j->start_ms);
    sql_bind_i64(st, 11, j->end_ms);
    sql_bind_blob(st, 12, record, n);
}
