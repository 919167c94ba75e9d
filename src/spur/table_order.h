/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of rows by letters of -o: "P,t,-p". A minus in front turns one around.
 */
#ifndef SPUR_SPUR_TABLE_ORDER_H
#define SPUR_SPUR_TABLE_ORDER_H

#include "spur/table.h"

struct table_order {
    const struct table_fields *fields;
    const void *env;
    int (*last)(const void *a, const void *b); /* where all else is equal */
    bool last_down;
    const struct table_field *field[16];
    bool down[16];
    size_t n;
};

/* false with the first letter that is none. */
bool table_order_parse(struct table_order *o, const char *text, char *out_bad);
int table_order_compare(const void *a, const void *b, void *order); /* for qsort_r */

#endif
