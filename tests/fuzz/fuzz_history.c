/* SPDX-License-Identifier: Apache-2.0
 *
 * Records in the history's file that were damaged, or written by another program: the first byte is how long the job's record
 * is (times 4), the rest that of a step. Reading says what is wrong or gives whole records, which show in full.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "spurctld/acct/acct.h"
#include "spurctld/acct/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char path[64];
static struct sql *db;
static struct sql_stmt *job, *step;

static void end(void) {
    unlink(path);
}

static void begin(void) {
    struct err e = {0};
    snprintf(path, sizeof(path), "%s/fuzz-history-%d.sqlite", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", getpid());
    unlink(path);
    must(sql_open(path, SQL_WRITE, &db, &e) == 0 && schema_prepare(db, &e) == 0);
    must(sql_exec(db, "INSERT INTO job (id, sluid, uid, user, account, partition, name, state, submit_ms, start_ms, end_ms, record, array_id) "
                      "VALUES (7, '', 1, 'u', '', 'p', 'n', 3, 1, 2, 3, x'', 0);"
                      "INSERT INTO step (job_id, sluid, step_id, uid, name, state, start_ms, end_ms, record) "
                      "VALUES (7, '', 0, 1, 'n', 3, 2, 3, x'');", &e) == 0);
    must(sql_prepare(db, "UPDATE job SET record = ?", &job, &e) == 0);
    must(sql_prepare(db, "UPDATE step SET record = ?", &step, &e) == 0);
    atexit(end);
}

static void set(struct sql_stmt *st, const uint8_t *p, size_t n) {
    struct err e = {0};
    sql_bind_blob(st, 1, n ? (const void *)p : "", n);
    must(sql_step(st, &e) == 0);
    sql_reset(st);
}

static bool row(void *arg, const struct job *j, const struct step *steps, uint32_t n_steps) {
    auto_arena a = {0};
    must(j->spec && rec_print(job_rec(), j, &a));
    for (uint32_t i = 0; i < n_steps; i++)
        must(rec_print(step_rec(), &steps[i], &a));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!db)
        begin();
    if (n < 1 || n > 4096)
        return 0;
    size_t n_job = MIN((size_t)data[0] * 4, n - 1);
    set(job, data + 1, n_job);
    set(step, data + 1 + n_job, n - 1 - n_job);
    struct acct_filter f = {.limit = 10};
    struct err e = {0};
    int rc = acct_read(path, &f, row, NULL, &e);
    must(rc >= 0 || *e.text);
    return 0;
}
