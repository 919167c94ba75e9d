/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/model/text.h"

/* The words as w|w|w with their lines in front: "2:-n|2:2". */
static void expect(const char *script, const char *want) {
    auto_arena a = {0};
    auto_str s = {0};
    struct err e = {0};
    const char *const *words;
    const uint32_t *lines;
    uint32_t n;
    if (script_options(script, strlen(script), &a, &words, &lines, &n, &e))
        fail_msg("%s: %s", script, e.text);
    for (uint32_t i = 0; i < n; i++)
        str_addf(&s, "%s%u:%s", i ? "|" : "", lines[i], words[i]);
    assert_string_equal(str_text(&s), want);
}

static void options(void **state) {
    expect("#!/bin/bash\n#SBATCH -J demo\n#SBATCH -n1\n#SBATCH -t 10\necho hello\n", "2:-J|2:demo|3:-n1|4:-t|4:10");
    expect("#!/bin/bash\n#SBATCH -N 1 --ntasks-per-node 2 -J \"a:b+c\" -t 0:05:00   # note\n##SBATCH -N 4\necho hi\n"
           "#SBATCH -N 3\n",
           "2:-N|2:1|2:--ntasks-per-node|2:2|2:-J|2:a:b+c|2:-t|2:0:05:00");
    expect("#!/bin/bash\n#SBATCH -n 2 # two tasks\n#SBATCH --job-name=\"a b\" -t 5\n  #SBATCH -J indented\n"
           "#sbatch -J lower\n##SBATCH -J double\ntrue\n",
           "2:-n|2:2|3:--job-name=a b|3:-t|3:5");
    expect("#!/bin/bash\n#SBATCH\n#SBATCH -t\n", "3:-t");
    expect("#!/bin/bash", "");
    expect("#!/bin/bash\n", "");
    expect("#!/bin/bash\n\n   \n# words\n\t# more\n#SBATCH -H\n", "6:-H");
    expect("#!/bin/bash\necho\n#SBATCH -H\n", "");
    expect("#!/bin/bash\n#SBATCH -J a\\ b -C 'x y'\"z\" -A it\\'s\n", "2:-J|2:a b|2:-C|2:x yz|2:-A|2:it's");
    expect("#!/bin/bash\n#SBATCH --comment=\"a # b\" -J c#d e\n", "2:--comment=a # b|2:-J|2:c");
    expect("#!/bin/bash\n#SBATCH --comment='a \\' b'\n", "2:--comment=a ' b");
    expect("#!/bin/bash\n#SBATCH -J \"\" -H\n", "2:-J|2:|2:-H");
    expect("#!/bin/bash\n#SBATCH -J x\\#y\n", "2:-J|2:x#y");
    expect("#!/bin/bash\n#SBATCHX -H\n#SBATCH\t-J\tt\n#SBATCH-n 2\n", "3:-J|3:t|4:-n|4:2");
    expect("#!/bin/bash\n#SBATCH -J last", "2:-J|2:last");
    expect("#!/usr/bin/env bash\n#SBATCH -J k\xc3\xa4se\n", "2:-J|2:k\xc3\xa4se");
    expect("#!/bin/sh\n#PBS -N pbsname\n#SBATCH -t 5 -H\n", "3:-t|3:5|3:-H");
    expect("#!/bin/sh\n#SBATCH --export=ALL,A=\"x y\",B=2\n", "2:--export=ALL,A=x y,B=2");
    expect("#!/bin/sh\n#SBATCH trailing\\\n", "2:trailing\\");
    expect("#!/bin/sh -x\n#SBATCH --signal=B:USR1@60 --dependency singleton\n",
           "2:--signal=B:USR1@60|2:--dependency|2:singleton");
}

static void refusals(void **state) {
    static const struct {
        const char *text;
        size_t n;
        const char *why;
        int code;
    } rows[] = {
        {"", 0, "Batch script is empty!", E_SCRIPT},
        {"echo no shebang\n", 16,
         "This does not look like a batch script.  The first\n"
         "line must start with #! followed by the path to an interpreter.\n"
         "For instance: #!/bin/sh",
         E_SCRIPT},
        {"\n#!/bin/bash\ntrue\n", 18,
         "This does not look like a batch script.  The first\n"
         "line must start with #! followed by the path to an interpreter.\n"
         "For instance: #!/bin/sh",
         E_SCRIPT},
        {"#", 1,
         "This does not look like a batch script.  The first\n"
         "line must start with #! followed by the path to an interpreter.\n"
         "For instance: #!/bin/sh",
         E_SCRIPT},
        {"#!/bin/bash\n\0x\n", 15,
         "The Slurm controller does not allow scripts that\ncontain a NULL character '\\0'.", E_SCRIPT},
        {"#!/bin/bash\r\n#SBATCH -J x\r\n", 27,
         "Batch script contains DOS line breaks (\\r\\n)\ninstead of expected UNIX line breaks (\\n).", E_SCRIPT},
        {"#!/bin/sh\n#SBATCH -J \"x\n", 24, "line 2: Unmatched `\"` in [ -J \"x]", E_SCRIPT},
        {"#!/bin/sh\n#SBATCH -J a\n#SBATCH 'x # y\n", 38, "line 3: Unmatched `'` in [ 'x # y]", E_SCRIPT},
        {"#!/bin/sh\n#SBATCH hetjob\n", 25, "line 2: heterogeneous jobs (#SBATCH hetjob) are not supported yet",
         E_UNSUPPORTED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_arena a = {0};
        struct err e = {0};
        const char *const *words = NULL;
        uint32_t n = 7;
        assert_int_equal(script_options(rows[i].text, rows[i].n, &a, &words, NULL, &n, &e), rows[i].code);
        assert_string_equal(e.text, rows[i].why);
        assert_int_equal(n, 7);
    }
    assert_int_equal(script_check("#!/bin/sh\n#SBATCH \"\n", 20, NULL), 0);
    assert_int_equal(script_check("#!", 2, NULL), 0);
    assert_int_equal(script_check("#!/bin/sh\na\rb\n", 14, NULL), 0);
}

static void bounds(void **state) {
    auto_str s = {0};
    auto_arena a = {0};
    const char *const *words;
    uint32_t n;
    str_add(&s, "#!/bin/sh\n#SBATCH");
    for (int i = 0; i < 4096; i++)
        str_add(&s, " x");
    assert_int_equal(script_options(s.p, s.n, &a, &words, NULL, &n, NULL), 0);
    assert_int_equal(n, 4096);
    str_add(&s, " x");
    assert_int_equal(script_options(s.p, s.n, &a, &words, NULL, &n, NULL), E_SCRIPT);
    str_clear(&s);
    str_add(&s, "#!/bin/sh\n");
    for (int i = 0; i < 200000; i++)
        str_addf(&s, "# %d\n", i);
    str_add(&s, "#SBATCH -J deep\necho T$SLURM_ARRAY_TASK_ID\n");
    assert_int_equal(script_options(s.p, s.n, &a, &words, NULL, &n, NULL), 0);
    assert_int_equal(n, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(options), cmocka_unit_test(refusals),
                                       cmocka_unit_test(bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
