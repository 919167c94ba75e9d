/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions to a view by name.
 */
#include "core/model/view.h"

#include "base/str.h"

const struct part *view_find_part(const struct view *v, const char *name) {
    const struct part *p;
    for (uint64_t k = 0; (p = view_next_part(v, &k)); k++) {
        if (str_eq(p->name, name))
            return p;
    }
    return NULL;
}

const struct node *view_find_node(const struct view *v, const char *name) {
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
        if (str_eq(n->name, name))
            return n;
    }
    return NULL;
}
