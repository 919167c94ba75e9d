/* SPDX-License-Identifier: Apache-2.0
 *
 * Labels of nodes, and what selects by them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/model/node.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
#define TEXT_MAX 63u

bool label_key_ok(const char *s) {
    const char *slash = s ? strchr(s, '/') : NULL;
    size_t n = s ? strlen(s) : 0, prefix = slash ? (size_t)(slash - s) : 0;
    if (!n || n > TEXT_MAX + 254 || (slash && (!prefix || prefix > 253 || strspn(s, LETTERS) != prefix)))
        return false;
    const char *name = slash ? slash + 1 : s;
    return *name && strlen(name) <= TEXT_MAX && !name[strspn(name, LETTERS)];
}

bool label_value_ok(const char *s) {
    return s && strlen(s) <= TEXT_MAX && !s[strspn(s, LETTERS)];
}

static const struct selector *find(const struct selector *list, uint32_t n, const char *key) {
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(list[i].key, key))
            return &list[i];
    return NULL;
}

bool selectors_match(const struct selector *want, uint32_t n_want, const struct selector *labels, uint32_t n_labels) {
    for (uint32_t i = 0; i < n_want; i++) {
        const struct selector *has = find(labels, n_labels, want[i].key);
        if (!has || strcmp(has->value ? has->value : "", want[i].value ? want[i].value : "") != 0)
            return false;
    }
    return n_want > 0;
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct selector *)a)->key, ((const struct selector *)b)->key);
}

void labels_change(const struct selector *old, uint32_t n_old, const struct selector *change, uint32_t n_change,
                   bool keep_gone, struct arena *a, const struct selector **out, uint32_t *out_n) {
    struct selector *list = arena_calloc(a, (size_t)n_old + n_change + 1, sizeof(*list));
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_old; i++)
        if (!find(change, n_change, old[i].key))
            list[n++] = old[i];
    for (uint32_t i = 0; i < n_change; i++) {
        bool is_last = !find(change + i + 1, n_change - i - 1, change[i].key); /* of a key that is there twice it counts */
        if (change[i].key && is_last && (change[i].value || keep_gone))
            list[n++] = change[i];
    }
    if (n)
        qsort(list, n, sizeof(*list), by_key);
    *out = list;
    *out_n = n;
}

void labels_print(const struct selector *labels, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n; i++)
        str_addf(out, "%s%s=%s", i ? "," : "", labels[i].key, labels[i].value ? labels[i].value : "");
}
