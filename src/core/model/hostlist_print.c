/* SPDX-License-Identifier: Apache-2.0
 *
 * Names to a node list, and the order of names.
 *
 * Only the number at the end of a name counts, as with Slurm: r1n1,r1n2,r2n1 is r1n[1-2],r2n1. A name joins a range
 * when the range's numbers, written with the width of its first, give the name back: 9,10 and 09,10 join, 9,010
 * doesn't. The order given is kept, so n3,n1,n2,n1 is n[3,1-2,1].
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/text.h"

#define NUMBER_DIGITS_MAX 18

struct cut {
    const char *name;
    size_t n_prefix;
    const char *digits; /* "" for a name that ends with no number */
    uint64_t number;
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static struct cut cut_name(const char *name) {
    struct cut c = {.name = name, .n_prefix = strlen(name)};
    size_t n = c.n_prefix;
    while (c.n_prefix && is_digit(name[c.n_prefix - 1]) && n - c.n_prefix < NUMBER_DIGITS_MAX)
        c.n_prefix--;
    c.digits = name + c.n_prefix;
    for (const char *d = c.digits; *d; d++)
        c.number = c.number * 10 + (unsigned)(*d - '0');
    return c;
}

static bool same_prefix(const struct cut *a, const struct cut *b) {
    return *a->digits && *b->digits && a->n_prefix == b->n_prefix && memcmp(a->name, b->name, a->n_prefix) == 0;
}

/* Whether b is the next in the range that begins with `first` and has come to `last`. */
static bool joins(const struct cut *first, const struct cut *last, const struct cut *b) {
    char text[NUMBER_DIGITS_MAX + 2];
    if (b->number != last->number + 1)
        return false;
    snprintf(text, sizeof(text), "%0*" PRIu64, (int)strlen(first->digits), b->number);
    return strcmp(text, b->digits) == 0;
}

/* One range from names[i] on; the index behind it. */
static uint32_t add_range(const char *const *names, uint32_t n, uint32_t i, struct str *out) {
    struct cut first = cut_name(names[i]), last = first;
    for (i++; i < n; i++) {
        struct cut next = cut_name(names[i]);
        if (!same_prefix(&first, &next) || !joins(&first, &last, &next))
            break;
        last = next;
    }
    str_add(out, first.digits);
    if (last.number != first.number) {
        str_addc(out, '-');
        str_add(out, last.digits);
    }
    return i;
}

void hostlist_compact(const char *const *names, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n;) {
        struct cut head = cut_name(names[i]);
        struct cut next = i + 1 < n ? cut_name(names[i + 1]) : head;
        if (i)
            str_addc(out, ',');
        if (i + 1 == n || !same_prefix(&head, &next)) {
            str_add(out, names[i++]);
            continue;
        }
        str_addn(out, head.name, head.n_prefix);
        str_addc(out, '[');
        for (bool more = false; i < n && same_prefix(&head, &next); more = true) {
            if (more)
                str_addc(out, ',');
            i = add_range(names, n, i, out);
            next = i < n ? cut_name(names[i]) : next;
        }
        str_addc(out, ']');
    }
}

/* Compares the numbers at *a and *b and moves both behind them. The number of digits is kept in *tie, for 9 and 09. */
static int compare_numbers(const char **a, const char **b, int *tie) {
    const char *x = *a, *y = *b;
    while (*x == '0')
        x++;
    while (*y == '0')
        y++;
    int zeros = (int)((x - *a) - (y - *b));
    size_t n = 0, m = 0;
    while (is_digit(x[n]))
        n++;
    while (is_digit(y[m]))
        m++;
    *a = x + n;
    *b = y + m;
    if (n != m)
        return n < m ? -1 : 1;
    if (!*tie)
        *tie = zeros;
    return memcmp(x, y, n);
}

int hostname_compare(const char *a, const char *b) {
    int tie = 0;
    while (*a && *b) {
        if (is_digit(*a) && is_digit(*b)) {
            int order = compare_numbers(&a, &b, &tie);
            if (order)
                return order;
            continue;
        }
        if (*a != *b)
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        a++;
        b++;
    }
    if (*a || *b)
        return *a ? 1 : -1;
    return tie;
}
