/* SPDX-License-Identifier: Apache-2.0
 *
 * Node lists: what is read, printed and read again is the same; the order of names is one.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "core/model/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto_arena a = {0};
    auto_str printed = {0};
    const char *text = arena_strndup(&a, (const char *)data, size), *const *names, *const *again;
    uint32_t n, m;
    struct err e = {0};
    if (hostlist_expand(text, &a, &names, &n, &e)) {
        must(e.code < 0 && *e.text);
        return 0;
    }
    hostlist_compact(names, n, &printed);
    must(hostlist_expand(str_text(&printed), &a, &again, &m, &e) == 0);
    must(n == m);
    for (uint32_t i = 0; i < n; i++) {
        must(str_eq(names[i], again[i]));
        must(i == 0 || (hostname_compare(names[i], names[i - 1]) < 0) == (hostname_compare(names[i - 1], names[i]) > 0));
    }
    return 0;
}
