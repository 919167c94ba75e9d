/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependencies: a job id where one belongs; a refusal has a reason.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "core/model/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto_arena a = {0};
    auto_str s = {0};
    const char *text = arena_strndup(&a, (const char *)data, size);
    const struct dep *d;
    uint32_t n;
    struct err e = {0};
    if (deps_parse(text, ~0u, &a, &d, &n, &e)) {
        must(e.code < 0 && *e.text);
        return 0;
    }
    for (uint32_t i = 0; i < n; i++)
        must((d[i].kind == DEP_SINGLETON) == (d[i].job_id == 0));
    deps_print(d, n, &s);
    must((n == 0) == (s.n == 0));
    return 0;
}
