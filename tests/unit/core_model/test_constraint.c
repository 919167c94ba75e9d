/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/model/constraint.h"
#include "core/model/gres.h"

static struct features must_parse(const char *s, struct arena *a) {
    struct features f;
    struct err e = {0};
    if (features_parse(s, a, &f, &e))
        fail_msg("%s: %s", s, e.text);
    return f;
}

static bool match(const char *expr, const char *have) {
    auto_arena a = {0};
    const char *names[8];
    uint32_t n = 0;
    char *copy = arena_strdup(&a, have);
    for (char *p = copy; *p; n++) {
        names[n] = p;
        p += strcspn(p, " ");
        if (*p)
            *p++ = '\0';
    }
    struct features f = must_parse(expr, &a);
    assert_int_equal(f.n_alts + f.n_groups, 0);
    return features_match(&f.all, names, n);
}

static void expressions(void **state) {
    assert_true(match("", ""));
    assert_true(match("ib", "zen ib"));
    assert_false(match("ib", "ibx"));
    assert_true(match("ib&zen", "zen ib"));
    assert_true(match("ib,zen", "zen ib"));
    assert_false(match("ib&zen", "ib"));
    assert_true(match("ib|gpu", "gpu"));
    assert_false(match("ib|gpu", ""));
    assert_true(match("(ib&zen)|bigmem", "bigmem"));
    assert_true(match("(ib&zen)|bigmem", "ib zen"));
    assert_false(match("(ib&zen)|bigmem", "ib"));
    assert_true(match("a|b&c", "a c"));  /* from left to right */
    assert_false(match("a|b&c", "a"));
    assert_true(match("a|(b&c)", "a"));
    assert_true(match("((a))&((b|c))", "a c"));
    assert_false(match("a&(b|c)&d", "a b"));
}

static void brackets(void **state) {
    auto_arena a = {0};
    struct features f = must_parse("[ib|gpu]", &a);
    assert_int_equal(f.n_alts, 2);
    assert_int_equal(f.all.n_ops, 0);
    assert_string_equal(f.alt[1].op[0].name, "gpu");
    f = must_parse("zen&[r1|r2|r3&x]", &a);
    assert_int_equal(f.n_alts, 3);
    assert_int_equal(f.alt[2].n_ops, 3);
    assert_int_equal(f.all.n_ops, 1);
    f = must_parse("[ib*2&gpu*1]", &a);
    assert_int_equal(f.n_groups, 2);
    assert_int_equal(f.group[0].count, 2);
    assert_int_equal(f.group[1].count, 1);
    assert_string_equal(f.group[1].expr.op[0].name, "gpu");
    f = must_parse("[(ib&zen)*2&gpu]", &a);
    assert_int_equal(f.n_groups, 2);
    assert_int_equal(f.group[0].expr.n_ops, 3);
    assert_int_equal(f.group[1].count, 1);
    f = must_parse("ib*9", &a);
    assert_int_equal(f.n_groups, 1);
    assert_int_equal(f.group[0].count, 9);
}

static void nonsense(void **state) {
    static const char *const bad[] = {"ib&&zen", "&ib", "[ib", "ib]", "ib&", "()", "(ib", "ib)", "ib*2&gpu*1", "ib*", "ib*x", "ib*0",
                                      "[a|b]|c", "a|[b|c]", "[a|b]&[c|d]", "[a*2|b*1]", "[]", "a b", "|", "a(b)", "[a|b&c*2]",
                                      "ib*99999999", "ib*2&zen"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_arena a = {0};
        struct features f;
        struct err e = {0};
        if (features_parse(bad[i], &a, &f, &e) != E_FEATURE)
            fail_msg("%s is taken", bad[i]);
        assert_string_equal(e.text, "Invalid feature specification");
    }
    auto_arena a = {0};
    auto_str deep = {0};
    struct features f;
    for (int i = 0; i < 1000; i++)
        str_add(&deep, "(");
    assert_int_equal(features_parse(str_text(&deep), &a, &f, NULL), E_FEATURE);
    str_clear(&deep);
    for (int i = 0; i < 1000; i++)
        str_add(&deep, "a&");
    str_add(&deep, "a");
    assert_int_equal(features_parse(str_text(&deep), &a, &f, NULL), E_FEATURE);
}

static bool is_short(void *arg, const char *name) {
    return strlen(name) < 3;
}

static void known(void **state) {
    auto_arena a = {0};
    struct features f = must_parse("ab&[cd|ef]", &a);
    assert_true(features_known(&f, is_short, NULL));
    f = must_parse("ab&[cd|efg]", &a);
    assert_false(features_known(&f, is_short, NULL));
    f = must_parse("[abc*2&d*1]", &a);
    assert_false(features_known(&f, is_short, NULL));
}

static void node_gres(void **state) {
    auto_arena a = {0};
    struct gres g[4];
    uint32_t n = 0;
    assert_int_equal(node_gres_parse("gpu:h100:4", &a, &g[0], NULL), 0);
    assert_true(node_gres_add(g, &n));
    assert_int_equal(node_gres_parse("gpu:a100", &a, &g[1], NULL), 0);
    assert_true(node_gres_add(g, &n));
    assert_int_equal(g[1].count, 1);
    assert_int_equal(g[1].first, 4);
    assert_int_equal(node_gres_parse("mem_bw:2G", &a, &g[2], NULL), 0);
    assert_int_equal(g[2].count, (uint64_t)2 << 30);
    assert_true(node_gres_add(g, &n));
    assert_int_equal(g[2].first, 0);
    assert_int_equal(node_gres_parse("gpu:a100:7", &a, &g[3], NULL), 0);
    assert_false(node_gres_add(g, &n));
    assert_int_equal(n, 3);
    static const char *const bad[] = {"", ":", "gpu:", "gpu:a:", "gpu:a:b", "gpu:a:1:2", "g pu", "gpu:a:99999999999999999999", "gpu:a:1X", "-:1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(node_gres_parse(bad[i], &a, &g[3], NULL), E_GRES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions), cmocka_unit_test(brackets), cmocka_unit_test(nonsense),
        cmocka_unit_test(known),       cmocka_unit_test(node_gres),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
