/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/model/step.h"
#include "core/model/text.h"

/* "gpu=2 gpu:a100=1": what was understood, in order. */
static void print_gres(const struct gres_ask *g, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n; i++)
        str_addf(out, "%s%s%s%s=%llu", i ? " " : "", g[i].name, g[i].type ? ":" : "", g[i].type ? g[i].type : "",
                 (unsigned long long)g[i].count);
}

static void gres(void **state) {
    static const struct {
        const char *text, *name, *want; /* want NULL: E_GRES with `error` */
        const char *error;
    } rows[] = {
        {"gpu", NULL, "gpu=1"},
        {"gpu:2", NULL, "gpu=2"},
        {"gpu:a100", NULL, "gpu:a100=1"},
        {"gpu:a100:2", NULL, "gpu:a100=2"},
        {"gres/gpu:a100:2", NULL, "gpu:a100=2"},
        {"gres/gpu=3", NULL, "gpu=3"},
        {"gpu:h100:1,gpu:a100:2,nic", NULL, "gpu:h100=1 gpu:a100=2 nic=1"},
        {"gpu:1,gpu:2", NULL, "gpu=3"},
        {"mem:2k", NULL, "mem=2048"},
        {"gpu:0", NULL, ""},
        {"", NULL, ""},
        {"none", NULL, ""},
        {"NONE", NULL, ""},
        {",gpu,", NULL, "gpu=1"},
        {"4", "gpu", "gpu=4"},
        {"h100:2,a100:1", "gpu", "gpu:h100=2 gpu:a100=1"},
        {"x", "gpu", "gpu:x=1"},
        {"gpu:h100:x", NULL, NULL, "Invalid Trackable RESource (TRES) specification"},
        {"gpu:1,gpu:h100:1", NULL, NULL, "Invalid GRES specification (with and without type identification)"},
        {"gpu:h100:1,gpu:1", NULL, NULL, "Invalid GRES specification (with and without type identification)"},
        {":2", NULL, NULL, "Invalid generic resource (gres) specification"},
        {"gpu:", NULL, NULL, "Invalid generic resource (gres) specification"},
        {"gpu:2x", NULL, NULL, "Invalid generic resource (gres) specification"},
        {"gpu:99999999999999999999", NULL, NULL, "Invalid generic resource (gres) specification"},
        {"gpu:9000000000000000000,gpu:9000000000000000000,gpu:9000000000000000000", NULL, NULL,
         "Invalid generic resource (gres) specification"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_arena a = {0};
        auto_str s = {0};
        struct err e = {0};
        const struct gres_ask *g = NULL;
        uint32_t n = 0;
        int rc = gres_parse(rows[i].text, rows[i].name, GRES_PER_NODE, &a, &g, &n, &e);
        if (!rows[i].want) {
            if (rc != E_GRES || strcmp(e.text, rows[i].error) != 0 || g || n)
                fail_msg("\"%s\": %d %s", rows[i].text, rc, e.text);
            continue;
        }
        if (rc)
            fail_msg("\"%s\": %s", rows[i].text, e.text);
        print_gres(g, n, &s);
        assert_string_equal(str_text(&s), rows[i].want);
    }
}

static void gres_adds_up(void **state) {
    auto_arena a = {0};
    auto_str s = {0};
    const struct gres_ask *g = NULL;
    uint32_t n = 0;
    assert_int_equal(gres_parse("gpu:2", NULL, GRES_PER_NODE, &a, &g, &n, NULL), 0);
    assert_int_equal(gres_parse("a100:1", "gpu", GRES_PER_JOB, &a, &g, &n, NULL), 0); /* another kind of wish */
    assert_int_equal(gres_parse("1", "gpu", GRES_PER_NODE, &a, &g, &n, NULL), 0);
    assert_int_equal(n, 2);
    print_gres(g, n, &s);
    assert_string_equal(str_text(&s), "gpu=3 gpu:a100=1");
    assert_int_equal(g[1].per, GRES_PER_JOB);
    str_clear(&s);
    gres_text_print("gpu:h100:1,gres/gpu:a100:1,nic", "gres/", &s);
    assert_string_equal(s.p, "gres/gpu:h100:1,gres/gpu:a100:1,gres/nic");
    str_clear(&s);
    gres_text_print("h100:2,x", "gres/gpu:", &s);
    assert_string_equal(s.p, "gres/gpu:h100:2,gres/gpu:x");
}

static void licenses(void **state) {
    static const struct {
        const char *text, *want; /* NULL: E_LICENSE */
    } rows[] = {
        {"matlab", "matlab=1"},          {"matlab:2,ansys:1", "matlab=2,ansys=1"}, {"matlab:0", "matlab=0"},
        {"a:1|b:2", "a=1|b=2"},          {"", ""},                                  {"a;b", "a=1,b=1"},
        {"a:x", NULL},                   {":1", NULL},                              {"a,b|c", NULL},
        {"a,,b", NULL},                  {"a:-1", NULL},                            {"a:4294967296", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_arena a = {0};
        auto_str s = {0};
        const struct license_ask *l = NULL;
        uint32_t n = 7;
        int rc = license_parse(rows[i].text, &a, &l, &n, NULL);
        if (rc != (rows[i].want ? 0 : E_LICENSE))
            fail_msg("\"%s\": %d", rows[i].text, rc);
        if (rc)
            continue;
        for (uint32_t k = 0; k < n; k++)
            str_addf(&s, "%s%s=%u", k ? l[k].is_or ? "|" : "," : "", l[k].name, l[k].count);
        assert_string_equal(str_text(&s), rows[i].want);
    }
}

static void signals(void **state) {
    static const struct {
        const char *text;
        uint32_t signal, secs; /* 0: E_SYNTAX */
        bool batch, reservation;
    } rows[] = {
        {"B:USR1@60", SIGUSR1, 60, true},
        {"USR1", SIGUSR1, 60},
        {"SIGUSR2@90", SIGUSR2, 90},
        {"sigterm@300", SIGTERM, 300},
        {"15@180", 15, 180},
        {"b:10", 10, 60, true},
        {"R:USR1@60", SIGUSR1, 60, false, true},
        {"RB:USR1@0", SIGUSR1, 0, true, true},
        {":USR1", SIGUSR1, 60},
        {"bogus"}, {"B:"}, {"BB:USR1"}, {"X:USR1"}, {"USR1@"}, {"USR1@x"}, {"USR1@65536"}, {"0"}, {"65"}, {""}, {"@5"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct signal_ask s = {0};
        int rc = signal_ask_parse(rows[i].text, &s);
        if (rc != (rows[i].signal ? 0 : E_SYNTAX))
            fail_msg("\"%s\": %d", rows[i].text, rc);
        assert_int_equal(s.signal, rows[i].signal);
        assert_int_equal(s.secs, rows[i].secs);
        assert_int_equal(s.batch, rows[i].batch);
        assert_int_equal(s.reservation, rows[i].reservation);
    }
}

static void print_name(const struct job_name *j, struct str *out) {
    str_addf(out, "%u", j->target.job_id);
    if (j->target.n_tasks) {
        str_addc(out, '_');
        array_print(j->target.tasks, j->target.n_tasks, out);
    }
    if (j->has_step) {
        str_addc(out, '.');
        step_print_id(j->step_id, out);
    }
}

static void names(void **state) {
    enum { ALL = JOB_NAME_STEP | JOB_NAME_TASKS };
    static const struct {
        const char *text;
        unsigned flags;
        const char *want; /* NULL: E_JOB_ID with `error` */
        const char *error;
    } rows[] = {
        {"12", 0, "12"},
        {"12_3", 0, "12_3"},
        {"12_0", 0, "12_0"},
        {"12_[1-3,7]", ALL, "12_1-3,7"},
        {"12_[7,1-3]", ALL, "12_1-3,7"},
        {"12.0", ALL, "12.0"},
        {"12.batch", ALL, "12.batch"},
        {"12_3.4", ALL, "12_3.4"},
        {"4294967294", 0, "4294967294"},
        {"12_[1-3]", JOB_NAME_STEP, NULL, ""},
        {"12.0", JOB_NAME_TASKS, NULL, ""},
        {"12_[x]", ALL, NULL, "_parse_single_range: Invalid range: `x'"},
        {"12_[1,,2]", ALL, NULL, "_parse_single_range: Invalid range: `'"},
        {"12_[3-1]", ALL, NULL, ""},
        {"12_[1-3%2]", ALL, NULL, "_parse_single_range: Invalid range: `1-3%2'"},
        {"12_[1-3", ALL, NULL, ""},
        {"", ALL, NULL, ""},
        {"0", ALL, NULL, ""},
        {"12_", ALL, NULL, ""},
        {"12.", ALL, NULL, ""},
        {"12.extern", ALL, NULL, ""},
        {"12x", ALL, NULL, ""},
        {"12_3x", ALL, NULL, ""},
        {"12_4000001", ALL, NULL, ""},
        {"4294967295", ALL, NULL, ""},
        {"99999999999999999999", ALL, NULL, ""},
        {"12.4294967281", ALL, NULL, ""},
        {"-1", ALL, NULL, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_arena a = {0};
        auto_str s = {0};
        struct err e = {0};
        struct job_name j;
        int rc = job_name_parse(rows[i].text, rows[i].flags, &a, &j, &e);
        if (rc != (rows[i].want ? 0 : E_JOB_ID))
            fail_msg("\"%s\": %d", rows[i].text, rc);
        if (rc) {
            assert_string_equal(e.text, rows[i].error);
            continue;
        }
        print_name(&j, &s);
        assert_string_equal(str_text(&s), rows[i].want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gres),    cmocka_unit_test(gres_adds_up), cmocka_unit_test(licenses),
        cmocka_unit_test(signals), cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
