/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader: on a worker, with a handle of its own.
 */
#include "base/mem.h"
#include "base/str.h"
#include "io/sql/sql.h"
#include "spurctld/acct/acct.h"

static void add_list(struct str *sql, const char *column, uint32_t n) {
    str_addf(sql, " AND %s IN (", column);
    for (uint32_t i = 0; i < n; i++)
        str_add(sql, i ? ",?" : "?");
    str_addc(sql, ')');
}

static void build(const struct acct_filter *f, struct str *sql) {
    str_add(sql, "SELECT record FROM job WHERE id > ?");
    if (f->since_unix)
        str_add(sql, " AND end_ms >= ?");
    if (f->until_unix)
        str_add(sql, " AND submit_ms < ?");
    if (f->n_users)
        add_list(sql, "user", f->n_users);
    if (f->n_job_ids)
        add_list(sql, "id", f->n_job_ids);
    str_addf(sql, " ORDER BY id, submit_ms LIMIT %u", f->limit);
}

static void bind(struct sql_stmt *st, const struct acct_filter *f) {
    int i = 1;
    sql_bind_i64(st, i++, f->after_id);
    if (f->since_unix)
        sql_bind_i64(st, i++, f->since_unix * 1000);
    if (f->until_unix)
        sql_bind_i64(st, i++, (f->until_unix + 1) * 1000); /* the whole second, as of the state's jobs */
    for (uint32_t k = 0; k < f->n_users; k++)
        sql_bind_text(st, i++, f->users[k]);
    for (uint32_t k = 0; k < f->n_job_ids; k++)
        sql_bind_i64(st, i++, f->job_ids[k]);
}

static int read_rows(struct sql_stmt *st, bool (*row)(void *arg, const struct job *j), void *arg, struct err *e) {
    auto_arena a = {0};
    int rc;
    while ((rc = sql_step(st, e)) == 1) {
        size_t n;
        const void *p = sql_blob(st, 0, &n);
        struct job j;
        rc = rec_decode(job_rec(), p, n, &a, &j, e);
        if (rc)
            return rc;
        if (j.spec && !row(arg, &j))
            return 0;
        arena_reset(&a);
    }
    return rc;
}

int acct_read(const char *path, const struct acct_filter *f, bool (*row)(void *arg, const struct job *j), void *arg,
              struct err *e) {
    struct sql *db = NULL;
    struct sql_stmt *st = NULL;
    auto_str text = {0};
    build(f, &text);
    int rc = sql_open(path, SQL_READ, &db, e);
    if (!rc)
        rc = sql_prepare(db, text.p, &st, e);
    if (!rc) {
        bind(st, f);
        rc = read_rows(st, row, arg, e);
    }
    sql_stmt_free(st);
    sql_close(db);
    return rc;
}
