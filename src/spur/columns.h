/* SPDX-License-Identifier: Apache-2.0
 *
 * docs/user/columns.md, from the field tables: `spur columns` prints it, a test compares.
 */
#ifndef SPUR_SPUR_COLUMNS_H
#define SPUR_SPUR_COLUMNS_H

#include "spur/table.h"

void columns_page(struct str *out);
void columns_of(const struct table_fields *f, struct str *out); /* one table: a line a field */

#endif
