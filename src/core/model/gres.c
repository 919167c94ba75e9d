/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/gres.h"

#include <string.h>

#include "base/str.h"

static bool is_word(const char *s, size_t n) {
    return n && n <= 64 &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") >= n && !strchr("-.", *s);
}

static bool parse_count(const char *s, uint64_t *out) {
    char digits[24];
    size_t n = strspn(s, "0123456789");
    unsigned shift = 0;
    if (!n || n >= sizeof(digits))
        return false;
    memcpy(digits, s, n);
    digits[n] = '\0';
    if (s[n]) {
        const char *unit = strchr("kKmMgG", s[n]);
        if (!unit || s[n + 1])
            return false;
        shift = 10 * ((unsigned)(unit - "kKmMgG") / 2 + 1);
    }
    if (str_to_u64(digits, GRES_COUNT_MAX >> shift, out))
        return false;
    *out <<= shift;
    return true;
}

int node_gres_parse(const char *s, struct arena *a, struct gres *out, struct err *e) {
    static const char free_word[] = ":no_consume";
    const char *found = strstr(s, free_word), *behind = found ? found + sizeof(free_word) - 1 : "";
    size_t n = strcspn(s, ":");
    *out = (struct gres){.count = 1};
    if (found && (!*behind || *behind == ':')) {
        int rc = node_gres_parse(arena_printf(a, "%.*s%s", (int)(found - s), s, behind), a, out, e);
        out->no_consume = true;
        return rc;
    }
    if (!is_word(s, n))
        return err_set(e, E_GRES, NULL);
    out->name = arena_strndup(a, s, n);
    const char *rest = s[n] ? s + n + 1 : NULL;
    if (!rest || parse_count(rest, &out->count))
        return 0;
    n = strcspn(rest, ":");
    if (!is_word(rest, n) || (rest[n] && !parse_count(rest + n + 1, &out->count)))
        return err_set(e, E_GRES, NULL);
    out->type = arena_strndup(a, rest, n);
    return 0;
}

bool node_gres_add(struct gres *list, uint32_t *n) {
    struct gres *g = &list[*n];
    uint64_t first = 0;
    for (uint32_t i = 0; i < *n; i++) {
        if (!str_eq(list[i].name, g->name))
            continue;
        if (str_eq(list[i].type, g->type))
            return false;
        first += list[i].count;
    }
    g->first = (uint32_t)first;
    ++*n;
    return true;
}
