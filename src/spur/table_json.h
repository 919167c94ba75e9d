/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows as objects of --json. What is the same in each of them is written once, before the first: of 10,000 jobs most of
 * the text is.
 */
#ifndef SPUR_SPUR_TABLE_JSON_H
#define SPUR_SPUR_TABLE_JSON_H

#include "spur/table.h"

struct table_json_part {
    struct str literal;             /* goes first */
    const struct table_field *field; /* whose value follows; NULL: none */
};

struct table_json {
    VEC(struct table_json_part) parts;
    struct str number_head, number_tail; /* around the number of a JSON_NO_VAL that is set */
};

/* `depth` of the objects. */
void table_json_init(struct table_json *t, const struct table_fields *f, unsigned depth);
void table_json_fini(struct table_json *t);
/* One object, as an element of the array that is open in `w`. */
void table_json_row(const struct table_json *t, struct json *w, const void *row, const void *env);

#endif
