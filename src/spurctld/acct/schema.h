/* SPDX-License-Identifier: Apache-2.0
 *
 * The history's tables: one row a job and one a step, with the columns that questions are asked by, and the whole record
 * beside them. docs/format/history.md.
 */
#ifndef SPUR_SPURCTLD_ACCT_SCHEMA_H
#define SPUR_SPURCTLD_ACCT_SCHEMA_H

#include "core/model/step.h"
#include "io/sql/sql.h"

#define SCHEMA_VERSION 2

#define SCHEMA_INSERT_JOB                                                                                              \
    "INSERT OR REPLACE INTO job (id, sluid, uid, user, account, partition, name, state, submit_ms, start_ms, end_ms, " \
    "record, array_id) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
#define SCHEMA_INSERT_STEP                                                                                             \
    "INSERT OR REPLACE INTO step (job_id, sluid, step_id, uid, name, state, start_ms, end_ms, record) "                \
    "VALUES (?,?,?,?,?,?,?,?,?)"
#define SCHEMA_GET_STEPS "SELECT record FROM step WHERE job_id = ? AND sluid = ? ORDER BY step_id LIMIT ?"
#define SCHEMA_SET_INDEX "UPDATE meta SET applied_index = ?"
#define SCHEMA_GET_INDEX "SELECT applied_index FROM meta"

/* Makes the tables in an empty file, and brings those of an older program up to date; E_VERSION for a newer one's. */
int schema_prepare(struct sql *db, struct err *e);
void schema_bind_job(struct sql_stmt *st, const struct job *j, const void *record, size_t n);
void schema_bind_step(struct sql_stmt *st, const struct step *s, const void *record, size_t n);

#endif
