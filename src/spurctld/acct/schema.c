/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/acct/schema.h"

#include "base/mem.h"

/* Version 1: an empty file becomes one, too, and goes on from there. */
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
    "CREATE INDEX IF NOT EXISTS job_by_sluid ON job (sluid);"
    "COMMIT;";

/* Version 2: tasks are found by their array, steps have rows. */
static const char *const to_version_2 =
    "BEGIN;"
    "ALTER TABLE job ADD COLUMN array_id INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX job_by_array ON job (array_id) WHERE array_id > 0;"
    "CREATE TABLE step ("
    " job_id INTEGER NOT NULL, sluid TEXT NOT NULL, step_id INTEGER NOT NULL, uid INTEGER NOT NULL, name TEXT,"
    " state INTEGER NOT NULL, start_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL, record BLOB NOT NULL,"
    " PRIMARY KEY (job_id, sluid, step_id)) WITHOUT ROWID;"
    "UPDATE meta SET version = 2;"
    "COMMIT;";

static int read_version(struct sql *db, int64_t *out, struct err *e) {
    struct sql_stmt *st = NULL;
    int rc = sql_prepare(db, "SELECT version FROM meta", &st, e);
    if (rc)
        return rc;
    rc = sql_step(st, e);
    *out = rc == 1 ? sql_i64(st, 0) : 0;
    sql_stmt_free(st);
    return MIN(rc, 0);
}

static int upgrade(struct sql *db, struct err *e) {
    int rc = sql_exec(db, to_version_2, e);
    if (rc)
        sql_exec(db, "ROLLBACK", NULL);
    return rc;
}

int schema_prepare(struct sql *db, struct err *e) {
    int64_t version = 0;
    int rc = sql_exec(db, make_tables, e);
    if (!rc)
        rc = read_version(db, &version, e);
    if (!rc && version == 1) {
        rc = upgrade(db, e);
        version = SCHEMA_VERSION;
    }
    if (!rc && version != SCHEMA_VERSION)
        return err_set(e, E_VERSION, "the history file has version %lld; this program reads version %d",
                       (long long)version, SCHEMA_VERSION);
    return rc;
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
    sql_bind_i64(st, 13, j->array ? j->array->job_id : 0);
}

void schema_bind_step(struct sql_stmt *st, const struct step *s, const void *record, size_t n) {
    sql_bind_i64(st, 1, s->job_id);
    sql_bind_text(st, 2, s->sluid ? s->sluid : "");
    sql_bind_i64(st, 3, s->id);
    sql_bind_i64(st, 4, s->uid);
    sql_bind_text(st, 5, s->spec ? s->spec->name : NULL);
    sql_bind_i64(st, 6, s->state);
    sql_bind_i64(st, 7, s->start_ms);
    sql_bind_i64(st, 8, s->end_ms);
    sql_bind_blob(st, 9, record, n);
}
