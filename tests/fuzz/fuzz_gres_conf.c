/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's --gres and its gres.conf. The first byte says which. Counts never overflow, kinds are there once.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "spurd/gres.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1 || n > 8192)
        return 0;
    auto_arena a = {0};
    char *text = arena_strndup(&a, (const char *)data + 1, n - 1), *rest = text;
    struct gres_list list = {0};
    struct err e = {0};
    const char *first = strsep(&rest, "\n");
    int rc = data[0] & 1 ? gres_read(first, rest, &a, &list, &e)
                         : gres_config_read(arena_strndup(&a, (const char *)data + 1, n - 1), "n1", &a, &list, &e);
    if (rc) {
        must(rc < 0 && *e.text);
        return 0;
    }
    for (uint32_t i = 0; i < list.n; i++)
        must(list.p[i].name && *list.p[i].name);
    return 0;
}
