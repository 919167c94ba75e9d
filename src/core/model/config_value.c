/* SPDX-License-Identifier: Apache-2.0
 *
 * One value of spur.conf: is it of the key's type and within its bounds, and where does it go.
 *
 * What a value was is told only where that can't be a secret; the type STR, which may hold a password in the wrong
 * place, is told by its kind.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/config_table.h"
#include "core/model/text.h"

const struct tree *conf_child(const struct tree *t, const char *key) {
    for (size_t i = 0; t && i < t->n_children; i++) {
        if (str_eq(t->child[i]->key, key))
            return t->child[i];
    }
    return NULL;
}

static void add_shown(const struct conf_key *k, const struct tree *v, struct str *out) {
    bool is_secret = k->type == CONF_STR || k->type == CONF_SECRET || k->type == CONF_STRS ||
                     k->type == CONF_NAMES;
    switch (v->kind) {
    case TREE_STRING:
        if (is_secret)
            str_add(out, *v->string ? "this text" : "an empty text");
        else
            str_addf(out, "\"%.100s\"", v->string);
        break;
    case TREE_INTEGER:
        if (is_secret)
            str_add(out, "an integer");
        else
            str_addf(out, "%" PRId64, v->integer);
        break;
    case TREE_FLOAT: str_add(out, "a number with a fraction"); break;
    case TREE_BOOL: str_add(out, v->truth ? "true" : "false"); break;
    case TREE_ARRAY: str_add(out, k->type == CONF_STRS || k->type == CONF_NAMES ? "this list" : "a list"); break;
    case TREE_TABLE: str_add(out, k->type == CONF_COUNTS || k->type == CONF_LABELS ? "this table" : "a table"); break;
    case TREE_OTHER: str_add(out, "a date"); break;
    }
}

static void refuse(struct conf_reading *r, const struct conf_key *k, const struct tree *v) {
    auto_str s = {0};
    conf_print_name(k->section, k->key, &s);
    str_add(&s, ": ");
    add_shown(k, v, &s);
    str_add(&s, " is not allowed; must be ");
    conf_print_allowed(k, &s);
    conf_problem(r, v->line, "%s", str_text(&s));
}

static void *at(void *base, size_t off) {
    return (char *)base + off;
}

/* "host:port", "[v6]:port", ":port" */
static bool is_address(const char *s) {
    const char *colon = strrchr(s, ':');
    uint64_t port;
    if (!colon || str_to_u64(colon + 1, 65535, &port) || strpbrk(s, " \t\n/"))
        return false;
    size_t n = (size_t)(colon - s);
    if (*s == '[')
        return n > 2 && s[n - 1] == ']' && !memchr(s + 1, '[', n - 1);
    return !memchr(s, ':', n);
}

static bool text_fits(const struct conf_key *k, const struct tree *v) {
    if (v->kind != TREE_STRING)
        return false;
    size_t n = strlen(v->string);
    return n >= k->lo && (!k->hi || n <= k->hi);
}

static bool set_text(const struct conf_key *k, const struct tree *v, void *base, struct arena *a) {
    if (!text_fits(k, v) || (k->type == CONF_ADDR && !is_address(v->string)))
        return false;
    /* an empty text where one may be empty is "not set" */
    *(const char **)at(base, k->off) = *v->string ? arena_strdup(a, v->string) : NULL;
    return true;
}

static bool set_number(const struct conf_key *k, const struct tree *v, void *base) {
    if (v->kind != TREE_INTEGER || v->integer < 0 || (uint64_t)v->integer < k->lo || (uint64_t)v->integer > k->hi)
        return false;
    if (k->type == CONF_U64)
        *(uint64_t *)at(base, k->off) = (uint64_t)v->integer;
    else
        *(uint32_t *)at(base, k->off) = (uint32_t)v->integer;
    return true;
}

static bool set_texts(const struct conf_key *k, const struct tree *v, void *base, struct arena *a) {
    if (v->kind != TREE_ARRAY || v->n_children > k->hi)
        return false;
    const char **list = arena_calloc(a, v->n_children + 1, sizeof(*list));
    for (size_t i = 0; i < v->n_children; i++) {
        if (v->child[i]->kind != TREE_STRING || !*v->child[i]->string)
            return false;
        list[i] = arena_strdup(a, v->child[i]->string);
    }
    *(const char *const **)at(base, k->off) = list;
    *(uint32_t *)at(base, k->off_n) = (uint32_t)v->n_children;
    return true;
}

/* "a,b" as a list of its parts; an empty part is none. */
static bool set_names(const struct conf_key *k, const struct tree *v, void *base, struct arena *a) {
    if (v->kind != TREE_STRING)
        return set_texts(k, v, base, a);
    uint32_t n = 0;
    const char **list = arena_calloc(a, strlen(v->string) + 1, sizeof(*list));
    for (const char *s = v->string; *s;) {
        size_t len = strcspn(s, ",");
        if (!len || n == k->hi)
            return false;
        list[n++] = arena_strndup(a, s, len);
        s += len + (s[len] == ',' && s[len + 1]);
        if (*s == ',')
            return false;
    }
    *(const char *const **)at(base, k->off) = list;
    *(uint32_t *)at(base, k->off_n) = n;
    return true;
}

static int by_license(const void *a, const void *b) {
    return strcmp(((const struct license *)a)->name, ((const struct license *)b)->name);
}

static bool is_count_name(const char *s) {
    size_t n = strlen(s);
    return n && n <= 64 && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@") == n;
}

/* In the order of names, whatever the file's is. */
static bool set_counts(const struct conf_key *k, const struct tree *v, void *base, struct arena *a) {
    if (v->kind != TREE_TABLE || v->n_children > k->hi)
        return false;
    struct license *list = arena_calloc(a, v->n_children + 1, sizeof(*list));
    for (size_t i = 0; i < v->n_children; i++) {
        const struct tree *c = v->child[i];
        if (c->kind != TREE_INTEGER || c->integer < 0 || c->integer > INT32_MAX || !is_count_name(c->key))
            return false;
        list[i] = (struct license){arena_strdup(a, c->key), (uint32_t)c->integer};
    }
    qsort(list, v->n_children, sizeof(*list), by_license);
    *(const struct license **)at(base, k->off) = list;
    *(uint32_t *)at(base, k->off_n) = (uint32_t)v->n_children;
    return true;
}

static bool set_labels(const struct conf_key *k, const struct tree *v, void *base, struct arena *a) {
    if (v->kind != TREE_TABLE || v->n_children > k->hi)
        return false;
    struct selector *list = arena_calloc(a, v->n_children + 1, sizeof(*list));
    for (size_t i = 0; i < v->n_children; i++) {
        const struct tree *c = v->child[i];
        if (c->kind != TREE_STRING || !label_key_ok(c->key) || !label_value_ok(c->string))
            return false;
        list[i] = (struct selector){arena_strdup(a, c->key), arena_strdup(a, c->string)};
    }
    labels_change(NULL, 0, list, (uint32_t)v->n_children, false, a, at(base, k->off), at(base, k->off_n));
    return true;
}

static bool set_limit(const struct conf_key *k, const struct tree *v, void *base) {
    uint32_t minutes;
    if (v->kind == TREE_INTEGER && v->integer >= 0 && v->integer < TIME_LIMIT_NONE)
        minutes = v->integer ? (uint32_t)v->integer : TIME_LIMIT_NONE;
    else if (v->kind != TREE_STRING || time_limit_parse_conf(v->string, &minutes))
        return false;
    *(uint32_t *)at(base, k->off) = minutes;
    return true;
}

static bool set_word(struct conf_reading *r, const struct conf_key *k, const struct tree *v, void *base,
                     struct arena *a) {
    bool refused = false;
    size_t n;
    int number = v->kind == TREE_STRING ? conf_word_number(k->words, v->string, &refused) : -1;
    if (number < 0)
        return false;
    if (refused) {
        auto_str s = {0};
        conf_print_name(k->section, k->key, &s);
        conf_problem(r, v->line, "%s: \"%s\" is not supported yet", str_text(&s), v->string);
        return true;
    }
    if (k->type == CONF_WORD) {
        *(uint32_t *)at(base, k->off) = (uint32_t)number;
    } else {
        const char *word = conf_word(k->words, (size_t)number, &n);
        *(const char **)at(base, k->off) = arena_strndup(a, word, n);
    }
    return true;
}

void conf_set(struct conf_reading *r, const struct conf_key *k, const struct tree *v, void *base) {
    bool ok = false;
    switch (k->type) {
    case CONF_STR:
    case CONF_SECRET:
    case CONF_ADDR: ok = set_text(k, v, base, r->arena); break;
    case CONF_U32:
    case CONF_U64: ok = set_number(k, v, base); break;
    case CONF_BOOL:
        ok = v->kind == TREE_BOOL;
        if (ok)
            *(bool *)at(base, k->off) = v->truth;
        break;
    case CONF_STRS: ok = set_texts(k, v, base, r->arena); break;
    case CONF_NAMES: ok = set_names(k, v, base, r->arena); break;
    case CONF_COUNTS: ok = set_counts(k, v, base, r->arena); break;
    case CONF_LABELS: ok = set_labels(k, v, base, r->arena); break;
    case CONF_LIMIT: ok = set_limit(k, v, base); break;
    case CONF_CHOICE:
    case CONF_WORD: ok = set_word(r, k, v, base, r->arena); break;
    case CONF_TABLE:
    case CONF_LIST: break;
    }
    if (!ok)
        refuse(r, k, v);
}

/* A default is written in the table as text; it goes the same way as a value of a file. */
void conf_set_default(struct arena *a, const struct conf_key *k, void *base) {
    struct conf_reading r = {.arena = a};
    struct tree v = {.kind = TREE_STRING, .string = k->def}, *one = &v, list;
    uint64_t number = 0;
    if (!k->def)
        return;
    switch (k->type) {
    case CONF_U32:
    case CONF_U64:
        must(str_to_u64(k->def, INT64_MAX, &number) == 0);
        v.kind = TREE_INTEGER;
        v.integer = (int64_t)number;
        break;
    case CONF_BOOL:
        v.kind = TREE_BOOL;
        v.truth = str_eq(k->def, "true");
        break;
    case CONF_COUNTS:
    case CONF_LABELS:
        return; /* none */
    case CONF_STRS:
    case CONF_NAMES:
        list = (struct tree){.kind = TREE_ARRAY, .child = &one, .n_children = *k->def ? 1 : 0};
        conf_set(&r, k, &list, base);
        return;
    default: break;
    }
    conf_set(&r, k, &v, base);
    must(r.n_problems == 0);
}

void conf_set_defaults(struct arena *a, const char *section, void *base) {
    size_t n;
    const struct conf_key *k = conf_keys(&n);
    for (size_t i = 0; i < n; i++) {
        if (str_eq(k[i].section, section))
            conf_set_default(a, &k[i], base);
    }
}
