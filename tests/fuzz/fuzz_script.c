/* SPDX-License-Identifier: Apache-2.0
 *
 * #SBATCH lines: words come with rising lines; a refusal has a reason.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "core/model/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto_arena a = {0};
    const char *const *words;
    const uint32_t *lines;
    uint32_t n;
    struct err e = {0};
    if (script_options((const char *)data, size, &a, &words, &lines, &n, &e)) {
        must(e.code < 0 && *e.text);
        return 0;
    }
    for (uint32_t i = 0; i < n; i++)
        must(words[i] && lines[i] >= 1 && (i == 0 || lines[i] >= lines[i - 1]));
    return 0;
}
