/* SPDX-License-Identifier: Apache-2.0
 *
 * Node lists: "n[001-003,7],x[1-2]y" to names.
 *
 * The text is cut into entries at the commas and blanks that stand outside brackets, an entry into literal pieces and
 * brackets; then counting over the brackets like an odometer gives the names. How many names an entry makes is known
 * before the first is made, and a name has a bounded length, so that no text can ask for more memory than
 * HOSTLIST_MAX names take.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "core/model/text.h"

#define NAME_BYTES_MAX 255
#define NUMBER_DIGITS_MAX 18
#define BRACKETS_MAX 8

struct range {
    uint64_t lo, hi;
    int width;
};

struct bracket {
    const char *before; /* the literal piece in front of it */
    size_t n_before;
    size_t first, n; /* its ranges, in the vector that all brackets share */
    uint64_t count;  /* of its numbers */
    size_t range;    /* the odometer's digit: in which range, */
    uint64_t at;     /* and where in it */
};

struct expansion {
    const char *whole;
    struct arena *arena;
    struct err *e;
    VEC(const char *) names;
    VEC(struct range) ranges;
    struct bracket bracket[BRACKETS_MAX];
    size_t n_brackets;
    const char *tail; /* behind the last bracket */
    size_t n_tail;
};

static void expansion_fini(struct expansion *x) {
    vec_fini(&x->names);
    vec_fini(&x->ranges);
}

static int invalid(struct expansion *x) {
    return err_set(x->e, E_SYNTAX, "Invalid hostlist: %s", x->whole);
}

static int too_many(struct expansion *x) {
    return err_set(x->e, E_SYNTAX, "Invalid hostlist: more than %d names", HOSTLIST_MAX);
}

static int bad_range(struct expansion *x, const char *p, size_t n) {
    return err_set(x->e, E_SYNTAX, "_parse_single_range: Invalid range: `%.*s'", (int)MIN(n, 100), p);
}

static bool number(const char *p, size_t n, uint64_t *out) {
    uint64_t v = 0;
    if (n == 0 || n > NUMBER_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        v = v * 10 + (unsigned)(p[i] - '0');
    }
    *out = v;
    return true;
}

/* "7" or "001-003" */
static int read_range(struct expansion *x, const char *p, size_t n) {
    struct range r;
    const char *dash = memchr(p, '-', n);
    size_t n_lo = dash ? (size_t)(dash - p) : n;
    if (!number(p, n_lo, &r.lo))
        return bad_range(x, p, n);
    r.hi = r.lo;
    if (dash && !number(dash + 1, n - n_lo - 1, &r.hi))
        return bad_range(x, p, n);
    if (r.hi < r.lo)
        return bad_range(x, p, n);
    if (r.hi - r.lo >= HOSTLIST_MAX)
        return too_many(x);
    r.width = (int)n_lo;
    vec_push(&x->ranges, r);
    return 0;
}

/* The text between [ and ]: ranges with commas between. */
static int read_bracket(struct expansion *x, struct bracket *b, const char *p, const char *end) {
    b->first = x->ranges.n;
    b->count = 0;
    if (p == end)
        return invalid(x);
    while (p <= end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *stop = comma ? comma : end;
        int rc = read_range(x, p, (size_t)(stop - p));
        if (rc)
            return rc;
        const struct range *r = &x->ranges.p[x->ranges.n - 1];
        b->count += r->hi - r->lo + 1;
        if (b->count > HOSTLIST_MAX)
            return too_many(x);
        p = stop + 1;
    }
    b->n = x->ranges.n - b->first;
    b->range = b->first;
    b->at = 0;
    return 0;
}

/* Cuts the entry [p, end) into literal pieces and brackets. */
static int read_entry(struct expansion *x, const char *p, const char *end) {
    x->n_brackets = 0;
    x->ranges.n = 0;
    const char *piece = p;
    while (p < end) {
        if (*p == ']')
            return invalid(x);
        if (*p != '[') {
            p++;
            continue;
        }
        const char *close = memchr(p, ']', (size_t)(end - p));
        if (!close || x->n_brackets == BRACKETS_MAX)
            return invalid(x);
        struct bracket *b = &x->bracket[x->n_brackets++];
        b->before = piece;
        b->n_before = (size_t)(p - piece);
        int rc = read_bracket(x, b, p + 1, close);
        if (rc)
            return rc;
        p = piece = close + 1;
    }
    x->tail = piece;
    x->n_tail = (size_t)(end - piece);
    return 0;
}

static int make_name(struct expansion *x) {
    char name[NAME_BYTES_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < x->n_brackets; i++) {
        const struct bracket *b = &x->bracket[i];
        const struct range *r = &x->ranges.p[b->range];
        if (n + b->n_before + NUMBER_DIGITS_MAX >= sizeof(name))
            return invalid(x);
        memcpy(name + n, b->before, b->n_before);
        n += b->n_before;
        n += (size_t)snprintf(name + n, sizeof(name) - n, "%0*" PRIu64, r->width, r->lo + b->at);
    }
    if (n + x->n_tail >= sizeof(name))
        return invalid(x);
    memcpy(name + n, x->tail, x->n_tail);
    if (x->names.n == HOSTLIST_MAX)
        return too_many(x);
    vec_push(&x->names, arena_strndup(x->arena, name, n + x->n_tail));
    return 0;
}

/* The last bracket runs fastest. False after the last name. */
static bool step(struct expansion *x) {
    for (size_t i = x->n_brackets; i-- > 0;) {
        struct bracket *b = &x->bracket[i];
        const struct range *r = &x->ranges.p[b->range];
        if (b->at++ < r->hi - r->lo)
            return true;
        b->at = 0;
        if (++b->range < b->first + b->n)
            return true;
        b->range = b->first;
    }
    return false;
}

static int expand_entry(struct expansion *x, const char *p, const char *end) {
    int rc = read_entry(x, p, end);
    if (rc)
        return rc;
    uint64_t total = 1;
    for (size_t i = 0; i < x->n_brackets; i++) {
        total *= x->bracket[i].count; /* each at most 2^16, and checked each time */
        if (total > HOSTLIST_MAX - x->names.n)
            return too_many(x);
    }
    do {
        rc = make_name(x);
    } while (!rc && step(x));
    return rc;
}

static bool is_separator(char c) {
    return c == ',' || c == ' ' || c == '\t' || c == '\n';
}

/* The end of the entry at p: the next separator outside brackets. NULL when a bracket stays open. */
static const char *entry_end(const char *p) {
    bool inside = false;
    for (; *p && (inside || !is_separator(*p)); p++) {
        if (*p == '[' && inside)
            return NULL;
        if (*p == '[')
            inside = true;
        else if (*p == ']')
            inside = false;
    }
    return inside ? NULL : p;
}

int hostlist_expand(const char *s, struct arena *a, const char *const **out, uint32_t *out_n, struct err *e) {
    auto_call(expansion_fini) struct expansion x = {.whole = s, .arena = a, .e = e};
    while (*s) {
        if (is_separator(*s)) {
            s++;
            continue;
        }
        const char *end = entry_end(s);
        if (!end)
            return invalid(&x);
        int rc = expand_entry(&x, s, end);
        if (rc)
            return rc;
        s = end;
    }
    *out = x.names.n ? arena_memdup(a, x.names.p, x.names.n * sizeof(*x.names.p)) : NULL;
    *out_n = (uint32_t)x.names.n;
    return 0;
}
