/* SPDX-License-Identifier: Apache-2.0
 *
 * The table engine: columns are rows of a field table; squeue, sinfo and sacct differ in their fields and in how a
 * format is written. Widths, cuts and blanks are Slurm's, to the byte.
 */
#ifndef SPUR_SPUR_TABLE_H
#define SPUR_SPUR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "spur/json.h"

/* How a field stands in --json; without a function it is empty, unset, 0 or false. */
enum json_as {
    JSON_TEXT, /* what the column says; what stands for nothing there is "" */
    JSON_NUMBER,
    JSON_NO_VAL, /* {"set": …, "infinite": …, "number": …} */
    JSON_FLAG,
    JSON_LIST, /* empty */
    JSON_OWN,  /* `write` */
};

/* One kind of column. `row` is what the command lists; `env` what all rows share. */
struct table_field {
    char letter;       /* of %x; 0: none */
    const char *name;  /* lower case: -O, sacct -o; NULL: none */
    const char *head;
    void (*text)(const void *row, const void *env, struct str *out); /* NULL: `fixed` */
    const char *fixed; /* the value of a field that nothing we have yet could change */
    int16_t width;     /* sacct: default width, negative is left-aligned */
    uint16_t flags;    /* the command's own */
    int (*compare)(const void *a, const void *b); /* for -S; NULL: by text */
    const char *json; /* key of --json; NULL: not there. A line may have nothing else */
    uint8_t as;       /* enum json_as */
    int64_t (*number)(const void *row, const void *env); /* of --json and for -S: JSON_UNSET, JSON_INFINITE */
    void (*write)(struct json *w, const char *key, const void *row, const void *env);
    bool whole_head; /* the same for its heading, where that is aligned on the right */
    bool whole; /* a value too long for its column pushes the rest aside instead of being cut */
};

struct table_fields {
    const struct table_field *row;
    size_t n;
};

struct table_col {
    const struct table_field *field; /* NULL: only the suffix is printed */
    int width;                       /* 0: as wide as the value */
    bool right;
    const char *suffix; /* in the table's arena */
};

struct table {
    const struct table_fields *fields;
    VEC(struct table_col) cols;
    const char *prefix; /* before the first column; NULL */
    struct arena arena;
    VEC(const char *) bad; /* letters and names that are no field, as written */
};

void table_init(struct table *t, const struct table_fields *f);
void table_fini(struct table *t);
const struct table_field *table_letter(const struct table_fields *f, char letter);
const struct table_field *table_name(const struct table_fields *f, const char *name, size_t n); /* any case */

/* squeue's and sinfo's -o: text with %[.][WIDTH]LETTER. What is no field stays as it is written. */
void table_parse_percent(struct table *t, const char *format);
/* Their -O: NAME[:[.][WIDTH][SUFFIX]],… each 20 wide if not said otherwise. What is no field is left out. */
void table_parse_long(struct table *t, const char *format);
/* Adds one column. */
void table_add(struct table *t, const struct table_field *f, int width, bool right, const char *suffix);

void table_head(const struct table *t, struct str *out);
void table_line(const struct table *t, const void *row, const void *env, struct str *out);
/* All columns, one behind the other, as one key; only those with a flag of `flags`. */
void table_key(const struct table *t, uint16_t flags, const void *row, const void *env, struct str *out);

int table_compare(const struct table_field *f, const void *a, const void *b, const void *env);
/* The fields of a row as members of the object that is open; for many rows see table_json.h. */
void table_json(const struct table_fields *f, struct json *w, const void *row, const void *env);
/* For --helpformat: names, or letters where there are no names, four a line. */
void table_names(const struct table_fields *f, struct str *out);

/* One value in its column: padded or cut, bytes counted. */
void table_cell(const char *text, int width, bool right, struct str *out);

#endif
