/* SPDX-License-Identifier: Apache-2.0
 *
 * sinfo's parts: what was asked for and how it is written (cmd_sinfo.c), which rows there are (sinfo_rows.c).
 */
#ifndef SPUR_SPUR_SINFO_H
#define SPUR_SPUR_SINFO_H

#include "spur/cli.h"
#include "spur/node_fields.h"

struct sinfo {
    struct cli *c;
    const char *format, *long_format, *sort, *part_list, *node_list, *state_list;
    const char *json_version, *iterate;
    bool all, by_node, long_list, summarize, no_header, reasons, exact, future, dead, responding, json, help_format;
    uint32_t interval_secs; /* 0: once */
    const char *const *part, *const *node, *const *state;
    uint32_t n_part, n_node, n_state;
};

typedef VEC(struct node_row) sinfo_rows;

/* The rows of a table in their order; freed by the second. */
void sinfo_rows_make(const struct sinfo *s, const struct table *t, const struct nodes_reply *reply, sinfo_rows *out);
void sinfo_rows_fini(sinfo_rows *rows);

#endif
