/* SPDX-License-Identifier: Apache-2.0
 *
 * Small languages of the model: arrays, constraints, generic resources of a node, states, node counts, labels and selectors.
 * The first byte says which. What is taken holds what its header promises, and comes back from its print.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "core/model/constraint.h"
#include "core/model/gres.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void array(const char *text, struct arena *a) {
    const struct array_range *r, *s;
    uint32_t n = 0, m = 0, percent = 0;
    struct err e = {0};
    auto_str printed = {0};
    if (array_parse(text, 1000, a, &r, &n, &percent, &e)) {
        must(e.code < 0);
        return;
    }
    must(n > 0 && array_count(r, n) > 0 && array_count(r, n) <= 1001);
    array_print(r, n, &printed);
    must(!array_parse(str_text(&printed), 1000, a, &s, &m, &percent, &e));
    must(array_count(s, m) == array_count(r, n));
}

static bool knows(void *arg, const char *name) {
    must(*name);
    return true;
}

static void features(const char *text, struct arena *a) {
    struct features f;
    struct err e = {0};
    static const char *const have[] = {"a", "b", "ib"};
    if (features_parse(text, a, &f, &e)) {
        must(e.code == E_FEATURE && *e.text);
        return;
    }
    features_match(&f.all, have, ARRAY_LEN(have));
    for (uint32_t i = 0; i < f.n_alts; i++)
        features_match(&f.alt[i], have, MIN(i, (uint32_t)ARRAY_LEN(have)));
    for (uint32_t i = 0; i < f.n_groups; i++)
        features_match(&f.group[i].expr, have, ARRAY_LEN(have));
    must(features_known(&f, knows, NULL));
}

static void gres(const char *text, struct arena *a) {
    struct gres g;
    struct err e = {0};
    if (node_gres_parse(text, a, &g, &e))
        must(e.code < 0);
    else
        must(g.name && *g.name);
}

/* "key=value,key=" as an agent's labels, as an administrator's changes over them, and as a selector. */
static void labels(char *text, struct arena *a) {
    VEC(struct selector) list = {0};
    for (char *word; (word = strsep(&text, ","));) {
        char *value = word;
        const char *key = strsep(&value, "=");
        if (label_key_ok(key) && (!value || label_value_ok(value)))
            vec_push(&list, (struct selector){.key = key, .value = value});
    }
    uint32_t half = (uint32_t)list.n / 2, n = 0, m = 0;
    const struct selector *merged = NULL, *again = NULL;
    auto_str printed = {0};
    labels_change(NULL, 0, list.p, (uint32_t)list.n, false, a, &merged, &n);
    labels_change(merged, n, half ? list.p + half : list.p, (uint32_t)list.n - half, false, a, &again, &m);
    for (uint32_t i = 0; i < n; i++)
        must(merged[i].value && (!i || strcmp(merged[i - 1].key, merged[i].key) < 0));
    must(n == m && (!n || selectors_match(merged, n, again, m))); /* saying the last ones again changes nothing */
    labels_print(merged, n, &printed);
    vec_fini(&list);
}

static void counts(const char *text) {
    uint32_t state, min = 1, max = 1;
    (void)job_state_parse(text, &state);
    if (!node_range_parse(text, &min, &max))
        must(min <= max);
}

static void pbs(const char *text, size_t n, struct arena *a) {
    const char *const *words;
    const uint32_t *lines;
    uint32_t n_words;
    struct err e = {0};
    (void)script_check(text, n, &e);
    if (!script_pbs_options(text, n, a, &words, &lines, &n_words, &e))
        for (uint32_t i = 0; i < n_words; i++)
            must(words[i] && lines[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1 || n > 4096)
        return 0;
    auto_arena a = {0};
    char *text = arena_strndup(&a, (const char *)data + 1, n - 1);
    switch (data[0] % 6) {
    case 0:
        array(text, &a);
        break;
    case 1:
        features(text, &a);
        break;
    case 2:
        gres(text, &a);
        break;
    case 3:
        labels(text, &a);
        break;
    case 4:
        counts(text);
        break;
    default:
        pbs((const char *)data + 1, n - 1, &a);
    }
    return 0;
}
