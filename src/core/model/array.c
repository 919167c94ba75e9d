/* SPDX-License-Identifier: Apache-2.0
 *
 * Job arrays: the ids of their tasks, as people write and read them.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "core/model/job.h"

struct ids {
    VEC(struct array_range) r;
};

/* A number at *at; moves behind it. */
static bool take_number(const char **at, uint32_t *out) {
    uint64_t v = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9' && v <= UINT32_MAX; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (p == *at || v > UINT32_MAX)
        return false;
    *at = p;
    *out = (uint32_t)v;
    return true;
}

/* "7", "0-15", "0-15:4": adds the ids. */
static bool take_range(const char **at, uint32_t max_id, struct ids *out) {
    uint32_t first, last, step = 1;
    if (!take_number(at, &first))
        return false;
    last = first;
    if (**at == '-') {
        (*at)++;
        if (!take_number(at, &last) || last < first)
            return false;
        if (**at == ':') {
            (*at)++;
            if (!take_number(at, &step) || !step)
                return false;
        }
    }
    if (last > max_id)
        return false;
    if (step == 1) {
        vec_push(&out->r, ((struct array_range){first, last}));
        return true;
    }
    for (uint64_t id = first; id <= last; id += step)
        vec_push(&out->r, ((struct array_range){(uint32_t)id, (uint32_t)id}));
    return true;
}

static int compare(const void *a, const void *b) {
    const struct array_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorts, and joins what touches or overlaps; the new length. */
static uint32_t join(struct array_range *r, size_t n) {
    qsort(r, n, sizeof(*r), compare);
    uint32_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (k && r[i].first <= (uint64_t)r[k - 1].last + 1)
            r[k - 1].last = MAX(r[k - 1].last, r[i].last);
        else
            r[k++] = r[i];
    return k;
}

/* Behind the list: "%4". */
static bool take_limit(const char **at, uint32_t *out) {
    *out = 0;
    if (**at != '%')
        return true;
    (*at)++;
    return take_number(at, out);
}

static bool take_all(const char *s, uint32_t max_id, struct ids *out, uint32_t *out_limit) {
    for (;; s++) {
        if (!take_range(&s, max_id, out))
            return false;
        if (*s != ',')
            break;
    }
    return take_limit(&s, out_limit) && !*s;
}

int array_parse(const char *s, uint32_t max_id, struct arena *a, const struct array_range **out, uint32_t *out_n,
                uint32_t *out_limit, struct err *e) {
    struct ids ids = {0};
    int rc = 0;
    uint32_t limit;
    if (take_all(s, max_id, &ids, &limit)) {
        *out_n = join(ids.r.p, ids.r.n);
        *out = arena_memdup(a, ids.r.p, *out_n * sizeof(**out));
        *out_limit = limit;
    } else {
        rc = err_set(e, E_ARRAY, "%s", err_sentence(E_ARRAY));
    }
    vec_fini(&ids.r);
    return rc;
}

void array_print(const struct array_range *r, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n; i++) {
        str_addf(out, i ? ",%" PRIu32 : "%" PRIu32, r[i].first);
        if (r[i].last != r[i].first)
            str_addf(out, "-%" PRIu32, r[i].last);
    }
}

uint32_t array_count(const struct array_range *r, uint32_t n) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += r[i].last - r[i].first + 1;
    return count;
}

bool array_has(const struct array_range *r, uint32_t n, uint32_t task) {
    for (uint32_t i = 0; i < n; i++)
        if (task >= r[i].first && task <= r[i].last)
            return true;
    return false;
}

uint32_t array_rank(const struct array_range *r, uint32_t n, uint32_t task) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < n && r[i].first < task; i++)
        rank += task > r[i].last ? r[i].last - r[i].first + 1 : task - r[i].first;
    return rank;
}

const struct array_range *array_with(struct arena *ar, const struct array_range *a, uint32_t n_a,
                                     const struct array_range *b, uint32_t n_b, uint32_t *out_n) {
    struct array_range *out = arena_calloc(ar, (size_t)n_a + n_b + 1, sizeof(*out));
    for (uint32_t i = 0; i < n_a + n_b; i++)
        out[i] = i < n_a ? a[i] : b[i - n_a];
    *out_n = join(out, n_a + n_b);
    return out;
}

const struct array_range *array_without(struct arena *ar, const struct array_range *a, uint32_t n_a,
                                        const struct array_range *b, uint32_t n_b, uint32_t *out_n) {
    /* each range of b cuts at most one of a in two */
    struct array_range *out = arena_calloc(ar, (size_t)n_a + n_b + 1, sizeof(*out));
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_a; i++) {
        uint64_t from = a[i].first;
        for (uint32_t k = 0; k < n_b && from <= a[i].last; k++) {
            if (b[k].last < from || b[k].first > a[i].last)
                continue;
            if (b[k].first > from)
                out[n++] = (struct array_range){(uint32_t)from, b[k].first - 1};
            from = (uint64_t)b[k].last + 1;
        }
        if (from <= a[i].last)
            out[n++] = (struct array_range){(uint32_t)from, a[i].last};
    }
    *out_n = n;
    return out;
}

void job_print_id(const struct job *j, struct str *out) {
    const struct job_array *ar = j->array;
    if (!ar) {
        str_addf(out, "%" PRIu32, j->id);
        return;
    }
    if (ar->task) {
        str_addf(out, "%" PRIu32 "_%" PRIu32, ar->job_id, ar->task - 1);
        return;
    }
    str_addf(out, "%" PRIu32 "_[", ar->job_id);
    array_print(ar->pending, ar->n_pending, out);
    if (ar->max_running)
        str_addf(out, "%%%" PRIu32, ar->max_running);
    str_addc(out, ']');
}
