/* SPDX-License-Identifier: Apache-2.0
 *
 * docs/compatibility.md: Slurm's own tests, and why some don't pass.
 */
#include "base/mem.h"
#include "spur/compat.h"

static const struct {
    const char *files, *why;
} missing[] = {
#define MISSING(files, why) {files, why},
#include "spur/slurm_suite.def"
#undef MISSING
};

void compat_suite(struct str *out) {
    str_add(out, "\n## Slurm's own tests\n\n"
                 "Slurm's Python tests run against these programs, unmodified (`tests/clients/test_slurm_suite.py`); the files that pass are\n"
                 "those of `tests/clients/slurm.passing`, a list that only grows. The others, `x` for the older ones in Expect:\n\n"
                 "| files | why they don't pass |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(missing); i++)
        str_addf(out, "| %s | %s |\n", missing[i].files, missing[i].why);
}
