/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats, widths and cuts of squeue -o, -O and sacct -o, as recorded from Slurm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "spur/sacct.h"
#include "spur/table.h"

struct row {
    const char *id, *name, *state, *nodes;
};

static void id(const void *row, const void *env, struct str *out) {
    str_add(out, ((const struct row *)row)->id);
}
static void name(const void *row, const void *env, struct str *out) {
    str_add(out, ((const struct row *)row)->name);
}
static void state_of(const void *row, const void *env, struct str *out) {
    str_add(out, ((const struct row *)row)->state);
}
static void nodes(const void *row, const void *env, struct str *out) {
    str_add(out, ((const struct row *)row)->nodes);
}

static const struct table_field rows[] = {
    {'i', "jobid", "JOBID", id, NULL, -12},
    {'j', "name", "NAME", name, NULL, 10},
    {'T', "state", "STATE", state_of, NULL, 10, 1},
    {'R', "nodelist", "NODELIST(REASON)", nodes, NULL, 15},
    {'K', "task", "ARRAY_TASK_ID", .fixed = "N/A", .width = 8},
    {'l', "timelimit", "TIME_LIMIT", .fixed = "5-00:00:00", .whole = true},
};
static const struct table_fields fields = {rows, ARRAY_LEN(rows)};
static const struct row job = {"337", "two", "RUNNING", "n[1-2]"};

static void check(void (*parse)(struct table *, const char *), const char *format, const char *head, const char *line,
                  const char *bad) {
    struct table t;
    auto_str out = {0};
    table_init(&t, &fields);
    parse(&t, format);
    table_head(&t, &out);
    assert_string_equal(str_text(&out), head);
    str_clear(&out);
    table_line(&t, &job, NULL, &out);
    assert_string_equal(str_text(&out), line);
    auto_str names = {0};
    for (size_t i = 0; i < t.bad.n; i++)
        str_addf(&names, "%s\n", t.bad.p[i]);
    assert_string_equal(str_text(&names), bad);
    table_fini(&t);
}

static void by_letter(void **state) {
    check(table_parse_percent, "%.18i|%-8j|%3j|%.3j|%20R|", "             JOBID|%-8j|NAM|NAM|NODELIST(REASON)    |\n",
          "               337|%-8j|two|two|n[1-2]              |\n", "-\n");
    check(table_parse_percent, "%i %?", "JOBID %?\n", "337 %?\n", "?\n");
    check(table_parse_percent, " %i|%T", " JOBID|STATE\n", " 337|RUNNING\n", "");
    check(table_parse_percent, "%i,%K", "JOBID,ARRAY_TASK_ID\n", "337,N/A\n", "");
    check(table_parse_percent, "text only", "text only\n", "text only\n", "");
    check(table_parse_percent, "%%", "\n", "", "");
    check(table_parse_percent, "{\"id\": \"%i\"}", "{\"id\": \"JOBID\"}\n", "{\"id\": \"337\"}\n", "");
    check(table_parse_percent, "", "\n", "\n", "");
    check(table_parse_percent, "%.", "%.\n", "%.\n", "\n");
    check(table_parse_percent, "%all", "JOBID|NAME|TIME_LIMIT|ARRAY_TASK_ID |NODELIST(REASON) |STATE \n",
          "337|two|5-00:00:00|N/A |n[1-2] |RUNNING \n", "");
}

/* Recorded: squeue -l shows 5-00:00:00 under TIME_LIMI. Times are not cut, their headings are. */
static void times_are_whole(void **state) {
    check(table_parse_percent, "%.9l %.4i", "TIME_LIMI JOBI\n", "5-00:00:00  337\n", "");
    check(table_parse_percent, "%.12l|%12l|%3l|%l", "  TIME_LIMIT|TIME_LIMIT  |TIM|TIME_LIMIT\n",
          "  5-00:00:00|5-00:00:00  |5-00:00:00|5-00:00:00\n", "");
}

/* The width has a bound: what a user types can't ask for all the memory. */
static void wide(void **state) {
    struct table t;
    auto_str out = {0};
    table_init(&t, &fields);
    table_parse_percent(&t, "%99999999999999999999i");
    table_head(&t, &out);
    assert_int_equal(out.n, 10001);
    table_fini(&t);
}

static void by_name(void **state) {
    check(table_parse_long, "jobid:.10,name:8,state:-9,nodelist:3", "     JOBIDNAME    STATE NOD\n",
          "       337two     RUNNING n[1\n", "");
    check(table_parse_long, "jobid:10:,name:,state:+", "JOBID     :NAMESTATE+\n", "337       :twoRUNNING+\n", "");
    check(table_parse_long, "bogus", "\n", "", "bogus\n");
    check(table_parse_long, "JobID,bogus", "JOBID               \n", "337                 \n", "bogus\n");
    check(table_parse_long, "JobID:\x1f,State:\x1f", "JOBID\x1fSTATE\x1f\n", "337\x1fRUNNING\x1f\n", "");
}

static void keys(void **state) {
    struct table t;
    auto_str key = {0};
    table_init(&t, &fields);
    table_parse_percent(&t, "%i %T");
    table_key(&t, 1, &job, NULL, &key);
    assert_string_equal(str_text(&key), "RUNNING\x1f");
    table_fini(&t);
}

static void sacct(const char *format, const struct sacct_style *style, const struct row *row, const char *want) {
    struct table t;
    auto_str out = {0};
    const char *bad;
    size_t n_bad;
    table_init(&t, &fields);
    assert_true(sacct_parse(&t, format, &bad, &n_bad));
    sacct_head(&t, style, &out);
    sacct_line(&t, style, row, NULL, &out);
    assert_string_equal(str_text(&out), want);
    table_fini(&t);
}

static void sacct_columns(void **state) {
    static const struct row cut = {"13537_0.batch", "interactive", "CANCELLED by 0", "n1"};
    const struct sacct_style plain = {.delimiter = "|"}, p = {.parsable = true, .delimiter = "|"},
                             p2 = {.parsable = true, .no_ending = true, .delimiter = "|"};
    sacct("jobid,name,State", &plain, &cut,
          "JOBID              NAME      STATE \n"
          "------------ ---------- ---------- \n"
          "13537_0.bat+ interacti+ CANCELLED+ \n");
    sacct("jobid%14,state%-24", &plain, &cut,
          "         JOBID STATE                    \n"
          "-------------- ------------------------ \n"
          " 13537_0.batch CANCELLED by 0           \n");
    sacct("jobid,state", &p, &cut, "JOBID|STATE|\n13537_0.batch|CANCELLED by 0|\n");
    sacct("jobid,state", &p2, &cut, "JOBID|STATE\n13537_0.batch|CANCELLED by 0\n");
}

static void sacct_names_what_is_no_field(void **state) {
    struct table t;
    const char *bad = NULL;
    size_t n_bad = 0;
    table_init(&t, &fields);
    assert_false(sacct_parse(&t, "jobid,bogus%20,state", &bad, &n_bad));
    assert_int_equal(n_bad, 5);
    assert_memory_equal(bad, "bogus", 5);
    table_fini(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_letter), cmocka_unit_test(wide),          cmocka_unit_test(by_name),
        cmocka_unit_test(times_are_whole),
        cmocka_unit_test(keys),      cmocka_unit_test(sacct_columns), cmocka_unit_test(sacct_names_what_is_no_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
