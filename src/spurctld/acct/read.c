/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader: on a worker, with a handle of its own.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "io/sql/sql.h"
#include "spurctld/acct/acct.h"
#include "spurctld/acct/schema.h"

static void add_list(struct str *sql, const char *column, uint32_t n) {
    str_addf(sql, "%s IN (", column);
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
        add_list(sql, " AND user", f->n_users);
    if (f->n_sluids)
        add_list(sql, " AND sluid", f->n_sluids);
    if (f->n_job_ids) {
        add_list(sql, " AND (id", f->n_job_ids);
        add_list(sql, " OR array_id", f->n_job_ids);
        str_addc(sql, ')');
    }
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
    for (uint32_t k = 0; k < f->n_sluids; k++)
        sql_bind_text(st, i++, f->sluids[k]);
    for (uint32_t k = 0; k < f->n_job_ids; k++)
        sql_bind_i64(st, i++, f->job_ids[k]);
    for (uint32_t k = 0; k < f->n_job_ids; k++)
        sql_bind_i64(st, i++, f->job_ids[k]);
}

typedef VEC(struct step) step_list;

static int read_steps(struct sql_stmt *st, const struct job *j, struct arena *a, step_list *out, struct err *e) {
    int rc;
    out->n = 0;
    sql_bind_i64(st, 1, j->id);
    sql_bind_text(st, 2, j->sluid ? j->sluid : "");
    sql_bind_i64(st, 3, ACCT_STEPS_MOST);
    while ((rc = sql_step(st, e)) == 1) {
        size_t n;
        const void *p = sql_blob(st, 0, &n);
        struct step s;
        rc = rec_decode(step_rec(), p, n, a, &s, e);
        if (rc)
            break;
        vec_push(out, s);
    }
    sql_reset(st);
    return MIN(rc, 0);
}

struct reading {
    struct sql_stmt *jobs, *steps;
    step_list list;
    acct_row_fn row;
    void *arg;
};

static int read_rows(struct reading *r, struct err *e) {
    auto_arena a = {0};
    int rc;
    while ((rc = sql_step(r->jobs, e)) == 1) {
        size_t n;
        const void *p = sql_blob(r->jobs, 0, &n);
        struct job j;
        rc = rec_decode(job_rec(), p, n, &a, &j, e);
        if (!rc)
            rc = read_steps(r->steps, &j, &a, &r->list, e);
        if (rc)
            return rc;
        if (j.spec && !r->row(r->arg, &j, r->list.p, (uint32_t)r->list.n))
            return 0;
        arena_reset(&a);
    }
    return rc;
}

int acct_read(const char *path, const struct acct_filter *f, acct_row_fn row, void *arg, struct err *e) {
    struct sql *db = NULL;
    struct reading r = {.row = row, .arg = arg};
    auto_str text = {0};
    build(f, &text);
    int rc = sql_open(path, SQL_READ, &db, e);
    if (!rc)
        rc = sql_prepare(db, text.p, &r.jobs, e);
    if (!rc)
        rc = sql_prepare(db, SCHEMA_GET_STEPS, &r.steps, e);
    if (!rc) {
        bind(r.jobs, f);
        rc = read_rows(&r, e);
    }
    sql_stmt_free(r.jobs);
    sql_stmt_free(r.steps);
    vec_fini(&r.list);
    sql_close(db);
    return rc;
}

int acct_read_steps(const char *path, uint32_t job_id, const char *sluid, void (*step)(void *arg, const struct step *s),
                    void *arg, struct err *e) {
    struct sql *db = NULL;
    struct sql_stmt *st = NULL;
    step_list list = {0};
    auto_arena a = {0};
    struct job j = {.id = job_id, .sluid = sluid};
    int rc = sql_open(path, SQL_READ, &db, e);
    if (!rc)
        rc = sql_prepare(db, SCHEMA_GET_STEPS, &st, e);
    if (!rc)
        rc = read_steps(st, &j, &a, &list, e);
    for (size_t i = 0; !rc && i < list.n; i++)
        step(arg, &list.p[i]);
    sql_stmt_free(st);
    sql_close(db);
    vec_fini(&list);
    return rc;
}
