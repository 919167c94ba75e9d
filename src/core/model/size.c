/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory sizes, counts and node counts, as Slurm reads and prints them.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/text.h"

#define NODES_MAX 0x7fffffffu

/* Digits at *p; false when there are none or they exceed 63 bits. */
static bool digits(const char **p, uint64_t *out) {
    uint64_t v = 0;
    const char *start = *p;
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(**p - '0'), &v) ||
            v > INT64_MAX)
            return false;
    }
    *out = v;
    return *p != start;
}

int size_mb_parse(const char *s, uint64_t *out_mb) {
    uint64_t v;
    if (!digits(&s, &v))
        return E_SYNTAX;
    char unit = *s ? (char)(*s | 0x20) : 'm';
    if (*s)
        s++;
    if (*s == 'b' || *s == 'B')
        s++;
    if (*s)
        return E_SYNTAX;
    uint64_t factor = 1;
    switch (unit) {
    case 'k': v = v / 1024 + (v % 1024 != 0); break;
    case 'm': break;
    case 'g': factor = 1024; break;
    case 't': factor = 1024 * 1024; break;
    default: return E_SYNTAX;
    }
    if (__builtin_mul_overflow(v, factor, &v) || v > INT64_MAX)
        return E_SYNTAX;
    *out_mb = v;
    return 0;
}

/* As Slurm: one step up while nothing is lost, but the half of a unit is none: 1536M is 1.50G, 16000M stays. */
void size_mb_print(uint64_t mb, struct str *out) {
    static const char units[] = "MGTPE";
    size_t unit = 0;
    if (mb == 0) {
        str_addc(out, '0');
        return;
    }
    if (mb % 512) {
        str_addf(out, "%" PRIu64 "M", mb);
        return;
    }
    double n = (double)mb;
    for (; n >= 1024 && units[unit + 1]; unit++)
        n /= 1024;
    str_addf(out, n == (double)(uint64_t)n ? "%.0f%c" : "%.2f%c", n, units[unit]);
}

int count_parse(const char *s, uint64_t max, uint64_t *out) {
    uint64_t v, factor = 1;
    if (!digits(&s, &v))
        return E_SYNTAX;
    if (*s == 'k' || *s == 'K')
        factor = 1024;
    else if (*s == 'm' || *s == 'M')
        factor = 1024 * 1024;
    if (factor > 1)
        s++;
    if (*s || __builtin_mul_overflow(v, factor, &v) || v > max)
        return E_SYNTAX;
    *out = v;
    return 0;
}

static int node_count(const char *s, size_t n, uint32_t *out, struct err *e) {
    char text[32];
    uint64_t v = 0;
    if (n >= sizeof(text))
        return err_set(e, E_SYNTAX, "\"%.*s\" is not a valid node count", (int)MIN(n, 64), s);
    memcpy(text, s, n);
    text[n] = '\0';
    if (count_parse(text, NODES_MAX, &v))
        return err_set(e, E_SYNTAX, "\"%s\" is not a valid node count", text);
    *out = (uint32_t)v;
    return 0;
}

int node_count_parse(const char *s, uint32_t *out_min, uint32_t *out_max, struct err *e) {
    uint32_t min = 0, max = 0;
    const char *dash = strchr(s, '-');
    if (strchr(s, ','))
        return err_set(e, E_UNSUPPORTED, "Lists of node counts are not supported yet: %s", s);
    /* "-4": up to four, as Slurm takes it */
    int rc = dash == s && dash[1] ? 0 : node_count(s, dash ? (size_t)(dash - s) : strlen(s), &min, e);
    if (rc)
        return rc;
    if (!dash) {
        *out_min = *out_max = min;
        return 0;
    }
    min = MAX(min, 1);
    if (!dash[1])
        return err_set(e, E_SYNTAX, "Maximum node count -1 is less than minimum node count %u", min);
    rc = node_count(dash + 1, strlen(dash + 1), &max, e);
    if (rc)
        return rc;
    if (max < min)
        return err_set(e, E_SYNTAX, "Maximum node count %u is less than minimum node count %u", max, min);
    *out_min = min;
    *out_max = max;
    return 0;
}

int node_range_parse(const char *s, uint32_t *out_min, uint32_t *out_max) {
    return node_count_parse(s, out_min, out_max, NULL);
}
