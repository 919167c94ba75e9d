/* SPDX-License-Identifier: Apache-2.0
 *
 * sinfo's columns. A row is a set of nodes of a partition that look alike in the columns that are shown.
 */
#ifndef SPUR_SPUR_NODE_FIELDS_H
#define SPUR_SPUR_NODE_FIELDS_H

#include "base/vec.h"
#include "spur/spur.h"
#include "spur/table.h"

struct node_row {
    const struct part *part;
    uint32_t part_order;
    VEC(const struct node_info *) nodes; /* may be empty */
    const char *key;
};

/* Flags of a field: nodes that differ in it are different rows; FIELD_SIZE: only with -e and -N. */
enum { FIELD_KEY = 1, FIELD_SIZE = 2, FIELD_PART = 4 };

const struct table_fields *node_fields(void);

#endif
