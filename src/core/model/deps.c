/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependency expressions: "afterok:12:13,afterany:14" (all of them) or "afterok:12?afterok:13" (any of them).
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

static int add(struct parts *p, uint32_t kind, uint32_t job_id) {
    if (p->v.n == DEPS_MAX)
        return err_set(p->e, E_DEPENDENCY, "Job dependency problem: more than %d jobs", DEPS_MAX);
    vec_push(&p->v, (struct dep){.kind = kind, .job_id = job_id, .is_or = p->is_or && p->v.n > 0});
    return 0;
}

/* ":12:13+5…" up to `end`. A delay in minutes goes with `after` alone. */
static int read_ids(struct parts *p, uint32_t kind, const char *s, const char *end) {
    if (s == end)
        return nonsense(p);
    while (s < end) {
        uint64_t id = 0;
        if (*s++ != ':' || s == end || *s < '0' || *s > '9')
            return nonsense(p);
        for (; s < end && *s >= '0' && *s <= '9'; s++) {
            id = id * 10 + (unsigned)(*s - '0');
            if (id > JOB_ID_MAX)
                return nonsense(p);
        }
        if (kind == DEP_AFTER && s + 1 < end && *s == '+' && s[1] >= '0' && s[1] <= '9')
            return unsupported(p, "after:ID+MINUTES");
        int rc = id ? add(p, kind, (uint32_t)id) : nonsense(p);
        if (rc)
            return rc;
    }
    return 0;
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
            return colon ? nonsense(p) : add(p, kind, 0);
        return read_ids(p, kind, s + n, end);
    }
    return nonsense(p);
}

int deps_parse(const char *s, uint32_t supported, struct arena *a, const struct dep **out, uint32_t *out_n,
               struct err *e) {
    auto_call(parts_fini) struct parts p = {.supported = supported, .e = e, .is_or = strchr(s, '?') != NULL};
    if (p.is_or && strchr(s, ','))
        return nonsense(&p);
    for (bool more = *s != '\0'; more;) {
        size_t n = strcspn(s, ",?");
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
        str_add(out, d[i].state == DEP_NEVER ? "(failed)" : "(unfulfilled)");
    }
}
