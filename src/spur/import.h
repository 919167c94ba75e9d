/* SPDX-License-Identifier: Apache-2.0
 *
 * A site comes over: the files of another manager become a spur.conf. Pure but for the reader that is handed in.
 *
 *     slurm.conf, what it includes, gres.conf ─► import_read ─► lines of KEY=VALUE ─► import_slurm ─► spur.conf + notes
 *
 * The same files give the same text. What can't be carried over is told, a line each, with file and line.
 */
#ifndef SPUR_SPUR_IMPORT_H
#define SPUR_SPUR_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

/* A word KEY=VALUE, KEY+=VALUE or KEY; quotes around the value are gone. */
struct import_word {
    const char *key, *value; /* value NULL: there is none */
};
struct import_line {
    const char *file;
    uint32_t line; /* its first, where it is continued */
    struct import_word *word;
    uint32_t n_words;
};

struct import {
    struct arena *arena;
    VEC(struct import_line) lines; /* slurm.conf's, with those of included files in their places */
    VEC(struct import_line) gres;  /* gres.conf's */
    struct str notes;              /* what could not be carried over, a line each */
    struct str conf;               /* spur.conf */
    struct str agents;             /* the command line of each node's agent */
    /* The text of a file named in `from` ("" for the first one), in the arena; NULL: it can't be read. */
    const char *(*read)(void *ctx, const char *from, const char *name, size_t *out_n);
    void *ctx;
};

void import_init(struct import *im, struct arena *a);
void import_fini(struct import *im);
/* Cuts a text into lines and words, following Include. Never fails: what can't be read is noted. */
void import_text(struct import *im, const char *file, const char *text, size_t n, bool is_gres, unsigned depth);
void import_note(struct import *im, const struct import_line *l, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* From the lines to im->conf and im->agents. */
void import_slurm(struct import *im);

/* ---- import_*.c ---- */

bool import_is(const char *a, const char *b); /* the same key: case does not count */
/* The last word of that key on the line; NULL: none. */
const char *import_value(const struct import_line *l, const char *key);
void import_quoted(const char *text, struct str *out); /* as TOML has it */
void import_nodes(struct import *im);
void import_parts(struct import *im);
/* The nodes that a partition's list means: NodeSets are replaced. "ALL" stays. */
const char *import_node_list(struct import *im, const struct import_line *l, const char *list);

#endif
