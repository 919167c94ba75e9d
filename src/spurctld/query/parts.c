/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job's partitions make of it. One that waits in several is shown with them in the order in which they are tried: by
 * PriorityTier, the highest first, else as asked. The record keeps what was asked; the order follows a partition's tier at once.
 */
#include <string.h>

#include "base/mem.h"
#include "spurctld/query/query.h"

struct named {
    const char *name;
    size_t n;
    uint32_t tier;
};

static uint32_t split(const struct view *v, const char *text, struct arena *a, struct named *out) {
    uint32_t n = 0;
    for (const char *at = text; *at; at += *at == ',') {
        struct named m = {at, strcspn(at, ","), 0};
        const struct part *p = view_find_part(v, arena_strndup(a, at, m.n));
        m.tier = p ? p->priority_tier : 0;
        at += m.n;
        uint32_t i = n++;
        for (; i > 0 && out[i - 1].tier < m.tier; i--)
            out[i] = out[i - 1];
        out[i] = m;
    }
    return n;
}

/* A run says with whom it shares its nodes as its partition has settled it. */
static const struct job *settled(const struct view *v, const struct job *j, struct arena *a) {
    const struct part *p = j->n_nodes && j->partition ? view_find_part(v, j->partition) : NULL;
    struct job_spec spec;
    struct job_more more;
    if (!p || part_settle(p, j->spec, &spec, &more) == j->spec)
        return j;
    struct job *copy = arena_memdup(a, j, sizeof(*j));
    spec.more = arena_memdup(a, &more, sizeof(more));
    copy->spec = arena_memdup(a, &spec, sizeof(spec));
    return copy;
}

const struct job *query_in_parts(const struct view *v, const struct job *j, struct arena *a) {
    const char *text = j->spec->partition;
    if (j->n_nodes)
        return settled(v, j, a);
    if (j->state != JOB_PENDING || !text || !strchr(text, ','))
        return j;
    size_t size = strlen(text) + 1;
    struct named *list = arena_calloc(a, size, sizeof(*list));
    uint32_t n = split(v, text, a, list);
    char *out = arena_alloc(a, size + 1), *end = out;
    for (uint32_t i = 0; i < n; i++) {
        end = mempcpy(end, list[i].name, list[i].n);
        *end++ = ',';
    }
    end[-1] = '\0';
    struct job *copy = arena_memdup(a, j, sizeof(*j));
    struct job_spec *spec = arena_memdup(a, j->spec, sizeof(*spec));
    spec->partition = out;
    copy->spec = spec;
    copy->partition = NULL;
    return copy;
}
