/* SPDX-License-Identifier: Apache-2.0
 *
 * The table config.def as data, for the files config*.c of this folder alone.
 */
#ifndef SPUR_CORE_MODEL_CONFIG_TABLE_H
#define SPUR_CORE_MODEL_CONFIG_TABLE_H

#include "core/model/config.h"

enum conf_type {
    CONF_STR,
    CONF_SECRET, /* a text that is never shown */
    CONF_ADDR,
    CONF_U32,
    CONF_U64,
    CONF_BOOL,
    CONF_STRS,
    CONF_NAMES,  /* as CONF_STRS, or one text with commas */
    CONF_COUNTS, /* a table of names and numbers, kept as struct license */
    CONF_LABELS, /* a table of keys and values, kept as struct selector */
    CONF_LIMIT,
    CONF_CHOICE,
    CONF_WORD,
    CONF_TABLE, /* of unsupported keys only */
    CONF_LIST,
};
enum conf_shape { CONF_SHAPE_TABLE, CONF_SHAPE_TABLES };
enum conf_scope { CONF_LOCAL, CONF_LIVE, CONF_SHARED };

/* What the keys fill in. Behind `c` is what no one else needs: values that become something else in config_check.c. */
struct conf_all {
    struct conf c;
    const char *scheduler_plugin;
    uint32_t admission_mode;
    bool job_requeue;
};
struct conf_part {
    struct part p;
    const char *nodes, *over_subscribe;
};
struct conf_node {
    struct node_overlay o;
    const char *names;
    const char *const *gres;
    uint32_t n_gres;
};

struct conf_section {
    const char *name, *doc;
    enum conf_shape shape;
};
struct conf_key {
    const char *section, *key;
    enum conf_type type;
    size_t off, off_n;
    const char *def; /* NULL: none */
    uint64_t lo, hi; /* bounds of a number, of a text's length, of a list's length */
    const char *words;
    enum conf_scope scope;
    const char *slurm;
    const char *doc;
};
struct conf_other {
    const char *section, *key;
    enum conf_type type;
    const char *value; /* the one that passes; NULL: none */
    const char *why;
};

const struct conf_section *conf_sections(size_t *n);
const struct conf_key *conf_keys(size_t *n);
const struct conf_other *conf_others(size_t *n);
const struct conf_section *conf_find_section(const char *name);
const struct conf_key *conf_find_key(const char *section, const char *key);
const struct conf_other *conf_find_other(const char *section, const char *key);

/* "scheduler.interval_secs", "cluster_name" */
void conf_print_name(const char *section, const char *key, struct str *out);
/* What a key takes, in words: "an integer from 1 to 3600". */
void conf_print_allowed(const struct conf_key *k, struct str *out);
/* The number of `word` (any case) among "a|b|!c", or -1; *refused for a word with an exclamation mark. */
int conf_word_number(const char *words, const char *word, bool *refused);
/* The i-th word; its length in *n. NULL: there are fewer. */
const char *conf_word(const char *words, size_t i, size_t *n);

/* ---- problems ---- */

struct conf_problem {
    uint32_t line;
    const char *text;
};
/* A reading of one file. Problems are collected and told in the order of their lines. */
struct conf_reading {
    struct arena *arena;
    struct conf_all *all;
    struct conf_problem *problem; /* a vector */
    size_t n_problems, cap_problems;
};
void conf_problem(struct conf_reading *r, uint32_t line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The child of a table by its key; NULL: not there, or t is NULL. */
const struct tree *conf_child(const struct tree *t, const char *key);

/* Puts the value into the struct at `base`, or tells what is wrong with it. */
void conf_set(struct conf_reading *r, const struct conf_key *k, const struct tree *value, void *base);
void conf_set_default(struct arena *a, const struct conf_key *k, void *base);
void conf_set_defaults(struct arena *a, const char *section, void *base);

/* ---- behind the table: what several values have to do with each other (config_check.c) ---- */

struct conf_part_at {
    struct conf_part v;
    const struct tree *t;
};
struct conf_node_at {
    struct conf_node v;
    const struct tree *t;
};
void conf_finish_parts(struct conf_reading *r, struct conf_part_at *part, uint32_t n);
void conf_finish_nodes(struct conf_reading *r, struct conf_node_at *node, uint32_t n);
void conf_finish_rest(struct conf_reading *r, const struct tree *root);

#endif
