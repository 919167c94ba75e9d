/* SPDX-License-Identifier: Apache-2.0
 *
 * What users write for columns: squeue's and sinfo's -o and -O, sacct's -o, the order of -S. The first byte says whose. A
 * heading has what its columns say, and what JSON is made of any text is ASCII-safe JSON.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "spur/job_fields.h"
#include "spur/node_fields.h"
#include "spur/sacct.h"
#include "spur/table_order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void table(const struct table_fields *f, unsigned how, const char *text) {
    struct table t;
    auto_str head = {0};
    const char *bad = NULL;
    size_t n_bad = 0;
    table_init(&t, f);
    if (how == 0)
        table_parse_percent(&t, text);
    else if (how == 1)
        table_parse_long(&t, text);
    else if (!sacct_parse(&t, text, &bad, &n_bad))
        must(bad >= text && bad + n_bad <= text + strlen(text));
    size_t width = 0;
    for (size_t i = 0; i < t.cols.n; i++) {
        must(t.cols.p[i].width >= 0);
        width += (size_t)t.cols.p[i].width + 1;
    }
    if (width > 1u << 20) { /* asked for; not worth the memory here */
        table_fini(&t);
        return;
    }
    table_head(&t, &head);
    struct sacct_style style = {.parsable = true, .delimiter = "|"};
    if (how == 2)
        sacct_head(&t, &style, &head);
    table_fini(&t);
}

static void json(const char *text) {
    auto_str out = {0};
    json_text_value(&out, text);
    must(out.n >= 2 && out.p[0] == '"' && out.p[out.n - 1] == '"');
    for (size_t i = 1; i + 1 < out.n; i++) {
        must((uint8_t)out.p[i] >= 0x20 && out.p[i] != '"');
        if (out.p[i] == '\\') {
            i++;
            must(i + 1 < out.n);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1 || n > 4096)
        return 0;
    auto_arena a = {0};
    const char *text = arena_strndup(&a, (const char *)data + 1, n - 1);
    const struct table_fields *f = data[0] & 1 ? node_fields() : job_fields();
    unsigned how = data[0] >> 1 & 3;
    if (how < 2) {
        table(f, how, text);
    } else if (how == 2) {
        table(sacct_fields(), 2, text);
    } else {
        struct table_order o = {.fields = f};
        char bad;
        if (table_order_parse(&o, text, &bad))
            must(o.n <= ARRAY_LEN(o.field));
    }
    json(text);
    return 0;
}
