/* SPDX-License-Identifier: Apache-2.0
 *
 * A small SQL database in one file (SQLite), for one writer thread and readers of their own. Statements are text with
 * `?` parameters; no model in here. Not thread safe: one handle, one thread.
 */
#ifndef SPUR_IO_SQL_H
#define SPUR_IO_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct sql;
struct sql_stmt;

enum sql_mode { SQL_READ, SQL_WRITE };

/* WAL journal, synchronous=FULL for writers, busy timeout 5 s. SQL_WRITE makes the file when missing. */
int sql_open(const char *path, enum sql_mode mode, struct sql **out, struct err *e);
void sql_close(struct sql *db); /* takes NULL */
int sql_exec(struct sql *db, const char *text, struct err *e); /* several statements, no rows */

/* Copies the database as it is at one moment into a new file; whoever keeps that syncs it. Others go on writing: they neither wait nor make
 * it begin again. Blocks: for a worker. `progress` (or NULL) is told how many bytes are copied, may sleep, and ends it with
 * what is not 0; then and on any failure there is no file. */
typedef int (*sql_progress_fn)(void *arg, uint64_t bytes, struct err *e);
int sql_copy(const char *from, const char *to, sql_progress_fn progress, void *arg, struct err *e);
/* Puts the file `from` (made by sql_copy, or any whole database) in the place of `path`, whole or not at all, on disk when this
 * returns. No handle of ours on `path` may be open; other readers go on with what they have. E_BUSY: they hold it. */
int sql_replace(const char *from, const char *path, struct err *e);

int sql_prepare(struct sql *db, const char *text, struct sql_stmt **out, struct err *e);
void sql_stmt_free(struct sql_stmt *st); /* takes NULL */
void sql_bind_i64(struct sql_stmt *st, int i, int64_t v); /* parameters count from 1 */
void sql_bind_text(struct sql_stmt *st, int i, const char *s); /* NULL binds NULL; copied */
void sql_bind_blob(struct sql_stmt *st, int i, const void *p, size_t n);
/* Runs or goes on: 1 a row is there, 0 the end (the statement is reset and may be bound again), or an error. */
int sql_step(struct sql_stmt *st, struct err *e);
void sql_reset(struct sql_stmt *st);
int64_t sql_i64(struct sql_stmt *st, int column); /* columns count from 0 */
const char *sql_text(struct sql_stmt *st, int column); /* NULL for NULL; borrowed until the next step */
const void *sql_blob(struct sql_stmt *st, int column, size_t *n);
bool sql_is_null(struct sql_stmt *st, int column);

#endif
