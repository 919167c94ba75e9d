/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/launch/gpus.h"

#include "base/str.h"

uint64_t gpus_count(const struct gres_held *held, uint32_t n) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += str_eq(held[i].name, "gpu") ? held[i].count : 0;
    return sum;
}

const char *gpus_list(struct arena *a, const struct gres_held *held, uint32_t n) {
    auto_str out = {0};
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; str_eq(held[i].name, "gpu") && k < held[i].n_indexes; k++)
            str_addf(&out, "%s%u", out.n ? "," : "", held[i].indexes[k]);
    }
    return arena_strdup(a, str_text(&out));
}

/* Which of those held for an ask are the task's: asks of different types have different ones. */
static bool add_share(const struct gres_ask *ask, const struct gres_held *held, uint32_t n, uint32_t index, struct str *out) {
    uint64_t first = ask->count * index, last = first + ask->count, at = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!str_eq(held[i].name, "gpu") || (ask->type && !str_eq(held[i].type, ask->type)))
            continue;
        for (uint32_t k = 0; k < held[i].n_indexes; k++, at++)
            if (at >= first && at < last)
                str_addf(out, "%s%u", out->n ? "," : "", held[i].indexes[k]);
    }
    return at >= last;
}

const char *gpus_of_task(struct arena *a, const struct gres_ask *asks, uint32_t n_asks, const struct gres_held *held,
                         uint32_t n, uint32_t index) {
    auto_str out = {0};
    for (uint32_t i = 0; i < n_asks; i++) {
        if (!str_eq(asks[i].name, "gpu") || asks[i].per != GRES_PER_TASK || !asks[i].count)
            continue;
        if (!add_share(&asks[i], held, n, index, &out))
            return NULL;
    }
    return out.n ? arena_strdup(a, str_text(&out)) : NULL;
}

static bool has(const struct gres_held *held, uint32_t n, const char *name, uint32_t index) {
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; str_eq(held[i].name, name) && k < held[i].n_indexes; k++) {
            if (held[i].indexes[k] == index)
                return true;
        }
    }
    return false;
}

uint32_t gpus_denied(struct arena *a, const struct gres *node, uint32_t n_node, const struct gres_held *held, uint32_t n,
                     const char *const **out) {
    uint32_t all = 0, n_out = 0;
    for (uint32_t i = 0; i < n_node; i++)
        all += node[i].n_files;
    const char **files = arena_calloc(a, all ? all : 1, sizeof(*files));
    for (uint32_t i = 0; i < n_node; i++) {
        for (uint32_t k = 0; k < node[i].n_files; k++) {
            if (!has(held, n, node[i].name, node[i].first + k))
                files[n_out++] = node[i].files[k];
        }
    }
    *out = files;
    return n_out;
}
