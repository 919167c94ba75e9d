/* SPDX-License-Identifier: Apache-2.0
 *
 * A new field of squeue is one line of one table: src/spur/job_fields.c is compiled here with the line of one_line.def, and
 * the field is there in -o, -O, -S, --helpformat, --json and the documentation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "spur/columns.h"
#include "spur/job_facts.h"
#include "spur/job_fields.h"
#include "spur/table_json.h"
#include "spur/table_order.h"

static const struct job_spec specs[] = {{.name = "a", .uid = 44}, {.name = "b", .uid = 39}};
static const struct job jobs[] = {{.id = 1, .spec = &specs[0]}, {.id = 2, .spec = &specs[1]}};
static const struct job_info infos[] = {{.job = &jobs[0]}, {.job = &jobs[1]}};
static const struct job_env env = {.now_unix = 1000};

static void line(void (*parse)(struct table *, const char *), const char *format, const char *head, const char *text) {
    struct table t;
    auto_str out = {0};
    table_init(&t, job_fields());
    parse(&t, format);
    assert_int_equal(t.bad.n, 0);
    table_head(&t, &out);
    table_line(&t, &infos[0], &env, &out);
    autofree char *want = xasprintf("%s\n%s\n", head, text);
    assert_string_equal(str_text(&out), want);
    table_fini(&t);
}

static void columns(void **state) {
    line(table_parse_percent, "%i|%.5@|%3@|", "JOBID|SHOE_|SHO|", "1|   44|44 |");
    line(table_parse_long, "ShoeSize:12,jobid:3", "SHOE_SIZE   JOB", "44          1  ");
}

static void order(void **state) {
    char bad = 0;
    struct table_order o = {.fields = job_fields(), .env = &env};
    assert_true(table_order_parse(&o, "-@", &bad));
    assert_true(table_order_compare(&infos[0], &infos[1], &o) < 0);
    struct table_order up = {.fields = job_fields(), .env = &env};
    assert_true(table_order_parse(&up, "@", &bad));
    assert_true(table_order_compare(&infos[0], &infos[1], &up) > 0);
}

static void told(void **state) {
    auto_str names = {0}, page = {0}, json = {0};
    table_names(job_fields(), &names);
    assert_non_null(strstr(str_text(&names), "shoesize"));
    columns_of(job_fields(), &page);
    assert_non_null(strstr(str_text(&page), "| `shoesize` | `%@` | `SHOE_SIZE` | `shoe_size` |\n"));
    struct table_json shape;
    struct json w = {.out = &json};
    table_json_init(&shape, job_fields(), 1);
    table_json_row(&shape, &w, &infos[0], &env);
    table_json_fini(&shape);
    assert_non_null(strstr(str_text(&json), "\n  \"shoe_size\": 44"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns), cmocka_unit_test(order), cmocka_unit_test(told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
