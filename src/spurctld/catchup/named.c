/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/catchup/named.h"

#include <stdlib.h>
#include <string.h>

#include "core/model/job.h"

static int by_hash(const void *a, const void *b) {
    return memcmp(a, b, BLOB_HASH_SIZE);
}

static void add(struct named *n, const uint8_t *hash, uint32_t n_hash) {
    struct blob_hash h;
    if (n_hash != BLOB_HASH_SIZE)
        return;
    memcpy(h.b, hash, BLOB_HASH_SIZE);
    vec_push(&n->v, h);
}

void named_collect(struct named *n, const struct view *v) {
    const struct job *j;
    size_t kept = 0;
    for (uint64_t k = 0; (j = view_next_job(v, &k)); k++) {
        add(n, j->spec->script_hash, j->spec->n_script_hash);
        add(n, j->spec->env_hash, j->spec->n_env_hash);
    }
    if (!n->v.n)
        return;
    qsort(n->v.p, n->v.n, sizeof(*n->v.p), by_hash);
    for (size_t i = 0; i < n->v.n; i++)
        if (!i || by_hash(&n->v.p[i], &n->v.p[kept - 1]) != 0)
            n->v.p[kept++] = n->v.p[i];
    n->v.n = kept;
}

void named_fini(struct named *n) {
    vec_fini(&n->v);
}
