/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/model/text.h"

#define ALL_KINDS (~0u)
#define TWO_KINDS (1u << DEP_AFTEROK | 1u << DEP_AFTERANY)

static void good(void **state) {
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"afterok:1", "afterok:1(unfulfilled)"},
        {"afterany:274", "afterany:274(unfulfilled)"},
        {"AfterOK:1", "afterok:1(unfulfilled)"},
        {"after:5", "after:5(unfulfilled)"},
        {"aftercorr:274", "aftercorr:274(unfulfilled)"},
        {"afternotok:9", "afternotok:9(unfulfilled)"},
        {"afterok:1:2", "afterok:1(unfulfilled),afterok:2(unfulfilled)"},
        {"afterok:1,singleton", "afterok:1(unfulfilled),singleton(unfulfilled)"},
        {"afterok:1?afterok:2", "afterok:1(unfulfilled)?afterok:2(unfulfilled)"},
        {"afterok:1:2?afterany:3", "afterok:1(unfulfilled)?afterok:2(unfulfilled)?afterany:3(unfulfilled)"},
        {"singleton", "singleton(unfulfilled)"},
        {"after:1+5", "after:1+5(unfulfilled)"},
        {"after:1:2+60:3_4+1", "after:1(unfulfilled),after:2+60(unfulfilled),after:3_4+1(unfulfilled)"},
        {"afterok:274_1", "afterok:274_1(unfulfilled)"},
        {"afterok:274_0", "afterok:274_0(unfulfilled)"},
        {"aftercorr:304_*", "aftercorr:304_*(unfulfilled)"},
        {"afterok:304_[1-2,7]:5", "afterok:304_1(unfulfilled),afterok:304_2(unfulfilled),afterok:304_7(unfulfilled),"
                                  "afterok:5(unfulfilled)"},
        {"afterok:304_[1,3]?afterany:9", "afterok:304_1(unfulfilled)?afterok:304_3(unfulfilled)?afterany:9(unfulfilled)"},
        {"afterok:67108863", "afterok:67108863(unfulfilled)"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_arena a = {0};
        auto_str s = {0};
        struct err e = {0};
        const struct dep *d;
        uint32_t n;
        if (deps_parse(rows[i].text, ALL_KINDS, &a, &d, &n, &e))
            fail_msg("\"%s\": %s", rows[i].text, e.text);
        deps_print(d, n, &s);
        assert_string_equal(str_text(&s), rows[i].shown);
    }
}

static void bad(void **state) {
    static const char *const rows[] = {
        "x",          "afterok",     "afterok:",   "afterok:abc", "afterok:1:", "afterok:1,", "after:1+x", "bogus:1",
        "afterok:0",  "afterok:-1",  ",afterok:1", "afterok:1,,afterok:2", "afterok:1,afterok:2?afterok:3",
        "singleton:1", "afterok:274_", "afterok:274_x", "afterok:274_[1", "afterok:274_[]", "afterok:274_[2-1]",
        "afterok:274_[1-2%1]", "afterok:274_1_2", "after:1+", "after:1+99999999", "afterok:274_4000001",
        "afterok:1_[1,2],afterok:2?afterok:3", "afterok:1 ", " afterok:1", "afterok:67108864", "afterok:99999999999999999999",
        "afterok:1?", "foo:1",       ":",          ",",           "?",          "after:1+",   "afterok:1+5", "afterokx:1",
        "afterok:0x1"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_arena a = {0};
        struct err e = {0};
        const struct dep *d = NULL;
        uint32_t n = 7;
        if (deps_parse(rows[i], ALL_KINDS, &a, &d, &n, &e) != E_DEPENDENCY)
            fail_msg("\"%s\" was taken: %d %s", rows[i], e.code, e.text);
        assert_string_equal(e.text, "Job dependency problem");
        assert_int_equal(n, 7);
    }
}

static void unsupported(void **state) {
    static const struct {
        const char *text, *why;
    } rows[] = {{"expand:1", "Requested operation not supported on this system"},
                {"singleton", "Dependency type \"singleton\" is not supported yet"},
                {"afterok:1,aftercorr:2", "Dependency type \"aftercorr\" is not supported yet"},
                {"after:1", "Dependency type \"after\" is not supported yet"},
                {"afterburstbuffer:1", "Dependency type \"afterburstbuffer\" is not supported yet"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_arena a = {0};
        struct err e = {0};
        const struct dep *d;
        uint32_t n;
        assert_int_equal(deps_parse(rows[i].text, TWO_KINDS, &a, &d, &n, &e), E_UNSUPPORTED);
        assert_string_equal(e.text, rows[i].why);
    }
}

static void shown_states(void **state) {
    auto_str s = {0};
    struct dep d[] = {{DEP_AFTEROK, 273, DEP_NEVER, false}, {DEP_AFTEROK, 274, DEP_WAITING, true}};
    deps_print(d, 2, &s);
    assert_string_equal(str_text(&s), "afterok:273(failed)?afterok:274(unfulfilled)");
    str_clear(&s);
    d[1].is_or = false;
    deps_print(d, 2, &s);
    assert_string_equal(str_text(&s), "afterok:273(failed),afterok:274(unfulfilled)");
    str_clear(&s);
    d[0].state = DEP_DONE;
    deps_print(d, 2, &s);
    assert_string_equal(str_text(&s), "afterok:274(unfulfilled)");
}

static void bounds(void **state) {
    auto_arena a = {0};
    auto_str s = {0};
    const struct dep *d;
    uint32_t n;
    str_add(&s, "afterok");
    for (int i = 1; i <= 4096; i++)
        str_addf(&s, ":%d", i);
    assert_int_equal(deps_parse(str_text(&s), ALL_KINDS, &a, &d, &n, NULL), 0);
    assert_int_equal(n, 4096);
    assert_int_equal(d[4095].job_id, 4096);
    assert_int_equal(deps_parse("afterok:1_[0-4000000]", ALL_KINDS, &a, &d, &n, NULL), E_DEPENDENCY);
    str_add(&s, ":1");
    assert_int_equal(deps_parse(str_text(&s), ALL_KINDS, &a, &d, &n, NULL), E_DEPENDENCY);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(good), cmocka_unit_test(bad), cmocka_unit_test(unsupported),
                                       cmocka_unit_test(shown_states), cmocka_unit_test(bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
