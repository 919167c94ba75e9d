/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree of plain values with line numbers: what a configuration file says, before anyone knows what it means.
 * Everything lives in the arena it was made in.
 */
#ifndef SPUR_BASE_TREE_H
#define SPUR_BASE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tree_kind { TREE_TABLE, TREE_ARRAY, TREE_STRING, TREE_INTEGER, TREE_FLOAT, TREE_BOOL, TREE_OTHER };

struct tree {
    enum tree_kind kind;
    const char *key; /* in its table; NULL in an array and at the root */
    uint32_t line;   /* 1… ; 0: unknown */
    const char *string;
    int64_t integer;
    double number;
    bool truth;
    struct tree **child; /* of tables (in the file's order) and arrays */
    size_t n_children;
};

#endif
