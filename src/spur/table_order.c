/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/table_order.h"

#include <string.h>

#include "base/mem.h"

bool table_order_parse(struct table_order *o, const char *text, char *out_bad) {
    for (const char *at = text; *at && o->n < ARRAY_LEN(o->field); at++) {
        at += strspn(at, ", ");
        bool down = *at == '-';
        at += *at == '-' || *at == '+';
        if (!*at)
            break;
        const struct table_field *f = table_letter(o->fields, *at);
        if (!f) {
            *out_bad = *at;
            return false;
        }
        o->field[o->n] = f;
        o->down[o->n++] = down;
    }
    return true;
}

int table_order_compare(const void *a, const void *b, void *order) {
    const struct table_order *o = order;
    for (size_t i = 0; i < o->n; i++) {
        int c = table_compare(o->field[i], a, b, o->env);
        if (c)
            return o->down[i] ? -c : c;
    }
    int c = o->last ? o->last(a, b) : 0;
    return o->last_down ? -c : c;
}
