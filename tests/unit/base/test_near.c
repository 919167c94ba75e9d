/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "base/near.h"

static const char *best(const char *word) {
    static const char *const names[] = {"partition", "parsable", "mem", "mem-per-cpu", "nodes", "ntasks", "n1", "n2", "JobID"};
    struct near n = near_to(word);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        near_try(&n, names[i]);
    return n.best;
}

static void nearest(void **state) {
    assert_string_equal(best("partion"), "partition");
    assert_string_equal(best("aprtition"), "partition");
    assert_string_equal(best("PARTITIONS"), "partition");
    assert_string_equal(best("mem-per-cup"), "mem-per-cpu");
    assert_string_equal(best("jobid"), "JobID");
    assert_string_equal(best("nodse"), "nodes");
    assert_string_equal(best("nem"), "mem");
}

static void none(void **state) {
    char giant[100];
    memset(giant, 'p', sizeof(giant) - 1);
    giant[sizeof(giant) - 1] = 0;
    assert_null(best("bogus-option"));
    assert_null(best(""));
    assert_null(best("xyz"));
    assert_null(best(giant));
    struct near n = near_to("mem");
    near_try(&n, "mem"); /* itself */
    near_try(&n, NULL);
    near_try(&n, giant);
    assert_null(n.best);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nearest), cmocka_unit_test(none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
