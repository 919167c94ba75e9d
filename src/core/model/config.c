/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading spur.conf: walks the tree by the table, sets what is known, tells everything that is wrong.
 */
#include "core/model/config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/near.h"
#include "core/model/config_table.h"

#define PROBLEMS_MAX 100
#define TABLES_MAX 65536

void conf_problem(struct conf_reading *r, uint32_t line, const char *fmt, ...) {
    auto_str s = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vaddf(&s, fmt, ap);
    va_end(ap);
    if (r->n_problems == r->cap_problems) {
        r->cap_problems = r->cap_problems ? r->cap_problems * 2 : 8;
        r->problem = xrealloc(r->problem, r->cap_problems * sizeof(*r->problem));
    }
    r->problem[r->n_problems++] = (struct conf_problem){line, arena_strdup(r->arena, str_text(&s))};
}

/* ---- keys that are not there or do nothing ---- */

static const char *similar_key(const char *section, const char *key) {
    size_t n, m;
    const struct conf_key *k = conf_keys(&n);
    const struct conf_other *o = conf_others(&m);
    struct near near = near_to(key);
    for (size_t i = 0; i < n; i++) {
        if (str_eq(k[i].section, section))
            near_try(&near, k[i].key);
    }
    for (size_t i = 0; i < m; i++) {
        if (str_eq(o[i].section, section))
            near_try(&near, o[i].key);
    }
    return near.best;
}

static const char *section_with(const char *key) {
    size_t n;
    const struct conf_key *k = conf_keys(&n);
    for (size_t i = 0; i < n; i++) {
        if (str_eq(k[i].key, key))
            return k[i].section;
    }
    return NULL;
}

static void tell_unknown_key(struct conf_reading *r, const char *section, const struct tree *v) {
    const char *similar = similar_key(section, v->key), *elsewhere = section_with(v->key);
    auto_str s = {0};
    str_addf(&s, "unknown key `%.100s`", v->key);
    if (*section)
        str_addf(&s, " in [%s]", section);
    if (similar)
        str_addf(&s, "; did you mean `%s`?", similar);
    else if (elsewhere)
        str_addf(&s, "; it belongs to %s%s%s", *elsewhere ? "[" : "the top of the file", elsewhere, *elsewhere ? "]" : "");
    conf_problem(r, v->line, "%s", str_text(&s));
}

static void tell_unknown_section(struct conf_reading *r, const struct tree *v) {
    size_t n;
    const struct conf_section *s = conf_sections(&n);
    struct near near = near_to(v->key);
    for (size_t i = 1; i < n; i++)
        near_try(&near, s[i].name);
    if (near.best)
        conf_problem(r, v->line, "unknown section [%.100s]; did you mean [%s]?", v->key, near.best);
    else
        conf_problem(r, v->line, "unknown section [%.100s]", v->key);
}

static bool asks_for_nothing(const struct conf_other *o, const struct tree *v) {
    uint64_t number;
    if (!o->value)
        return false;
    switch (v->kind) {
    case TREE_STRING: return o->type == CONF_STR && strcmp(o->value, v->string) == 0;
    case TREE_INTEGER: return v->integer >= 0 && !str_to_u64(o->value, INT64_MAX, &number) && (uint64_t)v->integer == number;
    case TREE_BOOL: return o->type == CONF_BOOL && str_eq(o->value, v->truth ? "true" : "false");
    case TREE_ARRAY: return (o->type == CONF_STRS || o->type == CONF_LIST) && v->n_children == 0;
    case TREE_TABLE: return o->type == CONF_TABLE && v->n_children == 0;
    default: return false;
    }
}

static void check_other(struct conf_reading *r, const struct conf_other *o, const struct tree *v) {
    auto_str s = {0};
    if (asks_for_nothing(o, v))
        return;
    conf_print_name(o->section, o->key, &s);
    conf_problem(r, v->line, "%s: %s", str_text(&s), o->why ? o->why : "not supported yet");
}

/* ---- the walk ---- */

static void read_key(struct conf_reading *r, const char *section, const struct tree *v, void *base) {
    const struct conf_key *k = conf_find_key(section, v->key);
    const struct conf_other *o = k ? NULL : conf_find_other(section, v->key);
    if (k)
        conf_set(r, k, v, base);
    else if (o)
        check_other(r, o, v);
    else
        tell_unknown_key(r, section, v);
}

static void read_table(struct conf_reading *r, const char *section, const struct tree *t, void *base) {
    for (size_t i = 0; i < t->n_children; i++)
        read_key(r, section, t->child[i], base);
}

static bool is_tables(struct conf_reading *r, const char *name, const struct tree *t) {
    bool ok = t->kind == TREE_ARRAY && t->n_children <= TABLES_MAX;
    for (size_t i = 0; ok && i < t->n_children; i++)
        ok = t->child[i]->kind == TREE_TABLE;
    if (!ok)
        conf_problem(r, t->line, "%s: must be a list of tables: [[%s]]", name, name);
    return ok;
}

static void read_parts(struct conf_reading *r, const struct tree *t) {
    if (!t || !is_tables(r, "partitions", t) || t->n_children == 0) {
        conf_finish_parts(r, NULL, 0);
        return;
    }
    struct conf_part_at *part = arena_calloc(r->arena, t->n_children, sizeof(*part));
    for (size_t i = 0; i < t->n_children; i++) {
        part[i].t = t->child[i];
        conf_set_defaults(r->arena, "partitions", &part[i].v);
        read_table(r, "partitions", t->child[i], &part[i].v);
    }
    conf_finish_parts(r, part, (uint32_t)t->n_children);
}

static void read_nodes(struct conf_reading *r, const struct tree *t) {
    if (!t || !is_tables(r, "nodes", t) || t->n_children == 0)
        return;
    struct conf_node_at *node = arena_calloc(r->arena, t->n_children, sizeof(*node));
    for (size_t i = 0; i < t->n_children; i++) {
        node[i].t = t->child[i];
        conf_set_defaults(r->arena, "nodes", &node[i].v);
        read_table(r, "nodes", t->child[i], &node[i].v);
    }
    conf_finish_nodes(r, node, (uint32_t)t->n_children);
}

static void read_top(struct conf_reading *r, const struct tree *v) {
    const struct conf_section *s = conf_find_section(v->key);
    if (s && s->shape == CONF_SHAPE_TABLES)
        return; /* read_parts and read_nodes */
    if (s && v->kind == TREE_TABLE)
        read_table(r, s->name, v, r->all);
    else if (s)
        conf_problem(r, v->line, "%s: must be a table: [%s]", v->key, v->key);
    else if (v->kind == TREE_TABLE && !conf_find_other("", v->key) && !conf_find_key("", v->key))
        tell_unknown_section(r, v);
    else
        read_key(r, "", v, r->all);
}

static void set_all_defaults(struct arena *a, struct conf_all *all) {
    size_t n;
    const struct conf_section *s = conf_sections(&n);
    for (size_t i = 0; i < n; i++) {
        if (s[i].shape == CONF_SHAPE_TABLE)
            conf_set_defaults(a, s[i].name, all);
    }
}

static int by_line(const void *a, const void *b) {
    const struct conf_problem *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return strcmp(x->text, y->text);
}

static int tell_problems(struct conf_reading *r, struct str *out, struct err *e) {
    qsort(r->problem, r->n_problems, sizeof(*r->problem), by_line);
    for (size_t i = 0; i < r->n_problems && i < PROBLEMS_MAX; i++)
        str_addf(out, "line %" PRIu32 ": %s\n", r->problem[i].line, r->problem[i].text);
    if (r->n_problems > PROBLEMS_MAX)
        str_addf(out, "and %zu more\n", r->n_problems - PROBLEMS_MAX);
    return err_set(e, E_CONFIG, "line %" PRIu32 ": %s", r->problem[0].line, r->problem[0].text);
}

int conf_read(const struct tree *root, struct arena *a, struct conf *out, struct str *problems, struct err *e) {
    struct conf_all all = {0};
    struct conf_reading r = {.arena = a, .all = &all};
    set_all_defaults(a, &all);
    for (size_t i = 0; i < root->n_children; i++)
        read_top(&r, root->child[i]);
    if (!conf_child(root, "cluster_name"))
        conf_problem(&r, 1, "cluster_name: is missing; the cluster must have a name");
    read_parts(&r, conf_child(root, "partitions"));
    read_nodes(&r, conf_child(root, "nodes"));
    conf_finish_rest(&r, root);
    int rc = r.n_problems ? tell_problems(&r, problems, e) : 0;
    free(r.problem);
    if (!rc)
        *out = all.c;
    return rc;
}

void conf_defaults(struct arena *a, struct conf *out) {
    static const struct tree root = {.kind = TREE_TABLE};
    struct conf_all all = {0};
    struct conf_reading r = {.arena = a, .all = &all};
    set_all_defaults(a, &all);
    conf_finish_parts(&r, NULL, 0);
    conf_finish_rest(&r, &root);
    must(r.n_problems == 0);
    *out = all.c;
}
