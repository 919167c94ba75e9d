/* SPDX-License-Identifier: Apache-2.0
 *
 * The option engine against what getopt_long does and says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "spur/opt.h"

struct values {
    bool flag;
    uint32_t count;
    const char *text, *maybe;
    int number;
};

static int set_number(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct values *v = r->ctx;
    if (!value) {
        v->number = 100;
        return 0;
    }
    v->number = 0;
    for (const char *c = value; *c; c++) {
        if (*c < '0' || *c > '9')
            return opt_bad_value(r, o);
        v->number = v->number * 10 + (*c - '0');
    }
    return 0;
}

#define AT(field) offsetof(struct values, field)
static const struct opt_row rows[] = {
    {"flag", 'f', NULL, OPT_BOOL, 0, AT(flag), NULL, "FLAG", "a flag"},
    {"help", 'h', NULL, OPT_HELP, 0, 0, NULL, NULL, "help"},
    {"gone", 'g', "x", OPT_NOT_YET, 0, 0, NULL, "GONE", NULL},
    {"jobs", 'j', "ids", OPT_TEXT, OPT_MAYBE | OPT_NEXT, AT(maybe), NULL, NULL, "ids"},
    {"number", 'n', "value", OPT_CALL, OPT_MAYBE, 0, set_number, "NUMBER", "a number"},
    {"text", 't', "text", OPT_TEXT, OPT_ENV_ALL, AT(text), NULL, "TEXT", "a text"},
    {"text-more", 0, "text", OPT_TEXT, 0, AT(text), NULL, NULL, "another"},
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "usage"},
    {"verbose", 'v', NULL, OPT_COUNT, 0, AT(count), NULL, NULL, "more"},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "version"},
};
static const struct opt_table table = {.usage = "[OPTIONS]", .brief = "[-f]", .row = rows, .n = ARRAY_LEN(rows),
                                       .usage_exit = 255, .env_prefix = {"ONE_", "TWO_"}};
static const struct opt_table stopping = {.usage = "[OPTIONS]", .brief = "[-f]", .row = rows, .n = ARRAY_LEN(rows),
                                          .usage_exit = 255, .stop_at_word = true};

/* Runs a command line of blank-separated words. */
static bool run(struct opt_run *r, const struct opt_table *t, struct values *v, const char *line) {
    static char space[512];
    static const char *word[32];
    int n = 0;
    *v = (struct values){0};
    opt_init(r, t, "prog", v);
    snprintf(space, sizeof(space), "%s", line);
    for (char *w = space; *w && n < 32; n++) {
        word[n] = w;
        w += strcspn(w, " ");
        if (*w)
            *w++ = '\0';
    }
    return opt_scan(r, n, word) && opt_apply(r, 0, r->items.n);
}

static void forms(void **state) {
    struct opt_run r;
    struct values v;
    assert_true(run(&r, &table, &v, "-f -t a --text=b -vv --verbose x -ty y"));
    assert_true(v.flag);
    assert_string_equal(v.text, "y");
    assert_int_equal(v.count, 3);
    assert_int_equal(r.words.n, 2);
    assert_string_equal(r.words.p[0], "x");
    assert_string_equal(r.words.p[1], "y");
    opt_fini(&r);
    assert_true(run(&r, &table, &v, "-fvt z --text= -- -f"));
    assert_int_equal(v.count, 1);
    assert_string_equal(v.text, "");
    assert_string_equal(r.words.p[0], "-f");
    opt_fini(&r);
    assert_true(run(&r, &table, &v, "--text -f -"));
    assert_string_equal(v.text, "-f");
    assert_string_equal(r.words.p[0], "-");
    opt_fini(&r);
}

static void maybe(void **state) {
    struct opt_run r;
    struct values v;
    assert_true(run(&r, &table, &v, "-n 7"));
    assert_int_equal(v.number, 100);
    assert_int_equal(r.words.n, 1);
    opt_fini(&r);
    assert_true(run(&r, &table, &v, "-n7"));
    assert_int_equal(v.number, 7);
    opt_fini(&r);
    assert_true(run(&r, &table, &v, "--number=8 -j 12"));
    assert_int_equal(v.number, 8);
    assert_string_equal(v.maybe, "12");
    assert_int_equal(r.words.n, 0);
    opt_fini(&r);
    assert_true(run(&r, &table, &v, "-j -f"));
    assert_true(v.flag && !v.maybe);
    opt_fini(&r);
}

static void stops_at_the_script(void **state) {
    struct opt_run r;
    struct values v;
    assert_true(run(&r, &stopping, &v, "-f script -t -f"));
    assert_true(v.flag && !v.text);
    assert_int_equal(r.words.n, 3);
    opt_fini(&r);
}

static void messages(void **state) {
    static const struct {
        const char *line, *want;
        int code;
    } cases[] = {
        {"--bogus", "prog: unrecognized option '--bogus'\n", 255},
        {"--bogus=1", "prog: unrecognized option '--bogus=1'\n", 255},
        {"-x", "prog: invalid option -- 'x'\n", 255},
        {"-fx", "prog: invalid option -- 'x'\n", 255},
        {"-t", "prog: option requires an argument -- 't'\n", 255},
        {"--text", "prog: option '--text' requires an argument\n", 255},
        {"--flag=1", "prog: option '--flag' doesn't allow an argument\n", 255},
        {"--ver", "prog: option '--ver' is ambiguous; possibilities: '--verbose' '--version'\n", 255},
        {"--ver=2", "prog: option '--ver=2' is ambiguous; possibilities: '--verbose' '--version'\n", 255},
        {"--number=x", "prog: error: Invalid --number specification\n", 255},
        {"--gone=1", "prog: error: option --gone is not supported yet (see docs/compatibility.md)\n", 1},
        {"-g 1", "prog: error: option --gone is not supported yet (see docs/compatibility.md)\n", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct opt_run r;
        struct values v;
        assert_false(run(&r, &table, &v, cases[i].line));
        assert_int_equal(r.exit_code, cases[i].code);
        assert_true(strncmp(str_text(&r.err), cases[i].want, strlen(cases[i].want)) == 0);
        bool is_misuse = !strstr(cases[i].want, "error:");
        assert_true(is_misuse == str_ends(str_text(&r.err), "Try \"prog --help\" for more information\n"));
        opt_fini(&r);
    }
}

static void short_forms_of_names(void **state) {
    struct opt_run r;
    struct values v;
    assert_true(run(&r, &table, &v, "--fl --numb=3"));
    assert_true(v.flag && v.number == 3);
    opt_fini(&r);
    assert_true(run(&r, &table, &v, "--text a")); /* the whole name of one is no beginning of another */
    assert_string_equal(v.text, "a");
    opt_fini(&r);
}

static void help_is_what_the_table_says(void **state) {
    struct opt_run r;
    struct values v;
    assert_false(run(&r, &table, &v, "-f --help --bogus"));
    assert_int_equal(r.exit_code, 0);
    assert_string_equal(str_text(&r.out), "Usage: prog [OPTIONS]\n\n"
                                          "  -f, --flag                  a flag\n"
                                          "  -j, --jobs[=ids]            ids\n"
                                          "  -n, --number[=value]        a number\n"
                                          "  -t, --text=text             a text\n"
                                          "      --text-more=text        another\n"
                                          "  -v, --verbose               more\n"
                                          "\nHelp options:\n"
                                          "  -h, --help                  help\n"
                                          "      --usage                 usage\n"
                                          "  -V, --version               version\n");
    opt_fini(&r);
    assert_false(run(&r, &table, &v, "--usage"));
    assert_string_equal(str_text(&r.out), "Usage: prog [-f]\n");
    opt_fini(&r);
    assert_false(run(&r, &table, &v, "--bogus --help"));
    assert_int_equal(r.exit_code, 255);
    opt_fini(&r);
}

static const char *fake_env(const char *name) {
    static const struct {
        const char *name, *value;
    } env[] = {{"ONE_FLAG", ""}, {"TWO_TEXT", "two"}, {"TWO_NUMBER", "5"}};
    for (size_t i = 0; i < ARRAY_LEN(env); i++)
        if (strcmp(env[i].name, name) == 0)
            return env[i].value;
    return NULL;
}

static void variables(void **state) {
    struct opt_run r;
    struct values v = {0};
    opt_init(&r, &table, "prog", &v);
    opt_scan_env(&r, fake_env);
    assert_true(opt_apply(&r, 0, r.items.n));
    assert_true(v.flag);
    assert_string_equal(v.text, "two");
    assert_int_equal(v.number, 0); /* TWO_ is only for options that say so */
    opt_fini(&r);
}

static const char *gone_env(const char *name) {
    return strcmp(name, "ONE_GONE") == 0 ? "1" : NULL;
}

static void a_variable_of_what_is_not_there_is_refused(void **state) {
    struct opt_run r;
    struct values v = {0};
    opt_init(&r, &table, "prog", &v);
    opt_scan_env(&r, gone_env);
    assert_false(opt_apply(&r, 0, r.items.n));
    assert_string_equal(str_text(&r.err),
                        "prog: error: ONE_GONE: option --gone is not supported yet (see docs/compatibility.md)\n");
    opt_fini(&r);
}

static bool script(struct opt_run *r, struct values *v, uint32_t n, const char *const *word, const uint32_t *line) {
    *v = (struct values){0};
    opt_init(r, &stopping, "sbatch", v);
    return opt_scan_script(r, n, word, line) && opt_apply(r, 0, r->items.n);
}

static void script_lines(void **state) {
    struct opt_run r;
    struct values v;
    const uint32_t lines[] = {2, 2, 5};
    assert_true(script(&r, &v, 3, (const char *[]){"-t", "x", "-f"}, lines));
    assert_true(v.flag);
    assert_int_equal(r.items.p[1].line, 5);
    opt_fini(&r);
    assert_false(script(&r, &v, 3, (const char *[]){"-t", "x", "--bogus=1"}, lines));
    assert_int_equal(r.exit_code, 255);
    assert_string_equal(str_text(&r.err), "sbatch: unrecognized option '--bogus=1'\n"
                                          "Try \"sbatch --help\" for more information\n"
                                          "sbatch: error: in line 5 of the batch script\n");
    opt_fini(&r);
    assert_false(script(&r, &v, 3, (const char *[]){"-t", "x", "word"}, lines));
    assert_string_equal(str_text(&r.err), "sbatch: error: Invalid argument in line 5 of the batch script: word\n");
    opt_fini(&r);
    assert_false(script(&r, &v, 3, (const char *[]){"-f", "-f", "-t"}, lines));
    assert_true(strstr(str_text(&r.err), "option requires an argument -- 't'") != NULL);
    opt_fini(&r);
    assert_false(script(&r, &v, 2, (const char *[]){"-g", "1"}, lines));
    assert_string_equal(str_text(&r.err), "sbatch: error: line 2 of the batch script: option --gone is not supported yet "
                                          "(see docs/compatibility.md)\n");
    opt_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),
        cmocka_unit_test(maybe),
        cmocka_unit_test(stops_at_the_script),
        cmocka_unit_test(messages),
        cmocka_unit_test(short_forms_of_names),
        cmocka_unit_test(help_is_what_the_table_says),
        cmocka_unit_test(variables),
        cmocka_unit_test(a_variable_of_what_is_not_there_is_refused),
        cmocka_unit_test(script_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
