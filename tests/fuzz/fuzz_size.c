/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes come back from their print; counts keep their bounds; output names stay in proportion.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto_arena a = {0};
    auto_str s = {0};
    const char *text = arena_strndup(&a, (const char *)data, size);
    uint64_t mb, again, count;
    uint32_t min, max;
    struct err e = {0};
    if (size_mb_parse(text, &mb) == 0 && mb < (1ull << 40)) {
        size_mb_print(mb, &s);
        if (strpbrk(str_text(&s), "PE.") == NULL)
            must(size_mb_parse(str_text(&s), &again) == 0 && again == mb);
    }
    if (count_parse(text, 1000000, &count) == 0)
        must(count <= 1000000);
    if (node_count_parse(text, &min, &max, &e) == 0)
        must(min <= max);
    else
        must(*e.text);
    struct name_facts f = {.job_id = 1, .array_task_id = UINT32_MAX, .step_id = STEP_BATCH, .work_dir = "/w"};
    str_clear(&s);
    output_name(text, &f, &s);
    must(s.n <= 3 + size * 20);
    return 0;
}
