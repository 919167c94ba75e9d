/* SPDX-License-Identifier: Apache-2.0
 *
 * slurm.conf (with itself for whatever it includes, and for gres.conf): nothing in it stops the import, the same text gives the
 * same result, and what comes out is a table that spurctld reads without a complaint.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "core/model/config.h"
#include "io/toml/toml.h"
#include "spur/import.h"

struct text {
    const char *p;
    size_t n;
};

static const char *read_again(void *ctx, const char *from, const char *name, size_t *out_n) {
    const struct text *t = ctx;
    *out_n = t->n;
    return t->p;
}

static void import(struct import *im, struct arena *a, struct text *t) {
    import_init(im, a);
    im->read = read_again;
    im->ctx = t;
    import_text(im, "slurm.conf", t->p, t->n, false, 6);
    import_text(im, "gres.conf", t->p, t->n, true, 6);
    import_slurm(im);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto_arena a = {0};
    auto_str problems = {0};
    struct import one, two;
    struct tree *root;
    struct conf conf;
    struct err e = {0};
    struct text t = {arena_strndup(&a, (const char *)data, size), size};
    if (size > 16384)
        return 0;
    import(&one, &a, &t);
    import(&two, &a, &t);
    must(str_eq(str_text(&one.conf), str_text(&two.conf)) && str_eq(str_text(&one.notes), str_text(&two.notes)));
    must(toml_parse(str_text(&one.conf), one.conf.n, &a, &root, &e) == 0);
    (void)conf_read(root, &a, &conf, &problems, &e);
    import_fini(&one);
    import_fini(&two);
    return 0;
}
