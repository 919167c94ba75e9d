/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/model/job.h"
#include "core/model/node.h"

static void texts(void **state) {
    char longest[65];
    memset(longest, 'a', 64);
    longest[64] = 0;
    assert_true(label_key_ok("gpu") && label_key_ok("spur.amd.com/zone") && label_key_ok("a-b_c.d") && label_key_ok(longest + 1));
    assert_false(label_key_ok(NULL) || label_key_ok("") || label_key_ok("a b") || label_key_ok("a=b") || label_key_ok("/a") ||
                 label_key_ok("a/") || label_key_ok("a/b/c") || label_key_ok(longest));
    assert_true(label_value_ok("") && label_value_ok("MI300x.1_2-3") && label_value_ok(longest + 1));
    assert_false(label_value_ok(NULL) || label_value_ok("a,b") || label_value_ok("a/b") || label_value_ok(longest));
}

static void matching(void **state) {
    const struct selector has[] = {{"gpu", "x"}, {"rack", "1"}, {"empty", ""}};
    assert_true(selectors_match((struct selector[]){{"rack", "1"}}, 1, has, 3));
    assert_true(selectors_match((struct selector[]){{"rack", "1"}, {"gpu", "x"}}, 2, has, 3));
    assert_true(selectors_match((struct selector[]){{"empty", ""}}, 1, has, 3));
    assert_false(selectors_match((struct selector[]){{"rack", "1"}, {"gpu", "y"}}, 2, has, 3));
    assert_false(selectors_match((struct selector[]){{"ra", "1"}}, 1, has, 3));
    assert_false(selectors_match((struct selector[]){{"none", ""}}, 1, has, 3));
    assert_false(selectors_match(NULL, 0, has, 3)); /* nothing is asked for: nothing is selected */
}

static void expect(const struct selector *old, uint32_t n_old, const struct selector *change, uint32_t n_change, bool keep,
                   const char *want) {
    auto_arena a = {0};
    auto_str got = {0};
    const struct selector *out;
    uint32_t n;
    labels_change(old, n_old, change, n_change, keep, &a, &out, &n);
    labels_print(out, n, &got);
    assert_string_equal(str_text(&got), want);
}

static void changing(void **state) {
    const struct selector old[] = {{"a", "1"}, {"b", "2"}};
    expect(old, 2, (struct selector[]){{"c", "3"}, {"a", "4"}}, 2, false, "a=4,b=2,c=3");
    expect(old, 2, (struct selector[]){{"b", NULL}, {"x", NULL}}, 2, false, "a=1");
    expect(old, 2, (struct selector[]){{"b", NULL}}, 1, true, "a=1,b=");
    expect(old, 2, (struct selector[]){{"b", "5"}, {"b", NULL}}, 2, false, "a=1");
    expect(old, 2, (struct selector[]){{"b", NULL}, {"b", "5"}}, 2, false, "a=1,b=5");
    expect(NULL, 0, (struct selector[]){{"z", "1"}, {"a", "1"}, {"z", "2"}}, 3, false, "a=1,z=2");
}

static void members(void **state) {
    const char *const names[] = {"n9"};
    const struct selector labels[] = {{"gpu", "x"}};
    struct node n = {.name = "n1", .labels = labels, .n_labels = 1};
    struct part p = {.nodes = names, .n_nodes = 1};
    assert_false(part_has_node(&p, &n));
    p.selectors = labels;
    p.n_selectors = 1;
    assert_true(part_has_node(&p, &n));
    n.n_labels = 0;
    assert_false(part_has_node(&p, &n));
    n.name = "n9";
    assert_true(part_has_node(&p, &n));
}

static void places_in_an_array(void **state) {
    const struct array_range r[] = {{0, 2}, {5, 5}, {7, 9}};
    assert_int_equal(array_rank(r, 3, 0), 0);
    assert_int_equal(array_rank(r, 3, 2), 2);
    assert_int_equal(array_rank(r, 3, 5), 3);
    assert_int_equal(array_rank(r, 3, 7), 4);
    assert_int_equal(array_rank(r, 3, 9), 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(matching), cmocka_unit_test(changing),
                                       cmocka_unit_test(members), cmocka_unit_test(places_in_an_array)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
