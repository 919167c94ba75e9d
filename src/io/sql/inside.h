/* SPDX-License-Identifier: Apache-2.0
 *
 * For the files of this folder.
 */
#ifndef SPUR_IO_SQL_INSIDE_H
#define SPUR_IO_SQL_INSIDE_H

#include <sqlite3.h>

#include "base/err.h"

enum { SQL_BUSY_TIMEOUT_MS = 5000, SQL_PAGE_BYTES = 4096 };

/* SQLite's code as one of err.def, with its words. */
int sql_fail(sqlite3 *db, int code, const char *doing, const char *what, struct err *e);

#endif
