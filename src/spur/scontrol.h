/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol, in parts: the keywords, and what `show` shows.
 */
#ifndef SPUR_SPUR_SCONTROL_H
#define SPUR_SPUR_SCONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "spur/cli.h"

struct scontrol {
    struct cli *c;
    bool one_line, all;
    const char *const *word; /* behind the keyword */
    size_t n;
};

/* Each returns the exit code. `name`: NULL or "" for all. */
int scontrol_show_job(struct scontrol *s, const char *name);
int scontrol_show_node(struct scontrol *s, const char *name);
int scontrol_show_partition(struct scontrol *s, const char *name);
int scontrol_show_hostnames(struct scontrol *s, const char *list);
int scontrol_show_hostlist(struct scontrol *s, const char *list, bool sorted);

/* The texts alone, for tests: one record, with its blank line or as one line. */
void scontrol_job_text(const struct job_info *ji, int64_t now_unix, bool one_line, struct str *out);
void scontrol_node_text(const struct node_info *ni, bool one_line, struct str *out);
void scontrol_part_text(const struct part *p, const struct nodes_reply *all, bool one_line, struct str *out);

/* A record's line break: "\n   ", or a blank on one line. */
#define RECORD_BREAK(one_line) ((one_line) ? " " : "\n   ")
#define RECORD_END(one_line) ((one_line) ? "\n" : "\n\n")

#endif
