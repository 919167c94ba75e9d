/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependency expressions: "afterok:12:13,afterany:14_3" (all of them) or "afterok:12?after:13+5" (any of them).
 *
 * Mixing `,` and `?` is refused as Slurm refuses it, so "or" is a property of the whole expression: each part but the
 * first says it.
 */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/vec.h"
#include "core/model/text.h"

#define DEPS_MAX 4096
#define MINUTES_MAX 5256000u /* ten years */

static const struct {
    const char *name;
    uint32_t kind; /* 0: Slurm has it, we don't */
} kinds[] = {
    {"after", DEP_AFTER},           {"afterany", DEP_AFTERANY},   {"afterok", DEP_AFTEROK},
    {"afternotok", DEP_AFTERNOTOK}, {"singleton", DEP_SINGLETON}, {"aftercorr", DEP_AFTERCORR},
    {"expand", 0},                  {"afterburstbuffer", 0},
};

struct parts {
    VEC(struct dep) v;
    uint32_t supported;
    bool is_or;
    struct err *e;
};

static void parts_fini(struct parts *p) {
    vec_fini(&p->v);
}

static int nonsense(struct parts *p) {
    return err_set(p->e, E_DEPENDENCY, NULL);
}

static int unsupported(struct parts *p, const char *name) {
    if (strcmp(name, "expand") == 0) /* gone from Slurm too, which has a sentence for it */
        return err_set(p->e, E_UNSUPPORTED, "Requested operation not supported on this system");
    return err_set(p->e, E_UNSUPPORTED, "Dependency type \"%s\" is not supported yet", name);
}

static int add(struct parts *p, struct dep d) {
    if (p->v.n == DEPS_MAX)
        return err_set(p->e, E_DEPENDENCY, "Job dependency problem: more than %d jobs", DEPS_MAX);
    d.is_or = p->is_or && p->v.n > 0;
    vec_push(&p->v, d);
    return 0;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* A number at *s, at most `max`. */
static bool number(const char **s, const char *end, uint32_t max, uint32_t *out) {
    uint64_t v = 0;
    const char *from = *s;
    for (; *s < end && is_digit(**s); (*s)++) {
        v = v * 10 + (unsigned)(**s - '0');
        if (v > max)
            return false;
    }
    *out = (uint32_t)v;
    return *s != from;
}

/* "[1-3,7]" at *s: one dependency each. */
static int add_tasks(struct parts *p, struct dep d, const char **s, const char *end) {
    const char *close = memchr(*s, ']', (size_t)(end - *s));
    const struct array_range *r;
    uint32_t n, limit;
    if (!close)
        return nonsense(p);
    auto_arena a = {0};
    const char *list = arena_strndup(&a, *s + 1, (size_t)(close - *s - 1));
    if (array_parse(list, ARRAY_ID_MAX, &a, &r, &n, &limit, NULL) || limit)
        return nonsense(p);
    *s = close + 1;
    int rc = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t id = r[i].first; !rc && id <= r[i].last; id++) {
            d.task = id + 1;
            rc = add(p, d);
        }
    return rc;
}

/* What stands behind the id: "_3", "_*", "_[1-3]", or of `after` "+5", minutes. */
static int add_id(struct parts *p, struct dep d, const char **s, const char *end) {
    uint32_t task = 0;
    bool has_list = end - *s > 1 && (*s)[0] == '_' && (*s)[1] == '[';
    if (has_list) {
        ++*s;
        return add_tasks(p, d, s, end);
    }
    if (*s < end && **s == '_') {
        ++*s;
        if (*s < end && **s == '*') {
            ++*s;
            d.task = DEP_ALL_TASKS;
        } else if (number(s, end, ARRAY_ID_MAX, &task)) {
            d.task = task + 1;
        } else {
            return nonsense(p);
        }
    }
    if (d.kind == DEP_AFTER && *s < end && **s == '+') {
        ++*s;
        if (!number(s, end, MINUTES_MAX, &d.minutes))
            return nonsense(p);
    }
    return add(p, d);
}

/* ":12:13_4:14+5…" up to `end`. */
static int read_ids(struct parts *p, uint32_t kind, const char *s, const char *end) {
    int rc = 0;
    if (s == end)
        return nonsense(p);
    while (!rc && s < end) {
        struct dep d = {.kind = kind};
        if (*s++ != ':' || !number(&s, end, JOB_ID_MAX, &d.job_id) || !d.job_id)
            return nonsense(p);
        rc = add_id(p, d, &s, end);
    }
    return rc;
}

static int read_part(struct parts *p, const char *s, const char *end) {
    const char *colon = memchr(s, ':', (size_t)(end - s));
    size_t n = (size_t)((colon ? colon : end) - s);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strlen(kinds[i].name) != n || strncasecmp(s, kinds[i].name, n) != 0)
            continue;
        uint32_t kind = kinds[i].kind;
        if (!kind || !(p->supported >> kind & 1))
            return unsupported(p, kinds[i].name);
        if (kind == DEP_SINGLETON)
            return colon ? nonsense(p) : add(p, (struct dep){.kind = kind});
        return read_ids(p, kind, s + n, end);
    }
    return nonsense(p);
}

/* Up to the next separator, those between brackets aside. */
static size_t part_len(const char *s) {
    size_t n = 0;
    for (bool in_list = false; s[n] && (in_list || (s[n] != ',' && s[n] != '?')); n++)
        in_list = s[n] == '[' || (in_list && s[n] != ']');
    return n;
}

/* Both separators in one expression. */
static bool is_mixed(const char *s) {
    bool commas = false, marks = false;
    for (size_t n = part_len(s); s[n]; s += n + 1, n = part_len(s)) {
        commas |= s[n] == ',';
        marks |= s[n] == '?';
    }
    return commas && marks;
}

int deps_parse(const char *s, uint32_t supported, struct arena *a, const struct dep **out, uint32_t *out_n,
               struct err *e) {
    auto_call(parts_fini) struct parts p = {.supported = supported, .e = e, .is_or = strchr(s, '?') != NULL};
    if (is_mixed(s))
        return nonsense(&p);
    for (bool more = *s != '\0'; more;) {
        size_t n = part_len(s);
        int rc = read_part(&p, s, s + n);
        if (rc)
            return rc;
        more = s[n] != '\0';
        s += n + more;
    }
    *out = p.v.n ? arena_memdup(a, p.v.p, p.v.n * sizeof(*p.v.p)) : NULL;
    *out_n = (uint32_t)p.v.n;
    return 0;
}

static const char *kind_name(uint32_t kind) {
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i].kind == kind && kind)
            return kinds[i].name;
    }
    return "unknown";
}

/* What is fulfilled is left out, as Slurm shows what is left. */
void deps_print(const struct dep *d, uint32_t n, struct str *out) {
    bool first = true;
    for (uint32_t i = 0; i < n; i++) {
        if (d[i].state == DEP_DONE)
            continue;
        if (!first)
            str_addc(out, d[i].is_or ? '?' : ',');
        first = false;
        str_add(out, kind_name(d[i].kind));
        if (d[i].kind != DEP_SINGLETON)
            str_addf(out, ":%" PRIu32, d[i].job_id);
        if (d[i].task == DEP_ALL_TASKS)
            str_add(out, "_*");
        else if (d[i].task)
            str_addf(out, "_%" PRIu32, d[i].task - 1);
        if (d[i].minutes)
            str_addf(out, "+%" PRIu32, d[i].minutes);
        str_add(out, d[i].state == DEP_NEVER ? "(failed)" : "(unfulfilled)");
    }
}
