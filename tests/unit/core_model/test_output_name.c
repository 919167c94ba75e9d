/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/model/text.h"

static const struct name_facts batch = {.job_id = 518, .array_task_id = UINT32_MAX, .step_id = STEP_BATCH,
                                        .job_name = "nm", .user = "alice", .node_name = "n1", .work_dir = "/home/alice"};
static const struct name_facts task = {.job_id = 519, .array_job_id = 517, .array_task_id = 7, .step_id = 0,
                                       .node_index = 3, .task_rank = 12, .job_name = "a b", .user = "bob",
                                       .node_name = "n4", .work_dir = "/w/"};

static void expect(const struct name_facts *f, const char *pattern, const char *want) {
    auto_str s = {0};
    output_name(pattern, f, &s);
    assert_string_equal(str_text(&s), want);
}

static void patterns(void **state) {
    expect(&batch, "o-%x-%j-%A-%a-%u-%N-%n-%t-%%-%5j-%b.out",
           "/home/alice/o-nm-518-518-4294967294-alice-n1-0-0-%-00518-4.out");
    expect(&batch, "slurm-%j.out", "/home/alice/slurm-518.out");
    expect(&batch, "/tmp/%s.%J", "/tmp/batch.518.batch");
    expect(&batch, "job_%A.%a.out", "/home/alice/job_518.4294967294.out");
    expect(&task, "a-%A_%a-%4a-%j.out", "/w/a-517_7-0007-519.out");
    expect(&task, "o%2t.txt", "/w/o12.txt");
    expect(&task, "%4t-%3n-%2s-%N", "/w/0012-003-00-n4");
    expect(&task, "e%J.txt", "/w/e519.0.txt");
    expect(&task, "%5J", "/w/00519.0");
    expect(&task, "%x/%u", "/w/a b/bob");
    expect(&task, "%b", "/w/7");
}

static void oddities(void **state) {
    expect(&batch, "%10j", "/home/alice/0000000518");
    expect(&batch, "%11j", "/home/alice/0000000518");
    expect(&batch, "%99999999999999999999j", "/home/alice/0000000518");
    expect(&batch, "%0j", "/home/alice/518");
    expect(&batch, "%", "/home/alice/%");
    expect(&batch, "100%", "/home/alice/100%");
    expect(&batch, "%5", "/home/alice/%5");
    expect(&batch, "%z-%5z", "/home/alice/%z-%5z");
    expect(&batch, "%%j", "/home/alice/%j");
    expect(&batch, "%%%j", "/home/alice/%518");
    expect(&batch, "\\%j.out", "/home/alice/%j.out");
    expect(&batch, "/x/%j\\.out", "/x/%j.out");
    expect(&batch, "/abs", "/abs");
    expect(&batch, "", "/home/alice/");
    struct name_facts bare = {.job_id = 1, .array_task_id = UINT32_MAX};
    expect(&bare, "%x%u%N%j", "1");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(patterns), cmocka_unit_test(oddities)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
