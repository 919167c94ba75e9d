/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/toml/toml.h"

static void show(const struct tree *t, struct str *s) {
    if (t->key)
        str_addf(s, "%s", t->key);
    str_addf(s, "@%u", t->line);
    switch (t->kind) {
    case TREE_STRING: str_addf(s, "='%s'", t->string); break;
    case TREE_INTEGER: str_addf(s, "=%lld", (long long)t->integer); break;
    case TREE_FLOAT: str_addf(s, "=%g", t->number); break;
    case TREE_BOOL: str_add(s, t->truth ? "=true" : "=false"); break;
    case TREE_OTHER: str_add(s, "=?"); break;
    case TREE_TABLE:
    case TREE_ARRAY:
        str_add(s, t->kind == TREE_TABLE ? "{" : "[");
        for (size_t i = 0; i < t->n_children; i++) {
            str_add(s, i ? " " : "");
            show(t->child[i], s);
        }
        str_add(s, t->kind == TREE_TABLE ? "}" : "]");
    }
}

static void expect(const char *text, const char *want) {
    auto_arena a = {0};
    auto_str s = {0};
    struct err e = {0};
    struct tree *t;
    if (toml_parse(text, strlen(text), &a, &t, &e))
        fail_msg("%s", e.text);
    show(t, &s);
    assert_string_equal(str_text(&s), want);
}

static void trees(void **state) {
    expect("", "@1{}");
    expect("z = 1\na = \"x\"\n", "@1{z@1=1 a@2='x'}");
    expect("cluster_name = \"c\"\n\n[scheduler]\ninterval_secs = 2\nplugin = 'backfill'\n\n[[partitions]]\nname = \"b\"\n"
           "default = true\n[[partitions]]\nname = \"a\"\n",
           "@1{cluster_name@1='c' scheduler@3{interval_secs@4=2 plugin@5='backfill'} "
           "partitions@7[@7{name@8='b' default@9=true} @10{name@11='a'}]}");
    expect("peers = [\n  \"a\",\n  \"b\",\n]\n", "@1{peers@1[@2='a' @3='b']}");
    expect("nodes = [{ names = \"n1\", cpus = 64 }]\n", "@1{nodes@1[@1{names@1='n1' cpus@1=64}]}");
    expect("f = 1.5\nd = 1979-05-27\n", "@1{f@1=1.5 d@2=?}");
    expect("a.b.c = 1\na.b.d = 2\n", "@1{a@1{b@1{c@1=1 d@2=2}}}");
}

static void numbers(void **state) {
    expect("a = 0x10\nb = 1_000\nc = -9223372036854775808\nd = inf\n",
           "@1{a@1=16 b@2=1000 c@3=-9223372036854775808 d@4=inf}");
    expect("s = \"\"\"\none\ntwo\"\"\"\nt = 1\n", "@1{s@1='one\ntwo' t@4=1}");
    expect("s = 'C:\\x'\nu = \"\\u00e4\"\n", "@1{s@1='C:\\x' u@2='\xc3\xa4'}");
}

static void expect_error(const char *text, size_t n, const char *prefix) {
    auto_arena a = {0};
    struct err e = {0};
    struct tree *t = NULL;
    assert_int_equal(toml_parse(text, n, &a, &t, &e), E_CONFIG);
    if (!str_starts(e.text, prefix))
        fail_msg("\"%s\" does not begin with \"%s\"", e.text, prefix);
    assert_null(t);
}

static void errors(void **state) {
    expect_error("a = 1\nb = \n", 11, "line 2: ");
    expect_error("a = 1\na = 2\n", 12, "line 2: ");
    expect_error("[x]\n[x]\n", 8, "line 2: ");
    expect_error("\n\n]\n", 4, "line 3: ");
    expect_error("\n[\nx]\n", 6, "line 2: ");
    expect_error("\xc4\xa2 = 1\n", 7, "line 1: ");
    expect_error("[!x]\n", 5, "line 1: ");
    expect_error("[[\n", 3, "line 1: ");
    expect_error("a = \"\\u0000\"\n", 13, "line 1: a NUL character in a text");
    expect_error("a = \"x\0y\"\n", 10, "line 1: ");
    expect_error("\"a\\u0000\" = 1\n", 14, "line 1: a NUL");
    expect_error("a = 99999999999999999999\n", 25, "line 1: ");
    expect_error("a = \"\xff\"\n", 8, "line 1: ");
    auto_arena a = {0};
    auto_str big = {0};
    struct tree *t;
    struct err e = {0};
    str_add(&big, "# ");
    for (int i = 0; i < (1 << 20); i++)
        str_addc(&big, 'x');
    assert_int_equal(toml_parse(big.p, big.n, &a, &t, &e), E_TOO_BIG);
}

static void deep(void **state) {
    auto_str s = {0};
    str_add(&s, "x = 1\n");
    for (int i = 0; i < 100000; i++)
        str_add(&s, "\"a\".");
    str_add(&s, "a = 1\n");
    expect_error(s.p, s.n, "line 2: a key of too many parts");
    str_clear(&s);
    str_add(&s, "x = 1\n[");
    for (int i = 0; i < 100000; i++)
        str_add(&s, "a.");
    str_add(&s, "a]\n");
    expect_error(s.p, s.n, "line 2: a key of too many parts");
    str_clear(&s);
    str_add(&s, "x = ");
    for (int i = 0; i < 100; i++)
        str_addc(&s, '[');
    for (int i = 0; i < 100; i++)
        str_addc(&s, ']');
    expect_error(s.p, s.n, "line 1: nested too deeply");
    str_clear(&s);
    str_add(&s, "x = ");
    for (int i = 0; i < 100000; i++)
        str_addc(&s, '[');
    expect_error(s.p, s.n, "line 1: ");
    /* dots in texts and lists are no depth */
    str_clear(&s);
    str_add(&s, "x = '");
    for (int i = 0; i < 500; i++)
        str_add(&s, "a.");
    str_add(&s, "'\n# ..................................................\ny = \"\"\"\n");
    for (int i = 0; i < 500; i++)
        str_add(&s, "\\\"a.");
    str_add(&s, "\"\"\"\n");
    auto_arena a = {0};
    struct err e = {0};
    struct tree *t;
    assert_int_equal(toml_parse(s.p, s.n, &a, &t, &e), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(trees), cmocka_unit_test(numbers), cmocka_unit_test(errors),
                                       cmocka_unit_test(deep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
