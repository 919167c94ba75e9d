/* SPDX-License-Identifier: Apache-2.0
 *
 * The history's tables: one row a job, with the columns that questions are asked by, and the whole job record beside
 * them. docs/format/history.md.
 */
#ifndef SPUR_SPURCTLD_ACCT_SCHEMA_H
#define SPUR_SPURCTLD_ACCT_SCHEMA_H

#include "core/model/job.h"
#include "io/sql/sql.h"

#define SCHEMA_VERSION 1

#define SCHEMA_INSERT_JOB                                                                                              \
    "INSERT OR REPLACE INTO job (id, sluid, uid, user, account, partition, name, state, submit_ms, start_ms, end_ms, " \
    "record) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
#define SCHEMA_SET_INDEX "UPDATE meta SET applied_index = ?"
#define SCHEMA_GET_INDEX "SELECT applied_index FROM meta"

/* Makes the tables in an empty file; E_VERSION for a file of a newer program. */
int schema_prepare(struct sql *db, struct err *e);
void schema_bind_job(struct sql_stmt *st, const struct job *j, const void *record, size_t n);

#endif
