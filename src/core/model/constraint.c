/* SPDX-License-Identifier: Apache-2.0
 *
 * Read by descent, written in postfix order, so that matching needs no tree: a stack of truths, which fits into one word.
 */
#include "core/model/constraint.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

#define OPS_MAX 256
#define DEPTH_MAX 32 /* of parentheses, and so of the stack of truths */
#define COUNT_MAX 65536

struct reader {
    const char *at;
    struct arena *arena;
    struct feature_op op[OPS_MAX];
    uint32_t n_ops;
};

static bool put(struct reader *r, char op, const char *name) {
    if (r->n_ops == OPS_MAX)
        return false;
    r->op[r->n_ops++] = (struct feature_op){op, name};
    return true;
}

/* What was written since `from`, taken away from the reader. */
static struct feature_expr cut(struct reader *r, uint32_t from) {
    struct feature_expr x = {arena_memdup(r->arena, r->op + from, (r->n_ops - from) * sizeof(*r->op)), r->n_ops - from};
    r->n_ops = from;
    return x;
}

static bool read_name(struct reader *r) {
    size_t n = strcspn(r->at, "&|,()[]* \t");
    if (!n || n > 255)
        return false;
    const char *name = arena_strndup(r->arena, r->at, n);
    r->at += n;
    return put(r, 'n', name);
}

static bool read_terms(struct reader *r, uint32_t depth, const char *ends);

static bool read_term(struct reader *r, uint32_t depth) {
    if (*r->at != '(')
        return read_name(r);
    r->at++;
    if (depth >= DEPTH_MAX || !read_terms(r, depth + 1, ")") || *r->at != ')')
        return false;
    r->at++;
    return true;
}

static bool is_and(char c) {
    return c == '&' || c == ',';
}

/* Terms up to one of `ends` or the end; what stands there is left. */
static bool read_terms(struct reader *r, uint32_t depth, const char *ends) {
    if (!read_term(r, depth))
        return false;
    while (*r->at && !strchr(ends, *r->at)) {
        char op = is_and(*r->at) ? '&' : *r->at;
        if (op != '&' && op != '|')
            return false;
        r->at++;
        if (!read_term(r, depth) || !put(r, op, NULL))
            return false;
    }
    return true;
}

static bool read_count(struct reader *r, uint32_t *out) {
    uint64_t count;
    char digits[8];
    size_t n = strspn(++r->at, "0123456789");
    if (!n || n >= sizeof(digits))
        return false;
    memcpy(digits, r->at, n);
    digits[n] = '\0';
    r->at += n;
    if (str_to_u64(digits, COUNT_MAX, &count) || !count)
        return false;
    *out = (uint32_t)count;
    return true;
}

/* Inside of a bracket: terms, each perhaps with a count. Alternatives where `|` joins them, groups where one has a
 * count, else as if there were no bracket. */
static bool read_bracket(struct reader *r, struct features *out) {
    struct feature_group item[OPS_MAX];
    uint32_t n = 0, n_or = 0, n_counts = 0;
    do {
        uint32_t from = r->n_ops, count = 0;
        r->at++;
        if (n == OPS_MAX || !read_term(r, 1))
            return false;
        while (is_and(*r->at) && !n_counts && strcspn(r->at, "*") > strcspn(r->at, "]")) { /* a&b is one alternative */
            r->at++;
            if (!read_term(r, 1) || !put(r, '&', NULL))
                return false;
        }
        if (*r->at == '*' && !read_count(r, &count))
            return false;
        n_counts += count != 0;
        n_or += *r->at == '|';
        item[n++] = (struct feature_group){cut(r, from), MAX(count, 1)};
    } while (*r->at == '|' || is_and(*r->at));
    if (*r->at++ != ']' || (n_or && (n_counts || n_or + 1 != n)))
        return false;
    if (n_counts) {
        out->group = arena_memdup(r->arena, item, n * sizeof(*item));
        out->n_groups = n;
        return true;
    }
    struct feature_expr *alt = arena_alloc(r->arena, n * sizeof(*alt));
    for (uint32_t i = 0; i < n; i++)
        alt[i] = item[i].expr;
    out->alt = alt;
    out->n_alts = n;
    return true;
}

/* "a*4", alone. */
static bool read_one_count(struct reader *r, struct features *out) {
    struct feature_group *g = arena_calloc(r->arena, 1, sizeof(*g));
    if (!read_term(r, 0) || *r->at != '*' || !read_count(r, &g->count) || *r->at)
        return false;
    g->expr = cut(r, 0);
    out->group = g;
    out->n_groups = 1;
    return true;
}

static bool read_all(struct reader *r, struct features *out) {
    bool any = false;
    char op = '&';
    if (strchr(r->at, '*') && !strchr(r->at, '['))
        return read_one_count(r, out);
    while (true) {
        bool is_bracket = *r->at == '[';
        if (is_bracket && (op != '&' || out->n_alts || out->n_groups || !read_bracket(r, out)))
            return false;
        if (!is_bracket && (!read_term(r, 0) || (any && !put(r, op, NULL))))
            return false;
        any |= !is_bracket;
        if (!*r->at)
            break;
        op = is_and(*r->at) ? '&' : *r->at;
        if ((op != '&' && op != '|') || (op == '|' && (out->n_alts || out->n_groups)))
            return false;
        r->at++;
    }
    out->all = cut(r, 0);
    return true;
}

int features_parse(const char *s, struct arena *a, struct features *out, struct err *e) {
    struct reader r = {.at = s, .arena = a};
    *out = (struct features){0};
    if (!s || !*s)
        return 0;
    if (!read_all(&r, out)) {
        *out = (struct features){0};
        return err_set(e, E_FEATURE, NULL);
    }
    return 0;
}

bool features_list(const char *name, const char *const *have, uint32_t n_have) {
    for (uint32_t i = 0; i < n_have; i++) {
        if (strcmp(have[i], name) == 0)
            return true;
    }
    return false;
}

bool features_match(const struct feature_expr *x, const char *const *have, uint32_t n_have) {
    uint64_t stack = 0; /* the top is its lowest bit */
    for (uint32_t i = 0; i < x->n_ops; i++) {
        const struct feature_op *o = &x->op[i];
        if (o->op == 'n')
            stack = stack << 1 | features_list(o->name, have, n_have);
        else if (o->op == '&')
            stack = (stack >> 1 & ~(uint64_t)1) | (stack >> 1 & stack & 1);
        else
            stack = (stack >> 1) | (stack & 1);
    }
    return x->n_ops ? stack & 1 : true;
}

bool features_active(const struct feature_expr *x, const struct node *n) {
    uint32_t n_have;
    const char *const *have = node_active(n, &n_have);
    return features_match(x, have, n_have);
}

static bool expr_known(const struct feature_expr *x, bool (*knows)(void *arg, const char *name), void *arg) {
    for (uint32_t i = 0; i < x->n_ops; i++) {
        if (x->op[i].op == 'n' && !knows(arg, x->op[i].name))
            return false;
    }
    return true;
}

bool features_known(const struct features *f, bool (*knows)(void *arg, const char *name), void *arg) {
    bool ok = expr_known(&f->all, knows, arg);
    for (uint32_t i = 0; ok && i < f->n_alts; i++)
        ok = expr_known(&f->alt[i], knows, arg);
    for (uint32_t i = 0; ok && i < f->n_groups; i++)
        ok = expr_known(&f->group[i].expr, knows, arg);
    return ok;
}
